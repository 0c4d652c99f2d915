//! The console of a machine on this terminal.
//!
//! Output goes to the standard output at once. Without keys for the command, input is taken from the standard input
//! once the guest first asks for a character, and Ctrl-C still interrupts the command; with them, from the beginning,
//! and all keys are the guest's but those of [`escape`](super::escape). A terminal gives each key as it is pressed,
//! without showing it, until the console is dropped.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;

use rustix::fs::{self, FileType};
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use sidestep_machine::machine::hypercall::Console;

use super::super::control::{Request, Requests};
use super::escape::{HELP, Key, Keys};
use super::status;

/// Standard output and input as a console.
#[derive(Default)]
pub struct Terminal {
    input: Option<Input>,
}

struct Input {
    bytes: Receiver<u8>,
    has_ended: bool,
    /// How the terminal was before, if it is one.
    before: Option<Termios>,
}

impl Input {
    fn open(requests: Option<Requests>) -> Input {
        let (sender, bytes) = mpsc::channel();
        let before = raw(requests.is_some()).ok().flatten();
        let echoes = before.is_some();
        // The thread ends with the process or at the end of the input; nobody waits for it.
        thread::spawn(move || match requests {
            None => {
                for byte in io::stdin().lock().bytes().map_while(Result::ok) {
                    if sender.send(byte).is_err() {
                        break;
                    }
                }
            }
            Some(requests) => divide(&sender, &requests, echoes),
        });
        Input {
            bytes,
            has_ended: false,
            before,
        }
    }
}

/// Divides what is typed among the guest, the prompt and the command.
fn divide(guest: &Sender<u8>, requests: &Requests, echoes: bool) {
    let mut keys = Keys::default();
    let mut line: Option<Vec<u8>> = None;
    for byte in io::stdin().lock().bytes().map_while(Result::ok) {
        match keys.take(byte) {
            None => {}
            Some(Key::Quit) => requests.send(Request::Quit),
            Some(Key::Help) => show(HELP.as_bytes()),
            Some(Key::Prompt) => {
                line = if line.is_some() { None } else { Some(Vec::new()) };
                requests.send(if line.is_some() {
                    Request::EnterPrompt
                } else {
                    Request::LeavePrompt
                });
            }
            Some(Key::Byte(byte)) => match &mut line {
                Some(line) => edit(line, byte, requests, echoes),
                None if guest.send(byte).is_err() => return,
                None => requests.wake(),
            },
        }
    }
}

/// One key of a line at the prompt.
fn edit(line: &mut Vec<u8>, byte: u8, requests: &Requests, echoes: bool) {
    const BACKSPACE: u8 = 0x08;
    const DELETE: u8 = 0x7f;
    let echo = |bytes: &[u8]| {
        if echoes {
            show(bytes);
        }
    };
    match byte {
        b'\r' | b'\n' => {
            echo(b"\r\n");
            let text = String::from_utf8_lossy(&std::mem::take(line)).into_owned();
            requests.send(Request::Command(text));
        }
        BACKSPACE | DELETE if line.pop().is_some() => echo(b"\x08 \x08"),
        b' '.. => {
            line.push(byte);
            echo(&[byte]);
        }
        _ => {}
    }
}

/// Why something was not printed that somebody would have read.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints; output that nobody reads (`| head`) is lost, as on a terminal that was unplugged. Any other loss is said
/// when the machine has ended, which knows nothing of it.
pub fn show(bytes: &[u8]) {
    status::printing(bytes.last().copied(), || {
        let mut output = io::stdout().lock();
        if let Err(error) = output.write_all(bytes).and_then(|()| output.flush())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            let _ = LOST.set(error);
        }
    });
}

/// Why the output lacks something, if it does.
pub fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Whether somebody may type at the standard input: not if it is a file, or the null device.
pub fn is_live() -> bool {
    let input = io::stdin();
    let is_stream = fs::fstat(&input).is_ok_and(|status| {
        matches!(
            FileType::from_raw_mode(status.st_mode),
            FileType::Fifo | FileType::Socket
        )
    });
    is_stream || input.is_terminal()
}

/// Makes the terminal give keys one by one, also those that interrupt if `all`; returns how it was, or nothing if the
/// standard input is none.
fn raw(all: bool) -> rustix::io::Result<Option<Termios>> {
    let input = io::stdin();
    if !input.is_terminal() {
        return Ok(None);
    }
    let before = termios::tcgetattr(&input)?;
    let mut now = before.clone();
    now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    if all {
        now.local_modes.remove(LocalModes::ISIG | LocalModes::IEXTEN);
        now.input_modes
            .remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
    }
    now.special_codes[SpecialCodeIndex::VMIN] = 1;
    now.special_codes[SpecialCodeIndex::VTIME] = 0;
    termios::tcsetattr(&input, OptionalActions::Now, &now)?;
    Ok(Some(before))
}

impl Terminal {
    /// With keys for the command.
    pub fn with_escapes(requests: Requests) -> Terminal {
        Terminal {
            input: Some(Input::open(Some(requests))),
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A terminal that has gone needs no restoring.
            let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

impl Console for Terminal {
    fn write(&mut self, bytes: &[u8]) {
        show(bytes);
    }

    fn read(&mut self) -> Option<u8> {
        let input = self.input.get_or_insert_with(|| Input::open(None));
        let byte = input.bytes.try_recv();
        input.has_ended = byte == Err(TryRecvError::Disconnected);
        byte.ok()
    }

    fn has_ended(&self) -> bool {
        self.input.as_ref().is_some_and(|input| input.has_ended)
    }
}
