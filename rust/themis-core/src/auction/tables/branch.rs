//! Branch and bound over some bidders, while all others keep what they have.
//!
//! At prices found for just these bidders and the GPUs free for them, a beginning is worth at most
//! what it has, the best surplus of each bidder to come among its ways that still fit, and the price of
//! the GPUs left. Next comes the bidder that would lose most by its second best way; one with a single way
//! left loses most of all. The first few to choose have prices found anew for those after them.
//!
//! Cost: the steps given, a way looked at each, counted, never timed. Guarantee: the best, if steps are
//! left. Ties: what is known, then what is found first.

use super::prices::{balance, worth};
use super::rows::{Rows, Way};

/// Gains below this are rounding.
pub(super) const LEAST_GAIN: f64 = 1e-9;
/// Passes to find prices.
const PASSES: u32 = 20;

/// Steps that suffice to begin a search among some bidders, of which as many are left then as it took:
/// so many, or more where their ways are many.
pub(super) fn enough(order: &[Vec<u32>], members: &[usize], steps: u32) -> u32 {
    let ways: usize = members.iter().map(|bidder| order[*bidder].len()).sum();
    steps.max((ways as u32).saturating_mul(2 * (1 + PASSES / 4)))
}

/// What a search among some bidders goes by.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) rows: &'a Rows,
    /// Ways of every bidder, by surplus at `prices`.
    pub(super) order: &'a [Vec<u32>],
    pub(super) prices: &'a [f64],
    /// Who chooses again.
    pub(super) members: &'a [usize],
    /// GPUs free for them, by slot.
    pub(super) free: &'a [u32],
    /// The sum of their log V that must be beaten.
    pub(super) known: f64,
    pub(super) steps: u32,
    /// How many choose before prices are not found anew any more.
    pub(super) depth: u32,
}

/// What it came to.
pub(super) struct Answer {
    /// (bidder, way), if better than what was known.
    pub(super) found: Option<Vec<(usize, u32)>>,
    pub(super) log_v: f64,
    /// No choice of theirs is worth more.
    pub(super) bound: f64,
    /// Steps that were left; if any, there is nothing better.
    pub(super) left: u32,
}

/// A way that is still open.
#[derive(Clone, Copy)]
struct Open {
    way: Way,
    number: u32,
    surplus: f64,
    cost: f64,
}

/// A bidder that has not chosen, and where its open ways begin and end.
#[derive(Clone, Copy)]
struct Group {
    bidder: usize,
    first: usize,
    last: usize,
}

/// What is open at prices of its own.
struct Market {
    open: Vec<Open>,
    groups: Vec<Group>,
    prices: Vec<f64>,
    value: f64,
}

/// The best choice of the members.
pub(super) fn search(task: &Task<'_>) -> Answer {
    let mut answer = Answer { found: None, log_v: task.known, bound: task.known, left: task.steps };
    let Some(market) = Market::of(task, &mut answer.left) else { return answer };
    answer.bound = market.value;
    if task.depth > 0 {
        return market.choose_one(task, answer);
    }
    let Market { open, mut groups, prices, .. } = market;
    let (free, reserve) = (task.free.to_vec(), worth(task.free, &prices));
    let (rows, best, left) = (task.rows, task.known, answer.left);
    let mut branch =
        Branch { rows, free, open, reserve, chosen: Vec::new(), best, found: None, left };
    branch.visit(&mut groups, 0.0);
    let bound = if branch.left > 0 { branch.best } else { answer.bound };
    Answer { found: branch.found, log_v: branch.best, bound, left: branch.left }
}

