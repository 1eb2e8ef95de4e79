//! Profiles: how much a job slows down when its GPUs are far apart, and how it scales.

use crate::app::Scaling;
use crate::cluster::Locality;
use crate::error::CoreError;

/// Slowdown S >= 1 a locality, never smaller at a coarser one (paper, section 3.2), and scaling.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    slowdown: [f64; 4],
    scaling: Scaling,
}

impl Profile {
    /// No slowdown anywhere.
    pub const PERFECT: Self = Self { slowdown: [1.0; 4], scaling: Scaling::LINEAR };

    /// A linear profile from its slowdowns at slot, machine, rack and cluster.
    ///
    /// # Errors
    /// [`CoreError::Cluster`] when a slowdown is below 1, not finite, or falls with distance.
    pub fn new(slowdown: [f64; 4]) -> Result<Self, CoreError> {
        let finite = slowdown.iter().all(|s| s.is_finite() && *s >= 1.0);
        if !finite || slowdown.windows(2).any(|pair| pair[1] < pair[0]) {
            return Err(CoreError::Cluster(format!(
                "slowdowns {slowdown:?} must be at least 1, finite, and not fall with distance"
            )));
        }
        Ok(Self { slowdown, scaling: Scaling::LINEAR })
    }

    /// The same with a scaling.
    #[must_use]
    pub fn with_scaling(mut self, scaling: Scaling) -> Self {
        self.scaling = scaling;
        self
    }

    /// The profile that an app claims: S x `scale`, and its part above 1 x `excess`; never below 1.
    #[must_use]
    pub fn claimed(&self, scale: f64, excess: f64) -> Self {
        let claim = |s: f64| ((1.0 + (s - 1.0) * excess) * scale).max(1.0);
        Self { slowdown: self.slowdown.map(claim), scaling: self.scaling.clone() }
    }

    /// Work a second of so many GPUs, perfectly placed, where each of its gang does 1.
    #[inline]
    pub fn pace(&self, gpus: u32, gang: u32) -> f64 {
        self.scaling.pace(gpus, gang)
    }

    /// S at a locality.
    #[inline]
    pub fn slowdown(&self, level: Locality) -> f64 {
        self.slowdown[level.index()]
    }

    /// The coarsest locality of every run of equal slowdowns, best first: the only levels between
    /// which a job can tell a difference.
    pub fn distinct_levels(&self) -> impl Iterator<Item = Locality> + '_ {
        Locality::ALL.into_iter().filter(|level| {
            let next = level.index() + 1;
            next == 4 || self.slowdown[next] > self.slowdown[level.index()]
        })
    }
}
