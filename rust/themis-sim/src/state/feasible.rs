//! Which jobs can ever run on the cluster, and why others can't.

use super::State;
use crate::workload::JobSpec;
use themis_core::cluster::Host;

impl State<'_> {
    /// The jobs of an app that can run on this cluster and need GPUs for it.
    pub(crate) fn gpu_jobs(&self, app: u32) -> impl Iterator<Item = u32> + '_ {
        self.workload.apps[app as usize].job_ids().filter(|job| self.needs_gpus(*job))
    }

    /// Whether a job can run on this cluster, as its capacity and quotas are planned from the
    /// submission on, and needs GPUs for it.
    pub(crate) fn needs_gpus(&self, job: u32) -> bool {
        let spec = &self.workload.jobs[job as usize];
        spec.gang > 0 && spec.work_gpu_us > 0.0 && self.can_run_from(spec.submit_us, job)
    }

    /// Whether there is an instant from this one on at which the cluster has a job's gang and its
    /// tenant may hold it.
    pub(crate) fn can_run_from(&self, at_us: i64, job: u32) -> bool {
        let spec = &self.workload.jobs[job as usize];
        self.capacity.has_room_from(at_us, &spec.speeds, self.needs_of(job), spec.gang)
            && spec.gang <= self.quotas.most_from(self.tenant_of(spec), at_us)
    }

    /// Why it can't; none where the cluster never had as many GPUs of its types.
    pub(crate) fn hopeless_because(&self, at_us: i64, job: u32) -> Option<String> {
        let spec = &self.workload.jobs[job as usize];
        let most_of = |needs| self.capacity.most_from(at_us, &spec.speeds, needs);
        let (most, usable) = (most_of(Host::NONE), most_of(self.needs_of(job)));
        let quota = self.quotas.most_from(self.tenant_of(spec), at_us);
        if most >= spec.gang && usable < spec.gang {
            let [cpu_milli, memory_mib] = self.workload.needs[spec.needs as usize].amounts();
            let (cores, gib) = (cpu_milli as f64 / 1e3, memory_mib as f64 / 1024.0);
            return Some(format!(
                "needs {} GPUs with {cores} CPU cores and {gib} GiB of memory each, the cluster has \
                 {usable} at most",
                spec.gang
            ));
        }
        if most >= spec.gang {
            return Some(format!(
                "needs {} GPUs, its tenant's quota is {quota} at most",
                spec.gang
            ));
        }
        let shrinks = most < spec.speeds.most_gpus(&self.topology);
        shrinks.then(|| format!("needs {} GPUs, the cluster has {most} at most", spec.gang))
    }

    /// What a GPU of a job needs of its machine.
    pub(crate) fn needs_of(&self, job: u32) -> Host {
        self.workload.needs_of(&self.workload.jobs[job as usize])
    }

    fn tenant_of(&self, job: &JobSpec) -> u32 {
        self.workload.apps[job.app as usize].tenant
    }
}
