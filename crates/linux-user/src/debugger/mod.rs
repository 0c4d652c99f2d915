//! A debugger of a process, and what it sees beside threads and memory: [`files`].

pub mod files;

use std::fmt;
use std::sync::Arc;

use crate::control::{Control, Listener};
use crate::process::Process;

/// Who debugs a program: told of what happens, as a [`Listener`], and given the means when the program begins.
pub trait Debugger: fmt::Debug + Send + Sync {
    /// Who listens to what happens to the threads.
    fn listener(&self) -> Arc<dyn Listener>;

    /// The process is about to run its first thread, which will stop at once. What is started here to debug it runs
    /// with all signals blocked.
    fn begin(&self, process: Arc<Process>, control: Arc<Control>);
}
