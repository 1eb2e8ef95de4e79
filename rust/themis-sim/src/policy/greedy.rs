//! Serving claims one after the other, where what a claim is worth depends on what is left.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{Grant, Plan};
use crate::view::{Candidate, View};
use smallvec::SmallVec;
use themis_core::app::AppState;
use themis_core::cluster::{Bundle, FreeSet};
use themis_core::{MachineId, SlotId};

/// What an app would take of the free GPUs: a bundle for each of some of its jobs.
pub(super) type Claim = SmallVec<[(usize, Bundle); 1]>;

/// The next job of the app that free GPUs help, with all that it can use.
pub(super) fn one_job(app: &AppState, free: &FreeSet) -> Claim {
    app.claim_one(free).into_iter().collect()
}

/// The next step of the app: a gang for a job that waits, or one more GPU for one that runs.
pub(super) fn one_step(app: &AppState, free: &FreeSet) -> Claim {
    let spare = app.spare_of(free);
    let step = |at: usize| {
        let job = &app.jobs[at];
        let most = if job.held.is_empty() { job.gang } else { 1 };
        Some((at, job.claim(free, most.min(spare))?))
    };
    if let [_] = app.jobs.as_slice() {
        return step(0).into_iter().collect();
    }
    app.job_order().into_iter().find_map(step).into_iter().collect()
}

/// All that the app can use.
pub(super) fn whole_app(app: &AppState, free: &FreeSet) -> Claim {
    app.clone().claim_all(&mut free.clone()).into()
}

/// Apps of one claim and one key, as long as none of them is served, in tie order.
pub(super) type Line<'a> = Box<dyn Iterator<Item = Candidate> + 'a>;

/// The apps in want: in lines where apps that ask for the same are `alike` to the rule too, all
/// others one by one.
pub(super) fn lines<'a>(
    view: &'a View<'a>,
    candidate: impl Fn(u32) -> Candidate + Copy + 'a,
    alike: impl Fn(u32) -> bool,
) -> Vec<Line<'a>> {
    let alone = |app: u32| Box::new(std::iter::once_with(move || candidate(app))) as Line<'a>;
    let mut lines: Vec<Line<'a>> = view.apart().into_iter().map(alone).collect();
    for line in view.lines() {
        if line.first().is_some_and(|app| alike(*app)) {
            lines.push(Box::new(line.iter().map(move |app| candidate(*app))));
        } else {
            lines.extend(line.iter().copied().map(alone));
        }
    }
    lines
}

/// The first of a line, and what it would take.
struct Turn<'a, K> {
    candidate: Candidate,
    behind: Line<'a>,
    claim: Claim,
    /// The GPUs of the claim.
    bundle: Bundle,
    /// None without a claim.
    key: Option<K>,
}

impl<'a, K> Turn<'a, K> {
    fn new(candidate: Candidate, behind: Line<'a>) -> Self {
        Self { candidate, behind, claim: Claim::new(), bundle: Bundle::new(), key: None }
    }

    fn stands(&self, free: &FreeSet) -> bool {
        free.has(&self.bundle)
            && self.bundle.gpus() <= free.room(self.candidate.state.tenant)
            && self.candidate.state.has_host_for(&self.claim, free)
    }

    /// What its claim stands on.
    fn grounds(&self, free: &FreeSet) -> SmallVec<[Ground; 4]> {
        grounds(self.candidate.state.tenant, &self.bundle, free)
    }
}

/// What a claim stands on: while none of it is taken, nothing about the claim changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ground {
    Slot(SlotId),
    Room(u32),
    /// What a machine has beside GPUs, where that is limited.
    Host(MachineId),
}

fn grounds(tenant: u32, bundle: &Bundle, free: &FreeSet) -> SmallVec<[Ground; 4]> {
    let slots = bundle.iter().map(|(slot, _)| Ground::Slot(slot));
    let has_limit = free.room(tenant) < u32::MAX;
    let mut grounds: SmallVec<[Ground; 4]> =
        slots.chain(has_limit.then_some(Ground::Room(tenant))).collect();
    if !free.host().is_empty() {
        let machines = bundle.by_machine(free.topology());
        grounds.extend(machines.into_iter().map(|(machine, _)| Ground::Host(machine)));
    }
    grounds
}

