//! What apps bid, claim and are bounded by, on random clusters.

use std::sync::Arc;

use proptest::prelude::*;
use themis_core::app::{AppState, Demand, Job, Profile, Scaling, Speeds, Stopping};
use themis_core::cluster::{
    Bundle, Chunks, FreeSet, Locality, MAX_ROWS, Near, Topology, TypeSet, Use, Within, fit,
};

use crate::cluster::needs;
use crate::placing::{with_held, within};

fn profiles() -> impl Strategy<Value = Profile> {
    let step = proptest::sample::select(vec![1.0, 1.0, 1.2, 2.0, 4.0]);
    let scaling = proptest::sample::select(vec![
        vec![],
        vec![],
        vec![(2, 0.9), (4, 0.6)],
        vec![(2, 0.5)],
        vec![(3, 1.0), (8, 0.7), (9, 0.65)],
    ]);
    ([step.clone(), step.clone(), step.clone(), step], scaling).prop_map(|(steps, scaling)| {
        let mut slowdown = 1.0;
        let slowdowns = steps.map(|step| {
            slowdown *= step;
            slowdown
        });
        let profile = Profile::new(slowdowns).expect("never falls with distance");
        profile.with_scaling(Scaling::new(&scaling).expect("no more GPUs are slower"))
    })
}

fn jobs() -> impl Strategy<Value = Job> {
    (1..6_u32, 0..8_u32, 1.0..1e4, profiles(), needs()).prop_map(
        |(gang, more, work, profile, needs)| {
            Job::waiting(gang, gang + more, work, profile).with_needs(needs)
        },
    )
}

/// Phases to come, some of them held up by one long job, and a cap, mostly none.
fn outlook() -> impl Strategy<Value = (Vec<Demand>, u32)> {
    let phase = (1.0..1e4, 1.0..20.0, 0.0..2.0).prop_map(|(work_gpu_s, gpus, long)| Demand {
        work_gpu_s,
        gpus,
        longest_s: long * work_gpu_s / gpus,
    });
    let cap = proptest::sample::select(vec![u32::MAX, u32::MAX, 5, 9]);
    (proptest::collection::vec(phase, 0..4), cap)
}

/// An app of up to three jobs, the first of which may hold GPUs, and what is free.
fn apps() -> impl Strategy<Value = (FreeSet, AppState)> {
    let stopping = proptest::sample::select(vec![Stopping::All, Stopping::First]);
    let app = (0.0..1e4, 1.0..1e4, stopping, proptest::collection::vec(jobs(), 1..4), outlook());
    (with_held(), app).prop_map(|((free, held), (elapsed_s, t_id_s, stopping, jobs, outlook))| {
        let mut app = AppState::new(elapsed_s, t_id_s, stopping, jobs).with_cap(outlook.1);
        if stopping == Stopping::All {
            app = app.with_later(outlook.0);
        }
        if held.gpus() <= app.jobs[0].max.min(app.cap) {
            app.hold(0, &held);
        }
        let now = app.rho_at(&app.held_rates(free.topology()));
        (free, app.with_rho_empty(Some(if now.is_finite() { now } else { 1e9 })))
    })
}

/// Seconds to finish with what the app holds.
fn time_left(app: &AppState, free: &FreeSet) -> f64 {
    app.time_left(&app.held_rates(free.topology()))
}

