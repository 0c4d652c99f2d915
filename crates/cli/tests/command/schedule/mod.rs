//! `sidestep schedule` and `disasm --check-groups`, as a user calls them. They need GNU as for IA-64.

mod groups;
mod programs;
mod sources;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn sidestep(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(arguments)
        .output();
    command.expect("the command starts")
}

/// The file's text in a folder of its own.
fn written(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("code.s");
    fs::write(&path, text).expect("a temporary file can be written");
    path.display().to_string()
}

const SLOW: &str = "\
\t.text
\t.proc f
f:
\tld8 r14 = [r32]\t// the first word
\t;;
\tadd r14 = r14, r33
\t;;
\tadds r15 = 8, r32
\t;;
\tld8 r15 = [r15]
\t;;
\tadd r8 = r14, r15
\tbr.ret.sptk.many b0
\t;;
\t.endp f
";
