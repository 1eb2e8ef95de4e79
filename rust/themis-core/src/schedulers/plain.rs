//! Searches that drop no job on its merits: `all`, `fixed` and `first`.
//!
//! `all` is an array of jobs. In `fixed` every job runs its own stated budget (its work) and the
//! one of lowest loss is the answer: the same schedule, another reading of the result. `first` ends
//! with the first job that is done. Cost: O(1) a review for `all`, O(jobs) for `first`.

use super::{AppScheduler, AppView, Failed, Least, Standing, Verdict};
use crate::app::Stopping;

/// Every job runs to its end.
#[derive(Clone, Copy, Debug)]
pub struct All;

impl AppScheduler for All {
    fn review(&mut self, _app: &AppView<'_>) -> Result<Verdict, Failed> {
        Ok(Verdict::default())
    }

    fn is_plain(&self) -> bool {
        true
    }
}

/// The first job that is done ends the app. A job that takes no part in the search ends nothing
/// but itself while others do.
#[derive(Clone, Copy, Debug)]
pub struct First;

impl AppScheduler for First {
    fn review(&mut self, app: &AppView<'_>) -> Result<Verdict, Failed> {
        let any = app.competitors().next().is_some();
        let is_first = |job: &usize| {
            let report = (app.job)(*job);
            report.standing == Standing::Done && (report.competes || !any)
        };
        let over = app.reported.iter().any(is_first);
        Ok(Verdict {
            over: over.then(|| "another job of its app was done first".to_string()),
            ..Verdict::default()
        })
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn waits_for(&self) -> Stopping {
        Stopping::First
    }

    fn least(&self, app: &AppView<'_>, whole: bool) -> Least {
        let chain = app.competitors().map(|(job, report)| vec![vec![report.piece(job, whole)]]);
        Least::Any(chain.collect())
    }
}
