//! First in, first out with backfill: EASY (Lifka 1995; Mu'alem and Feitelson 2001).

use super::fifo::in_line;
use super::{Grant, Plan, Policy};
use crate::view::View;

/// Fifo, but while the head of the line waits for its gang, jobs behind it start if that can't
/// delay it: they end before it could start, or leave it GPUs enough. Judged by requested times,
/// not true ones ([`View::requested_us`]); a job that has overrun its request is expected to end
/// any moment, and none is killed for it. The head has the only reservation. Ties as in fifo.
#[derive(Clone, Copy, Debug)]
pub(super) struct FifoBackfill;

impl Policy for FifoBackfill {
    fn name(&self) -> &'static str {
        "fifo_backfill"
    }

    fn leases(&self) -> bool {
        false
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        in_line(view, |grants, head| Some(Reservation::of(view, grants, head)))
    }
}

/// The GPUs that the head of the line is promised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    /// When they should be free.
    at_us: i64,
    /// GPUs that should be free then beyond its gang.
    spare: u32,
}

impl Reservation {
    /// For a job that can't start beside these grants.
    fn of(view: &View<'_>, grants: &[Grant], head: u32) -> Self {
        let now_us = view.now_us();
        let ends = |since_us: i64, job| since_us.saturating_add(view.requested_us(job)).max(now_us);
        let begun = grants.iter().map(|grant| (ends(now_us, grant.job), grant.bundle.gpus()));
        let running = view.running_jobs().map(|(job, gpus, since_us)| (ends(since_us, job), gpus));
        let mut ends: Vec<(i64, u32)> = running.chain(begun).collect();
        ends.sort_unstable();
        let begun: u32 = grants.iter().map(|grant| grant.bundle.gpus()).sum();
        let mut free = view.offer().total() - begun;
        let mut at_us = now_us;
        for (end_us, gpus) in ends {
            if free >= view.gang(head) && end_us > at_us {
                break;
            }
            free += gpus;
            at_us = end_us;
        }
        Self { at_us, spare: free.saturating_sub(view.gang(head)) }
    }

    fn is_over_by_then(&self, view: &View<'_>, job: u32) -> bool {
        view.now_us().saturating_add(view.requested_us(job)) <= self.at_us
    }

    /// Most GPUs that a job behind may take.
    pub(super) fn room(&self, view: &View<'_>, job: u32) -> u32 {
        if self.is_over_by_then(view, job) { u32::MAX } else { self.spare }
    }

    /// A job behind starts.
    pub(super) fn let_in(&mut self, view: &View<'_>, job: u32, gpus: u32) {
        if !self.is_over_by_then(view, job) {
            self.spare -= gpus;
        }
    }
}
