//! What a round decided, and why, entrant by entrant.

use super::Bidder;
use crate::app::{Part, Pattern, Placed};
use crate::cluster::{Bundle, FreeSet};

/// Why an entrant got what it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It won the auction and kept at least a part.
    Won,
    /// It won, and the payment took everything.
    PaidAll,
    /// It won nothing, but GPUs were left over for it.
    Leftover,
    /// It was not among the worst off, and nothing was left that it could use.
    NotVisible,
    /// No bundle of the offer is worth more to it than nothing.
    NoUsefulBundle,
    /// Others gained more with the GPUs.
    Outbid,
}

impl Reason {
    /// The name used in columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Won => "won",
            Self::PaidAll => "paid_all",
            Self::Leftover => "leftover",
            Self::NotVisible => "not_visible",
            Self::NoUsefulBundle => "no_useful_bundle",
            Self::Outbid => "outbid",
        }
    }
}

/// One entrant's part in a round.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number among the entrants.
    pub entrant: usize,
    /// The entrant; its holdings include what it was granted.
    pub bidder: Bidder,
    /// Whether it saw the offer.
    pub visible: bool,
    /// log V of winning nothing.
    pub log_v_empty: f64,
    /// log V in the proportionally fair allocation.
    pub log_v: f64,
    /// Its bid.
    pub patterns: Vec<Pattern>,
    /// What it won, before charging.
    pub won: Vec<Part>,
    /// The hidden payment c, in (0, 1].
    pub c: f64,
    /// What it keeps of the win.
    pub kept: Vec<Part>,
    /// The share of a lease for which it keeps the win (1 but under [`super::Payment::Lease`]).
    pub lease_fraction: f64,
    /// What was left over for it.
    pub leftover: Vec<Part>,
    /// Why.
    pub reason: Reason,
}

impl Entry {
    /// Of an entrant that was not shown the offer.
    pub(super) fn unseen(entrant: usize, bidder: Bidder) -> Self {
        let nothing = bidder.log_v_empty();
        Self::new(entrant, bidder, nothing)
    }

    /// Before it wins anything; `log_v` is what winning nothing is worth.
    pub(super) fn new(entrant: usize, bidder: Bidder, log_v: f64) -> Self {
        Self {
            entrant,
            bidder,
            visible: false,
            log_v_empty: log_v,
            log_v,
            patterns: Vec::new(),
            won: Vec::new(),
            c: 1.0,
            kept: Vec::new(),
            lease_fraction: 1.0,
            leftover: Vec::new(),
            reason: Reason::NotVisible,
        }
    }

    /// Notes the bid, the win and the payment of a bidder.
    pub(super) fn see(&mut self, patterns: Vec<Pattern>, win: Option<&Placed>, c: f64) {
        self.visible = true;
        self.patterns = patterns;
        self.c = c;
        if let Some(win) = win {
            self.log_v = win.log_v;
            self.won.clone_from(&win.parts);
        }
    }

    /// Takes what was kept out of the free GPUs and counts it as held.
    pub(super) fn keep(&mut self, free: &mut FreeSet) {
        for part in &self.kept {
            self.bidder.take(free, part);
            self.bidder.hold(part);
        }
    }

    /// True when a payment took GPUs away.
    pub(super) fn was_cut(&self) -> bool {
        gpus(&self.kept) < gpus(&self.won)
    }

    /// GPUs won before charging.
    pub fn won_gpus(&self) -> u32 {
        gpus(&self.won)
    }

    /// GPUs of the win that it keeps.
    pub fn kept_gpus(&self) -> u32 {
        gpus(&self.kept)
    }

    /// GPUs granted in the end: kept and left over.
    pub fn granted_gpus(&self) -> u32 {
        gpus(&self.kept) + gpus(&self.leftover)
    }

    fn explain(&self) -> Reason {
        match () {
            () if !self.kept.is_empty() => Reason::Won,
            () if !self.leftover.is_empty() => Reason::Leftover,
            () if !self.won.is_empty() => Reason::PaidAll,
            () if !self.visible => Reason::NotVisible,
            () if self.patterns.is_empty() => Reason::NoUsefulBundle,
            () => Reason::Outbid,
        }
    }
}

fn gpus(parts: &[Part]) -> u32 {
    parts.iter().map(|part| part.bundle.gpus()).sum()
}

/// What a round decided.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The entries of the entrants that were asked, in the caller's order.
    pub entries: Vec<Entry>,
    /// The sum of log V over the bidders, before charging.
    pub objective: f64,
    /// No allocation has a larger sum of log V.
    pub upper_bound: f64,
    /// GPUs that help no entrant.
    pub unused: Bundle,
}

impl Outcome {
    pub(super) fn new(
        mut entries: Vec<Entry>,
        objective: f64,
        upper_bound: f64,
        unused: Bundle,
    ) -> Self {
        for entry in &mut entries {
            entry.reason = entry.explain();
        }
        Self { entries, objective, upper_bound, unused }
    }

    /// Adds the entries of the others, of so many entrants in all: they saw nothing of the offer.
    pub fn ask_rest(&mut self, entrants: usize, ask: &mut dyn FnMut(usize) -> Bidder) {
        if self.entries.len() == entrants {
            return;
        }
        let mut asked = std::mem::take(&mut self.entries).into_iter().peekable();
        let entry = |at| {
            asked.next_if(|entry| entry.entrant == at).unwrap_or_else(|| Entry::unseen(at, ask(at)))
        };
        self.entries = (0..entrants).map(entry).collect();
    }

    /// Bidders that saw the offer.
    pub fn bidders(&self) -> usize {
        self.entries.iter().filter(|entry| entry.visible).count()
    }

    /// The certified gap as a ratio of geometric means: exp((bound - objective) / bidders) - 1.
    pub fn gap(&self) -> f64 {
        let bidders = self.bidders().max(1) as f64;
        ((self.upper_bound - self.objective) / bidders).exp_m1()
    }
}
