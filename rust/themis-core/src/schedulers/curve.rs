//! Loss curves: loss(k) = 1 / (a k + b) + c after k iterations (the model of SLAQ, Zhang et al.
//! 2017, and Optimus, Peng et al. 2018), fitted to what was seen, with its error bar.
//!
//! Levenberg-Marquardt on (a, b, c) from the best of some lines; the error of a forecast is that of the parameters, carried on
//! to first order. Cost: O(points) a step, at most 60 steps.

/// A curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossCurve {
    /// How fast it falls; 0 or more.
    pub a: f64,
    /// 1 / (its height above `c` at the start); positive.
    pub b: f64,
    /// Where it ends up.
    pub c: f64,
}

impl LossCurve {
    /// The loss after so many iterations.
    pub fn at(&self, iterations: f64) -> f64 {
        1.0 / (self.a * iterations + self.b) + self.c
    }

    /// The iterations after which the loss is at most this; `None`: never.
    pub fn reaches(&self, loss: f64) -> Option<f64> {
        if loss <= self.c {
            return None;
        }
        let more = 1.0 / (loss - self.c) - self.b;
        if more <= 0.0 {
            return Some(0.0);
        }
        (self.a > 0.0).then(|| more / self.a)
    }

    /// The slopes of the loss in a, b and c.
    fn slopes(&self, iterations: f64) -> [f64; 3] {
        let height = 1.0 / (self.a * iterations + self.b);
        [-iterations * height * height, -height * height, 1.0]
    }

    /// Whether it is a curve at all: finite, never rising, and above where it ends up.
    pub fn is_valid(&self) -> bool {
        self.a >= 0.0 && self.b > 0.0 && self.c.is_finite() && (self.a + self.b).is_finite()
    }
}

/// A fitted curve and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The curve, in units of `scale` iterations.
    curve: LossCurve,
    scale: f64,
    /// Covariance of its parameters.
    covariance: [[f64; 3]; 3],
}

/// Standard errors between a forecast and its pessimistic or optimistic bound.
const BAR: f64 = 2.0;

/// Points without which no forecast is made.
const FEWEST_POINTS: usize = 4;

const STEPS: usize = 60;

impl Fit {
    /// The least squares curve through (iterations, loss), if there are enough points.
    ///
    /// `error` is the standard error of a loss as a share of the range of those seen; the spread
    /// about the curve counts where it is larger.
    pub fn of(points: &[(f64, f64)], error: f64) -> Option<Self> {
        if points.len() < FEWEST_POINTS {
            return None;
        }
        let scale = points.iter().map(|point| point.0).fold(0.0, f64::max);
        let low = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
        if scale <= 0.0 || high <= low {
            return None;
        }
        let points: Vec<(f64, f64)> = points.iter().map(|(k, loss)| (k / scale, *loss)).collect();
        let curve = descend(&points, first_guess(&points, low, high - low));
        let normal = normal_equations(&points, &curve).0;
        let spread = squares(&points, &curve) / (points.len() - 3) as f64;
        let floor = error * (high - low);
        let variance = spread.max(floor * floor);
        let mut covariance = [[0.0; 3]; 3];
        for (row, unit) in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].iter().enumerate() {
            covariance[row] = solve(normal, *unit)?.map(|value| value * variance);
        }
        Some(Self { curve, scale, covariance })
    }

    /// The forecast loss after so many iterations, and half the width of its error bar.
    pub fn forecast(&self, iterations: f64) -> (f64, f64) {
        let at = iterations / self.scale;
        let slopes = self.curve.slopes(at);
        let each = self.covariance.iter().zip(slopes);
        let variance: f64 = each
            .map(|(row, slope)| slope * row.iter().zip(slopes).map(|(v, s)| v * s).sum::<f64>())
            .sum();
        (self.curve.at(at), BAR * variance.max(0.0).sqrt())
    }

    /// The iterations after which the fitted curve is at most this; `None`: never.
    pub fn reaches(&self, loss: f64) -> Option<f64> {
        self.curve.reaches(loss).map(|at| at * self.scale)
    }
}

/// The best of some curves that end at given losses: for each of those, 1 / (loss - c) is a line.
fn first_guess(points: &[(f64, f64)], low: f64, range: f64) -> LossCurve {
    let ends = (-8..=6).map(|power| low - range * 2.0_f64.powi(power));
    let curves = ends.map(|c| line_above(points, c)).filter(LossCurve::is_valid);
    let from = LossCurve { a: 1.0 / range, b: 1.0 / range, c: low - range };
    curves.fold(
        from,
        |best, curve| {
            if squares(points, &curve) < squares(points, &best) { curve } else { best }
        },
    )
}

/// a and b for a given c: the line through 1 / (loss - c), each point weighted by how little an
/// error of its loss moves it.
fn line_above(points: &[(f64, f64)], c: f64) -> LossCurve {
    let (mut w, mut wk, mut wz, mut wkk, mut wkz) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (k, loss) in points {
        let (height, z) = (loss - c, 1.0 / (loss - c));
        let weight = height.powi(4);
        w += weight;
        wk += weight * k;
        wz += weight * z;
        wkk += weight * k * k;
        wkz += weight * k * z;
    }
    let a = (w * wkz - wk * wz) / (w * wkk - wk * wk);
    LossCurve { a, b: (wz - a * wk) / w, c }
}

