//! How much is shared: from samples of what tasks touch, or from who touched first.
//!
//! A region is shared by a pair of tasks as often as the one of the two touches it that touches it less: the measure of
//! an observer of every access, which does not hang on who came when. [`Touched`] takes it of a sample of the accesses,
//! of each task in parts of all that it touches. So it does not hang on how fast a task is, either: one whose accesses
//! take longer, or that shares its core, is seen more often or less often, everywhere alike.
//!
//! Of a sample the less of two counts is too small on average, by chance: where both tasks touch the region alike, by a
//! part that falls with the square root of the sample's size. The sample is kept in two halves, which tell how much
//! counts vary, and what that does to how far two of them are apart is taken back (module `chance`). A region
//! that one task alone was seen to touch is not shared, however few of its touches were seen: with few samples of each
//! of many regions the amounts are too small.
//!
//! Where there is no such sample, [`Amounts`] makes do with faults. After a piece of memory was taken away only its
//! next touch is seen, and hides all others until it is taken away again. But over many rounds, at moments that do not
//! hang on what the program does, who comes first is a sample of who touches it how often: of a region that was seen n
//! times, n touches.
//!
//! Limits of that. It says nothing of how often a region is touched in all: each that is touched at all counts by its
//! rounds. Of a region with few rounds little is known: the less of two small counts is too low on average, at worst
//! nothing after one round. Where tasks touch a region in bursts one after the other, the burst after the longest pause
//! is seen most.

use std::collections::BTreeMap;

use crate::chance::{Chance, Seen};
use crate::detection::Access;
use crate::identity::TaskId;
use crate::matrix::SharingMatrix;

/// How often each task was seen to touch each region.
#[derive(Clone, Debug)]
pub struct Touched<Region> {
    /// Of each task as often in the one half of the sample and in the other.
    regions: BTreeMap<Region, Vec<(TaskId, [u64; 2])>>,
    regions_max: usize,
}

impl<Region: Copy + Ord> Touched<Region> {
    /// Nothing seen yet; so many regions at most.
    pub fn new(regions_max: usize) -> Self {
        Self {
            regions: BTreeMap::new(),
            regions_max,
        }
    }

