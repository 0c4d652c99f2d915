//! A sign of life for work that takes longer than a moment: on the standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the sign moves.
pub const TICK: Duration = Duration::from_millis(200);

/// Shows what is being done and for how long, until it is dropped.
pub struct Activity(ProgressBar);

impl Activity {
    /// Begins to show that `what` is being done.
    pub fn begin(what: &str) -> Activity {
        let bar = spinner();
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        Activity(bar)
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A line of text that moves, with the time since it was begun.
pub fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}").expect("a valid template");
    ProgressBar::new_spinner().with_style(style)
}