/// Equal jobs of one gang each, behind one that has all it wants or none, with phases to come and
/// GPUs of up to three types; and what is free.
fn equal_jobs() -> impl Strategy<Value = (FreeSet, AppState)> {
    let speed = || proptest::sample::select(vec![0.0, 0.3, 0.5, 1.0, 1.0, 2.0]);
    let speeds = ([speed(), speed(), speed()], any::<bool>());
    let types = proptest::option::of(proptest::collection::vec(0..3_u32, 6));
    let job = (1..6_u32, 1.0..1e4, profiles(), needs(), speeds, 2..4_usize, 0.0..1e4, 1.0..1e4);
    (with_held(), types, job, outlook()).prop_map(|((free, held), types, job, outlook)| {
        let (gang, work, profile, needs, (speeds, mixes), jobs, elapsed_s, t_id_s) = job;
        let mut like = Job::waiting(gang, gang, work, profile.clone()).with_needs(needs);
        let mut free = free;
        if let Some(types) = types {
            let topology = Topology::clone(free.topology());
            let types = &types[..topology.machines()];
            let topology = topology.with_gpu_types(types).expect("one a machine");
            like = like.with_speeds(Speeds::new(&speeds[..topology.types()], mixes));
            free = FreeSet::of(Arc::new(topology), &free.to_bundle());
        }
        let mut jobs = vec![like; jobs];
        if !held.is_empty() {
            jobs.push(Job::waiting(1, held.gpus(), work / 2.0, profile));
        }
        let mut app = AppState::new(elapsed_s, t_id_s, Stopping::All, jobs).with_later(outlook.0);
        if !held.is_empty() {
            app.hold(app.jobs.len() - 1, &held);
        }
        let app = app.with_cap(outlook.1.max(held.gpus()));
        let now = app.rho_at(&app.held_rates(free.topology()));
        (free, app.with_rho_empty(Some(if now.is_finite() { now } else { 1e9 })))
    })
}

/// Every way to serve the jobs from `at` on in whole gangs, each at some locality and in some pool
/// where it finds GPUs: the rates, and what is used.
fn every_way(
    app: &AppState,
    at: usize,
    (free, chunks): (&mut FreeSet, &Chunks),
    rates: &mut Vec<f64>,
    used: Use,
    tell: &mut dyn FnMut(&[f64], &Use),
) {
    let Some(job) = app.jobs.get(at) else { return tell(rates, &used) };
    let topology = free.shared_topology();
    rates.push(job.rate_on(&topology, &job.held));
    every_way(app, at + 1, (free, chunks), rates, used, tell);
    rates.pop();
    let near = Near { held: &job.held, previous: &job.previous };
    let mut total = job.held.gpus();
    while total < job.max {
        let missing = job.gang.saturating_sub(total);
        total = (total + if missing > 0 { missing } else { job.gang }).min(job.max);
        let pools = job.speeds.pools().iter().map(|pool| pool.types);
        for (types, level) in pools.flat_map(|t| Locality::ALL.map(|level| (t, level))) {
            let more = total - job.held.gpus();
            let within = Within { level: level.max(topology.locality(&job.held)), types };
            let found = fit(&free.open_to(job.needs), more, within, near);
            let Some(bundle) = found else { continue };
            free.take_with(job.needs, &bundle);
            rates.push(job.rate_on(&topology, &job.held.union(&bundle)));
            let used = used.plus(&chunks.of_bundle(&topology, &bundle));
            every_way(app, at + 1, (free, chunks), rates, used, tell);
            rates.pop();
            free.give_with(job.needs, &bundle);
        }
    }
}

