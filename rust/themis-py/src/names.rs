//! Names of choices, as Python writes them.

use crate::errors::unknown_name;
use pyo3::PyResult;
use themis_core::auction::{Leftover, Payment, Solver};
use themis_core::fairness::{FilterKey, OutsideOption, TIdReading};
use themis_core::schedulers::PhaseCap;
use themis_sim::LeaseMode;

/// A choice that has a name in Python.
pub(crate) trait Named: Copy + 'static {
    /// The setting.
    const FIELD: &'static str;
    /// Its choices.
    const CHOICES: &'static [(&'static str, Self)];

    /// The choice of this name.
    fn parse(name: &str) -> PyResult<Self> {
        let found = Self::CHOICES.iter().find(|(known, _)| *known == name);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<&str> = Self::CHOICES.iter().map(|(known, _)| *known).collect();
            unknown_name(Self::FIELD, name, &names)
        })
    }
}

impl Named for Payment {
    const FIELD: &'static str = "payment";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("lottery", Self::Lottery),
        ("lease", Self::Lease),
        ("gpus", Self::Gpus),
        ("gpus_random", Self::GpusRandom),
        ("none", Self::None),
    ];
}

impl Named for Solver {
    const FIELD: &'static str = "solver";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("prices", Self::Prices), ("greedy", Self::Greedy)];
}

impl Named for Leftover {
    const FIELD: &'static str = "leftover";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("random", Self::Random),
        ("holders_first", Self::HoldersFirst),
        ("worst_first", Self::WorstFirst),
    ];
}

impl Named for OutsideOption {
    const FIELD: &'static str = "outside_option";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("min_bundle", Self::MinBundle),
        ("fair_share", Self::FairShare),
        ("cached", Self::Cached),
        ("unbounded", Self::Unbounded),
    ];
}

impl Named for FilterKey {
    const FIELD: &'static str = "filter_key";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("best_case", Self::BestCase), ("holdings", Self::Holdings), ("cached", Self::Cached)];
}

impl Named for TIdReading {
    const FIELD: &'static str = "t_id";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("paper", Self::Paper),
        ("critical_path", Self::CriticalPath),
        ("demand_capped", Self::DemandCapped),
    ];
}

impl Named for PhaseCap {
    const FIELD: &'static str = "phase_cap";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("doubling", Self::Doubling), ("fixed", Self::Fixed)];
}

impl Named for LeaseMode {
    const FIELD: &'static str = "lease_mode";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("aligned", Self::Aligned), ("rolling", Self::Rolling)];
}