    /// Notes touches of a region, seen in the sample of that number. Beyond the most regions none is added.
    pub fn record(&mut self, sample: u64, task: TaskId, region: Region, touches: u64) {
        if self.regions.len() >= self.regions_max && !self.regions.contains_key(&region) {
            return;
        }
        let halves = of_task(self.regions.entry(region).or_default(), task);
        halves[(sample % 2) as usize] += touches;
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// What each pair of so many tasks shares, in millionths of what a task touches.
    pub fn matrix(&self, tasks: usize) -> SharingMatrix {
        let spreads = self.spreads(tasks);
        let part = |&(task, halves): &(TaskId, [u64; 2])| (task.index(), spreads[task.index()].part(halves));
        let regions: Vec<Vec<(usize, Part)>> = self
            .regions
            .values()
            .map(|counts| counts.iter().map(part).collect())
            .collect();
        let pairs = || regions.iter().flat_map(|parts| pairs(parts));
        let mut seen = Seen::default();
        pairs().for_each(|((_, ours), (_, theirs))| seen.add(ours.distance(theirs), ours.deviation(theirs)));
        let chance = Chance::of(&seen);
        let mut shares = vec![vec![0.0; tasks]; tasks];
        for ((left, ours), (right, theirs)) in pairs() {
            let distance = chance.distance(ours.distance(theirs), ours.deviation(theirs));
            shares[left][right] += (ours.part + theirs.part - distance) / 2.0;
        }
        let mut matrix = SharingMatrix::new(tasks);
        for (left, row) in shares.iter().enumerate() {
            for (right, share) in row.iter().enumerate() {
                matrix.record(
                    TaskId::new(left),
                    TaskId::new(right),
                    (share * 1e6).round() as u64,
                );
            }
        }
        matrix
    }

    /// What each of so many tasks was seen to touch in all, and how much that varies.
    fn spreads(&self, tasks: usize) -> Vec<Spread> {
        let mut sums = vec![(0_u64, 0.0); tasks];
        for (task, halves) in self.regions.values().flatten() {
            let (total, squares) = &mut sums[task.index()];
            *total += halves[0] + halves[1];
            *squares += (halves[0].abs_diff(halves[1]) as f64).powi(2);
        }
        let spread = |(total, squares)| Spread {
            total: total as f64,
            variance: squares / total as f64,
        };
        sums.into_iter().map(spread).collect()
    }

    /// Halves all, so that what was long ago counts less, and forgets regions of which nothing is left.
    pub fn fade(&mut self) {
        self.regions.retain(|_, counts| {
            counts
                .iter_mut()
                .flat_map(|(_, halves)| halves)
                .for_each(|count| *count /= 2);
            counts.retain(|(_, halves)| *halves != [0; 2]);
            !counts.is_empty()
        });
    }

    /// Forgets a task: its number may name another from now on.
    pub fn forget(&mut self, task: TaskId) {
        for counts in self.regions.values_mut() {
            counts.retain(|(other, _)| *other != task);
        }
    }

    /// Forgets all touches.
    pub fn reset(&mut self) {
        self.regions.clear();
    }
}

/// What a task was seen to touch in all.
#[derive(Clone, Copy, Debug)]
struct Spread {
    total: f64,
    /// The variance of a count, in parts of the count: one where touches are seen one by one, and more where a sample
    /// sees some at once. It is that of the halves' difference.
    variance: f64,
}

impl Spread {
    fn part(self, halves: [u64; 2]) -> Part {
        let count = (halves[0] + halves[1]) as f64;
        Part {
            part: count / self.total,
            variance: self.variance * count / self.total / self.total,
        }
    }
}

/// How much of all that a task touches lies in a region.
#[derive(Clone, Copy, Debug)]
struct Part {
    part: f64,
    variance: f64,
}

impl Part {
    fn distance(self, other: Self) -> f64 {
        (self.part - other.part).abs()
    }

    /// The standard deviation of the difference.
    fn deviation(self, other: Self) -> f64 {
        (self.variance + other.variance).sqrt()
    }
}

/// All pairs, of each one before the later one.
fn pairs<Of: Copy>(all: &[Of]) -> impl Iterator<Item = (Of, Of)> + '_ {
    let before = |(index, &one): (usize, &Of)| all[..index].iter().map(move |&other| (one, other));
    all.iter().enumerate().flat_map(before)
}

/// A task's count, a new one if it has none.
fn of_task<Count: Default>(counts: &mut Vec<(TaskId, Count)>, task: TaskId) -> &mut Count {
    let at = counts.iter().position(|(other, _)| *other == task);
    let at = at.unwrap_or_else(|| {
        counts.push((task, Count::default()));
        counts.len() - 1
    });
    &mut counts[at].1
}

fn halve(counts: &mut Vec<(TaskId, u64)>) {
    counts.iter_mut().for_each(|(_, count)| *count /= 2);
    counts.retain(|(_, count)| *count > 0);
}

/// Records for each pair what the one of the two has that has less.
fn share(matrix: &mut SharingMatrix, counts: &[(TaskId, u64)]) {
    for ((left, ours), (right, theirs)) in pairs(counts) {
        matrix.record(left, right, ours.min(theirs));
    }
}

/// When a region was seen so often its counts are halved, so that old rounds fade.
const ROUNDS_MAX: u64 = 64;

/// Who was first at a region, and how often.
#[derive(Clone, Debug, Default)]
struct Touches {
    counts: Vec<(TaskId, u64)>,
    /// When somebody was first last.
    first_ns: Option<u64>,
}

