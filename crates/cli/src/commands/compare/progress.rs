//! A progress bar with the time left, on a terminal; nothing on a pipe.

use std::sync::Once;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sidestep_lab::run::cache::CacheProblem;
use sidestep_lab::{About, Observer, Point};

/// Shows on the standard error, if that is a terminal, how far a run is.
pub struct Progress {
    bar: ProgressBar,
    not_kept: Once,
}

impl Progress {
    /// A bar for so many points.
    pub fn new(points: usize) -> Progress {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} points, {eta} left  {wide_msg}")
            .expect("a valid template");
        let bar = ProgressBar::new(points as u64).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress {
            bar,
            not_kept: Once::new(),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn begins(&self, about: &About, point: &Point) {
        self.bar.set_message(format!("{} {point}", about.name));
    }

    fn ends(&self, _about: &About, _point: &Point) {
        self.bar.inc(1);
    }

    fn cache_problem(&self, problem: &CacheProblem) {
        let say = || self.bar.suspend(|| eprintln!("sidestep: {problem}"));
        match problem {
            // The same for every point: once is enough.
            CacheProblem::NotKept { .. } => self.not_kept.call_once(say),
            CacheProblem::Corrupt { .. } | CacheProblem::Unreadable { .. } => say(),
        }
    }
}
