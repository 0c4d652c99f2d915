//! From accesses to communication events.
//!
//! An access is what a page fault tells: a task touched a region of memory at a time. Two tasks that touch one region
//! within a window communicate (section 2.2 of the paper). A region remembers its last few distinct tasks; an access
//! counts one event with each of them that is recent enough. Memory is bounded: when the table of regions is full,
//! accesses to new regions first drop the regions whose last access is outside the window, and are otherwise counted
//! as lost rather than silently forgotten.

use std::collections::BTreeMap;

use crate::identity::TaskId;
use crate::matrix::SharingMatrix;

/// How many distinct tasks a region remembers. A region used by more is one that all share, and the pairs are found
/// over time.
const SHARERS_MAX: usize = 8;

/// How often in a window a full table is swept at most.
const SWEEPS_PER_WINDOW: u64 = 16;

/// What counts as communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectorSettings {
    /// Two accesses further apart than this are no communication event.
    pub window_ns: u64,
    /// The most regions remembered at once.
    pub regions_max: usize,
    /// Whether a region's first touch counts for nothing: on a real host it is often the initialisation of memory by
    /// one thread for all others, which is no communication.
    pub skips_first_touch: bool,
}

impl Default for DetectorSettings {
    /// A window of four seconds (four scans at the kernel's default rate) over a million regions.
    fn default() -> Self {
        Self {
            window_ns: 4_000_000_000,
            regions_max: 1 << 20,
            skips_first_touch: false,
        }
    }
}

/// One touch of a region, as a fault reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<Region> {
    /// Who.
    pub task: TaskId,
    /// Where.
    pub region: Region,
    /// When, in nanoseconds; should not go back by more than the window.
    pub time_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Touch {
    task: TaskId,
    time_ns: u64,
}

/// Finds communication events in a stream of accesses.
#[derive(Clone, Debug)]
pub struct Detector<Region> {
    settings: DetectorSettings,
    regions: BTreeMap<Region, Vec<Touch>>,
    accesses: u64,
    lost: u64,
    /// When stale regions were last dropped.
    swept_ns: Option<u64>,
}

impl<Region: Copy + Ord> Detector<Region> {
    /// A detector that has seen nothing.
    pub fn new(settings: DetectorSettings) -> Self {
        Self {
            settings,
            regions: BTreeMap::new(),
            accesses: 0,
            lost: 0,
            swept_ns: None,
        }
    }

    /// Takes one access into account: records an event in `matrix` for each recent other task of the region, and
    /// returns how many there were.
    pub fn observe(&mut self, access: Access<Region>, matrix: &mut SharingMatrix) -> usize {
        self.accesses += 1;
        if self.regions.len() >= self.settings.regions_max && !self.regions.contains_key(&access.region) {
            self.drop_stale(access.time_ns);
            if self.regions.len() >= self.settings.regions_max {
                self.lost += 1;
                return 0;
            }
        }
        let window_ns = self.settings.window_ns;
        if self.settings.skips_first_touch && !self.regions.contains_key(&access.region) {
            self.regions.insert(access.region, Vec::new());
            return 0;
        }
        let sharers = self.regions.entry(access.region).or_default();
        let mut events = 0;
        for touch in sharers.iter().filter(|touch| touch.task != access.task) {
            if access.time_ns.abs_diff(touch.time_ns) <= window_ns {
                matrix.record(access.task, touch.task, 1);
                events += 1;
            }
        }
        sharers.retain(|touch| touch.task != access.task);
        if sharers.len() == SHARERS_MAX {
            sharers.remove(0);
        }
        sharers.push(Touch {
            task: access.task,
            time_ns: access.time_ns,
        });
        events
    }

    /// Forgets a task in every region, as when it ended.
    pub fn forget(&mut self, task: TaskId) {
        for sharers in self.regions.values_mut() {
            sharers.retain(|touch| touch.task != task);
        }
    }

    /// Forgets every access.
    pub fn reset(&mut self) {
        self.regions.clear();
    }

    /// Accesses seen since the beginning.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Accesses that found the table of regions full.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Makes room. A look at every region is not for every access that finds the table full: few more have become stale
    /// soon after the last look.
    fn drop_stale(&mut self, now_ns: u64) {
        let window_ns = self.settings.window_ns;
        let is_soon = |swept_ns: u64| now_ns.abs_diff(swept_ns) < window_ns / SWEEPS_PER_WINDOW;
        if self.swept_ns.is_some_and(is_soon) {
            return;
        }
        self.swept_ns = Some(now_ns);
        let recent = |touch: &Touch| now_ns.abs_diff(touch.time_ns) <= window_ns;
        self.regions.retain(|_, sharers| sharers.iter().any(recent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(task: u32, region: u64, time_ns: u64) -> Access<u64> {
        Access {
            task: TaskId(task),
            region,
            time_ns,
        }
    }

    fn detector(window_ns: u64, regions_max: usize) -> Detector<u64> {
        Detector::new(DetectorSettings {
            window_ns,
            regions_max,
            skips_first_touch: false,
        })
    }

    #[test]
    fn two_tasks_within_the_window_communicate_and_outside_do_not() {
        let mut matrix = SharingMatrix::new(2);
        let mut detector = detector(10, 100);
        assert_eq!(detector.observe(access(0, 7, 0), &mut matrix), 0);
        assert_eq!(
            detector.observe(access(1, 8, 1), &mut matrix),
            0,
            "another region"
        );
        assert_eq!(
            detector.observe(access(1, 7, 10), &mut matrix),
            1,
            "the window's end belongs to it"
        );
        assert_eq!(detector.observe(access(0, 7, 21), &mut matrix), 0, "too late");
        assert_eq!(matrix.total(), 1);
    }

    #[test]
    fn one_task_alone_never_communicates() {
        let mut matrix = SharingMatrix::new(1);
        let mut detector = detector(10, 100);
        for time in 0..20 {
            assert_eq!(detector.observe(access(0, 1, time), &mut matrix), 0);
        }
    }

    #[test]
    fn a_full_table_drops_what_is_stale_and_counts_what_it_loses() {
        let mut matrix = SharingMatrix::new(2);
        let mut detector = detector(10, 2);
        for region in 0..3 {
            detector.observe(access(0, region, 0), &mut matrix);
        }
        assert_eq!((detector.accesses(), detector.lost()), (3, 1));
        detector.observe(access(0, 9, 11), &mut matrix);
        assert_eq!(detector.lost(), 1, "the stale regions made room");
    }

    #[test]
    fn initialisation_by_one_thread_is_no_communication() {
        let mut matrix = SharingMatrix::new(2);
        let settings = DetectorSettings {
            skips_first_touch: true,
            ..DetectorSettings::default()
        };
        let mut detector = Detector::new(settings);
        assert_eq!(detector.observe(access(0, 1, 0), &mut matrix), 0);
        assert_eq!(
            detector.observe(access(1, 1, 1), &mut matrix),
            0,
            "task 0 only initialised it"
        );
        assert_eq!(detector.observe(access(0, 1, 2), &mut matrix), 1);
    }

    #[test]
    fn a_forgotten_task_leaves_no_trace() {
        let mut matrix = SharingMatrix::new(2);
        let mut detector = detector(10, 2);
        detector.observe(access(0, 1, 0), &mut matrix);
        detector.forget(TaskId(0));
        assert_eq!(detector.observe(access(1, 1, 1), &mut matrix), 0);
    }
}
