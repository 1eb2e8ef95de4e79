//! The virtual cluster of fair sojourn, in which apps have their fair shares: 1/N of N apps each, with
//! weights and tenants what [`Contention`] says of the apps there.
//!
//! Apps that slow down and share alike end in the order in which they would alone, so that one clock
//! serves all of a kind: the seconds that an app of the kind which was always there would have needed
//! alone for what it has done. Each app is due at a reading of that clock. Cost: O(kinds) an end
//! or arrival; an app of several jobs, or one whose ideal time may change, is a kind of its own.

use std::cmp::Ordering;
use std::collections::btree_set::Iter;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::contention::Contention;
use crate::view::{FairTime, View};
use crate::workload::AppSpec;

/// So many apps at most are looked up by their number, where weights make it larger.
const MOST_PACES: usize = 1 << 20;

/// The virtual cluster at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedCluster {
    at_s: f64,
    kinds: Vec<Kind>,
    /// How its apps share it. Nobody asks for its past: it has but one instant.
    sharing: Contention,
    /// When apps ended that had not ended in the real cluster when somebody last came.
    ended_s: BTreeMap<u32, f64>,
    /// All that have come have smaller numbers.
    known: u32,
}

/// Apps that slow down alike among others, and have the same share.
#[derive(Clone, Debug)]
struct Kind {
    /// One of them, which may have ended.
    like: u32,
    spec: AppSpec,
    /// Its ideal time, as of the last decision before it ended.
    fair: FairTime,
    /// Seconds that it would need alone.
    alone_s: f64,
    /// By how many share alike, where they are a whole number: seconds that an app of the kind needs
    /// for each that it would need alone; 0 where nobody asked yet. None where that may change: there
    /// is but one app.
    paces: Option<Vec<f64>>,
    clock_s: f64,
    /// When its apps end, by the clock.
    due: BTreeSet<(Due, u32)>,
}

