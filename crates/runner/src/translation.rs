//! Programs, machines and hosts whose hot code is translated.

use std::any::Any;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use sidestep_ia64::execution::{Drivers, Untimed};
use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_itanium2::Pipeline;
use sidestep_linux_user::code_names::CodeNames;
use sidestep_linux_user::engine::{Engine, HostExceptions};
use sidestep_translator::{Background, LockStep, PerfMap, Settings, Statistics, Translator, TranslatorError};

use crate::program::{Executor, Executors};
use crate::shared::Shared;

/// The translators of a process, one for each thread, or those of a machine, one for each processor.
#[derive(Debug)]
pub struct Translation {
    settings: Settings,
    /// What translates while guests go on; without, they wait.
    background: Option<Arc<Background>>,
    /// Where the names of emitted code go.
    perf_map: Option<Arc<PerfMap>>,
    /// Whether its statistics are told at the end.
    is_told: bool,
    /// Whether everything is interpreted as well and compared.
    is_checked: bool,
    threads: Mutex<Threads>,
}

/// The threads of a process, or the processors of a machine.
#[derive(Debug, Default)]
struct Threads {
    /// Those that run, and those that ended since the last one began.
    running: Vec<Shared<Thread>>,
    /// What those did that have ended before.
    ended: Statistics,
    /// What was different first in one of them.
    difference: Option<String>,
}

impl Threads {
    /// Keeps of those that have ended what is told in the end.
    fn part_with_ended(&mut self) {
        for ended in self.running.extract_if(.., |thread| thread.is_left()) {
            let ended = ended.lock();
            self.ended += ended.translator().statistics();
            self.difference = self.difference.take().or(ended.difference().map(str::to_owned));
        }
    }
}

impl fmt::Display for Translation {
    /// What its translators have done, together.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads();
        let mut sum = threads.ended;
        for thread in &threads.running {
            sum += thread.lock().translator().statistics();
        }
        drop(threads);
        sum.fmt(out)
    }
}

impl Translation {
    /// Translates under some settings, in the background or while the guest waits; `is_told` asks for statistics at
    /// the end, `is_checked` for a run in lock step with the interpreter, which the first difference ends.
    ///
    /// # Errors
    /// The host is none that code can be emitted for, or grants no memory for it.
    pub fn new(
        settings: Settings,
        background: Option<Arc<Background>>,
        (is_told, is_checked): (bool, bool),
    ) -> Result<Translation, TranslatorError> {
        // Whatever is missing is said before anything runs.
        Translator::new(settings, None)?;
        Ok(Translation {
            settings,
            background,
            perf_map: None,
            is_told,
            is_checked,
            threads: Mutex::default(),
        })
    }

    /// The same, telling a file of names what is translated.
    #[must_use]
    pub fn with_perf_map(self, perf_map: Option<Arc<PerfMap>>) -> Translation {
        Translation { perf_map, ..self }
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads
            .lock()
            .expect("no thread panics while it adds a translator")
    }
}

/// What runs a thread.
enum Thread {
    Translated(Translator),
    Checked(LockStep),
}

impl Thread {
    fn translator(&self) -> &Translator {
        match self {
            Thread::Translated(translator) => translator,
            Thread::Checked(lock_step) => lock_step.translator(),
        }
    }

    fn translator_mut(&mut self) -> &mut Translator {
        match self {
            Thread::Translated(translator) => translator,
            Thread::Checked(lock_step) => lock_step.translator_mut(),
        }
    }

    fn difference(&self) -> Option<&str> {
        match self {
            Thread::Translated(_) => None,
            Thread::Checked(lock_step) => lock_step.difference(),
        }
    }
}

impl Driver for Thread {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        match self {
            Thread::Translated(translator) => translator.run(processor, limit),
            Thread::Checked(lock_step) => lock_step.run(processor, limit),
        }
    }
}

/// The loop of a processor that is translated under the model: compiled here once.
impl Executor for Shared<Thread> {
    #[inline(never)]
    fn run(&mut self, processor: &mut Processor, limit: u64, pipeline: &mut Pipeline) -> Exit {
        let mut thread = self.lock();
        thread.translator_mut().run_observed(processor, limit, pipeline)
    }
}

/// Executes without a translator.
struct Interpreted;

impl Executor for Interpreted {
    fn run(&mut self, processor: &mut Processor, limit: u64, pipeline: &mut Pipeline) -> Exit {
        Driver::run(pipeline, processor, limit)
    }
}

