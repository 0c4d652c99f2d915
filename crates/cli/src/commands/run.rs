//! `sidestep run`: boots a machine from its image; the kind of image decides which machine.

mod fuce;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::Outcome;

/// Boot an image: a FUCE program with its kernel, as `sidestep assemble` writes it.
#[derive(Args)]
pub struct Run {
    /// The image.
    image: PathBuf,
    #[command(flatten)]
    fuce: fuce::Options,
}

/// What an image's first bytes say it is.
enum Kind {
    Fuce,
}

impl Kind {
    fn of(bytes: &[u8]) -> Option<Kind> {
        sidestep_fuce::image::Image::is_image(bytes).then_some(Kind::Fuce)
    }
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let path = self.image.display().to_string();
        let bytes = std::fs::read(&self.image).map_err(|error| format!("{path}: cannot be read: {error}"))?;
        match Kind::of(&bytes) {
            Some(Kind::Fuce) => self.fuce.run(&path, &bytes),
            None => Err(format!(
                "{path}: no image that can be booted; a FUCE image begins with the bytes `FUCE`"
            )
            .into()),
        }
    }
}

/// The exit code that stands for a guest's: its own, or 255 when it does not fit.
fn exit_code(code: u32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
