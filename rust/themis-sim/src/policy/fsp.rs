//! Fair sojourn: the order of finish under fair sharing (Friedman and Henderson, SIGMETRICS 2003).

use std::collections::BTreeMap;

use super::Policy;
use super::in_order::{least_first, millionths};
use crate::plan::Plan;
use crate::view::View;

/// Beside the cluster a virtual one is played in which each of the N apps there has 1/N of the
/// GPUs, perfectly placed, up to its demand and no faster than its longest job (the
/// `demand_capped` ideal time). The app that ends first there goes first here and takes all that
/// it can use. Ties: earlier arrival, then app id.
///
/// An app stays in the virtual cluster until it ends there, however early it ends here. A job that
/// is submitted later than its app counts from the first decision after that. Cost: O(apps^2) an
/// arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Fsp {
    shares: Shares,
    /// When each app ends there if nobody else comes; empty where that was not asked since
    /// somebody came.
    ends_s: BTreeMap<u32, f64>,
}

/// The virtual cluster at one instant.
#[derive(Clone, Debug, Default)]
struct Shares {
    at_s: f64,
    apps: BTreeMap<u32, Share>,
}

/// An app's progress, in seconds that it would need alone.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all_s: f64,
    served_s: f64,
    /// Seconds on the workload's clock.
    ended_at: Option<f64>,
}

impl Policy for Fsp {
    fn name(&self) -> &'static str {
        "fsp"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        self.take_in(view);
        let competes = view.wanting().nth(1).is_some();
        if competes && self.ends_s.is_empty() {
            let mut future = self.shares.clone();
            future.play(view, f64::INFINITY);
            let end_s = |(app, share): (u32, Share)| (app, share.ended_at.unwrap_or(f64::INFINITY));
            self.ends_s = future.apps.into_iter().map(end_s).collect();
        }
        least_first(view, |app| self.ends_s.get(&app).map_or(0, |end_s| millionths(*end_s)))
    }
}

impl Fsp {
    /// Plays the virtual cluster on to what is new in this one.
    fn take_in(&mut self, view: &View<'_>) {
        let before = self.shares.apps.len();
        for app in view.active_apps() {
            let all_s = view.fair_time_s(app, 1.0);
            let known = self.shares.apps.get(&app);
            if known.is_none_or(|share| share.all_s.total_cmp(&all_s).is_ne()) {
                let since_us = if known.is_some() { view.now_us() } else { view.arrival_us(app) };
                self.shares.play(view, since_us as f64 / 1e6);
                let share = self.shares.apps.entry(app).or_default();
                (share.all_s, share.ended_at) = (all_s, None);
                self.ends_s.clear();
            }
        }
        if self.shares.apps.len() > before {
            self.shares.forget(view);
        }
    }
}

impl Shares {
    /// Plays on to an instant; one that is past changes nothing.
    fn play(&mut self, view: &View<'_>, until_s: f64) {
        while self.at_s < until_s {
            let open = self.apps.iter_mut().filter(|(_, share)| share.ended_at.is_none());
            let mut open: Vec<(u32, &mut Share)> = open.map(|(app, share)| (*app, share)).collect();
            let n = open.len() as f64;
            // Seconds that an app needs among n for each that it would need alone.
            let paces: Vec<f64> = open
                .iter()
                .map(|(app, share)| (view.fair_time_s(*app, n) / share.all_s).max(1.0))
                .collect();
            let left_s = |share: &Share, pace: f64| (share.all_s - share.served_s).max(0.0) * pace;
            let each = open.iter().zip(&paces).map(|((_, share), pace)| left_s(share, *pace));
            let next_s = each.fold(f64::INFINITY, f64::min);
            let step_s = next_s.min(until_s - self.at_s);
            if step_s.is_infinite() {
                return; // nobody is left
            }
            for ((_, share), pace) in open.iter_mut().zip(&paces) {
                if left_s(share, *pace) <= step_s * (1.0 + 1e-12) {
                    share.ended_at = Some(self.at_s + step_s);
                }
                share.served_s += step_s / pace;
            }
            self.at_s += step_s;
        }
    }

    /// Drops apps that have ended here and there.
    fn forget(&mut self, view: &View<'_>) {
        let active: Vec<u32> = view.active_apps().collect();
        self.apps
            .retain(|app, share| share.ended_at.is_none() || active.binary_search(app).is_ok());
    }
}