impl Market {
    /// The ways that something better could have; `None` if there is nothing better.
    fn of(task: &Task<'_>, left: &mut u32) -> Option<Self> {
        let Task { rows, order, prices, members, free, known, .. } = *task;
        let fitting = |bidder: usize| {
            let ways = order[bidder].iter();
            let ways = ways.map(move |way| (*way, &rows.ways[bidder][*way as usize]));
            ways.filter(|(_, way)| rows.fits(way, free))
        };
        let surplus = |way: &Way| way.log_v - rows.cost(way, prices);
        // The order is that of other prices where these are new: the best may stand anywhere.
        let most = |bidder: usize| {
            fitting(bidder).fold(f64::NEG_INFINITY, |most, (_, way)| surplus(way).max(most))
        };
        let most: Vec<f64> = members.iter().map(|bidder| most(*bidder)).collect();
        let slack = most.iter().fold(worth(free, prices) - known, |sum, most| sum + most);
        *left = members.iter().fold(*left, |left, at| left.saturating_sub(order[*at].len() as u32));
        if slack <= LEAST_GAIN {
            return None;
        }
        let (mut ways, mut numbers, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (bidder, most) in members.iter().copied().zip(most) {
            let first = ways.len();
            for (number, way) in fitting(bidder).filter(|(_, way)| most - surplus(way) <= slack) {
                ways.push(*way);
                numbers.push(number);
            }
            groups.push(Group { bidder, first, last: ways.len() });
        }
        let each = || groups.iter().map(|group| &ways[group.first..group.last]);
        let (prices, value) = balance(rows, free, each, prices, (known, PASSES));
        *left = left.saturating_sub(PASSES.saturating_mul(ways.len() as u32) / 2);
        if value <= known + LEAST_GAIN {
            return None;
        }
        let open = ways.iter().zip(numbers).map(|(way, number)| {
            let cost = rows.cost(way, &prices);
            Open { way: *way, number, surplus: way.log_v - cost, cost }
        });
        let mut market = Self { open: open.collect(), groups, prices, value };
        market.sort(value - known);
        Some(market)
    }

    /// Sorts ways by surplus, and leaves out those that give up more than this.
    fn sort(&mut self, slack: f64) {
        for group in &mut self.groups {
            let open = &mut self.open[group.first..group.last];
            open.sort_by(|a, b| b.surplus.total_cmp(&a.surplus).then(a.number.cmp(&b.number)));
            let best = open[0].surplus;
            group.last = group.first + open.partition_point(|one| best - one.surplus <= slack);
        }
    }

    /// One bidder chooses; the others search, for each of its ways, at prices of their own.
    fn choose_one(&self, task: &Task<'_>, mut answer: Answer) -> Answer {
        let Some(next) = self.most_to_lose() else { return answer };
        let others = task.members.iter().copied().filter(|at| *at != next.bidder);
        let members: Vec<usize> = others.collect();
        let mut free = task.free.to_vec();
        let ways = &self.open[next.first..next.last];
        let mut bound = f64::NEG_INFINITY;
        for Open { way, number, surplus, .. } in ways {
            let most = self.value - (ways[0].surplus - surplus);
            if most <= answer.log_v + LEAST_GAIN {
                break;
            }
            if answer.left == 0 {
                bound = bound.max(most);
                break;
            }
            let uses = task.rows.uses(way);
            for (slot, gpus) in uses {
                free[*slot as usize] -= gpus;
            }
            let (known, steps) = (answer.log_v - way.log_v, answer.left);
            let (members, prices) = (&members[..], &self.prices[..]);
            let depth = task.depth - 1;
            let below =
                search(&Task { members, free: &free, prices, known, steps, depth, ..*task });
            for (slot, gpus) in uses {
                free[*slot as usize] += gpus;
            }
            answer.left = below.left;
            bound = bound.max(way.log_v + below.bound);
            if let Some(mut found) = below.found {
                found.push((next.bidder, *number));
                answer.log_v = way.log_v + below.log_v;
                answer.found = Some(found);
            }
        }
        answer.bound = answer.bound.min(bound).max(answer.log_v);
        answer
    }

    /// The bidder that would lose most by its second best way; ties: the first.
    fn most_to_lose(&self) -> Option<&Group> {
        let loss = |group: &Group| {
            let open = &self.open[group.first..group.last];
            open.get(1).map_or(f64::INFINITY, |second| open[0].surplus - second.surplus)
        };
        self.groups.iter().reduce(|a, b| if loss(b) > loss(a) { b } else { a })
    }
}

/// A search at prices that stay.
struct Branch<'a> {
    rows: &'a Rows,
    free: Vec<u32>,
    open: Vec<Open>,
    /// What the GPUs left cost.
    reserve: f64,
    chosen: Vec<(usize, u32)>,
    best: f64,
    found: Option<Vec<(usize, u32)>>,
    left: u32,
}

impl Branch<'_> {
    fn visit(&mut self, groups: &mut [Group], log_v: f64) {
        if groups.is_empty() {
            if log_v > self.best + LEAST_GAIN {
                (self.best, self.found) = (log_v, Some(self.chosen.clone()));
            }
            return;
        }
        let Some((bound, next)) = self.look(groups, log_v) else { return };
        if bound <= self.best + LEAST_GAIN || self.left == 0 {
            return;
        }
        groups.swap(0, next);
        let Group { bidder, first, last } = groups[0];
        let mut best = None;
        for at in first..last {
            let Open { way, number, surplus, cost } = self.open[at];
            if !self.rows.fits(&way, &self.free) {
                continue;
            }
            if bound - (*best.get_or_insert(surplus) - surplus) <= self.best + LEAST_GAIN {
                break;
            }
            self.take(&way, cost);
            self.chosen.push((bidder, number));
            self.visit(&mut groups[1..], log_v + way.log_v);
            self.chosen.pop();
            self.give(&way, cost);
            if self.left == 0 {
                break;
            }
        }
        groups.swap(0, next);
    }

    /// What a beginning is worth at most, and which bidder is next; `None` if one has no way left.
    fn look(&mut self, groups: &[Group], log_v: f64) -> Option<(f64, usize)> {
        let (mut bound, mut next, mut most) = (log_v + self.reserve, 0, f64::NEG_INFINITY);
        for (at, group) in groups.iter().enumerate() {
            let (rows, free, left) = (self.rows, &self.free, &mut self.left);
            let mut fitting = self.open[group.first..group.last].iter().filter(|one| {
                *left = left.saturating_sub(1);
                rows.fits(&one.way, free)
            });
            let first = fitting.next()?.surplus;
            let loss = fitting.next().map_or(f64::INFINITY, |second| first - second.surplus);
            bound += first;
            if loss > most {
                (most, next) = (loss, at);
            }
        }
        Some((bound, next))
    }

    fn take(&mut self, way: &Way, cost: f64) {
        for (slot, gpus) in self.rows.uses(way) {
            self.free[*slot as usize] -= gpus;
        }
        self.reserve -= cost;
    }

    fn give(&mut self, way: &Way, cost: f64) {
        for (slot, gpus) in self.rows.uses(way) {
            self.free[*slot as usize] += gpus;
        }
        self.reserve += cost;
    }
}
