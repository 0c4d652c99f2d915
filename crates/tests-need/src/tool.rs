//! Programs that tests run.

use std::env;
use std::path::{Path, PathBuf};

use crate::named_file;
use crate::record::{had, missing};

/// A program that a test runs, found by the variable that names it or on `PATH`.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// What it is called; the first that is there is taken.
    names: &'static [&'static str],
    /// The variable that names it.
    variable: &'static str,
    /// Debian's package of it.
    package: &'static str,
}

/// The debugger, with ia64 among its targets.
pub const GDB: Tool = Tool {
    names: &["gdb-multiarch"],
    variable: "SIDESTEP_GDB",
    package: "gdb-multiarch",
};

/// The disassembler's oracle.
pub const OBJDUMP: Tool = Tool {
    names: &["ia64-linux-gnu-objdump"],
    variable: "SIDESTEP_OBJDUMP",
    package: "binutils-ia64-linux-gnu",
};

/// The assembler, which the command takes from `PATH`.
pub const ASSEMBLER: Tool = Tool {
    names: &["ia64-linux-gnu-as"],
    variable: "SIDESTEP_ASSEMBLER",
    package: "binutils-ia64-linux-gnu",
};

/// A browser that looks at reports.
pub const CHROMIUM: Tool = Tool {
    names: &["chromium", "chromium-browser", "google-chrome"],
    variable: "SIDESTEP_CHROMIUM",
    package: "chromium",
};

/// The simulator of the VHDL model.
pub const GHDL: Tool = Tool {
    names: &["ghdl"],
    variable: "SIDESTEP_GHDL",
    package: "ghdl-mcode",
};

/// What makes a file system; `e2fsck` and `debugfs` come with it.
pub const MKE2FS: Tool = Tool {
    names: &["mke2fs"],
    variable: "SIDESTEP_MKE2FS",
    package: "e2fsprogs",
};

impl Tool {
    /// Where the program is; `None`, and counted, where there is none.
    ///
    /// # Panics
    ///
    /// When its variable names no file, and where continuous integration lacks it.
    #[track_caller]
    pub fn find(&self) -> Option<PathBuf> {
        let found = match env::var_os(self.variable) {
            Some(named) => Some(named_file(self.variable, named.into())),
            None => self.names.iter().find_map(|name| on_path(name)),
        };
        match &found {
            Some(_) => had(),
            None => missing(&format!(
                "{} is not installed (Debian's {}, or {} names it)",
                self.names[0], self.package, self.variable
            )),
        }
        found
    }
}

/// The variable that names the cross-compiler's C compiler.
const CROSS_COMPILER: &str = "SIDESTEP_CROSS_COMPILER";

/// GCC and glibc for ia64-linux-gnu.
#[derive(Clone, Debug)]
pub struct CrossCompiler {
    folder: PathBuf,
}

impl CrossCompiler {
    /// The C compiler.
    pub fn gcc(&self) -> PathBuf {
        self.folder.join("ia64-linux-gnu-gcc")
    }

    /// The C++ compiler.
    pub fn gxx(&self) -> PathBuf {
        self.folder.join("ia64-linux-gnu-g++")
    }

    /// Where its programs find their libraries.
    pub fn sysroot(&self) -> PathBuf {
        self.folder.join("../ia64-linux-gnu/sysroot")
    }
}

/// A cross-compiler with its assembler: the one whose C compiler `SIDESTEP_CROSS_COMPILER` names, the one on `PATH`, or
/// the one unpacked in the user's cache folder; `None`, and counted, where there is none.
///
/// # Panics
///
/// When the variable names no file, and where continuous integration lacks what lies ready for it.
#[track_caller]
pub fn cross_compiler() -> Option<CrossCompiler> {
    let gcc = match env::var_os(CROSS_COMPILER) {
        Some(named) => Some(named_file(CROSS_COMPILER, named.into())),
        None => on_path("ia64-linux-gnu-gcc").or_else(unpacked),
    };
    if ASSEMBLER.find().is_none() {
        return None;
    }
    let found = gcc.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    match &found {
        Some(_) => had(),
        None => missing(
            "there is no cross-compiler (docs/src/itanium/toolchain.md, or SIDESTEP_CROSS_COMPILER names its gcc)",
        ),
    }
    found.map(|folder| CrossCompiler { folder })
}

/// The C compiler in the user's cache folder.
fn unpacked() -> Option<PathBuf> {
    let home = PathBuf::from(env::var_os("HOME")?);
    let gcc = home.join(".cache/sidestep-toolchain/bin/ia64-linux-gnu-gcc");
    gcc.exists().then_some(gcc)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
