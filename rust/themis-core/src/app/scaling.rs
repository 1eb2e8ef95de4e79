//! Scaling: how a job's pace grows with its GPUs.

use std::sync::Arc;

use crate::error::CoreError;

/// The pace of a job of perfectly placed GPUs, in that of one GPU: n times the efficiency eff(n).
///
/// Between two known counts, and beyond the last, the pace goes on in a straight line; one GPU has
/// pace 1. Cost: O(log points).
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling(Option<Arc<[(f64, f64)]>>);

impl Scaling {
    /// Each GPU adds as much as the first.
    pub const LINEAR: Self = Self(None);

    /// From (GPUs, eff), GPUs rising from 2 on; linear where there are none.
    ///
    /// # Errors
    /// [`CoreError::Cluster`] when the counts do not rise, or an efficiency is outside (0, 1], grows,
    /// or falls so fast that a job gets slower with more GPUs.
    pub fn new(points: &[(u32, f64)]) -> Result<Self, CoreError> {
        if points.is_empty() {
            return Ok(Self::LINEAR);
        }
        let mut known = vec![(1.0, 1.0)];
        for &(gpus, eff) in points {
            let (gpus, (before, pace)) = (f64::from(gpus), known[known.len() - 1]);
            let grows = eff > pace / before;
            if gpus <= before || !(eff > 0.0 && eff <= 1.0) || grows || gpus * eff < pace {
                return Err(CoreError::Cluster(format!(
                    "efficiencies {points:?} by GPUs must be of rising counts from 2 on, in (0, 1], \
                     not grow, and not fall so fast that more GPUs are slower"
                )));
            }
            known.push((gpus, gpus * eff));
        }
        Ok(Self(Some(known.into())))
    }

    /// The pace of so many GPUs, in that of `unit` of them: `unit` for as many, fewer than `gpus`
    /// for more.
    #[inline]
    pub fn pace(&self, gpus: u32, unit: u32) -> f64 {
        match &self.0 {
            None => f64::from(gpus),
            Some(_) if gpus == unit => f64::from(gpus),
            Some(known) => f64::from(unit) * (along(known, gpus) / along(known, unit)),
        }
    }
}

/// The pace of so many GPUs on the line through the known points, of which there are two or more.
fn along(known: &[(f64, f64)], gpus: u32) -> f64 {
    let gpus = f64::from(gpus);
    let after = known.partition_point(|point| point.0 < gpus).clamp(1, known.len() - 1);
    let ((from, slow), (to, fast)) = (known[after - 1], known[after]);
    slow + (fast - slow) * ((gpus - from) / (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paces(scaling: &Scaling, unit: u32, gpus: &[u32]) -> Vec<f64> {
        gpus.iter().map(|gpus| scaling.pace(*gpus, unit)).collect()
    }

    #[test]
    fn the_pace_goes_in_straight_lines_through_what_is_known() {
        // 2 GPUs do 1.8, 4 do 3: 3 do 2.4, 5 do 3.6.
        let scaling = Scaling::new(&[(2, 0.9), (4, 0.75)]).expect("valid");
        let found = paces(&scaling, 1, &[1, 2, 3, 4, 5]);
        for (pace, expected) in found.iter().zip([1.0, 1.8, 2.4, 3.0, 3.6]) {
            assert!((pace - expected).abs() < 1e-12, "{found:?}");
        }
        // In units of a gang of 2, which does 2 a second: 4 do 2 x 3 / 1.8.
        assert!((scaling.pace(4, 2) - 10.0 / 3.0).abs() < 1e-12);
        assert!(paces(&scaling, 3, &[3]) == [3.0]);
        assert_eq!(paces(&Scaling::LINEAR, 2, &[2, 7]), [2.0, 7.0]);
        assert_eq!(Scaling::new(&[]).expect("valid"), Scaling::LINEAR);
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        for bad in [
            vec![(1, 0.9)],
            vec![(2, 0.9), (2, 0.8)],
            vec![(2, 1.1)],
            vec![(2, 0.0)],
            vec![(2, f64::NAN)],
            vec![(2, 0.8), (4, 0.9)],
            vec![(2, 0.4)],
            vec![(2, 0.9), (4, 0.4)],
        ] {
            assert!(Scaling::new(&bad).is_err(), "{bad:?}");
        }
    }
}
