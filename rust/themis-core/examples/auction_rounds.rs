//! One auction of a named kind and size, always the same: the load whose instructions
//! `bench/instructions.py` counts. Prints the objective, so that nothing is left out as unused.
//!
//!     cargo run --release --example auction_rounds -- whole 1024

#![expect(clippy::print_stdout, reason = "its output")]

use std::error::Error;
use std::sync::Arc;

use themis_core::SlotId;
use themis_core::app::{AppState, Job, Profile, Stopping, log_v};
use themis_core::auction::{Bidder, Entrant, NoDraws, Rules, Solver, Table, TableRow, run_round};
use themis_core::cluster::{Bundle, FreeSet, MachineSpec, Topology};

const GPUS_A_BIDDER: u32 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, gpus] = arguments.as_slice() else {
        return Err(
            "expected a kind (whole, scattered, tables, greedy) and a number of GPUs".into()
        );
    };
    let gpus: u32 = gpus.parse()?;
    let machines =
        (0..gpus / 8).map(|machine| MachineSpec { rack: machine / 8, gpus: 8, slot_gpus: 4 });
    let topology = Arc::new(Topology::new(&machines.collect::<Vec<_>>())?);
    let mut draws = Draws(1);
    let offer = if kind == "scattered" {
        let slots = topology.slots() as u32;
        let some: Bundle = (0..slots).map(|slot| (SlotId(slot), draws.below(5))).collect();
        FreeSet::of(Arc::clone(&topology), &some)
    } else {
        FreeSet::full(Arc::clone(&topology))
    };
    let solver = if kind == "greedy" { Solver::Greedy } else { Solver::Prices };
    let bidder = |draws: &mut Draws| match kind.as_str() {
        "tables" => Ok(table(&topology, draws)),
        _ => app(draws),
    };
    let entrants = (0..gpus / GPUS_A_BIDDER)
        .map(|_| bidder(&mut draws).map(|bidder| Entrant { bidder, rank: (0.0, 0.0) }))
        .collect::<Result<Vec<_>, _>>()?;
    let rules = Rules { fairness_knob: 0.0, solver, ..Rules::default() };
    let outcome = run_round(&offer, entrants, &rules, &mut NoDraws);
    println!("{:.6}", outcome.objective);
    Ok(())
}

/// A small generator of its own, so that no change of a crate changes the auctions.
struct Draws(u64);

impl Draws {
    /// A whole number below `limit` (`SplitMix64`).
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % u64::from(limit)) as u32
    }

    fn seconds(&mut self, limit: u32) -> f64 {
        f64::from(self.below(limit) + 1)
    }
}

/// An app of one to four jobs; gangs up to a machine.
fn app(draws: &mut Draws) -> Result<Bidder, themis_core::CoreError> {
    let gang = [1, 1, 1, 2, 4, 4, 8][draws.below(7) as usize];
    let jobs = [1, 1, 2, 4][draws.below(4) as usize];
    let most = if jobs == 1 { gang * (1 + draws.below(8)) } else { gang };
    let slowdowns = [[1.0, 1.02, 1.05, 1.1], [1.0, 1.1, 1.4, 1.9], [1.0, 1.1, 2.0, 3.5]];
    let profile = Profile::new(slowdowns[draws.below(3) as usize])?;
    let work = f64::from(most) * draws.seconds(10_000);
    let (elapsed_s, t_id_s) = (draws.seconds(10_000), draws.seconds(5_000));
    let jobs = vec![Job::waiting(gang, most, work, profile); jobs];
    let state = AppState::new(elapsed_s, t_id_s, Stopping::All, jobs);
    let nothing = state.elapsed_s + 600.0 + state.time_at_smallest_bundle();
    Ok(Bidder::App(state.with_rho_empty(Some(nothing / t_id_s))))
}

/// A table of eight rows over two slots each.
fn table(topology: &Topology, draws: &mut Draws) -> Bidder {
    let slots = topology.slots() as u32;
    let rows = (0..8).map(|_| {
        let slot = draws.below(slots - 1);
        let bundle: Bundle =
            [0, 1].map(|next| (SlotId(slot + next), 1 + draws.below(4))).into_iter().collect();
        let log_v = log_v(10.0 / (1.0 + f64::from(bundle.gpus()) * draws.seconds(4)));
        TableRow { bundle, log_v }
    });
    let rows = rows.collect();
    Bidder::Table(Table { log_v_empty: log_v(10.0), rows, held: Bundle::new() })
}
