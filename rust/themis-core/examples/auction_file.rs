//! CPU time and memory of one auction, of a whole round and nothing else: bids, allocation, bound,
//! payments, charging and leftovers. `bench/auction_table.py` writes the file and reads the answer.
//!
//!     cargo run --release -p themis-core --example auction_file -- FILE REPEATS SOLVER
//!
//! The file has numbers only: slots, then a rack, machine and GPUs each; apps, then of each elapsed
//! seconds, ideal seconds, log V of winning nothing, gang, GPUs at most, jobs, work left of each
//! job, four slowdowns, GPUs held, and a job, slot and count of each of these.
//!
//! Prints the least CPU ms of the repeats, the most bytes that a round had allocated at once beside
//! offer and bidders, the objective, the bound, and the sum of the hidden payments c.

#![expect(clippy::print_stdout, reason = "its output")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::str::{FromStr, SplitAsciiWhitespace};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use themis_core::SlotId;
use themis_core::app::{AppState, Job, Profile, Stopping};
use themis_core::auction::{Bidder, Draws, Entrant, Rules, Solver, run_round};
use themis_core::cluster::{FreeSet, Topology};

/// The system's memory, counted: bytes now, and at most. Of one thread, so that no count is lost.
struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all that is asked; the counters touch nothing of it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.load(Relaxed) + layout.size();
        NOW.store(now, Relaxed);
        MOST.store(MOST.load(Relaxed).max(now), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.store(NOW.load(Relaxed) - layout.size(), Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

/// CPU seconds and nanoseconds, as POSIX has them on 64-bit systems.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    safe fn clock_gettime(clock: i32, time: &mut Timespec) -> i32;
}

const PROCESS_CPU_TIME: i32 = if cfg!(target_os = "macos") { 12 } else { 2 };

fn cpu_ms() -> f64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    clock_gettime(PROCESS_CPU_TIME, &mut time);
    time.seconds as f64 * 1e3 + time.nanoseconds as f64 * 1e-6
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, repeats, solver] = arguments.as_slice() else {
        return Err("expected a file, a number of repeats, and prices or greedy".into());
    };
    let solver = if solver == "greedy" { Solver::Greedy } else { Solver::Prices };
    let rules = Rules { fairness_knob: 0.0, solver, ..Rules::default() };
    let text = std::fs::read_to_string(file)?;
    let mut numbers = Numbers(text.split_ascii_whitespace());
    let offer = offer(&mut numbers)?;
    let entrants = entrants(&mut numbers)?;
    drop(text);
    let (mut least_ms, mut memory, mut found) = (f64::INFINITY, 0, [0.0; 3]);
    for _ in 0..repeats.parse::<u32>()? {
        let bidders = entrants.clone();
        let before = NOW.load(Relaxed);
        MOST.store(before, Relaxed);
        let start = cpu_ms();
        let outcome = run_round(&offer, bidders, &rules, &mut Chance(1));
        least_ms = least_ms.min(cpu_ms() - start);
        memory = MOST.load(Relaxed) - before;
        let payments = outcome.entries.iter().map(|entry| entry.c).sum();
        found = [outcome.objective, outcome.upper_bound, payments];
    }
    let [objective, bound, payments] = found;
    println!("{least_ms} {memory} {objective} {bound} {payments}");
    Ok(())
}

/// The numbers of a file, one after the other.
struct Numbers<'a>(SplitAsciiWhitespace<'a>);

impl Numbers<'_> {
    fn next<T: FromStr<Err: Error + 'static>>(&mut self) -> Result<T, Box<dyn Error>> {
        Ok(self.0.next().ok_or("the file ends early")?.parse()?)
    }
}

fn offer(numbers: &mut Numbers<'_>) -> Result<FreeSet, Box<dyn Error>> {
    let slots = numbers.next()?;
    let slots = (0..slots).map(|_| Ok((numbers.next()?, numbers.next()?, numbers.next()?)));
    let slots: Vec<(u32, u32, u32)> = slots.collect::<Result<_, Box<dyn Error>>>()?;
    Ok(FreeSet::full(Arc::new(Topology::from_slots(&slots)?)))
}

fn entrants(numbers: &mut Numbers<'_>) -> Result<Vec<Entrant>, Box<dyn Error>> {
    let apps = numbers.next()?;
    (0..apps).map(|_: u32| entrant(numbers)).collect()
}

fn entrant(numbers: &mut Numbers<'_>) -> Result<Entrant, Box<dyn Error>> {
    let (elapsed_s, t_id_s) = (numbers.next()?, numbers.next()?);
    let log_v_empty: f64 = numbers.next()?;
    let (gang, most, jobs): (u32, u32, u32) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let work_s = numbers.next()?;
    let mut slowdowns = [0.0; 4];
    for slowdown in &mut slowdowns {
        *slowdown = numbers.next()?;
    }
    let job = Job::waiting(gang, most / jobs.max(1), work_s, Profile::new(slowdowns)?);
    let mut app = AppState::new(elapsed_s, t_id_s, Stopping::All, vec![job; jobs as usize]);
    let held: u32 = numbers.next()?;
    for _ in 0..held {
        let (job, slot, gpus) = (numbers.next()?, SlotId(numbers.next()?), numbers.next()?);
        app.hold(job, &std::iter::once((slot, gpus)).collect());
    }
    app.rho_empty = Some((-log_v_empty).exp());
    Ok(Entrant { bidder: Bidder::App(app), rank: (-log_v_empty, 0.0) })
}

/// Draws by a small generator of its own (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Draws for Chance {
    fn lottery(&mut self) -> f64 {
        self.next()
    }

    fn leftover(&mut self) -> f64 {
        self.next()
    }
}
