//! What Python wants while something long runs: Ctrl-C, and to be told how far it is.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often Python is asked.
const BEAT: Duration = Duration::from_millis(50);

/// Does some work on a thread of its own while other threads of Python run. `beat` is called now and then with Python
/// at hand; where it or a signal's handler raises, `stop` is called once, and that is raised when the work has ended.
pub fn attending<T: Send>(
    py: Python<'_>,
    stop: impl Fn(),
    mut beat: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = thread::scope(|scope| {
        let (ends, ended) = mpsc::channel::<()>();
        let worker = scope.spawn(move || {
            let _ends = ends;
            work()
        });
        let ended = std::sync::Mutex::new(ended);
        let wait = || ended.lock().expect("nobody else waits").recv_timeout(BEAT);
        while py.detach(wait) == Err(RecvTimeoutError::Timeout) {
            if raised.is_none()
                && let Err(error) = py.check_signals().and_then(|()| beat(py))
            {
                stop();
                raised = Some(error);
            }
        }
        let joined = worker.join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match raised {
        Some(error) => Err(error),
        None => Ok(done),
    }
}
