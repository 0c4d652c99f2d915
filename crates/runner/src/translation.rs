//! Programs, machines and hosts whose hot code is translated.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use sidestep_ia64::execution::{Drivers, Untimed};
use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_linux_user::code_names::CodeNames;
use sidestep_linux_user::engine::Engine;
use sidestep_translator::{Background, LockStep, PerfMap, Settings, Statistics, Translator, TranslatorError};

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
    threads: Mutex<Vec<Shared<Thread>>>,
}

impl fmt::Display for Translation {
    /// What its translators have done, together.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sum = Statistics::default();
        for thread in self.threads().iter() {
            sum += thread.lock().translator().statistics();
        }
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

    fn threads(&self) -> MutexGuard<'_, Vec<Shared<Thread>>> {
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
            Thread::Translated(translator) => processor.run_with(limit, translator, &mut ()),
            Thread::Checked(lock_step) => lock_step.run(processor, limit),
        }
    }
}

impl Drivers for Translation {
    fn driver(&self) -> Box<dyn Driver + Send> {
        let Ok(translator) = Translator::new(self.settings, self.background.clone()) else {
            // Memory has become scarce since the first one: this thread is interpreted.
            return Box::new(Untimed);
        };
        let translator = translator.with_perf_map(self.perf_map.clone());
        let thread = Shared::new(match self.is_checked {
            false => Thread::Translated(translator),
            true => Thread::Checked(LockStep::new(translator)),
        });
        self.threads().push(thread.clone());
        Box::new(thread)
    }
}

impl Engine for Translation {
    fn attach(&self) -> Box<dyn Driver + Send> {
        self.driver()
    }

    fn permits_light_calls(&self) -> bool {
        !self.is_checked
    }

    fn forget(&self) {
        self.threads().clear();
    }

    fn report(&self, _: &CodeNames) -> Result<String, String> {
        for thread in self.threads().iter() {
            if let Some(difference) = thread.lock().difference() {
                return Err(difference.to_owned());
            }
        }
        Ok(if self.is_told {
            self.to_string()
        } else {
            String::new()
        })
    }
}
