//! What a bidder likes best at given prices, and how much it does.

use super::prices::Prices;
use super::{Bid, Choice};

/// Changes in GPUs that are looked at, both ways.
pub(super) const WINDOW: i32 = 128;

/// The best choice of a bidder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Favourite {
    pub(super) choice: Choice,
    /// What it gives up at least when it takes another count of GPUs within the window.
    pub(super) regret: f64,
}

impl Favourite {
    /// Of a bidder, by its number. Ties: fewest GPUs, then pattern order.
    pub(super) fn of(bid: &Bid<'_>, at: usize, prices: &Prices) -> Self {
        let mut all = bid.choices(at, prices);
        let mut best = all.next().expect("invariant: nothing is a choice");
        let (mut other, mut largest) = (f64::NEG_INFINITY, 0);
        for one in all {
            largest = largest.max(one.gpus);
            let order = one.surplus.total_cmp(&best.surplus).then(best.gpus.cmp(&one.gpus));
            let lesser = if order.is_gt() { std::mem::replace(&mut best, one) } else { one };
            if lesser.gpus != best.gpus {
                other = other.max(lesser.surplus);
            }
        }
        if largest > WINDOW as u32 {
            let gap = |one: &Choice| one.gpus.abs_diff(best.gpus);
            let within = bid.choices(at, prices);
            let within = within.filter(|one| (1..=WINDOW as u32).contains(&gap(one)));
            other = within.map(|one| one.surplus).fold(f64::NEG_INFINITY, f64::max);
        }
        Self { choice: best, regret: best.surplus - other }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Bidder, Table, TableRow};
    use super::*;
    use crate::SlotId;
    use crate::cluster::{Bundle, Chunks, FreeSet, MachineSpec, Topology, TypeSet};

    /// By every pair of choices.
    fn slow(bid: &Bid<'_>, prices: &Prices) -> (Option<usize>, f64) {
        let all: Vec<Choice> = bid.choices(0, prices).collect();
        let most = all.iter().map(|one| one.surplus).fold(f64::NEG_INFINITY, f64::max);
        let best = all.iter().filter(|one| one.surplus >= most);
        let best = best.min_by_key(|one| (one.gpus, one.pattern)).expect("nothing is a choice");
        let gap = |one: &&Choice| one.gpus.abs_diff(best.gpus);
        let others = all.iter().filter(|one| (1..=WINDOW as u32).contains(&gap(one)));
        (best.pattern, others.map(|one| most - one.surplus).fold(f64::INFINITY, f64::min))
    }

    #[test]
    fn the_favourite_and_what_it_is_worth_are_those_of_looking_at_all() {
        let spec = MachineSpec { rack: 0, gpus: 400, slot_gpus: 400 };
        let offer = FreeSet::full(Arc::new(Topology::new(&[spec]).expect("valid")));
        let chunks = Chunks::of(&offer, &[], &[TypeSet::ALL]);
        let mut state = 1_u64;
        let mut below = |limit: u64| {
            state = state * 48_271 % 0x7fff_ffff;
            (state % limit) as u32
        };
        let (mut nothing, mut far) = (0, 0);
        for _ in 0..500 {
            // Values in eighths at a price of an eighth: ties are common.
            let sizes = if below(2) == 0 { 6 } else { 300 };
            let rows = (0..below(7)).map(|_| {
                let bundle: Bundle = std::iter::once((SlotId(0), 1 + below(sizes))).collect();
                let log_v = f64::from(below(8) + bundle.gpus()) / 8.0;
                TableRow { bundle, log_v }
            });
            let rows = rows.collect();
            let bidder = Bidder::Table(Table { rows, log_v_empty: 0.5, held: Bundle::new() });
            let bid = Bid::none(&bidder, offer.topology()).on(&offer, &chunks, false);
            let mut prices = Prices::zero(1, &[]);
            prices.set_row(0, 0.125);
            let Favourite { choice, regret } = Favourite::of(&bid, 0, &prices);
            assert_eq!((choice.pattern, regret), slow(&bid, &prices));
            nothing += u32::from(choice.pattern.is_none());
            far += u32::from(bid.patterns.iter().any(|one| one.gpus() > WINDOW as u32));
        }
        assert!(nothing > 20 && far > 20, "{nothing} {far}");
    }
}
