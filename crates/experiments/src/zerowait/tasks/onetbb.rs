//! The shapes as tasks of oneTBB: a C++ program that is compiled where a compiler and the library are
//! installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};
use sidestep_lab::PointError;

use super::super::stopwatch::Sample;
use super::shape::{Runtime, Shape};

const SOURCE: &str = include_str!("onetbb.cpp");

/// The compiled program, for one shape.
pub struct OneTbb {
    program: PathBuf,
    shape: Shape,
    cores: usize,
    width: u64,
}

impl OneTbb {
    /// Compiles the program, or finds it compiled.
    pub fn find(shape: Shape, cores: usize, width: u64) -> Result<OneTbb, PointError> {
        let digest = Sha256::digest(SOURCE);
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let program = env::temp_dir().join(format!("sidestep-onetbb-{name}"));
        if !program.exists() {
            compile(&program)?;
        }
        Ok(OneTbb {
            program,
            shape,
            cores,
            width,
        })
    }
}

fn compile(program: &Path) -> Result<(), PointError> {
    let failed = |error: std::io::Error| PointError::Failed(format!("oneTBB rival: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let (source, built) = (folder.path().join("onetbb.cpp"), folder.path().join("onetbb"));
    fs::write(&source, SOURCE).map_err(failed)?;
    let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(&compiler);
    command
        .args(["-std=c++17", "-O3", "-o"])
        .arg(&built)
        .arg(&source)
        .args(["-ltbb", "-lpthread"]);
    let output = command.output().map_err(|error| {
        PointError::Unavailable(format!(
            "oneTBB: no C++ compiler `{}` ({error})",
            compiler.display()
        ))
    })?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let first = text
            .lines()
            .find(|line| line.contains("error"))
            .unwrap_or("the compiler says no reason");
        return Err(PointError::Unavailable(format!(
            "oneTBB: its rival does not compile (on Debian, install libtbb-dev): {first}"
        )));
    }
    // Another run may be doing the same: whoever renames last wins, with the same program.
    fs::copy(&built, program.with_extension("new")).map_err(failed)?;
    fs::rename(program.with_extension("new"), program).map_err(failed)
}

impl Runtime for OneTbb {
    fn run(&mut self, operations: u64) -> Result<Sample, PointError> {
        let rounds = self.shape.rounds(operations, self.width);
        let output = Command::new(&self.program)
            .arg(self.shape.name())
            .args([self.cores as u64, operations, rounds, self.width].map(|number| number.to_string()))
            .output()
            .map_err(|error| PointError::Failed(format!("oneTBB rival: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<u64> = text
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        match numbers.as_slice() {
            [processor_ns, wall_ns] if output.status.success() => Ok(Sample {
                operations: self.shape.operations(operations, self.width),
                processor_ns: *processor_ns,
                wall_ns: *wall_ns,
            }),
            _ => Err(PointError::Failed(format!(
                "oneTBB rival ended with {} and said `{}`",
                output.status,
                text.trim()
            ))),
        }
    }
}
