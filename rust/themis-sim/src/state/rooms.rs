//! What quotas leave to tenants.

use super::State;

impl State<'_> {
    /// GPUs that the apps of each tenant hold, those of leases that have just run out too or not.
    fn held_by_tenant(&self, expired_too: bool) -> Vec<u32> {
        let mut held = vec![0; self.workload.tenants.len()];
        for app in &self.active {
            let run = &self.apps[*app as usize];
            let gpus = run.gpus - if expired_too { 0 } else { run.expired };
            held[self.workload.apps[*app as usize].tenant as usize] += gpus;
        }
        held
    }

    /// GPUs that each tenant may still take beside what it keeps; empty where none has a quota.
    pub(crate) fn rooms(&self) -> Vec<u32> {
        if !self.quotas.any() {
            return Vec::new();
        }
        let each = (0..).zip(self.held_by_tenant(false));
        let room = |(tenant, held)| self.quotas.at(tenant, self.now_us).saturating_sub(held);
        each.map(room).collect()
    }

    /// Whether the tenant of an app may hold so many GPUs more, beside all that it holds.
    pub(crate) fn quota_allows(&self, app: u32, more: u32) -> bool {
        if !self.quotas.any() {
            return true;
        }
        let tenant = self.workload.apps[app as usize].tenant;
        let held = self.held_by_tenant(true)[tenant as usize];
        held + more <= self.quotas.at(tenant, self.now_us)
    }

    /// Whether some tenant holds more than its quota.
    pub(crate) fn exceeds_quotas(&self) -> bool {
        let exceeds = |(tenant, held)| held > self.quotas.at(tenant, self.now_us);
        self.quotas.any() && (0..).zip(self.held_by_tenant(true)).any(exceeds)
    }
}
