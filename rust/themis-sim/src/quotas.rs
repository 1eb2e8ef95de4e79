//! Quotas: most GPUs that the apps of a tenant may hold at one time, from instant to instant.
//!
//! A quota binds grants. Where it shrinks, nobody loses GPUs at once: leases above it are not renewed.

use crate::workload::Tenant;

/// No quota.
const ANY: u32 = u32::MAX;

/// The quotas of all tenants over time.
#[derive(Clone, Debug)]
pub(crate) struct Quotas {
    /// (from when, GPUs) of each tenant, by time; any number before the first.
    steps: Vec<Vec<(i64, u32)>>,
    /// When some quota changes, by time.
    changes: Vec<i64>,
}

impl Quotas {
    pub(crate) fn new(tenants: &[Tenant]) -> Self {
        let steps: Vec<Vec<(i64, u32)>> =
            tenants.iter().map(|tenant| tenant.quota.clone()).collect();
        let mut changes: Vec<i64> = steps.iter().flatten().map(|(from_us, _)| *from_us).collect();
        changes.sort_unstable();
        changes.dedup();
        Self { steps, changes }
    }

    /// Whether some tenant has one.
    pub(crate) fn any(&self) -> bool {
        !self.changes.is_empty()
    }

    /// When one changes next.
    pub(crate) fn next_us(&self, now_us: i64) -> Option<i64> {
        self.changes.get(self.changes.partition_point(|at_us| *at_us <= now_us)).copied()
    }

    /// Whether one changes at this instant.
    pub(crate) fn change_at(&self, at_us: i64) -> bool {
        self.changes.binary_search(&at_us).is_ok()
    }

    fn from(&self, tenant: u32, at_us: i64) -> impl Iterator<Item = u32> {
        let steps = self.steps.get(tenant as usize).map_or(&[][..], Vec::as_slice);
        let next = steps.partition_point(|(from_us, _)| *from_us <= at_us);
        let now = if next == 0 { ANY } else { steps[next - 1].1 };
        std::iter::once(now).chain(steps[next..].iter().map(|(_, gpus)| *gpus))
    }

    /// A tenant's quota at an instant.
    pub(crate) fn at(&self, tenant: u32, at_us: i64) -> u32 {
        self.from(tenant, at_us).next().unwrap_or(ANY)
    }

    /// The largest from an instant on.
    pub(crate) fn most_from(&self, tenant: u32, at_us: i64) -> u32 {
        self.from(tenant, at_us).max().unwrap_or(ANY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_holds_from_step_to_step() {
        let tenant = |quota: &[(i64, u32)]| Tenant {
            name: String::new(),
            weight: 1.0,
            guaranteed: 0.0,
            quota: quota.to_vec(),
        };
        let quotas =
            Quotas::new(&[tenant(&[(10, 4), (20, 0), (30, 2)]), tenant(&[]), tenant(&[(20, 7)])]);
        let at = |at_us| (quotas.at(0, at_us), quotas.most_from(0, at_us), quotas.next_us(at_us));
        assert_eq!(at(9), (ANY, ANY, Some(10)));
        assert_eq!(at(10), (4, 4, Some(20)));
        assert_eq!(at(29), (0, 2, Some(30)));
        assert_eq!(at(30), (2, 2, None));
        assert_eq!((quotas.at(1, 30), quotas.at(2, 19), quotas.at(2, 20)), (ANY, ANY, 7));
        assert!(quotas.any() && quotas.change_at(20) && !quotas.change_at(21));
        assert!(!Quotas::new(&[tenant(&[])]).any());
    }
}
