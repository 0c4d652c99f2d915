//! A line below what a silent guest has printed: how far it is.
//!
//! It is drawn on the standard error if that is a terminal, once the guest has said nothing for a while and has ended
//! its line, and taken away before anything else is printed: a guest's lines are its own.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::commands::activity::{TICK, spinner};

/// How long a guest is silent before it is said how far it is.
const SILENCE: Duration = Duration::from_secs(2);

/// What the terminal shows.
struct Screen {
    /// Whether a guest's line is unfinished.
    is_mid_line: bool,
    /// When something was printed last.
    printed: Option<Instant>,
    status: Option<ProgressBar>,
}

static SCREEN: Mutex<Screen> = Mutex::new(Screen {
    is_mid_line: false,
    printed: None,
    status: None,
});

fn screen() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Screen {
    fn take_status(&mut self) {
        if let Some(status) = self.status.take() {
            status.finish_and_clear();
        }
    }
}

/// Prints with `print` what ends with the byte `last`, without a status line in the way.
pub fn printing<T>(last: Option<u8>, print: impl FnOnce() -> T) -> T {
    let mut screen = screen();
    screen.take_status();
    let printed = print();
    screen.printed = Some(Instant::now());
    screen.is_mid_line = last.map_or(screen.is_mid_line, |last| last != b'\n');
    printed
}

/// Prints a line to the standard error.
pub fn say(line: &str) {
    printing(Some(b'\n'), || say!("{line}"));
}

/// Shows how far a guest is while it is silent, until it is dropped.
pub struct Status {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Status {
    /// Shows what `progress` says, if the standard error is a terminal.
    pub fn show(progress: impl Fn() -> String + Send + 'static) -> Status {
        if !io::stderr().is_terminal() {
            return Status { thread: None };
        }
        let (end, ended) = mpsc::channel();
        screen().printed = Some(Instant::now());
        let thread = thread::spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let mut screen = screen();
                let is_silent = screen.printed.is_none_or(|printed| printed.elapsed() >= SILENCE);
                if is_silent && !screen.is_mid_line {
                    let status = screen.status.get_or_insert_with(spinner);
                    status.set_message(progress());
                    status.tick();
                }
            }
            screen().take_status();
        });
        Status {
            thread: Some((end, thread)),
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            // A thread that has panicked draws no more.
            let _ = thread.join();
        }
    }
}
