//! `--translate`: what of a guest's code becomes code of the host.

use std::error::Error;
use std::sync::Arc;

use clap::ValueEnum;
use sidestep_ia64::execution::Drivers;
use sidestep_linux_user::engine::Engine;

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
impl Translate {
    /// What runs a program so; `None` for the interpreter.
    pub fn engine(self, is_told: bool, is_checked: bool) -> Result<Option<Arc<dyn Engine>>, Box<dyn Error>> {
        let translation = self.translation(is_told, is_checked)?;
        Ok(translation.map(|translation| translation as Arc<dyn Engine>))
    }

    /// What runs the processors of a machine so; `None` for the interpreter.
    pub fn drivers(self) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        let translation = self.translation(false, false)?;
        Ok(translation.map(|translation| translation as Arc<dyn Drivers>))
    }

    fn translation(
        self,
        is_told: bool,
        is_checked: bool,
    ) -> Result<Option<Arc<sidestep_runner::translation::Translation>>, Box<dyn Error>> {
        use sidestep_runner::translation::Translation;
        use sidestep_translator::Settings;

        let settings = match self {
            Translate::Auto => Settings::AUTOMATIC,
            Translate::Always => Settings::ALWAYS,
            Translate::Never => return Ok(None),
        };
        Ok(Some(Arc::new(Translation::new(settings, is_told, is_checked)?)))
    }
}

/// Without the translator there is the interpreter only.
#[cfg(not(feature = "translator"))]
impl Translate {
    /// What runs a program so; `None` for the interpreter.
    pub fn engine(self, _: bool, _: bool) -> Result<Option<Arc<dyn Engine>>, Box<dyn Error>> {
        self.nothing()
    }

    /// What runs the processors of a machine so; `None` for the interpreter.
    pub fn drivers(self) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        self.nothing()
    }

    fn nothing<Runner>(self) -> Result<Option<Runner>, Box<dyn Error>> {
        match self {
            Translate::Auto | Translate::Always => {
                Err(super::not_built("translates nothing", "translator").into())
            }
            Translate::Never => Ok(None),
        }
    }
}
