//! The random numbers of the NAS Parallel Benchmarks: x' = a x mod 2^46, as a fraction of 2^46.

/// The multiplier of all kernels, 5^13.
pub const MULTIPLIER: u64 = 1_220_703_125;
const MODULUS_MASK: u64 = (1 << 46) - 1;

/// A stream of numbers in (0, 1).
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    state: u64,
}

impl Stream {
    /// The stream that begins after a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream `count` numbers further on.
    pub fn skip(self, count: u64) -> Self {
        Self {
            state: multiply(self.state, power(MULTIPLIER, count)),
        }
    }

    /// The next number.
    pub fn next(&mut self) -> f64 {
        self.state = multiply(self.state, MULTIPLIER);
        self.state as f64 / (1_u64 << 46) as f64
    }
}

fn multiply(left: u64, right: u64) -> u64 {
    (u128::from(left) * u128::from(right)) as u64 & MODULUS_MASK
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut result, mut factor) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, factor);
        }
        factor = multiply(factor, factor);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_is_the_same_as_drawing() {
        let mut drawn = Stream::new(271_828_183);
        for _ in 0..1000 {
            drawn.next();
        }
        assert_eq!(drawn.state, Stream::new(271_828_183).skip(1000).state);
    }
}