/// Who was first at each region, and how often.
#[derive(Clone, Debug)]
pub struct Amounts<Region> {
    regions: BTreeMap<Region, Touches>,
    regions_max: usize,
    /// Whether a region's first touch counts for nothing.
    skips_first_touch: bool,
    /// Touches that follow the first so soon are of the same round: others came while the first one waited.
    round_ns: u64,
}

impl<Region: Copy + Ord> Amounts<Region> {
    /// Nothing seen yet; so many regions at most. The first touch of each may be its initialisation for others. Rounds
    /// are further apart than `round_ns`.
    pub fn new(regions_max: usize, skips_first_touch: bool, round_ns: u64) -> Self {
        Self {
            regions: BTreeMap::new(),
            regions_max,
            skips_first_touch,
            round_ns,
        }
    }

    /// Notes that a task touched a region that was taken away. Beyond the most regions none is added.
    pub fn observe(&mut self, access: Access<Region>) {
        let is_new = !self.regions.contains_key(&access.region);
        if is_new && self.regions.len() >= self.regions_max {
            return;
        }
        let touches = self.regions.entry(access.region).or_default();
        let is_same_round = |first_ns: u64| access.time_ns.saturating_sub(first_ns) < self.round_ns;
        if touches.first_ns.is_some_and(is_same_round) {
            return;
        }
        touches.first_ns = Some(access.time_ns);
        if is_new && self.skips_first_touch {
            return;
        }
        *of_task(&mut touches.counts, access.task) += 1;
        if touches.counts.iter().map(|(_, count)| count).sum::<u64>() > ROUNDS_MAX {
            halve(&mut touches.counts);
        }
    }

    /// What each pair of so many tasks shares.
    pub fn matrix(&self, tasks: usize) -> SharingMatrix {
        let mut matrix = SharingMatrix::new(tasks);
        for touches in self.regions.values() {
            share(&mut matrix, &touches.counts);
        }
        matrix
    }

    /// Forgets a task: its number may name another from now on.
    pub fn forget(&mut self, task: TaskId) {
        for touches in self.regions.values_mut() {
            touches.counts.retain(|(other, _)| *other != task);
        }
    }