impl Translation {
    /// What runs another thread; `None` where memory has become scarce since the first one: it is interpreted.
    fn thread(&self) -> Option<Shared<Thread>> {
        let translator = Translator::new(self.settings, self.background.clone()).ok()?;
        let translator = translator.with_perf_map(self.perf_map.clone());
        let thread = Shared::new(match self.is_checked {
            false => Thread::Translated(translator),
            true => Thread::Checked(LockStep::new(translator)),
        });
        let mut threads = self.threads();
        threads.part_with_ended();
        threads.running.push(thread.clone());
        Some(thread)
    }
}

impl Executors for Translation {
    fn executor(&self) -> Box<dyn Executor + Send> {
        match self.thread() {
            Some(thread) => Box::new(thread),
            None => Box::new(Interpreted),
        }
    }

    fn forget(&self) {
        *self.threads() = Threads::default();
    }

    fn rest(&self) {
        Drivers::rest(self);
    }
}

impl Drivers for Translation {
    fn driver(&self) -> Box<dyn Driver + Send> {
        match self.thread() {
            Some(thread) => Box::new(thread),
            None => Box::new(Untimed),
        }
    }

    fn rest(&self) {
        if let Some(background) = &self.background {
            background.rest();
        }
    }
}

impl Engine for Translation {
    fn attach(&self) -> Box<dyn Driver + Send> {
        self.driver()
    }

    fn permits_light_calls(&self) -> bool {
        !self.is_checked
    }

    fn resumption(&self) -> Option<fn(usize) -> Option<usize>> {
        Some(sidestep_translator::resumption)
    }

    fn host_exceptions(&self) -> Option<HostExceptions> {
        sidestep_translator::catch_exceptions();
        Some(HostExceptions {
            mask: sidestep_translator::mask_exceptions,
            permit: sidestep_translator::permit_exceptions,
        })
    }

    fn permits_deep_register_stack(&self) -> bool {
        true
    }

    fn forget(&self) {
        Executors::forget(self);
    }

    fn fork(&self, driver: Option<Box<dyn Driver + Send>>) -> Box<dyn Driver + Send> {
        let before = mem::take(&mut *self.threads());
        let own = driver.map(|driver| (driver as Box<dyn Any>).downcast::<Shared<Thread>>());
        let own = own.and_then(Result::ok);
        // What the thread has translated is the child's, too. What others have is left where it is: freed, it would be
        // copied first.
        for thread in before.running {
            match own.as_ref().is_some_and(|own| own.is(&thread)) {
                true => self.threads().running.push(thread),
                false => mem::forget(thread),
            }
        }
        let Some(own) = own else {
            return self.attach();
        };
        own.lock().translator_mut().begin_in_child();
        own
    }

    fn rest(&self) {
        Drivers::rest(self);
    }

    fn report(&self, _: &CodeNames) -> Result<String, String> {
        let mut threads = self.threads();
        if let Some(difference) = threads.difference.take() {
            return Err(difference);
        }
        for thread in &threads.running {
            if let Some(difference) = thread.lock().difference() {
                return Err(difference.to_owned());
            }
        }
        drop(threads);
        Ok(if self.is_told {
            self.to_string()
        } else {
            String::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translation() -> Translation {
        let background = Some(Arc::default());
        Translation::new(Settings::AUTOMATIC, background, (true, false))
            .expect("a host that code is emitted for")
    }

    #[test]
    fn threads_that_have_ended_are_counted_and_not_kept() {
        let translation = translation();
        let mut last = None;
        for _ in 0..1000 {
            last = Some(translation.driver());
        }
        // The last one, and the one before, which was still there when it began.
        assert_eq!(translation.threads().running.len(), 2);
        drop(last);
        translation.threads().ended.units = 3;
        drop(translation.driver());
        assert_eq!(translation.threads().running.len(), 1);
        assert!(translation.to_string().contains("units translated"));
        assert_eq!(translation.threads().ended.units, 3);
    }

    #[test]
    fn a_forked_child_goes_on_with_what_its_thread_has_translated_and_nothing_else() {
        let translation = translation();
        let (own, other) = (translation.attach(), translation.attach());
        translation.threads().ended.units = 3;
        let own = translation.fork(Some(own));
        {
            let threads = translation.threads();
            assert_eq!((threads.running.len(), threads.ended.units), (1, 0));
            assert!(!threads.running[0].is_left());
        }
        drop(own);
        assert!(translation.threads().running[0].is_left());
        drop(other);
        // A driver of somebody else's is none of its own.
        drop(translation.fork(Some(Box::new(Untimed))));
        assert_eq!(translation.threads().running.len(), 1);
    }
}
