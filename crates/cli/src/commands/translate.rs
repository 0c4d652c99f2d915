//! `--translate`: what of a guest's code becomes code of the host.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use sidestep_ia64::execution::Drivers;
use sidestep_linux_user::engine::Engine;
use sidestep_runner::program::Executors;
#[cfg(feature = "translator")]
use sidestep_runner::translation::Translation;
#[cfg(feature = "translator")]
use sidestep_symbols::Names;
#[cfg(feature = "translator")]
use sidestep_translator::{Background, PerfMap, Settings};

/// What is translated, and where.
#[derive(Args)]
#[group(id = "translation")]
pub struct Options {
    /// Translate the guest's code into code of the host: what runs often, everything, or nothing. What the guest does,
    /// and what time it is for it, stays the same [default: auto, in a build with the translator and unless the run is
    /// watched: traced, checked, under gdb, or a machine on the model of a processor]
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with_all = ["trace", "gdb", "check_groups"])]
    pub translate: Option<Translate>,
    /// With --translate auto: translate on the thread that runs the guest, which waits for it, not on one of its own
    #[arg(long, requires = "translate")]
    pub translate_synchronously: bool,
    /// With --translate: tell Linux's perf, in /tmp/perf-PID.map, what the translated code is called
    #[arg(long, requires = "translate")]
    pub perf_map: bool,
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

impl Options {
    /// Whether translation was asked for, beyond what a build does by itself.
    pub fn is_asked(&self) -> bool {
        self.translate.is_some_and(|given| given != Translate::Never)
    }
}

#[cfg(feature = "translator")]
impl Options {
    /// What runs a program so; `None` for the interpreter.
    pub fn engine(
        &self,
        program: &Path,
        (is_told, is_checked): (bool, bool),
    ) -> Result<Option<Arc<dyn Engine>>, Box<dyn Error>> {
        let translation = self.translation(Settings::AUTOMATIC, (is_told, is_checked), Some(program))?;
        Ok(translation.map(|translation| translation as Arc<dyn Engine>))
    }

    /// What runs threads of a program so where something else counts what they do; `None` for the interpreter.
    pub fn drivers_of(&self, program: &Path) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        let translation = self.translation(Settings::AUTOMATIC, (false, false), Some(program))?;
        Ok(translation.map(|translation| translation as Arc<dyn Drivers>))
    }

    /// What executes threads of a program so under the model; `None` for the interpreter.
    pub fn executors_of(&self, program: &Path) -> Result<Option<Arc<dyn Executors>>, Box<dyn Error>> {
        let translation = self.translation(Settings::AUTOMATIC, (false, false), Some(program))?;
        Ok(translation.map(|translation| translation as Arc<dyn Executors>))
    }

    /// What runs the processors of a machine so; `None` for the interpreter.
    pub fn drivers(&self) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        let translation = self.translation(Settings::MACHINES, (false, false), None)?;
        Ok(translation.map(|translation| translation as Arc<dyn Drivers>))
    }

    fn translation(
        &self,
        automatic: Settings,
        (is_told, is_checked): (bool, bool),
        program: Option<&Path>,
    ) -> Result<Option<Arc<Translation>>, Box<dyn Error>> {
        let (settings, is_behind) = match self.translate {
            None | Some(Translate::Auto) => (automatic, !self.translate_synchronously),
            Some(Translate::Always) => (Settings::ALWAYS, false),
            Some(Translate::Never) => return Ok(None),
        };
        let background = is_behind.then(Arc::<Background>::default);
        let translation = match Translation::new(settings, background, (is_told, is_checked)) {
            Ok(translation) => translation,
            // Nobody has asked for it.
            Err(_) if self.translate.is_none() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let perf_map = self.perf_map(program)?;
        Ok(Some(Arc::new(translation.with_perf_map(perf_map))))
    }

    /// The file of names, if it is asked for, by the symbols of a program that has some.
    fn perf_map(&self, program: Option<&Path>) -> Result<Option<Arc<PerfMap>>, Box<dyn Error>> {
        if !self.perf_map {
            return Ok(None);
        }
        let names = program.and_then(|program| Names::read(program).ok());
        let path = PerfMap::path();
        let map = PerfMap::create(&path, move |address| names.as_ref()?.naming()(address));
        let map = map.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Some(Arc::new(map)))
    }
}

/// Without the translator there is the interpreter only.
#[cfg(not(feature = "translator"))]
impl Options {
    /// What runs a program so; `None` for the interpreter.
    pub fn engine(&self, _: &Path, _: (bool, bool)) -> Result<Option<Arc<dyn Engine>>, Box<dyn Error>> {
        self.nothing()
    }

    /// What runs threads of a program so where something else counts what they do; `None` for the interpreter.
    pub fn drivers_of(&self, _: &Path) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        self.nothing()
    }

    /// What executes threads of a program so under the model; `None` for the interpreter.
    pub fn executors_of(&self, _: &Path) -> Result<Option<Arc<dyn Executors>>, Box<dyn Error>> {
        self.nothing()
    }

    /// What runs the processors of a machine so; `None` for the interpreter.
    pub fn drivers(&self) -> Result<Option<Arc<dyn Drivers>>, Box<dyn Error>> {
        self.nothing()
    }

    fn nothing<Runner>(&self) -> Result<Option<Runner>, Box<dyn Error>> {
        match self.is_asked() {
            true => Err(super::not_built("translates nothing", "translator").into()),
            false => Ok(None),
        }
    }
}
