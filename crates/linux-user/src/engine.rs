//! What may run the processors of a process in the place of [`Processor::run`](sidestep_ia64::Processor::run): a timing
//! model, for example.

use std::fmt::Debug;

use sidestep_ia64::Driver;

use crate::code_names::CodeNames;
pub use crate::host::signals::HostExceptions;

/// Runs the threads of a process, and tells at its end what came of it. What a program does must not depend on it.
pub trait Engine: Debug + Send + Sync {
    /// What runs another thread.
    fn attach(&self) -> Box<dyn Driver + Send>;

    /// Whether a thread may be served light-weight system calls without ending its driver's run. A driver that counts
    /// what ends runs, or runs the same stretch twice, does not permit it.
    fn permits_light_calls(&self) -> bool {
        false
    }

    /// Whether a thread's processor may have more stacked registers than an Itanium 2. A driver that times or counts
    /// what the register stack engine does does not permit it.
    fn permits_deep_register_stack(&self) -> bool {
        false
    }

    /// Where code that it runs goes on instead of an address of the host's at which a memory fault stopped it; a signal
    /// handler asks. `None` where it runs no code that touches the program's memory without asking what it may.
    fn resumption(&self) -> Option<fn(usize) -> Option<usize>> {
        None
    }

    /// What is asked, from now on, of the floating-point exceptions that the engine has the host raise. `None` where it
    /// never has.
    fn host_exceptions(&self) -> Option<HostExceptions> {
        None
    }

    /// The process was forked, and this is the child: what was done so far was the parent's.
    fn forget(&self);

    /// As [`Engine::forget`], and what runs the child's only thread, which `driver` has run so far.
    fn fork(&self, driver: Option<Box<dyn Driver + Send>>) -> Box<dyn Driver + Send> {
        drop(driver);
        self.forget();
        self.attach()
    }

    /// Ends the host threads that it has beside the guest's: what follows is not for a process with several, or copies
    /// one of them. It may begin others later.
    fn rest(&self) {}

    /// The text to print when the process ends, while no thread runs; an error where what was wanted of the run could
    /// not be kept, which makes the run fail. `names` are those of the
    /// code.
    fn report(&self, names: &CodeNames) -> Result<String, String>;

    /// A driver has halted its thread: whether the process ends for it. Otherwise the thread goes on. No thread runs
    /// meanwhile.
    fn ends(&self, names: &CodeNames) -> bool {
        let _ = names;
        true
    }
}