/// Seconds, in the order of `total_cmp`.
#[derive(Clone, Copy, Debug)]
struct Due(f64);

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl SharedCluster {
    /// Every app that has come has a smaller number.
    pub(super) fn known(&self) -> usize {
        self.known as usize
    }

    /// Plays on to what is new in the real cluster; false: nothing is.
    pub(super) fn take_in(&mut self, view: &View<'_>) -> bool {
        if self.known == 0 {
            self.sharing = view.sharing_of_none();
        }
        let may_change = |kind: &Kind| kind.paces.is_none() && view.is_active(kind.like);
        for kind in self.kinds.iter_mut().filter(|kind| may_change(kind)) {
            kind.fair = view.fair_time(kind.like);
        }
        let differs = |kind: &Kind| kind.alone_s.total_cmp(&kind.fair.among_s(1.0)).is_ne();
        let changed: Vec<usize> =
            (0..self.kinds.len()).filter(|at| differs(&self.kinds[*at])).collect();
        for at in &changed {
            self.play_to(view.now_us());
            let kind = &mut self.kinds[*at];
            kind.alone_s = kind.fair.among_s(1.0);
            if kind.due.is_empty() {
                self.sharing.join(0, &kind.spec);
            }
            kind.due = BTreeSet::from([(Due(kind.alone_s), kind.like)]);
            self.ended_s.remove(&kind.like);
        }
        let before = self.known;
        for app in view.active_from(self.known) {
            self.play_to(view.arrival_us(*app));
            self.join(view, *app);
            self.known = app + 1;
        }
        if self.known > before {
            self.forget(view);
        }
        !changed.is_empty() || self.known > before
    }

    fn join(&mut self, view: &View<'_>, app: u32) {
        let fair = view.fair_time(app);
        let alone_s = fair.among_s(1.0);
        let is_lone = view.is_lone(app);
        let spec = view.app_spec(app);
        let is_like = |kind: &Kind| {
            is_lone
                && kind.paces.is_some()
                && (kind.spec.tenant, kind.spec.weight) == (spec.tenant, spec.weight)
                && view.slow_down_alike(kind.like, app)
        };
        self.sharing.join(0, spec);
        let at = self.kinds.iter().position(is_like).unwrap_or_else(|| {
            let (paces, due) = (is_lone.then(Vec::new), BTreeSet::new());
            let spec = spec.clone();
            self.kinds.push(Kind { like: app, spec, fair, alone_s, paces, clock_s: 0.0, due });
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[at];
        kind.due.insert((Due(kind.clock_s + alone_s), app));
    }

    /// Drops apps that have ended here and there, and kinds of no app.
    fn forget(&mut self, view: &View<'_>) {
        self.ended_s.retain(|app, _| view.is_active(*app));
        let may_change = |kind: &Kind| kind.paces.is_none() && view.is_active(kind.like);
        self.kinds.retain(|kind| !kind.due.is_empty() || may_change(kind));
    }

    /// Plays on to an instant; one that is past changes nothing.
    fn play_to(&mut self, until_us: i64) {
        let mut lanes: Vec<Lane<'_>> = self.kinds.iter_mut().map(Lane::of).collect();
        let ended_s = &mut self.ended_s;
        let note = |app, end_s| {
            ended_s.insert(app, end_s);
        };
        self.at_s = play(&mut lanes, &mut self.sharing, self.at_s..until_us as f64 / 1e6, note);
        let after: Vec<(f64, usize)> =
            lanes.iter().map(|lane| (lane.clock_s, lane.len())).collect();
        for (kind, (clock_s, left)) in self.kinds.iter_mut().zip(after) {
            kind.clock_s = clock_s;
            while kind.due.len() > left {
                kind.due.pop_first();
            }
        }
    }

    /// Tells when each app has ended or will end if nobody else comes.
    pub(super) fn ends(&mut self, mut tell: impl FnMut(u32, f64)) {
        self.ended_s.iter().for_each(|(app, end_s)| tell(*app, *end_s));
        let mut sharing = self.sharing.clone();
        let mut lanes: Vec<Lane<'_>> = self.kinds.iter_mut().map(Lane::of).collect();
        play(&mut lanes, &mut sharing, self.at_s..f64::INFINITY, tell);
    }
}

/// A kind while it is played.
struct Lane<'a> {
    spec: &'a AppSpec,
    fair: &'a FairTime,
    alone_s: f64,
    paces: Option<&'a mut Vec<f64>>,
    clock_s: f64,
    /// Those that have not ended.
    due: Iter<'a, (Due, u32)>,
    /// The first of them.
    next: Option<(Due, u32)>,
    pace: f64,
}

impl<'a> Lane<'a> {
    fn of(kind: &'a mut Kind) -> Self {
        let mut due = kind.due.iter();
        let next = due.next().copied();
        let (spec, fair) = (&kind.spec, &kind.fair);
        let (alone_s, clock_s, paces) = (kind.alone_s, kind.clock_s, kind.paces.as_mut());
        Self { spec, fair, alone_s, paces, clock_s, due, next, pace: 1.0 }
    }

    /// Apps that have not ended.
    fn len(&self) -> usize {
        self.due.len() + usize::from(self.next.is_some())
    }

    /// Seconds that an app needs as one of n for each that it would need alone.
    fn pace(&mut self, n: f64) -> f64 {
        let fresh = || (self.fair.among_s(n) / self.alone_s).max(1.0);
        let at = n as usize;
        let Some(paces) = self.paces.as_mut().filter(|_| n.fract() <= 0.0 && at < MOST_PACES)
        else {
            return fresh();
        };
        if paces.len() <= at {
            paces.resize(at + 1, 0.0);
        }
        if paces[at] <= 0.0 {
            paces[at] = fresh();
        }
        paces[at]
    }

    /// Seconds to the first end; for ever without apps.
    fn left_s(&self) -> f64 {
        self.next.map_or(f64::INFINITY, |(due, _)| (due.0 - self.clock_s).max(0.0) * self.pace)
    }
}

/// Plays lanes over a time, or until nobody is left, and says when: where that is before the end of
/// the time, or at it. Tells who ended when.
fn play(
    lanes: &mut [Lane<'_>],
    sharing: &mut Contention,
    time_s: Range<f64>,
    mut ended: impl FnMut(u32, f64),
) -> f64 {
    let (mut at_s, until_s) = (time_s.start, time_s.end);
    while at_s < until_s {
        let mut next_s = f64::INFINITY;
        for lane in lanes.iter_mut().filter(|lane| lane.next.is_some()) {
            lane.pace = lane.pace(sharing.now(lane.spec));
            next_s = next_s.min(lane.left_s());
        }
        let step_s = next_s.min(until_s - at_s);
        if step_s.is_infinite() {
            break; // nobody is left
        }
        for lane in lanes.iter_mut().filter(|lane| lane.next.is_some()) {
            while let Some((_, app)) = lane.next.filter(|_| lane.left_s() <= step_s * (1.0 + 1e-12))
            {
                ended(app, at_s + step_s);
                lane.next = lane.due.next().copied();
                sharing.leave(0, lane.spec);
            }
            lane.clock_s += step_s / lane.pace;
        }
        at_s += step_s;
    }
    at_s
}
