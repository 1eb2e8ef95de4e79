//! Leases that end: which GPUs are on offer again, and when the next ones are.

use crate::state::State;

/// Marks the leases that end now (or lets them go on), and plans the next ends of the apps
/// concerned. A job that would be left with less than its gang offers all that it has: nothing is
/// ever held half.
pub(crate) fn expire(state: &mut State<'_>, mark: bool) {
    let now_us = state.now_us;
    let from_us = if mark { now_us } else { now_us + 1 };
    while let Some((at_us, app)) = state.expiries.peek() {
        if at_us > now_us {
            return;
        }
        state.expiries.pop();
        if state.apps.get(app as usize).is_none() {
            continue; // over
        }
        let mut next_us = i64::MAX;
        let run = &mut state.apps[app as usize];
        let before = run.expired;
        for number in &run.open {
            let job = &mut state.jobs[*number as usize];
            if job.gpus.is_empty() || !job.expired.is_empty() {
                continue;
            }
            // Where a switch takes a lease or longer, evictions would never let the job work.
            let endless = job.productive_us - job.switched_us >= state.clock.shortest_us();
            let from_us = if endless && job.productive_us >= now_us { now_us + 1 } else { from_us };
            // A guest's seat lasts as long as the GPU is the holder's.
            let guest = |gpu: &&u32| state.tenures.seats.is_guest(**gpu, *number);
            for gpu in job.gpus.iter().filter(|gpu| !guest(gpu)) {
                let expiry_us = state.tenures.of(*gpu).map_or(i64::MAX, |t| t.expiry_us);
                let due_us = state.clock.due(expiry_us, from_us);
                if due_us == now_us {
                    job.expired.push(*gpu);
                } else {
                    next_us = next_us.min(due_us);
                }
            }
            let kept = (job.gpus.len() - job.expired.len()) as u32;
            if !job.expired.is_empty() && kept < state.workload.jobs[*number as usize].gang {
                job.expired.clone_from(&job.gpus);
            }
            run.expired += job.expired.len() as u32;
        }
        if run.expired > before {
            state.expired.push(app);
        }
        state.count(app);
        if next_us < i64::MAX {
            state.expiries.plan(next_us, app);
        }
    }
}
