//! Settings of a simulation.

use crate::error::SimError;
use themis_core::auction::Rules;
use themis_core::fairness::{FilterKey, OutsideOption, TIdReading};
use themis_core::schedulers::SchedulerRules;

/// When leases end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LeaseMode {
    /// All on common multiples of the lease, so that large gangs see the whole cluster at once.
    #[default]
    Aligned,
    /// Each grant on its own clock (the paper).
    Rolling,
}

/// What a simulation is told beside cluster, workload and policy. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Visibility, payment and leftovers of the auction.
    pub rules: Rules,
    /// Length of a lease.
    pub lease_us: i64,
    /// When leases end.
    pub lease_mode: LeaseMode,
    /// No lease that a payment shortened is shorter.
    pub min_lease_us: i64,
    /// rho of winning nothing.
    pub outside_option: OutsideOption,
    /// Who is worst off.
    pub filter_key: FilterKey,
    /// The reading of `T_ID`.
    pub t_id: TIdReading,
    /// What app schedulers are told.
    pub schedulers: SchedulerRules,
    /// How much longer than a job needs its user asks for.
    pub request_factor: f64,
    /// A job that goes on elsewhere works again only after this long...
    pub restart_us: i64,
    /// ...and this long, unless the job says otherwise, for its checkpoint.
    pub checkpoint_us: i64,
    /// A job that works saves its state as often as this; `None`: never.
    pub checkpoint_every_us: Option<i64>,
    /// GPUs are set aside for a gang that has waited so long; `None`: for none.
    pub reserve_after_us: Option<i64>,
    /// Mean time to failure of a machine; `None`: none fails by chance.
    pub mtbf_us: Option<i64>,
    /// Mean time to its repair.
    pub mttr_us: i64,
    /// Failures after which a repaired machine is left alone; `None`: never.
    pub quarantine_after: Option<u32>,
    /// For so long, and if they were no further apart.
    pub quarantine_us: i64,
    /// Stop here.
    pub horizon_us: Option<i64>,
    /// Seeds every random choice.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            lease_us: 600_000_000,
            lease_mode: LeaseMode::default(),
            min_lease_us: 60_000_000,
            outside_option: OutsideOption::default(),
            filter_key: FilterKey::default(),
            t_id: TIdReading::default(),
            schedulers: SchedulerRules::default(),
            request_factor: 2.0,
            restart_us: 35_000_000,
            checkpoint_us: 8_000_000,
            checkpoint_every_us: Some(1_800_000_000),
            reserve_after_us: None,
            mtbf_us: None,
            mttr_us: 3_600_000_000,
            quarantine_after: None,
            quarantine_us: 86_400_000_000,
            horizon_us: None,
            seed: 0,
        }
    }
}

/// No time of a simulation goes beyond this (some 140,000 years).
pub(crate) const LATEST_US: i64 = 1 << 62;

impl Settings {
    /// Refuses values out of range.
    ///
    /// # Errors
    /// [`SimError::Settings`] naming the first one.
    pub fn check(&self) -> Result<(), SimError> {
        let refuse =
            |field, value: String, expected| Err(SimError::Settings { field, value, expected });
        let f = self.rules.fairness_knob;
        if !(0.0..=1.0).contains(&f) {
            return refuse("fairness_knob", f.to_string(), "a number from 0 to 1");
        }
        if !(1..LATEST_US).contains(&self.lease_us) {
            return refuse("lease_s", self.lease_us.to_string(), "at least a microsecond");
        }
        let (step, error) = (self.schedulers.curve_step, self.schedulers.curve_error);
        if !(0.001..=1.0).contains(&step) {
            return refuse("curve_step", step.to_string(), "a number from 0.001 to 1");
        }
        if !(0.0..=1.0).contains(&error) {
            return refuse("curve_error", error.to_string(), "a number from 0 to 1");
        }
        let factor = self.request_factor;
        if !(1.0..=1000.0).contains(&factor) {
            return refuse("request_factor", factor.to_string(), "a number from 1 to 1000");
        }
        let positive = [
            ("checkpoint_every_s", self.checkpoint_every_us.unwrap_or(1)),
            ("mtbf_s", self.mtbf_us.unwrap_or(1)),
            ("mttr_s", self.mttr_us),
            ("quarantine_s", self.quarantine_us),
        ];
        if let Some((field, us)) = positive.into_iter().find(|(_, us)| !(1..LATEST_US).contains(us))
        {
            return refuse(field, us.to_string(), "at least a microsecond");
        }
        if self.quarantine_after == Some(0) {
            return refuse("quarantine_after", "0".into(), "1 or more");
        }
        let times = [
            ("min_lease_s", self.min_lease_us),
            ("restart_s", self.restart_us),
            ("checkpoint_s", self.checkpoint_us),
            ("horizon_s", self.horizon_us.unwrap_or(0)),
            ("reserve_after_s", self.reserve_after_us.unwrap_or(0)),
        ];
        match times.into_iter().find(|(_, us)| !(0..LATEST_US).contains(us)) {
            Some((field, us)) => refuse(field, us.to_string(), "not negative"),
            None => Ok(()),
        }
    }
}
