//! What an app of many jobs could gain at most, at given prices.
//!
//! Patterns are a choice among the ways to serve many jobs; the auction's bound must hold for all
//! of them. log V is concave in the sum of rates, so it lies below its tangent at any rate r:
//! log V(R) <= log V(r) + slope(r) (R - r). On the tangent the jobs part: each takes the size and
//! locality whose rate, at that slope, is worth more than its price. The tangent that gives the
//! least is sought by bisection, and any tangent gives a valid bound.
//!
//! Equal jobs need no tangent: for every number of them, the reachable (rate, price) pairs are a
//! polygon between the localities, and a concave function less a linear one is largest on its edges.
//! The corners are patterns, all jobs at one locality, so that only the inside of an edge is new.

use smallvec::SmallVec;

use crate::app::ladder::loosest;
use crate::app::{AppState, Job, Stake, Stopping, Value};
use crate::cluster::{Chunks, FreeSet, Locality, MAX_ROWS, Use, Within};

/// The ways to serve each job, one job at a time.
#[derive(Clone, Debug)]
pub struct Relaxed<'a> {
    value: &'a Value,
    stopping: Stopping,
    floor: f64,
    /// The sum of rates on what its jobs keep, for `All`.
    held_rate: f64,
    /// (gain in rate, use) of every size and locality, by job; for `First` the job's rate.
    jobs: SmallVec<[Vec<(f64, Use)>; 1]>,
    /// The work left of each, for `First`.
    work_left: Vec<f64>,
    /// How many jobs want GPUs, when these are rigid, alike and hold nothing.
    alike: Option<usize>,
    /// GPUs on offer.
    gpus: u32,
    /// Those that its jobs keep beside, of which some may have been too few for a gang.
    held_gpus: u32,
}

const TANGENTS: u32 = 20;

impl AppState {
    /// The relaxed app on an offer.
    pub fn relaxed<'a>(&self, stake: &'a Stake, offer: &FreeSet, chunks: &Chunks) -> Relaxed<'a> {
        let openings = self.openings(offer);
        let alike = stake.alike;
        let some = if alike.is_some() { 1 } else { usize::MAX };
        let open = || self.jobs.iter().filter(|job| job.unmet() > 0).take(some);
        Relaxed {
            value: &stake.value,
            stopping: self.stopping,
            floor: stake.value.floor(),
            held_rate: stake.pace,
            jobs: open()
                .map(|job| {
                    let base = match self.stopping {
                        Stopping::All => job.rate_on(offer.topology(), &job.held),
                        Stopping::First => 0.0,
                    };
                    ways(job, openings.to(job.needs), chunks)
                        .into_iter()
                        .map(|(rate, uses)| (rate - base, uses))
                        .collect()
                })
                .collect(),
            work_left: match self.stopping {
                Stopping::All => Vec::new(),
                Stopping::First => open().map(|job| job.work_left_gpu_s).collect(),
            },
            alike,
            gpus: offer.total().min(self.spare_of(offer)),
            held_gpus: if alike.is_some() { 0 } else { self.held_gpus() },
        }
    }
}

/// (rate, use) of a job with every whole number of gangs at every reach.
fn ways(job: &Job, offer: &FreeSet, chunks: &Chunks) -> Vec<(f64, Use)> {
    let topology = offer.topology();
    let held = job.held.gpus();
    let held_level = topology.locality(&job.held);
    let mut ways = Vec::new();
    let pools = (0..job.speeds.pools().len() as u8).map(|at| job.pool_at(topology, at));
    for (pool, level) in pools.flat_map(|p| job.profile.distinct_levels().map(move |l| (p, l))) {
        let mut total = held;
        while total < job.max {
            let missing = job.gang.saturating_sub(total);
            let piece = if missing > 0 { missing } else { job.gang };
            total = (total + piece.max(1)).min(job.max);
            let level =
                loosest(job, if total == 1 { Locality::Slot } else { level }).max(held_level);
            let within = Within { level, types: pool.types };
            if total - held > chunks.room(offer, &job.held, within) {
                break;
            }
            let mut uses = Use::default();
            chunks.grow(&mut uses, within, 0, total - held);
            ways.push((job.rate_at(total, level) * pool.speed, uses));
        }
    }
    ways
}

