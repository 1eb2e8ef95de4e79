//! The two kinds of bidder: an app state that the core values itself, and an explicit table.

use crate::app::{AppState, Part, Pattern};
use crate::cluster::{Bundle, FreeSet, Host, Near, Topology, TypeSet};
use crate::ids::SlotId;

static NOTHING: Bundle = Bundle::EMPTY;

/// One row of an explicit bid.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// The GPUs asked for.
    pub bundle: Bundle,
    /// log V with them.
    pub log_v: f64,
}

/// An explicit bid: rows of arbitrary bundles (a user's own agent).
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// log V of winning nothing.
    pub log_v_empty: f64,
    /// The rows; the app gets one of them whole, or nothing.
    pub rows: Vec<TableRow>,
    /// What it has won in this round so far.
    pub held: Bundle,
}

/// An agent's answer to any offer.
#[derive(Clone, Debug, PartialEq)]
pub enum Bidder {
    /// Valued by the core from the app's state.
    App(AppState),
    /// Valued by its owner.
    Table(Table),
}

impl Bidder {
    /// log V of winning nothing.
    pub fn log_v_empty(&self) -> f64 {
        match self {
            Self::App(app) => app.log_v_empty(),
            Self::Table(table) => table.log_v_empty,
        }
    }

    /// What a job has a claim to already.
    pub(super) fn near(&self, job: usize) -> Near<'_> {
        match self {
            Self::App(app) => Near { held: &app.jobs[job].held, previous: &app.jobs[job].previous },
            Self::Table(_) => Near { held: &NOTHING, previous: &NOTHING },
        }
    }

    /// What each GPU of a job needs of its machine.
    pub(super) fn needs(&self, job: usize) -> Host {
        match self {
            Self::App(app) => app.jobs[job].needs,
            Self::Table(_) => Host::NONE,
        }
    }

    /// GPUs that it may still take of those that are free.
    pub(super) fn room(&self, free: &FreeSet) -> u32 {
        match self {
            Self::App(app) => free.room(app.tenant),
            Self::Table(_) => u32::MAX,
        }
    }

    /// log V with parts won elsewhere; of a table, that of the best row that asks for just these.
    pub(super) fn log_v_with(&self, topology: &Topology, parts: &[Part]) -> f64 {
        match self {
            Self::App(app) => {
                let mut after = app.clone();
                for part in parts {
                    after.hold(part.job, &part.bundle);
                }
                app.log_v_at(&after.held_rates(topology))
            }
            Self::Table(table) => {
                let won: Bundle = parts.iter().flat_map(|part| part.bundle.iter()).collect();
                let rows = table.rows.iter().filter(|row| row.bundle == won);
                rows.map(|row| row.log_v).fold(table.log_v_empty, f64::max)
            }
        }
    }

    /// The gang sizes that it asks for; of equal ones that follow one another, one.
    pub(super) fn gangs(&self) -> impl Iterator<Item = u32> + '_ {
        let jobs = match self {
            Self::App(app) => app.jobs.as_slice(),
            Self::Table(_) => &[],
        };
        let mut before = None;
        jobs.iter().map(|job| job.gang).filter(move |gang| before.replace(*gang) != Some(*gang))
    }

    /// The sets of GPU types that its jobs are bound to; of a table, none in particular.
    pub(super) fn pools(&self) -> impl Iterator<Item = TypeSet> + '_ {
        let jobs = match self {
            Self::App(app) => app.jobs.as_slice(),
            Self::Table(_) => &[],
        };
        // Jobs of one app mostly have the same ones.
        let mut before = None;
        let news = jobs.iter().filter(move |job| before.replace(&job.speeds) != Some(&job.speeds));
        let pools = news.flat_map(|job| job.speeds.pools().iter().map(|pool| pool.types));
        pools.chain(self.is_table().then_some(TypeSet::ALL))
    }

    /// A slot near which all that it can win must lie, for what it keeps; `None`: anywhere.
    pub(super) fn anchor(&self) -> Option<SlotId> {
        match self {
            Self::App(app) => match app.jobs.as_slice() {
                [job] => job.held.iter().next().map(|(slot, _)| slot),
                _ => None,
            },
            Self::Table(_) => None,
        }
    }

    /// How many GPU types a pattern may take: what is bound to few has to be placed first.
    pub(super) fn breadth(&self, pattern: &Pattern) -> u32 {
        let jobs = match self {
            Self::App(app) => app.jobs.as_slice(),
            Self::Table(_) => &[],
        };
        let types = jobs.first().map(|job| job.speeds.pool(usize::from(pattern.reach.pool)).types);
        types.map_or(0, TypeSet::len)
    }

    /// True for an explicit bid.
    pub(super) fn is_table(&self) -> bool {
        matches!(self, Self::Table(_))
    }

    /// One more claim on free GPUs after the auction, or `None` when none would help.
    pub(super) fn claim_one(&self, free: &FreeSet) -> Option<Part> {
        match self {
            Self::App(app) => app.claim_one(free).map(|(job, bundle)| Part { job, bundle }),
            Self::Table(table) => table.claim_one(free),
        }
    }

    /// All such claims, one after the other, taken and held.
    pub(super) fn claim_all(&mut self, free: &mut FreeSet) -> Vec<Part> {
        let mut parts = Vec::new();
        match self {
            Self::App(app) => {
                let claims = app.claim_all(free).into_iter();
                parts.extend(claims.map(|(job, bundle)| Part { job, bundle }));
            }
            Self::Table(table) => {
                while let Some(part) = table.claim_one(free) {
                    free.take(&part.bundle);
                    table.held.merge(&part.bundle);
                    parts.push(part);
                }
            }
        }
        parts
    }

    /// Whether leases of it have just ended.
    pub(super) fn resumes(&self) -> bool {
        match self {
            Self::App(app) => app.jobs.iter().any(|job| !job.previous.is_empty()),
            Self::Table(_) => false,
        }
    }

    /// GPUs that one of its jobs had until now and would go on with, or `None`; a table has no jobs.
    pub(super) fn resume_one(&self, free: &FreeSet) -> Option<Part> {
        match self {
            Self::App(app) => app.resume_one(free).map(|(job, bundle)| Part { job, bundle }),
            Self::Table(_) => None,
        }
    }

    /// Takes GPUs that are free, with what they need, and counts them for its tenant.
    pub(super) fn take(&self, free: &mut FreeSet, part: &Part) {
        match self {
            Self::App(app) => app.take(free, part.job, &part.bundle),
            Self::Table(_) => free.take(&part.bundle),
        }
    }

    /// Gives back GPUs that it took.
    pub(super) fn give(&self, free: &mut FreeSet, part: &Part) {
        match self {
            Self::App(app) => app.give(free, part.job, &part.bundle),
            Self::Table(_) => free.give(&part.bundle),
        }
    }

    /// Counts a part as held from now on.
    pub(super) fn hold(&mut self, part: &Part) {
        match self {
            Self::App(app) => app.hold(part.job, &part.bundle),
            Self::Table(table) => table.held.merge(&part.bundle),
        }
    }
}

