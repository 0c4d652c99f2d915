//! Runs a Linux/ia64 program in this process, and says how it ended.
//!
//! `cargo run --release -p sidestep-linux-user --example run -- [--sysroot DIR] [--allow DIR] PROG [ARGS...]`

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;

use sidestep_linux_user::{Launch, Options, run};

fn main() -> ExitCode {
    let mut options = Options {
        reenter: vec![b"run".to_vec()],
        ..Options::default()
    };
    let mut launch = Launch::default();
    let mut name = None;
    let mut arguments = std::env::args_os().skip(1).peekable();
    // The last four are what an executing program passes on.
    while let Some(option) = arguments.next_if(|argument| argument.as_bytes().starts_with(b"--")) {
        let mut value = || arguments.next().unwrap_or_default();
        match option.to_str() {
            Some("--sysroot") => options.sysroot = Some(PathBuf::from(value())),
            Some("--allow") => options.allowed.push(PathBuf::from(value())),
            Some("--argv0") => name = Some(value()),
            Some("--ignore-sigpipe") => launch.pipe_ignored = true,
            Some("--descriptor") => {
                launch
                    .inherited
                    .extend(sidestep_linux_user::inheritance::descriptor(&value()));
            }
            Some("--guest-limit") => {
                launch
                    .limits
                    .extend(sidestep_linux_user::inheritance::limit(&value()));
            }
            _ => break,
        }
    }
    let Some(program) = arguments.next() else {
        eprintln!("run [--sysroot DIR] [--allow DIR] PROG [ARGS...]");
        return ExitCode::FAILURE;
    };
    for path in [options.sysroot.as_deref()].into_iter().flatten() {
        options
            .reenter
            .extend([b"--sysroot".to_vec(), path.as_os_str().as_bytes().to_vec()]);
    }
    let words: Vec<OsString> = [name.unwrap_or_else(|| program.clone())]
        .into_iter()
        .chain(arguments)
        .collect();
    let variable = |(name, value): (OsString, OsString)| {
        [&name, OsStr::new("="), &value]
            .into_iter()
            .collect::<OsString>()
            .into_vec()
    };
    let launch = Launch {
        program: program.into(),
        arguments: words.into_iter().map(OsString::into_vec).collect(),
        environment: std::env::vars_os().map(variable).collect(),
        options,
        ..launch
    };
    match run(launch) {
        Ok(ending) => ending.leave(),
        Err(error) => {
            eprintln!("run: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}
