//! Time to prepare a bid: `cargo run --release -p themis-core --example bid_cost`.
//!
//! A halving search of so many jobs, in its first phase, answers an offer of a whole cluster of 32
//! machines of 8 GPUs, once with a profile that feels distance and once with one that does not.
//! The least of many rounds on one thread: what is left when nothing else disturbs it.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use themis_core::app::{AppState, Demand, Job, Profile, Stopping};
use themis_core::cluster::{Chunks, FreeSet, MachineSpec, Topology, TypeSet};

const ROUNDS: u32 = 2_000;

fn main() -> Result<(), themis_core::CoreError> {
    let machines: Vec<MachineSpec> =
        (0..32).map(|n| MachineSpec { rack: n / 8, gpus: 8, slot_gpus: 4 }).collect();
    let offer = FreeSet::full(Arc::new(Topology::new(&machines)?));
    let chunks = Chunks::of(&offer, &[], &[TypeSet::ALL]);
    for jobs in [1, 10, 100] {
        for (name, profile) in
            [("flat", Profile::PERFECT), ("steep", Profile::new([1.0, 1.0, 1.4, 2.0])?)]
        {
            let each =
                (0..jobs).map(|n| Job::waiting(1, 2, 1000.0 + f64::from(n), profile.clone()));
            let later = (1..8).map(|n| Demand {
                work_gpu_s: 1000.0 * f64::from(jobs),
                gpus: f64::from(jobs),
                longest_s: 500.0 * f64::from(n),
            });
            let app = AppState::new(300.0, 1000.0, Stopping::All, each.collect())
                .with_later(later.collect())
                .with_rho_empty(Some(1e6));
            let mut least = f64::INFINITY;
            let mut patterns = 0;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                patterns = black_box(black_box(&app).patterns(&offer, &chunks)).len();
                least = least.min(start.elapsed().as_secs_f64());
            }
            println!("{jobs:>4} jobs, {name:<5}: {:6.1} us, {patterns} patterns", least * 1e6);
        }
    }
    Ok(())
}
