//! What chance does to the distance of two numbers that are known from samples.
//!
//! Two numbers that are the same look different in a sample. Their distance is seen too large, by most where they are
//! the same, and by nothing where they are far apart. How many are how far apart is told by the distances that are
//! seen, all of them together: those are the true ones, widened by chance. So the distribution of true distances is
//! found that makes what was seen likeliest, without a form that it has to have (the non-parametric maximum likelihood
//! of Kiefer and Wolfowitz, 1956, by expectation and maximisation), and with it how much of a distance is chance's, on
//! average of those that look like it. Distances are counted in standard deviations here.

use std::f64::consts::PI;

/// Beyond so many deviations chance changes nothing.
const FAR: f64 = 8.0;
/// Bins of distances that are seen, up to there.
const BINS: usize = 80;
/// True distances are told apart in such steps, somewhat further.
const STEP: f64 = 0.25;
const STEPS: usize = 40;
/// Rounds of expectation and maximisation.
const ROUNDS: usize = 500;

/// How many distances are seen, by bin.
pub(crate) struct Seen([f64; BINS]);

impl Default for Seen {
    fn default() -> Self {
        Self([0.0; BINS])
    }
}

impl Seen {
    /// One, of numbers whose difference varies by a deviation.
    pub(crate) fn add(&mut self, distance: f64, deviation: f64) {
        if let Some(bin) = bin(distance, deviation) {
            self.0[bin] += 1.0;
        }
    }
}

/// How much of the distances that are seen is chance's.
pub(crate) struct Chance {
    /// On average, by bin.
    excess: [f64; BINS],
}

impl Chance {
    /// Learns from all that is seen.
    pub(crate) fn of(seen: &Seen) -> Self {
        let likely = likelihoods();
        let mut parts = [1.0 / STEPS as f64; STEPS];
        let total: f64 = seen.0.iter().sum();
        for _ in 0..ROUNDS {
            let mut next = [0.0; STEPS];
            for (likely, &count) in likely.iter().zip(&seen.0).filter(|(_, count)| **count > 0.0) {
                for (part, of_bin) in next.iter_mut().zip(posterior(&parts, likely)) {
                    *part += count / total * of_bin;
                }
            }
            if total > 0.0 {
                parts = next;
            }
        }
        let excess: [f64; STEPS] = std::array::from_fn(|step| excess(step as f64 * STEP));
        let mean = |of_bin: [f64; STEPS]| {
            of_bin
                .iter()
                .zip(excess)
                .map(|(part, excess)| part * excess)
                .sum()
        };
        Self {
            excess: std::array::from_fn(|bin| mean(posterior(&parts, &likely[bin]))),
        }
    }

    /// How far two numbers are apart that are seen at a distance, and whose difference varies by a deviation. On
    /// average: it may be less than nothing.
    pub(crate) fn distance(&self, distance: f64, deviation: f64) -> f64 {
        distance - bin(distance, deviation).map_or(0.0, |bin| self.excess[bin] * deviation)
    }
}

/// The bin of a distance that chance may have changed.
fn bin(distance: f64, deviation: f64) -> Option<usize> {
    let deviations = distance / deviation;
    (deviations < FAR).then(|| (deviations * BINS as f64 / FAR) as usize)
}

/// The density of the normal distribution.
fn normal(deviations: f64) -> f64 {
    (-deviations * deviations / 2.0).exp() / (2.0 * PI).sqrt()
}

/// For each bin how likely it is seen, by the true distance: with either sign.
fn likelihoods() -> [[f64; STEPS]; BINS] {
    let middle = |bin: usize| (bin as f64 + 0.5) * FAR / BINS as f64;
    let likelihood = |bin: usize, step: usize| {
        let truly = step as f64 * STEP;
        normal(middle(bin) - truly) + normal(middle(bin) + truly)
    };
    std::array::from_fn(|bin| std::array::from_fn(|step| likelihood(bin, step)))
}

/// What parts of those seen in a bin are of each true distance.
fn posterior(parts: &[f64; STEPS], likely: &[f64; STEPS]) -> [f64; STEPS] {
    let joint: [f64; STEPS] = std::array::from_fn(|step| parts[step] * likely[step]);
    let sum: f64 = joint.iter().sum();
    joint.map(|part| part / sum)
}

/// How much further apart than they truly are two numbers are seen on average: twice the mean of how far a standard
/// normal number is beyond the true distance, where it is.
fn excess(truly: f64) -> f64 {
    const WIDTH: f64 = 0.01;
    let beyond = |index: u32| (f64::from(index) + 0.5) * WIDTH;
    let moments = (0..1000).map(|index| beyond(index) * normal(truly + beyond(index)) * WIDTH);
    2.0 * moments.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scatter::scatter;

    /// Distances of numbers that truly are so far apart, each with the normal noise of a sum of twelve.
    fn seen(truly: f64, salt: u64) -> impl Iterator<Item = f64> {
        let noise = move |number| {
            let drawn = |of: u64| scatter(&[salt, number, of]) as f64 / u64::MAX as f64;
            (0..12).map(drawn).sum::<f64>() - 6.0
        };
        (0..2000).map(move |number| (truly + noise(number)).abs())
    }

    #[test]
    fn what_chance_adds_is_known_where_it_can_be() {
        let same = (2.0 / PI).sqrt();
        assert!((excess(0.0) - same).abs() < 1e-3, "{}", excess(0.0));
        assert!(excess(3.0) < 1e-3);
    }

    #[test]
    fn distances_are_right_on_average_whatever_their_mixture() {
        for mixture in [&[0.0][..], &[0.0, 4.0], &[0.0, 1.0, 6.0], &[1.0, 20.0]] {
            let mut all = Seen::default();
            for &truly in mixture {
                seen(truly, truly as u64).for_each(|distance| all.add(distance * 7.0, 7.0));
            }
            let chance = Chance::of(&all);
            let of =
                |truly: f64| seen(truly, truly as u64).map(|distance| chance.distance(distance * 7.0, 7.0));
            let estimated: f64 = mixture.iter().map(|&truly| of(truly).sum::<f64>() / 2000.0).sum();
            let truly: f64 = mixture.iter().sum::<f64>() * 7.0;
            assert!(
                (estimated - truly).abs() < 0.15 * 7.0,
                "{mixture:?}: {estimated} of {truly}"
            );
        }
    }

    #[test]
    fn what_does_not_vary_is_taken_as_it_is() {
        let mut all = Seen::default();
        all.add(5.0, 0.0);
        all.add(0.0, 0.0);
        let chance = Chance::of(&all);
        assert_eq!(chance.distance(5.0, 0.0), 5.0);
        assert_eq!(chance.distance(0.0, 0.0), 0.0);
    }
}