/// The most that a way to serve an app is worth above its price.
fn best_of_every_way(
    app: &AppState,
    offer: &FreeSet,
    chunks: &Chunks,
    prices: &[f64; MAX_ROWS],
) -> f64 {
    let mut best = app.log_v_empty();
    let mut look = |rates: &[f64], uses: &Use| {
        if uses.gpus() <= app.spare() {
            best = best.max(app.log_v_at(rates) - uses.cost(prices));
        }
    };
    every_way(app, 0, (&mut offer.clone(), chunks), &mut Vec::new(), Use::default(), &mut look);
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The bound of an app with phases to come, against every way to serve its jobs.
    #[test]
    fn nothing_is_worth_more_than_the_bound(
        (offer, app) in apps(),
        prices in proptest::array::uniform12(0.0..0.5_f64),
        share in proptest::sample::select(vec![0.0, 0.01, 0.2, 1.0]),
    ) {
        let chunks = Chunks::of(&offer, &[3, 5], &[TypeSet::ALL]);
        let prices = prices.map(|price| price * share);
        let patterns = app.patterns(&offer, &chunks).into_iter();
        let bid = patterns.map(|pattern| pattern.log_v - pattern.uses.cost(&prices));
        let relaxed = app.relaxed(&app.stake(offer.topology()), &offer, &chunks).most(&prices);
        let bound = bid.fold(relaxed, f64::max);
        let best = best_of_every_way(&app, &offer, &chunks, &prices);
        prop_assert!(best <= bound + 1e-9, "{} above {}", best, bound);
    }

    /// Faster jobs never make an app worse off, and its value is concave in the sum of rates.
    #[test]
    fn more_speed_is_never_worse((_, app) in apps(), rates in proptest::array::uniform3(0.0..9.0_f64)) {
        let rates = &rates[..app.jobs.len()];
        for job in 0..rates.len() {
            let mut more = rates.to_vec();
            more[job] += 0.5;
            prop_assert!(app.rho_at(&more) <= app.rho_at(rates) + 1e-9);
        }
        if app.stopping == Stopping::All {
            let value = app.value();
            let at = |rate: f64| value.log_v(rate);
            let sum = rates.iter().sum::<f64>() + 0.1;
            let chord = 0.5 * (at(sum) + at(3.0 * sum));
            // Above the floor, which is not concave.
            prop_assert!(at(2.0 * sum) >= chord - 1e-9 || at(sum) <= app.log_v_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A cap takes ways away, so that the bound never rises with it.
    #[test]
    fn a_cap_never_loosens_the_bound(
        (offer, app) in apps(),
        prices in proptest::array::uniform12(0.0..0.5_f64),
        share in proptest::sample::select(vec![0.01, 0.1, 0.5]),
        cap in 0..12_u32,
    ) {
        let chunks = Chunks::of(&offer, &[3, 5], &[TypeSet::ALL]);
        let prices = prices.map(|price| price * share);
        let bound = |app: &AppState| {
            app.relaxed(&app.stake(offer.topology()), &offer, &chunks).most(&prices)
        };
        let free = app.clone().with_cap(u32::MAX);
        let capped = app.with_cap(cap.max(free.held_gpus()));
        prop_assert!(bound(&capped) <= bound(&free) + 1e-12);
    }

    /// No way to serve equal jobs is worth more than the bound; where only GPUs have a price, none is
    /// worth more than a pattern.
    #[test]
    fn no_way_to_serve_equal_jobs_is_worth_more_than_the_bound(
        (offer, app) in equal_jobs(),
        (gpu, chunk) in (0.0..0.3_f64, 0.0..0.3_f64),
        row in proptest::sample::select(vec![0, 1, 1, 2, 3, 4, 6]),
    ) {
        let jobs = &app.jobs[0];
        let pools: Vec<TypeSet> = jobs.speeds.pools().iter().map(|pool| pool.types).collect();
        let bound_to = std::iter::once(TypeSet::ALL).chain(pools).collect::<Vec<_>>();
        let chunks = Chunks::of(&offer, &[3, 5], &bound_to);
        let mut prices = [0.0; MAX_ROWS];
        (prices[row], prices[0]) = (chunk, gpu);
        let patterns = app.patterns(&offer, &chunks).into_iter();
        let bid = patterns.map(|pattern| pattern.log_v - pattern.uses.cost(&prices));
        let mut bound = bid.fold(app.log_v_empty(), f64::max);
        if row > 0 {
            let stake = app.stake(offer.topology());
            bound = bound.max(app.relaxed(&stake, &offer, &chunks).most(&prices));
        }
        let best = best_of_every_way(&app, &offer, &chunks, &prices);
        prop_assert!(best <= bound + 1e-9, "{} above {}", best, bound);
    }

    #[test]
    fn a_pattern_places_what_it_says_or_nothing((offer, app) in apps()) {
        let chunks = Chunks::of(&offer, &[], &[TypeSet::ALL]);
        for pattern in app.patterns(&offer, &chunks) {
            prop_assert!(pattern.log_v > app.log_v_empty());
            let mut free = offer.clone();
            let Some(placed) = app.place(&pattern, &mut free) else {
                prop_assert_eq!(free.to_bundle(), offer.to_bundle());
                prop_assert_eq!(free.host(), offer.host());
                continue;
            };
            prop_assert_eq!(placed.gpus(), pattern.gpus());
            prop_assert!(placed.log_v >= pattern.log_v - 1e-12);
            let won: Bundle = placed.parts.iter().flat_map(|part| part.bundle.iter()).collect();
            prop_assert!(offer.has(&won) && free.host_is_sound());
            prop_assert_eq!(free.total() + won.gpus(), offer.total());
            let mut later = app.clone();
            for part in &placed.parts {
                later.hold(part.job, &part.bundle);
            }
            for job in &later.jobs {
                prop_assert!(job.held.gpus() <= job.max);
            }
            prop_assert!(later.jobs.iter().map(|job| job.held.gpus()).sum::<u32>() <= later.cap);
            for part in &placed.parts {
                prop_assert!(later.jobs[part.job].held.gpus() >= later.jobs[part.job].gang);
            }
            let worth = later.log_v_at(&later.held_rates(free.topology()));
            prop_assert!((worth - placed.log_v).abs() < 1e-9);
        }
    }

    /// What a bundle is worth above its price, at most, is what the auction's bound stands on.
    #[test]
    fn no_placement_is_worth_more_than_the_bound_at_any_price(
        (offer, app) in apps(),
        prices in proptest::array::uniform12(0.0..0.5_f64),
        share in proptest::sample::select(vec![0.0, 0.01, 0.2, 1.0]),
    ) {
        let chunks = Chunks::of(&offer, &[3, 5], &[TypeSet::ALL]);
        let prices = prices.map(|price| price * share);
        let patterns = app.patterns(&offer, &chunks);
        let best = patterns.iter().map(|p| p.log_v - p.uses.cost(&prices));
        let mut most = best.fold(app.log_v_empty(), f64::max);
        if app.jobs.len() > 1 {
            let relaxed = app.relaxed(&app.stake(offer.topology()), &offer, &chunks).most(&prices);
            most = most.max(relaxed);
        }
        for pattern in &patterns {
            let Some(placed) = app.place(pattern, &mut offer.clone()) else { continue };
            let topology = offer.topology();
            let uses = placed.parts.iter().map(|part| chunks.of_bundle(topology, &part.bundle));
            let cost: f64 = uses.map(|uses| uses.cost(&prices)).sum();
            prop_assert!(placed.log_v - cost <= most + 1e-9, "{:?}", placed);
        }
    }

    #[test]
    fn one_job_alone_always_finds_the_gpus_of_its_patterns((offer, app) in apps()) {
        let mut app = app;
        app.jobs.truncate(1);
        let chunks = Chunks::of(&offer, &[], &[TypeSet::ALL]);
        for pattern in app.patterns(&offer, &chunks) {
            prop_assert!(app.place(&pattern, &mut offer.clone()).is_some(), "{:?}", pattern);
        }
    }

    #[test]
    fn claims_help_and_end_when_nothing_more_would((offer, app) in apps()) {
        let mut app = app;
        let mut free = offer.clone();
        let mut before = time_left(&app, &free);
        while let Some((job, bundle)) = app.claim_one(&free) {
            prop_assert!(!bundle.is_empty() && free.allows(app.jobs[job].needs, &bundle));
            let rate = app.jobs[job].rate_on(free.topology(), &app.jobs[job].held);
            app.take(&mut free, job, &bundle);
            app.hold(job, &bundle);
            prop_assert!(app.jobs[job].rate_on(free.topology(), &app.jobs[job].held) > rate);
            prop_assert!(app.jobs[job].held.gpus() <= app.jobs[job].max);
            let after = time_left(&app, &free);
            prop_assert!(after <= before);
            before = after;
        }
        for job in &app.jobs {
            let now = job.rate_on(free.topology(), &job.held);
            for level in Locality::ALL {
                let more = within(&free, &job.held, level, job.needs).min(job.unmet());
                let level = level.max(free.topology().locality(&job.held));
                let more = more.min(app.spare());
                prop_assert!(more == 0 || job.rate_at(job.held.gpus() + more, level) <= now);
            }
        }
    }
}