impl Table {
    /// log V of what it holds: the best row inside, or nothing. Rows of no GPU say nothing.
    fn log_v_held(&self) -> f64 {
        let inside = |row: &&TableRow| {
            !row.bundle.is_empty() && row.bundle.iter().all(|(s, n)| self.held.in_slot(s) >= n)
        };
        let rows = self.rows.iter().filter(inside).map(|row| row.log_v);
        rows.fold(self.log_v_empty, f64::max)
    }

    /// What the best row that is still to be had lacks. Ties: fewest GPUs, then row order.
    fn claim_one(&self, free: &FreeSet) -> Option<Part> {
        let missing = |row: &TableRow| -> Bundle {
            row.bundle.iter().map(|(s, n)| (s, n.saturating_sub(self.held.in_slot(s)))).collect()
        };
        let floor = self.log_v_held();
        let mut best: Option<(f64, Bundle)> = None;
        for row in self.rows.iter().filter(|row| row.log_v > floor) {
            let bundle = missing(row);
            let better = best.as_ref().is_none_or(|(log_v, other)| {
                let order = row.log_v.total_cmp(log_v);
                order.then(other.gpus().cmp(&bundle.gpus())).is_gt()
            });
            if better && !bundle.is_empty() && free.has(&bundle) {
                best = Some((row.log_v, bundle));
            }
        }
        best.map(|(_, bundle)| Part { job: 0, bundle })
    }
}
