//! A program whose hot code is translated.

use std::sync::{Mutex, MutexGuard};

use sidestep_ia64::{Driver, Exit, Processor};
use sidestep_linux_user::engine::Engine;
use sidestep_linux_user::symbols::CodeNames;
use sidestep_translator::{Settings, Statistics, Translator, TranslatorError};

use crate::shared::Shared;

/// The translators of a process, one for each thread.
#[derive(Debug)]
pub struct Translation {
    settings: Settings,
    /// Whether its statistics are told at the end.
    is_told: bool,
    translators: Mutex<Vec<Shared<Translator>>>,
}

impl Translation {
    /// Translates under some settings; `is_told` asks for statistics at the end.
    ///
    /// # Errors
    /// The host is none that code can be emitted for, or grants no memory for it.
    pub fn new(settings: Settings, is_told: bool) -> Result<Translation, TranslatorError> {
        Translator::new(settings)?;
        Ok(Translation {
            settings,
            is_told,
            translators: Mutex::default(),
        })
    }

    fn translators(&self) -> MutexGuard<'_, Vec<Shared<Translator>>> {
        self.translators
            .lock()
            .expect("no thread panics while it adds a translator")
    }
}

/// Runs a thread.
struct Translated(Shared<Translator>);

impl Driver for Translated {
    fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        processor.run_with(limit, &mut *self.0.lock(), &mut ())
    }
}

impl Engine for Translation {
    fn attach(&self) -> Box<dyn Driver + Send> {
        match Translator::new(self.settings) {
            Ok(translator) => {
                let shared = Shared::new(translator);
                self.translators().push(shared.clone());
                Box::new(Translated(shared))
            }
            // Memory has become scarce since the first one: this thread is interpreted.
            Err(_) => Box::new(sidestep_ia64::execution::Untimed),
        }
    }

    fn forget(&self) {
        self.translators().clear();
    }

    fn report(&self, _: &CodeNames) -> Result<String, String> {
        if !self.is_told {
            return Ok(String::new());
        }
        let mut sum = Statistics::default();
        for translator in self.translators().iter() {
            sum += translator.lock().statistics();
        }
        Ok(sum.to_string())
    }
}
