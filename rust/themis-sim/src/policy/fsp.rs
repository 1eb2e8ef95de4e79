//! Fair sojourn: the order of finish under fair sharing (Friedman and Henderson, SIGMETRICS 2003).

use super::Policy;
use super::in_order::{least_first, millionths};
use super::shared_cluster::SharedCluster;
use crate::plan::Plan;
use crate::view::View;

/// Beside the cluster a virtual one is played in which each of the N apps there has 1/N of the
/// GPUs, or its share by weight and tenant, perfectly placed, up to its demand and no faster than
/// its longest job (the `demand_capped` ideal time). The app that ends first there goes first here and takes all that
/// it can use. Ties: earlier arrival, then app id.
///
/// An app stays in the virtual cluster until it ends there, however early it ends here. A job that
/// is submitted later than its app counts from the first decision after that. Cost of an arrival:
/// O(apps x kinds of apps) of the virtual cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Fsp {
    shared: SharedCluster,
    /// When apps end there if nobody else comes, by number, in microseconds. Of apps that have
    /// left it, anything.
    ends_us: Vec<i64>,
    /// Whether that was found since somebody came.
    is_known: bool,
}

impl Policy for Fsp {
    fn name(&self) -> &'static str {
        "fsp"
    }

    fn decide(&mut self, view: &View<'_>) -> Plan {
        self.is_known &= !self.shared.take_in(view);
        let competes = view.wanting().nth(1).is_some();
        if competes && !self.is_known {
            self.ends_us.resize(self.shared.known(), i64::MAX);
            let ends_us = &mut self.ends_us;
            self.shared.ends(|app, end_s| ends_us[app as usize] = millionths(end_s));
            self.is_known = true;
        }
        // Who is alone needs no order.
        least_first(view, |app| if competes { self.ends_us[app as usize] } else { 0 })
    }
}