impl Relaxed<'_> {
    /// max over all bundles that no pattern has of log V - price, from above.
    pub fn most(&self, prices: &[f64; MAX_ROWS]) -> f64 {
        match self.stopping {
            Stopping::First => {
                let each = self.jobs.iter().zip(&self.work_left);
                let best = each.flat_map(|(ways, work)| {
                    ways.iter()
                        .map(move |(rate, uses)| self.value.log_v(work / rate) - uses.cost(prices))
                });
                best.fold(self.floor, f64::max)
            }
            Stopping::All => match self.alike {
                Some(jobs) => self.most_alike(jobs, prices),
                None => self.most_of_all(prices),
            },
        }
    }

    /// The same for equal jobs: every number of them, between every two localities.
    fn most_alike(&self, jobs: usize, prices: &[f64; MAX_ROWS]) -> f64 {
        let ways = self.jobs.iter().find(|ways| !ways.is_empty());
        let mut ways: Vec<(f64, f64)> = ways
            .map(|ways| ways.iter().map(|(rate, uses)| (*rate, uses.cost(prices))).collect())
            .unwrap_or_default();
        undominated(&mut ways);
        let mut best = self.floor;
        let gang = self.jobs.first().and_then(|ways| ways.first()).map_or(1, |way| way.1.gpus());
        let jobs = jobs.min((self.gpus / gang.max(1)) as usize);
        for count in (1..=jobs).map(|count| count as f64) {
            for (at, one) in ways.iter().enumerate() {
                for other in &ways[at + 1..] {
                    best = best.max(self.on_edge(count, *one, *other));
                }
            }
        }
        best
    }

    /// The worth of so much more rate at this cost.
    fn at(&self, rate: f64, cost: f64) -> f64 {
        self.value.unfloored(self.held_rate + rate) - cost
    }

    /// Most worth of so many jobs, some real number of them one way and the others another way.
    fn on_edge(&self, jobs: f64, one: (f64, f64), other: (f64, f64)) -> f64 {
        let (rate, cost) = (jobs * (other.0 - one.0), jobs * (other.1 - one.1));
        // Inside, the slope of log V is the price of rate.
        let inside = self.value.rate_at_slope(cost / rate).map(|best| {
            let share = (best - self.held_rate - jobs * one.0) / rate;
            if (0.0..=1.0).contains(&share) {
                self.at(jobs * one.0 + share * rate, jobs * one.1 + share * cost)
            } else {
                f64::NEG_INFINITY
            }
        });
        inside.unwrap_or(f64::NEG_INFINITY)
    }

    fn most_of_all(&self, prices: &[f64; MAX_ROWS]) -> f64 {
        let costs: Vec<Vec<(f64, f64)>> = self
            .jobs
            .iter()
            .map(|ways| ways.iter().map(|(rate, uses)| (*rate, uses.cost(prices))).collect())
            .collect();
        let all: f64 = costs.iter().map(|ways| ways.iter().map(|w| w.0).fold(0.0, f64::max)).sum();
        // A GPU does at most one GPU-second of work a second.
        let most = (f64::from(self.gpus) + f64::from(self.held_gpus)).min(self.held_rate + all);
        // On the tangents jobs know of no cap: the least may be at a rate beyond it.
        let (mut low, mut high) = (self.held_rate.max(1e-9), (self.held_rate + all).max(1e-9));
        let mut best = self.value.unfloored(most.max(1e-9));
        for _ in 0..TANGENTS {
            let rate = (low * high).sqrt();
            let slope = self.value.slope(rate);
            let (mut gain, mut total) = (0.0, self.held_rate);
            for ways in &costs {
                let (mut most, mut at) = (0.0, 0.0);
                for (more, cost) in ways {
                    let net = slope * more - cost;
                    if net > most {
                        (most, at) = (net, *more);
                    }
                }
                gain += most;
                total += at;
            }
            let tangent = self.value.unfloored(rate) + slope * (self.held_rate - rate) + gain;
            best = best.min(tangent);
            // Where the jobs ask for more than the tangent's rate, the tangent is too steep.
            if total > rate {
                low = rate;
            } else {
                high = rate;
            }
        }
        best.max(self.floor)
    }
}

/// Keeps, of (rate, cost), those that are faster than every one that is no dearer.
fn undominated(ways: &mut Vec<(f64, f64)>) {
    ways.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(b.0.total_cmp(&a.0)));
    let mut fastest = f64::NEG_INFINITY;
    ways.retain(|way| {
        let faster = way.0 > fastest;
        fastest = fastest.max(way.0);
        faster
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::app::Profile;
    use crate::cluster::{MachineSpec, Topology, TypeSet};

    #[test]
    fn what_patterns_leave_out_is_worth_little_more() {
        let specs = [0, 0, 1].map(|rack| MachineSpec { rack, gpus: 4, slot_gpus: 2 });
        let offer = FreeSet::full(Arc::new(Topology::new(&specs).expect("valid")));
        let chunks = Chunks::of(&offer, &[2, 3], &[TypeSet::ALL]);
        let profile = Profile::new([1.0, 1.1, 1.5, 2.0]).expect("valid");
        let jobs: Vec<Job> =
            (1..6).map(|n| Job::waiting(2, 4, 100.0 * f64::from(n), profile.clone())).collect();
        let alike = vec![Job::waiting(2, 2, 300.0, profile.clone()); 5];
        let first = jobs.clone();
        let race = [900.0, 30.0].map(|work| Job::waiting(2, 2, work, profile.clone())).to_vec();
        // Equal rigid jobs are bounded closely; others by a fraction of a job more.
        let cases = [
            (Stopping::All, jobs, 0.6),
            (Stopping::First, first, 0.01),
            (Stopping::First, race, 0.01),
            (Stopping::All, alike, 0.05),
        ];
        for (stopping, jobs, close) in cases {
            let app = AppState::new(300.0, 100.0, stopping, jobs).with_rho_empty(Some(1e3));
            let stake = app.stake(offer.topology());
            let relaxed = app.relaxed(&stake, &offer, &chunks);
            for price in [0.0, 0.01, 0.05, 0.1, 0.3, 1.0] {
                for chunk in [0.0, 0.02, 0.2] {
                    let mut prices = [chunk; MAX_ROWS];
                    prices[0] = price;
                    let most = relaxed.most(&prices);
                    let patterns = app.patterns(&offer, &chunks);
                    let best = patterns.iter().map(|p| p.log_v - p.uses.cost(&prices));
                    let best = best.fold(app.log_v_empty(), f64::max);
                    if !stake.could_mix(&prices) {
                        assert!(most <= best + 1e-12, "{stopping:?} {price}: {most} {best}");
                    }
                    assert!(most - best < close, "{stopping:?} {price} {chunk}: {most} {best}");
                }
            }
        }
    }
}