/// Serves lines: the claim of the least key is granted (ties: earlier arrival, then app id), then
/// the app asks anew, and so on until nobody claims anything. A claim stands as long as its GPUs
/// are free, with what they need beside, and its tenant has room: with fewer GPUs on offer there is
/// none better.
///
/// Cost: one look at the free GPUs a line, and for every claim granted one for each claim that it
/// voids, O(log lines) beside; apps behind the first of a line cost nothing.
pub(super) fn serve<'a, K: Ord + Copy>(
    view: &View<'_>,
    lines: Vec<Line<'a>>,
    claim: impl Fn(&AppState, &FreeSet) -> Claim,
    key: impl Fn(&Candidate, &Claim) -> K,
) -> Plan {
    let head = |mut line: Line<'a>| Some(Turn::new(line.next()?, line));
    let mut round = Round {
        free: view.offer().clone(),
        claim,
        key,
        turns: lines.into_iter().filter_map(head).collect(),
        open: BTreeSet::new(),
        standing: BTreeMap::new(),
    };
    (0..round.turns.len()).for_each(|at| round.ask(at));
    let mut granted: BTreeMap<(u32, u32), Bundle> = BTreeMap::new();
    while let Some((.., at)) = round.open.pop_first() {
        let (at, claim) = round.grant(at);
        let candidate = &mut round.turns[at].candidate;
        for (job, bundle) in claim {
            candidate.state.hold(job, &bundle);
            granted.entry((candidate.app, candidate.jobs[job])).or_default().merge(&bundle);
        }
        round.ask(at);
    }
    let grants = granted.into_iter().map(|((app, job), bundle)| Grant::new(app, job, bundle));
    Plan { grants: grants.collect(), auction: None }
}

struct Round<'a, K, C, V> {
    free: FreeSet,
    claim: C,
    key: V,
    turns: Vec<Turn<'a, K>>,
    /// Those that claim something: key, app, place in `turns`.
    open: BTreeSet<(K, u32, usize)>,
    /// Whose claims stand on what; also some that did.
    standing: BTreeMap<Ground, Vec<usize>>,
}

impl<K: Ord + Copy, C, V> Round<'_, K, C, V>
where
    C: Fn(&AppState, &FreeSet) -> Claim,
    V: Fn(&Candidate, &Claim) -> K,
{
    /// Asks for a claim; who claims nothing now never will, nor those behind it.
    fn ask(&mut self, at: usize) {
        let turn = &mut self.turns[at];
        turn.claim = (self.claim)(&turn.candidate.state, &self.free);
        turn.key = None;
        if !turn.claim.is_empty() {
            turn.bundle = Bundle::new();
            turn.claim.iter().for_each(|(_, part)| turn.bundle.merge(part));
            let key = (self.key)(&turn.candidate, &turn.claim);
            turn.key = Some(key);
            self.open.insert((key, turn.candidate.app, at));
            for ground in turn.grounds(&self.free) {
                self.standing.entry(ground).or_default().push(at);
            }
        }
    }

    /// Takes what is claimed here; whose claims that voids is asked again, and the next of the line
    /// claims the same. Returns where the app is from now on, and its claim.
    fn grant(&mut self, at: usize) -> (usize, Claim) {
        let turn = &mut self.turns[at];
        let tenant = turn.candidate.state.tenant;
        let (claim, bundle) = (turn.claim.clone(), turn.bundle.clone());
        for (job, part) in &claim {
            turn.candidate.state.take(&mut self.free, *job, part);
        }
        let mut served = at;
        if let Some((next, key)) = turn.behind.next().zip(turn.key) {
            self.open.insert((key, next.app, at));
            let candidate = std::mem::replace(&mut turn.candidate, next);
            served = self.turns.len();
            self.turns.push(Turn::new(candidate, Box::new(std::iter::empty())));
        } else {
            turn.key = None;
        }
        self.ask_again(tenant, &bundle);
        (served, claim)
    }

    /// Asks those whose claims are void now that these GPUs are taken.
    fn ask_again(&mut self, tenant: u32, taken: &Bundle) {
        for ground in grounds(tenant, taken, &self.free) {
            for at in self.standing.remove(&ground).unwrap_or_default() {
                let turn = &self.turns[at];
                let Some(key) = turn.key else { continue };
                if turn.stands(&self.free) {
                    self.standing.entry(ground).or_default().push(at);
                } else {
                    self.open.remove(&(key, turn.candidate.app, at));
                    self.ask(at);
                }
            }
        }
    }
}
