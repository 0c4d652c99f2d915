//! A progress bar with the time left, on a terminal; elsewhere a line now and then.
//!
//! Points differ: some take a millisecond, some a minute. So the bar moves by the time that each experiment says it
//! takes, and what is left is that time at the pace of the run so far.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, Once};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use sidestep_lab::run::Plan;
use sidestep_lab::run::cache::CacheProblem;
use sidestep_lab::{About, Observer, Point};

use crate::commands::activity::TICK;
use crate::commands::lock;

/// Shows on the standard error how far a run is.
pub struct Progress {
    bar: ProgressBar,
    cancelled: Arc<AtomicBool>,
    work: Arc<Mutex<Work>>,
    began: Instant,
    not_kept: Once,
    lines: Option<Lines>,
}

/// How often a line says how far a run is, where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// The thread that writes lines.
struct Lines {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Lines {
    /// Writes what `state` says now and then, until it ends.
    fn write(state: impl Fn() -> String + Send + 'static) -> Lines {
        let (end, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            while ended.recv_timeout(BETWEEN_LINES) == Err(RecvTimeoutError::Timeout) {
                say!("sidestep: {}", state());
            }
        });
        Lines { end, thread }
    }

    fn end(self) {
        drop(self.end);
        // A thread that has panicked writes no more.
        let _ = self.thread.join();
    }
}

/// How much is done, in the time that experiments say they take.
struct Work {
    /// The time of a point, by its experiment.
    each: BTreeMap<&'static str, Duration>,
    left: Duration,
    /// Of the points that were run, and not found in the cache.
    ran: Duration,
    /// How long the run had lasted when a point last ended.
    elapsed: Duration,
    points_left: usize,
}

/// The stated times weigh as much as so much of the run's own.
const TRUST: Duration = Duration::from_secs(3);

/// A point that ends sooner than this part of its stated time was in the cache, or cost nothing.
const CACHED_PART: u32 = 100;

impl Work {
    fn new<'a>(plans: impl Iterator<Item = (&'static str, usize, Duration)> + 'a) -> Work {
        let mut work = Work {
            each: BTreeMap::new(),
            left: Duration::ZERO,
            ran: Duration::ZERO,
            elapsed: Duration::ZERO,
            points_left: 0,
        };
        for (name, points, takes) in plans {
            let each = takes / u32::try_from(points.max(1)).unwrap_or(u32::MAX);
            work.each.insert(name, each);
            work.left += each * u32::try_from(points).unwrap_or(u32::MAX);
            work.points_left += points;
        }
        work
    }

    /// A point of an experiment ended, so long after the run began.
    fn end(&mut self, name: &str, elapsed: Duration) {
        let each = self.each.get(name).copied().unwrap_or_default();
        self.left = self.left.saturating_sub(each);
        if elapsed.saturating_sub(self.elapsed) >= each / CACHED_PART {
            self.ran += each;
        }
        self.elapsed = elapsed;
        self.points_left = self.points_left.saturating_sub(1);
    }

    /// How far a run of `points` is.
    fn state(&self, points: usize, elapsed: Duration) -> String {
        let done = points - self.points_left;
        format!(
            "{done}/{points} points, {} left",
            HumanDuration(self.left(elapsed))
        )
    }

    /// How long the rest takes.
    fn left(&self, elapsed: Duration) -> Duration {
        let pace = (TRUST + self.elapsed).as_secs_f64() / (TRUST + self.ran).as_secs_f64();
        let waited = elapsed.saturating_sub(self.elapsed);
        self.left.mul_f64(pace).saturating_sub(waited)
    }
}

impl Progress {
    /// A bar for a stage of several, which is named beside it.
    pub fn of_stage(name: &str, plans: &[Plan<'_>], cancelled: &Arc<AtomicBool>) -> Progress {
        Progress::named(&format!("{name}: "), plans, cancelled)
    }

    /// A bar for these plans; it stands still once the run is `cancelled`.
    pub fn new(plans: &[Plan<'_>], cancelled: &Arc<AtomicBool>) -> Progress {
        Progress::named("", plans, cancelled)
    }

    fn named(name: &str, plans: &[Plan<'_>], cancelled: &Arc<AtomicBool>) -> Progress {
        let stated = plans
            .iter()
            .map(|plan| (plan.about().name, plan.points(), plan.takes()));
        let work = Work::new(stated);
        let points = work.points_left;
        let bar = ProgressBar::new(work.left.as_millis().max(1) as u64);
        let work = Arc::new(Mutex::new(work));
        let began = Instant::now();
        let shown = Arc::clone(&work);
        let name = name.to_owned();
        let named = name.clone();
        let state = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            // What cannot be written into the bar's text is not shown.
            let _ = write!(text, "{named}{}", lock(&shown).state(points, began.elapsed()));
        };
        let style = ProgressStyle::with_template("{bar:30} {state}  {wide_msg}")
            .expect("a valid template")
            .with_key("state", state);
        bar.set_style(style);
        bar.enable_steady_tick(TICK);
        let told = Arc::clone(&work);
        let lines = (!io::stderr().is_terminal())
            .then(|| Lines::write(move || format!("{name}{}", lock(&told).state(points, began.elapsed()))));
        Progress {
            lines,
            bar,
            cancelled: Arc::clone(cancelled),
            work,
            began,
            not_kept: Once::new(),
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        if let Some(lines) = self.lines {
            lines.end();
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Observer for Progress {
    fn begins(&self, about: &About, point: &Point) {
        if !self.is_cancelled() {
            self.bar.set_message(format!("{} {point}", about.name));
        }
    }

    fn ends(&self, about: &About, _point: &Point) {
        if self.is_cancelled() {
            return;
        }
        let mut work = lock(&self.work);
        let before = work.left;
        work.end(about.name, self.began.elapsed());
        let done = before - work.left;
        drop(work);
        self.bar.inc(done.as_millis() as u64);
    }

    fn cache_problem(&self, problem: &CacheProblem) {
        let say = || self.bar.suspend(|| say!("sidestep: {problem}"));
        match problem {
            // The same for every point: once is enough.
            CacheProblem::NotKept { .. } => self.not_kept.call_once(say),
            CacheProblem::Corrupt { .. } | CacheProblem::Unreadable { .. } => say(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn work() -> Work {
        Work::new([("quick", 10, 10 * SECOND), ("slow", 2, 60 * SECOND)].into_iter())
    }

    #[test]
    fn the_time_left_is_what_the_rest_says_it_takes_at_the_pace_of_the_run() {
        let mut work = work();
        assert_eq!(work.left(Duration::ZERO), 70 * SECOND);
        assert_eq!(work.state(12, Duration::ZERO), "0/12 points, 70 seconds left");
        for second in 1..=10 {
            work.end("quick", second * 2 * SECOND);
        }
        assert_eq!(work.points_left, 2);
        let left = work.left(20 * SECOND);
        assert!(
            100 * SECOND < left && left < 120 * SECOND,
            "twice as slow as stated: {left:?}"
        );
        assert_eq!(
            work.left(24 * SECOND) + 4 * SECOND,
            left,
            "it goes down while a point runs"
        );
        work.end("slow", 80 * SECOND);
        work.end("slow", 140 * SECOND);
        assert_eq!(work.left(140 * SECOND), Duration::ZERO);
    }

    #[test]
    fn points_from_the_cache_do_not_make_the_rest_quick() {
        let mut work = work();
        for _ in 0..10 {
            work.end("quick", Duration::from_millis(1));
        }
        assert_eq!(work.left(Duration::from_millis(1)).as_secs(), 60);
    }
}