/// Goes downhill in the sum of squares.
fn descend(points: &[(f64, f64)], from: LossCurve) -> LossCurve {
    let (mut curve, mut damping) = (from, 1e-3);
    let mut best = squares(points, &curve);
    for _ in 0..STEPS {
        let (mut normal, down) = normal_equations(points, &curve);
        for (row, values) in normal.iter_mut().enumerate() {
            values[row] *= 1.0 + damping;
        }
        let Some([a, b, c]) = solve(normal, down) else { return curve };
        let next = LossCurve { a: curve.a + a, b: curve.b + b, c: curve.c + c };
        let sum = if next.is_valid() { squares(points, &next) } else { f64::INFINITY };
        if sum < best {
            let is_flat = best - sum <= 1e-15 * best;
            (curve, best, damping) = (next, sum, damping * 0.2);
            if is_flat {
                return curve;
            }
        } else {
            damping *= 8.0;
        }
    }
    curve
}

fn squares(points: &[(f64, f64)], curve: &LossCurve) -> f64 {
    points.iter().map(|(k, loss)| (loss - curve.at(*k)).powi(2)).sum()
}

/// J'J and J'r of the residuals.
fn normal_equations(points: &[(f64, f64)], curve: &LossCurve) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut normal, mut down) = ([[0.0; 3]; 3], [0.0; 3]);
    for (k, loss) in points {
        let slopes = curve.slopes(*k);
        for row in 0..3 {
            down[row] += slopes[row] * (loss - curve.at(*k));
            for column in 0..3 {
                normal[row][column] += slopes[row] * slopes[column];
            }
        }
    }
    (normal, down)
}

/// Solves a symmetric system by elimination; `None` where it has no single solution.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    for at in 0..3 {
        let pivot = (at..3).max_by(|a, b| matrix[*a][at].abs().total_cmp(&matrix[*b][at].abs()))?;
        matrix.swap(at, pivot);
        right.swap(at, pivot);
        if matrix[at][at].abs() < f64::MIN_POSITIVE || !matrix[at][at].is_finite() {
            return None;
        }
        for row in at + 1..3 {
            let (above, factor) = (matrix[at], matrix[row][at] / matrix[at][at]);
            for (value, from) in matrix[row].iter_mut().zip(above) {
                *value -= factor * from;
            }
            right[row] -= factor * right[at];
        }
    }
    for at in (0..3).rev() {
        let known: f64 = (at + 1..3).map(|column| matrix[at][column] * right[column]).sum();
        right[at] = (right[at] - known) / matrix[at][at];
    }
    right.iter().all(|value| value.is_finite()).then_some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(curve: LossCurve, until: u32) -> Vec<(f64, f64)> {
        (0..=until).map(|k| (f64::from(k), curve.at(f64::from(k)))).collect()
    }

    #[test]
    fn a_curve_without_noise_is_found_again() {
        for (a, b, c) in [(0.1, 0.5, 0.2), (0.02, 1.0, 0.0), (2.0, 0.25, 1.5), (0.4, 4.0, -1.0)] {
            let curve = LossCurve { a, b, c };
            let fit = Fit::of(&seen(curve, 12), 0.0).expect("enough points");
            for k in [0.0, 12.0, 50.0, 200.0] {
                let (loss, bar) = fit.forecast(k);
                assert!((loss - curve.at(k)).abs() < 1e-5, "{curve:?} at {k}: {loss}");
                assert!(bar < 1e-4, "{curve:?} at {k}: {bar}");
            }
        }
    }

    #[test]
    fn a_forecast_gets_surer_with_more_points_and_less_sure_with_distance() {
        let curve = LossCurve { a: 0.1, b: 0.5, c: 0.2 };
        let bar = |until, at| Fit::of(&seen(curve, until), 0.01).expect("points").forecast(at).1;
        assert!(bar(6, 100.0) > bar(12, 100.0) && bar(12, 100.0) > bar(50, 100.0));
        assert!(bar(12, 12.0) < bar(12, 30.0) && bar(12, 30.0) < bar(12, 100.0));
    }

    #[test]
    fn noise_of_the_stated_size_stays_inside_the_bar() {
        let curve = LossCurve { a: 0.05, b: 0.4, c: 0.3 };
        // A fixed pattern of errors of one standard error: 1 % of the range 2.5 - 1.
        let noisy = |k: u32| 0.015 * [1.0, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0][k as usize % 8];
        let points: Vec<_> =
            (0..=20).map(|k| (f64::from(k), curve.at(f64::from(k)) + noisy(k))).collect();
        let fit = Fit::of(&points, 0.01).expect("points");
        for k in [30.0, 60.0, 100.0] {
            let (loss, bar) = fit.forecast(k);
            assert!((loss - curve.at(k)).abs() <= bar, "{k}: {loss} +- {bar}");
        }
    }

    #[test]
    fn too_little_is_no_forecast() {
        let curve = LossCurve { a: 0.1, b: 0.5, c: 0.2 };
        assert_eq!(Fit::of(&seen(curve, 2), 0.01), None);
        assert_eq!(Fit::of(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0)], 0.01), None);
    }

    #[test]
    fn a_loss_is_reached_where_the_curve_says() {
        let curve = LossCurve { a: 0.1, b: 0.5, c: 0.2 };
        assert_eq!(curve.reaches(0.2), None);
        assert_eq!(curve.reaches(9.0), Some(0.0));
        let at = curve.reaches(1.2).expect("it does");
        assert!((at - 5.0).abs() < 1e-12 && (curve.at(at) - 1.2).abs() < 1e-12);
        assert_eq!(LossCurve { a: 0.0, ..curve }.reaches(1.0), None);
    }
}
