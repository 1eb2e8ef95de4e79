//! Charging the hidden payment when GPUs can't be cut.
//!
//! The paper multiplies a 0/1 vector by c. Here are five readings of that; docs/auction.md says
//! what each keeps, costs and deters.

use super::outcome::Entry;
use super::{Bidder, Draws, TableRow};
use crate::app::{AppState, Part, Placed};
use crate::cluster::{Bundle, FreeSet};

/// How a payment is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Payment {
    /// The whole bundle with probability c, else nothing.
    #[default]
    Lottery,
    /// The whole bundle for c of the lease.
    Lease,
    /// floor(c x gangs) of the gangs.
    Gpus,
    /// c x gangs, rounded at random so that the expectation is exact.
    GpusRandom,
    /// No payment.
    None,
}

/// Decides what a winner keeps of its win.
pub(super) fn charge(
    entry: &mut Entry,
    win: Option<Placed>,
    payment: Payment,
    offer: &FreeSet,
    draws: &mut dyn Draws,
) {
    let Some(win) = win else { return };
    let c = entry.c;
    match payment {
        Payment::None => entry.kept = win.parts,
        Payment::Lease => {
            entry.lease_fraction = c;
            entry.kept = win.parts;
        }
        // The draw is made even when c = 1, so that one app's payment moves nobody else's luck.
        Payment::Lottery => {
            if draws.lottery() < c {
                entry.kept = win.parts;
            }
        }
        Payment::Gpus => {
            let gangs = gangs_of(&entry.bidder, &win.parts);
            keep_gangs(entry, win.parts, (c * f64::from(gangs) + 1e-9).floor() as u32, offer);
        }
        Payment::GpusRandom => {
            let exact = c * f64::from(gangs_of(&entry.bidder, &win.parts)) + 1e-9;
            let up = draws.lottery() < exact.fract();
            keep_gangs(entry, win.parts, exact.floor() as u32 + u32::from(up), offer);
        }
    }
}

/// Gangs in a win: gang-sized pieces of its jobs, a part of a piece counted whole. A row of a
/// table counts its GPUs.
fn gangs_of(bidder: &Bidder, parts: &[Part]) -> u32 {
    parts.iter().map(|part| part.bundle.gpus().div_ceil(gang_of(bidder, part))).sum()
}

fn gang_of(bidder: &Bidder, part: &Part) -> u32 {
    match bidder {
        Bidder::App(app) => app.jobs[part.job].gang.max(1),
        Bidder::Table(_) => 1,
    }
}

/// Keeps so many gangs, those that run fastest: the payment drops what hurts S least.
fn keep_gangs(entry: &mut Entry, mut parts: Vec<Part>, gangs: u32, offer: &FreeSet) {
    if gangs_of(&entry.bidder, &parts) <= gangs {
        entry.kept = parts;
        return;
    }
    match &entry.bidder {
        Bidder::App(app) => {
            let topology = offer.topology();
            let speed = |part: &Part| {
                let job = &app.jobs[part.job];
                let all = job.held.union(&part.bundle);
                job.rate_on(topology, &all) / f64::from(all.gpus())
            };
            parts.sort_by(|a, b| speed(b).total_cmp(&speed(a)).then(a.job.cmp(&b.job)));
            let mut left = gangs;
            for part in parts {
                let gang = app.jobs[part.job].gang.max(1);
                if let Some(kept) = trim(app, &part, left.saturating_mul(gang), offer) {
                    left -= kept.bundle.gpus().div_ceil(gang);
                    entry.kept.push(kept);
                }
            }
        }
        Bidder::Table(table) => {
            let won: Bundle = parts.iter().flat_map(|part| part.bundle.iter()).collect();
            let inside = |bundle: &Bundle| bundle.iter().all(|(s, n)| won.in_slot(s) >= n);
            let small = |row: &TableRow| (1..=gangs).contains(&row.bundle.gpus());
            let rows = table
                .rows
                .iter()
                .filter(|row| row.log_v > table.log_v_empty && small(row) && inside(&row.bundle));
            let best = rows.reduce(|best, row| if row.log_v > best.log_v { row } else { best });
            entry.kept.extend(best.map(|row| Part { job: 0, bundle: row.bundle.clone() }));
        }
    }
}

/// At most `gpus` GPUs of a part, where the job runs fastest; `None` when it could not run.
fn trim(app: &AppState, part: &Part, gpus: u32, offer: &FreeSet) -> Option<Part> {
    if part.bundle.gpus() <= gpus {
        return Some(part.clone());
    }
    let mut job = app.jobs[part.job].clone();
    job.max = job.max.min(job.held.gpus() + gpus);
    let solo = AppState { jobs: vec![job], ..app.clone() };
    let (_, bundle) = solo.claim_one(&FreeSet::of(offer.shared_topology(), &part.bundle))?;
    Some(Part { job: part.job, bundle })
}
