//! The console of a machine on this terminal.
//!
//! Output goes to the standard output at once. Input is taken from the standard input once the guest first asks for a
//! character: if that is a terminal, it then gives each key as it is pressed, without showing it, until the console is
//! dropped. Ctrl-C still interrupts the command.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use sidestep_vmm::machine::hypercall::Console;

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
    fn open() -> Input {
        let (sender, bytes) = mpsc::channel();
        let before = raw().ok().flatten();
        // The thread ends with the process or at the end of the input; nobody waits for it.
        thread::spawn(move || {
            for byte in io::stdin().lock().bytes() {
                match byte {
                    Ok(byte) if sender.send(byte).is_ok() => {}
                    _ => break,
                }
            }
        });
        Input {
            bytes,
            has_ended: false,
            before,
        }
    }
}

/// Makes the terminal give keys one by one; returns how it was, or nothing if the standard input is none.
fn raw() -> rustix::io::Result<Option<Termios>> {
    let input = io::stdin();
    if !input.is_terminal() {
        return Ok(None);
    }
    let before = termios::tcgetattr(&input)?;
    let mut now = before.clone();
    now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    now.special_codes[SpecialCodeIndex::VMIN] = 1;
    now.special_codes[SpecialCodeIndex::VTIME] = 0;
    termios::tcsetattr(&input, OptionalActions::Now, &now)?;
    Ok(Some(before))
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
        let mut output = io::stdout().lock();
        // Output that nobody reads (`| head`) is lost, as on a terminal that was unplugged.
        let _ = output.write_all(bytes).and_then(|()| output.flush());
    }

    fn read(&mut self) -> Option<u8> {
        let input = self.input.get_or_insert_with(Input::open);
        let byte = input.bytes.try_recv();
        input.has_ended = byte == Err(TryRecvError::Disconnected);
        byte.ok()
    }

    fn has_ended(&self) -> bool {
        self.input.as_ref().is_some_and(|input| input.has_ended)
    }
}