    /// Forgets all touches.
    pub fn reset(&mut self) {
        self.regions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scatter::scatter;

    /// Touches of the rounds of one unit of time each.
    fn observe(amounts: &mut Amounts<u64>, touches: impl IntoIterator<Item = (u32, u64)>) {
        for (time_ns, (task, region)) in (0..).zip(touches) {
            let task = TaskId(task);
            amounts.observe(Access {
                task,
                region,
                time_ns,
            });
        }
    }

    #[test]
    fn the_less_of_two_counts_is_what_is_shared() {
        let mut amounts = Amounts::new(10, false, 1);
        observe(&mut amounts, [0, 0, 0, 1, 2, 1].map(|task| (task, 7)));
        observe(&mut amounts, [(2, 8)]);
        let matrix = amounts.matrix(3);
        assert_eq!(matrix.events(TaskId(0), TaskId(1)), 2);
        assert_eq!(matrix.events(TaskId(0), TaskId(2)), 1);
        assert_eq!(matrix.events(TaskId(1), TaskId(2)), 1);
        amounts.forget(TaskId(1));
        assert_eq!(amounts.matrix(3).total(), 1);
        amounts.reset();
        assert_eq!(amounts.matrix(3).total(), 0);
    }

    #[test]
    fn of_each_region_a_pair_shares_the_touches_of_the_one_that_touches_it_less() {
        let mut touched = Touched::new(2);
        for (task, region, touches) in [
            (0, 7, 10),
            (1, 7, 4),
            (1, 7, 2),
            (0, 8, 1),
            (2, 8, 9),
            (0, 9, 5),
            (1, 9, 5),
        ] {
            // As often in both halves: nothing varies.
            for sample in 0..2 {
                touched.record(sample, TaskId(task), region, touches);
            }
        }
        let matrix = touched.matrix(3);
        assert_eq!(
            matrix.events(TaskId(0), TaskId(1)),
            909_091,
            "10 of 11; region 9 has no room"
        );
        assert_eq!(matrix.events(TaskId(0), TaskId(2)), 90_909, "1 of 11");
        assert_eq!(matrix.events(TaskId(1), TaskId(2)), 0);
        touched.fade();
        touched.fade();
        assert_eq!(touched.matrix(3).total(), 1_000_000, "one touch fades to none");
        touched.forget(TaskId(1));
        assert_eq!(touched.matrix(3).total(), 0);
    }

    /// Two tasks touch four hundred regions alike, and a third only a quarter of these. Of each region some dozens of
    /// touches are seen, and of the first task more than of the others together; what they share is found.
    #[test]
    fn neither_chance_nor_speed_takes_anything_from_what_is_shared() {
        const REGIONS: u64 = 400;
        let mut touched = Touched::new(REGIONS as usize);
        for sample in 0..30_000 {
            let drawn = scatter(&[sample]);
            let task = [0, 0, 0, 0, 0, 1, 1, 2, 2][(drawn % 9) as usize];
            let touches = if task == 2 { REGIONS / 4 } else { REGIONS };
            touched.record(sample, TaskId(task), scatter(&[drawn]) % touches, 1000);
        }
        let matrix = touched.matrix(3);
        for (left, right, truly) in [(0, 1, 1_000_000_u64), (0, 2, 250_000), (1, 2, 250_000)] {
            let found = matrix.events(TaskId(left), TaskId(right));
            assert!(found.abs_diff(truly) * 20 < truly, "{found} of {truly}");
        }
    }

    #[test]
    fn initialisation_counts_for_nothing_and_regions_are_bounded() {
        let mut amounts = Amounts::new(1, true, 1);
        observe(&mut amounts, [(0, 7), (1, 7), (0, 8), (1, 8), (0, 8)]);
        assert_eq!(amounts.matrix(2).total(), 0, "one touch of region 7 is left");
        observe(&mut amounts, [(0, 9), (0, 9), (0, 7)]);
        assert_eq!(amounts.matrix(2).total(), 1);
    }

    #[test]
    fn who_comes_while_the_first_one_waits_is_not_first() {
        let mut amounts = Amounts::new(1, false, 10);
        observe(&mut amounts, (0..40).map(|time| (u32::from(time % 10 > 0), 7)));
        assert_eq!(amounts.matrix(2).total(), 0, "task 0 is first four times");
    }

    /// Three tasks touch a hundred regions at rates of 6, 3 and 1. Whoever touches a region within a window would count
    /// as sharing it as much as any other; the sample finds the rates.
    #[test]
    fn rates_are_found_from_first_touches() {
        let mut amounts = Amounts::new(100, false, 1);
        let task = |region: u64, round: u64| match scatter(&[region, round]) % 10 {
            0..6 => 0,
            6..9 => 1,
            _ => 2,
        };
        let touches = (0..60).flat_map(|round| (0..100).map(move |region| (task(region, round), region)));
        observe(&mut amounts, touches);
        let matrix = amounts.matrix(3);
        let [much, little, least] =
            [(0, 1), (0, 2), (1, 2)].map(|(left, right)| matrix.events(TaskId(left), TaskId(right)));
        assert!((1700..1900).contains(&much), "{much} of 1800");
        assert!((500..700).contains(&little), "{little} of 600");
        assert!((500..700).contains(&least), "{least} of 600");
    }

    #[test]
    fn old_rounds_fade() {
        let mut amounts = Amounts::new(1, false, 1);
        observe(&mut amounts, (0..1060).map(|round| (u32::from(round >= 60), 0)));
        assert_eq!(
            amounts.matrix(2).total(),
            0,
            "task 0 was not first for a thousand rounds"
        );
    }
}
