//! Who takes part in a round: all by their standing, and for more than that only who is asked.

use super::Bidder;
use super::outcome::Entry;
use crate::app::{Pattern, Placed};

/// An app that wants more than it keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// Its agent's answer to any offer.
    pub bidder: Bidder,
    /// What the filter ranks it by, worst (largest) first, then by the second number.
    pub rank: (f64, f64),
}

impl Entrant {
    /// What is known of it before it is asked.
    pub(super) fn standing(&self) -> Standing {
        Standing { rank: self.rank, resumes: self.bidder.resumes() }
    }
}

/// What a round knows of an entrant before it asks its agent for anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// As of an [`Entrant`].
    pub rank: (f64, f64),
    /// Whether leases of it have just ended: false only if none has.
    pub resumes: bool,
}

/// The entries of those who were asked so far.
pub(super) struct Entries<'a> {
    ask: &'a mut dyn FnMut(usize) -> Bidder,
    asked: Vec<Entry>,
    /// Where the entry of an entrant is; [`NOWHERE`] before it is asked.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl<'a> Entries<'a> {
    /// Nobody of so many was asked; `seen` of them will be noted.
    pub(super) fn new(
        entrants: usize,
        seen: usize,
        ask: &'a mut dyn FnMut(usize) -> Bidder,
    ) -> Self {
        Self { ask, asked: Vec::with_capacity(seen), places: vec![NOWHERE; entrants] }
    }

    /// Notes the bid, the win and the payment of an entrant that saw the offer: with what
    /// winning nothing is worth to it.
    pub(super) fn see(
        &mut self,
        at: usize,
        (bidder, nothing, patterns): (Bidder, f64, Vec<Pattern>),
        win: Option<&Placed>,
        c: f64,
    ) -> &mut Entry {
        let entry = self.add(Entry::new(at, bidder, nothing));
        entry.see(patterns, win, c);
        entry
    }

    /// The entry of an entrant, which is asked where it was not yet.
    pub(super) fn of(&mut self, at: usize) -> &mut Entry {
        match self.places[at] {
            NOWHERE => {
                let bidder = (self.ask)(at);
                self.add(Entry::unseen(at, bidder))
            }
            place => &mut self.asked[place as usize],
        }
    }

    fn add(&mut self, entry: Entry) -> &mut Entry {
        let place = self.asked.len();
        self.places[entry.entrant] = place as u32;
        self.asked.push(entry);
        &mut self.asked[place]
    }

    /// All entries in the order of the entrants.
    pub(super) fn into_sorted(mut self) -> Vec<Entry> {
        self.asked.sort_by_key(|entry| entry.entrant);
        self.asked
    }
}
