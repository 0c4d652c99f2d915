//! `--translate`: what of a guest's code becomes code of the host.

use std::error::Error;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use sidestep_ia64::execution::Drivers;
use sidestep_linux_user::engine::Engine;
#[cfg(feature = "translator")]
use sidestep_runner::translation::Translation;
#[cfg(feature = "translator")]
use sidestep_translator::{Background, Settings};

/// What is translated, and where.
#[derive(Args)]
#[group(id = "translation")]
pub struct Options {
    /// Translate the guest's code into code of the host: what runs often, everything, or nothing. What the guest does,
    /// and what time it is for it, stays the same
    #[arg(long, value_name = "WHAT", value_enum, default_value = "never",
          conflicts_with_all = ["trace", "gdb", "timing", "check_groups"])]
    pub translate: Translate,
    /// With --translate auto: translate on the thread that runs the guest, which waits for it, not on one of its own
    #[arg(long, requires = "translate")]
    pub translate_synchronously: bool,
}

/// What is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Translate {
    /// What runs often
    Auto,
    /// Everything that runs, at once: to test the translator
    Always,
    /// Nothing: everything is interpreted
    Never,
}

#[cfg(feature = "translator")]
impl Options {
    /// What runs a program so; `None` for the interpreter.
    pub fn engine(&self, is_told: bool, is_checked: bool) -> Result<Option<Arc<dyn Engine>>, Box<dyn Error>> {
        let translation = self.translation(Settings::AUTOMATIC, (is_told, is_checked))?;
        Ok(translation.map(|translation| translation as Arc<dyn Engine>))
    }

    /// What runs the processors of a machine so; `None` for the interpreter.
    pub fn drivers(&self) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        let translation = self.translation(Settings::MACHINES, (false, false))?;
        Ok(translation.map(|translation| translation as Arc<dyn Drivers>))
    }

    fn translation(
        &self,
        automatic: Settings,
        (is_told, is_checked): (bool, bool),
    ) -> Result<Option<Arc<Translation>>, Box<dyn Error>> {
        let (settings, is_behind) = match self.translate {
            Translate::Auto => (automatic, !self.translate_synchronously),
            Translate::Always => (Settings::ALWAYS, false),
            Translate::Never => return Ok(None),
        };
        let background = is_behind.then(Arc::<Background>::default);
        let translation = Translation::new(settings, background, (is_told, is_checked))?;
        Ok(Some(Arc::new(translation)))
    }
}

/// Without the translator there is the interpreter only.
#[cfg(not(feature = "translator"))]
impl Options {
    /// What runs a program so; `None` for the interpreter.
    pub fn engine(&self, _: bool, _: bool) -> Result<Option<Arc<dyn Engine>>, Box<dyn Error>> {
        self.nothing()
    }

    /// What runs the processors of a machine so; `None` for the interpreter.
    pub fn drivers(&self) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        self.nothing()
    }

    fn nothing<Runner>(&self) -> Result<Option<Runner>, Box<dyn Error>> {
        match self.translate {
            Translate::Auto | Translate::Always => {
                Err(super::not_built("translates nothing", "translator").into())
            }
            Translate::Never => Ok(None),
        }
    }
}
