//! Seeded random numbers, one stream a purpose.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use themis_core::auction::Draws;

/// PCG64 streams for the lottery and for leftovers. The same seed gives the same draws on every
/// platform; seed 0 is a seed like any other.
#[derive(Clone, Debug)]
pub struct SeededDraws {
    lottery: Pcg64,
    leftover: Pcg64,
}

impl SeededDraws {
    /// The streams of a seed.
    pub fn new(seed: u64) -> Self {
        Self { lottery: stream(seed, 1), leftover: stream(seed, 2) }
    }
}

impl Draws for SeededDraws {
    fn lottery(&mut self) -> f64 {
        unit(&mut self.lottery)
    }

    fn leftover(&mut self) -> f64 {
        unit(&mut self.leftover)
    }
}

/// A stream of its own for every (seed, purpose): 32 bytes of `SplitMix64` (Steele et al., 2014).
pub(crate) fn stream(seed: u64, purpose: u64) -> Pcg64 {
    let mut state = seed ^ purpose.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mut bytes = [0; 32];
    for chunk in bytes.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    Pcg64::from_seed(bytes)
}

/// Uniform in [0, 1) with 53 bits.
pub(crate) fn unit(stream: &mut Pcg64) -> f64 {
    (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_uniform_and_apart() {
        let mut draws = SeededDraws::new(0);
        let lottery: Vec<f64> = (0..10_000).map(|_| draws.lottery()).collect();
        let leftover: Vec<f64> = (0..10_000).map(|_| draws.leftover()).collect();
        let mean = lottery.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!(lottery.iter().all(|u| (0.0..1.0).contains(u)));
        assert!(lottery.iter().zip(&leftover).all(|(a, b)| (a - b).abs() > 1e-12));
        assert!((SeededDraws::new(0).lottery() - lottery[0]).abs() < f64::EPSILON);
        assert!((SeededDraws::new(1).lottery() - lottery[0]).abs() > 1e-12);
    }
}
