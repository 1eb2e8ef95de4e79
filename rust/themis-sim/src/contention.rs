//! How many apps of one's own weight would share the cluster alike: the N of the paper's 1/N share.
//!
//! A tenant with active apps has its guaranteed share, and by weight its part of what is not
//! guaranteed to those that have some; its active apps divide that by weight. Contention is 1 over the share
//! of an app. Where there are no tenants, all apps are of one: with equal weights, N of them.

use crate::level::Level;
use crate::sum::Sum;
use crate::workload::{AppSpec, Tenant};

/// The active apps of one tenant.
#[derive(Clone, Debug)]
struct Pool {
    weight: f64,
    guaranteed: f64,
    apps: u32,
    /// The weights of its apps.
    weights: Sum,
    /// Contention of an app of weight 1; 0 without apps.
    level: Level,
}

/// Contention over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contention(Vec<Pool>);

impl Contention {
    /// Nobody is active yet. Without tenants, all apps are of the first.
    pub(crate) fn new(tenants: &[Tenant]) -> Self {
        let pool = |weight, guaranteed| Pool {
            weight,
            guaranteed,
            apps: 0,
            weights: Sum::default(),
            level: Level::default(),
        };
        let mut pools: Vec<Pool> =
            tenants.iter().map(|tenant| pool(tenant.weight, tenant.guaranteed)).collect();
        if pools.is_empty() {
            pools.push(pool(1.0, 0.0));
        }
        Self(pools)
    }

    /// An app is active from now on. Cost: O(tenants).
    pub(crate) fn join(&mut self, now_us: i64, app: &AppSpec) {
        let pool = &mut self.0[app.tenant as usize];
        pool.apps += 1;
        pool.weights = pool.weights.plus(app.weight);
        let others_too = pool.apps == 1;
        self.update(now_us, app.tenant, others_too);
    }

    /// An app is active no more; the same cost.
    pub(crate) fn leave(&mut self, now_us: i64, app: &AppSpec) {
        let pool = &mut self.0[app.tenant as usize];
        pool.apps -= 1;
        pool.weights = if pool.apps == 0 { Sum::default() } else { pool.weights.plus(-app.weight) };
        let others_too = pool.apps == 0;
        self.update(now_us, app.tenant, others_too);
    }

    fn update(&mut self, now_us: i64, tenant: u32, all: bool) {
        let active = || self.0.iter().filter(|pool| pool.apps > 0);
        let weights: f64 = active().map(|pool| pool.weight).sum();
        let rest = 1.0 - active().map(|pool| pool.guaranteed).sum::<f64>();
        for (at, pool) in (0..).zip(&mut self.0) {
            if !all && at != tenant {
                continue;
            }
            let share = pool.guaranteed + pool.weight / weights * rest;
            let level = if pool.apps > 0 { pool.weights.value() / share } else { 0.0 };
            pool.level.set(now_us, level);
        }
    }

    /// Contention of an app of this kind at present, at least 1.
    pub(crate) fn now(&self, app: &AppSpec) -> f64 {
        (self.0[app.tenant as usize].level.now() / app.weight).max(1.0)
    }

    /// What [`Contention::mean`] takes for an app that arrives now.
    pub(crate) fn area_at(&self, now_us: i64, app: &AppSpec) -> Sum {
        self.0[app.tenant as usize].level.area_at(now_us)
    }

    /// Mean contention of an app since it arrived, at least 1; that of the present when that is now.
    pub(crate) fn mean(&self, app: &AppSpec, area_then: Sum, now_us: i64) -> f64 {
        let level = &self.0[app.tenant as usize].level;
        (level.mean(app.arrival_us, area_then, now_us) / app.weight).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Claim;
    use themis_core::schedulers::SchedulerKind;

    fn app(tenant: u32, weight: f64) -> AppSpec {
        AppSpec {
            arrival_us: 0,
            stopping: SchedulerKind::All,
            max_gpus: 1,
            target_loss: None,
            claim: Claim::TRUE,
            weight,
            tenant,
            first_job: 0,
            jobs: 1,
        }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn apps_divide_by_weight() {
        let mut c = Contention::new(&[]);
        let (heavy, light) = (app(0, 3.0), app(0, 1.0));
        c.join(0, &heavy);
        near(c.now(&heavy), 1.0);
        let area = c.area_at(0, &heavy);
        c.join(10, &light);
        near(c.now(&heavy), 4.0 / 3.0);
        near(c.now(&light), 4.0);
        // 10 us alone, 20 us at 4/3.
        near(c.mean(&heavy, area, 30), (10.0 + 20.0 * 4.0 / 3.0) / 30.0);
        c.leave(30, &heavy);
        near(c.now(&light), 1.0);
    }

    #[test]
    fn tenants_have_what_they_are_guaranteed_and_divide_the_rest() {
        let tenant = |weight, guaranteed| Tenant {
            name: String::new(),
            weight,
            guaranteed,
            quota: Vec::new(),
        };
        let mut c = Contention::new(&[tenant(1.0, 0.5), tenant(3.0, 0.0), tenant(1.0, 0.0)]);
        c.join(0, &app(1, 1.0));
        near(c.now(&app(1, 1.0)), 1.0);
        // The first: 0.5 + 1/4 of the other half; two apps of the second share 3/4 of that half.
        c.join(0, &app(0, 1.0));
        c.join(0, &app(1, 2.0));
        near(c.now(&app(0, 1.0)), 1.0 / 0.625);
        near(c.now(&app(1, 2.0)), 1.0 / (0.375 * 2.0 / 3.0));
        c.leave(5, &app(0, 1.0));
        c.join(5, &app(2, 7.0));
        near(c.now(&app(2, 7.0)), 4.0);
    }
}
