//! rho of winning nothing: what a bidder loses if it goes home without GPUs.

use crate::app::AppState;
use crate::cluster::Topology;

/// The rule for an app without unexpired GPUs to run on; with some, it is always rho at those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OutsideOption {
    /// A lease later with the smallest usable bundle, badly placed: finite, and worse than every
    /// bundle that could be won now.
    #[default]
    MinBundle,
    /// A lease later with the fair share. A trap, kept for comparison: offers below the fair share
    /// are then declined.
    FairShare,
    /// The last rho, growing with every minute waited.
    Cached,
    /// Unbounded: first the most bidders served, then the product (the paper's words).
    Unbounded,
}

/// What the rules look at beside the app itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutsideContext {
    /// Length of a lease.
    pub lease_s: f64,
    /// `R_C`: GPUs of the cluster, in units of the app's own speed.
    pub gpus: f64,
    /// Mean number of active apps over the app's life.
    pub n_avg: f64,
    /// The app's last rho with GPUs and the seconds waited since, if it ever had some.
    pub last: Option<(f64, f64)>,
}

impl OutsideOption {
    /// rho of winning nothing; `None`: unbounded.
    pub fn rho_empty(self, app: &AppState, topology: &Topology, at: OutsideContext) -> Option<f64> {
        // GPUs that no job can run on are worth no more than none.
        let held_rates = app.held_rates(topology);
        if held_rates.iter().any(|rate| *rate > 0.0) {
            return Some(app.rho_at(&held_rates));
        }
        let later = app.elapsed_s + at.lease_s;
        let min_bundle = || Some((later + app.time_at_smallest_bundle()) / app.t_id_s);
        match (self, at.last) {
            (Self::MinBundle, _) | (Self::Cached, None) => min_bundle(),
            (Self::FairShare, _) => {
                let share = at.gpus / at.n_avg.max(1.0);
                Some((later + app.time_at_share(share)) / app.t_id_s)
            }
            (Self::Cached, Some((rho, waited_s))) => Some(rho * (1.0 + waited_s / 60.0)),
            (Self::Unbounded, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SlotId;
    use crate::app::{Job, Profile, Stopping};
    use crate::cluster::MachineSpec;

    #[test]
    fn each_rule_gives_its_own_rho() {
        let t = Topology::new(&[MachineSpec { rack: 0, gpus: 8, slot_gpus: 8 }]).expect("valid");
        let s = Profile::new([1.0, 1.0, 1.0, 2.0]).expect("valid");
        let mut app = AppState::new(100.0, 50.0, Stopping::All, vec![Job::waiting(2, 8, 800.0, s)]);
        let mut at = OutsideContext { lease_s: 600.0, gpus: 8.0, n_avg: 2.0, last: None };
        let rho = |o: OutsideOption, app: &AppState, at| o.rho_empty(app, &t, at);
        // Gang of 2 across the cluster: rate 1. Fair share: 4 GPUs.
        assert_eq!(rho(OutsideOption::MinBundle, &app, at), Some((700.0 + 800.0) / 50.0));
        assert_eq!(rho(OutsideOption::FairShare, &app, at), Some((700.0 + 200.0) / 50.0));
        assert_eq!(rho(OutsideOption::Unbounded, &app, at), None);
        assert_eq!(rho(OutsideOption::Cached, &app, at), Some(1500.0 / 50.0));
        at.last = Some((2.0, 180.0));
        assert_eq!(rho(OutsideOption::Cached, &app, at), Some(8.0));
        app.hold(0, &[(SlotId(0), 1)].into_iter().collect());
        assert_eq!(rho(OutsideOption::MinBundle, &app, at), Some(1500.0 / 50.0));
        app.hold(0, &[(SlotId(0), 3)].into_iter().collect());
        assert_eq!(rho(OutsideOption::Unbounded, &app, at), Some((100.0 + 200.0) / 50.0));
    }
}
