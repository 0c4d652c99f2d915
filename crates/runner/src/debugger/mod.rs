//! A Linux program under gdb: the server of gdb's remote protocol beside the threads that it controls.
//!
//! - this module: the server, which listens to gdb and to the program.
//! - `socket`: the connection; `session`: the program as the `gdbstub` crate asks for it.
//! - `files`: its files; `signals`: numbers of signals.
//!
//! The server is a host thread of its own, which sleeps while neither gdb nor the program has something to say. Guest
//! threads are gdb's threads, by the numbers that `gettid` gives them.

mod files;
mod session;
mod signals;
mod socket;

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::thread;

use gdbstub::conn::Connection as _;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{DisconnectReason, GdbStub, GdbStubError, MultiThreadStopReason};
use sidestep_linux_user::Ending;
use sidestep_linux_user::control::{Control, Listener};
use sidestep_linux_user::debugger::Debugger;
use sidestep_linux_user::files::reserved::Reserved;
use sidestep_linux_user::host::{Errno, print_error};
use sidestep_linux_user::process::Process;
use sidestep_machine::debug::architecture::PACKET_BYTES;

use session::{Session, SessionError};
use socket::{Bell, Heard, Socket};

/// gdb, connected to the program that is about to run.
#[derive(Debug)]
pub struct Gdb(Arc<Line>);

/// What server and program share.
#[derive(Debug)]
struct Line {
    socket: Arc<Reserved>,
    bell: Arc<Bell>,
}

impl Gdb {
    /// Takes a connection, out of the program's way.
    ///
    /// # Errors
    /// If the host has no descriptors left.
    pub fn new(connection: &(impl AsFd + ?Sized)) -> Result<Gdb, Errno> {
        Ok(Gdb(Arc::new(Line {
            socket: Arc::new(Reserved::new(&connection.as_fd())?),
            bell: Arc::new(Bell::new()?),
        })))
    }
}

impl Debugger for Gdb {
    fn listener(&self) -> Arc<dyn Listener> {
        Arc::clone(&self.0) as Arc<dyn Listener>
    }

    fn begin(&self, process: Arc<Process>, control: Arc<Control>) {
        let (socket, bell) = (Arc::clone(&self.0.socket), Arc::clone(&self.0.bell));
        let server = {
            let (process, control) = (Arc::clone(&process), Arc::clone(&control));
            move || {
                control.wait_for_first_thread();
                match serve(&process, &control, Socket::new(socket, bell)) {
                    Ok(DisconnectReason::Kill) => process.end(Ending::Killed(KILL)),
                    Ok(_) => {}
                    // A debugger that is gone has left.
                    Err(error) if error.is_connection_error() => {}
                    Err(error) => print_error(&format!(
                        "sidestep: --gdb: the debugger broke the protocol: {error}\n"
                    )),
                }
                control.leave();
            }
        };
        if let Err(error) = thread::Builder::new().spawn(server) {
            print_error(&format!(
                "sidestep: --gdb: no thread can serve the debugger, so it is left out: {error}\n"
            ));
            control.leave();
        }
    }
}

impl Listener for Line {
    fn wake(&self) {
        self.bell.ring();
    }

    fn executes(&self, program: &[u8]) {
        let program = String::from_utf8_lossy(program);
        let text = format!("sidestep: the program executes {program}, which runs on without a debugger\n");
        // A debugger that is gone misses nothing.
        let _ = socket::send(self.socket.as_fd(), &console_packet(&text));
    }

    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.socket.as_raw_fd(), self.bell.as_raw_fd()]
    }
}

/// `SIGKILL`.
const KILL: i32 = 9;

/// The packet that has a debugger print something while it waits for the program.
fn console_packet(text: &str) -> Vec<u8> {
    let body = text
        .bytes()
        .fold("O".to_owned(), |body, byte| format!("{body}{byte:02x}"));
    let sum = body.bytes().fold(0u8, u8::wrapping_add);
    format!("${body}#{sum:02x}").into_bytes()
}

/// Serves a debugger until it leaves or the program has ended.
fn serve(
    process: &Arc<Process>,
    control: &Arc<Control>,
    socket: Socket,
) -> Result<DisconnectReason, GdbStubError<SessionError, std::io::Error>> {
    let mut session = Session::new(Arc::clone(process), Arc::clone(control));
    let stub = GdbStub::builder(socket)
        .packet_buffer_size(PACKET_BYTES)
        .build()
        .expect("a buffer of the heap is there");
    let mut machine = stub.run_state_machine(&mut session)?;
    loop {
        machine = match machine {
            GdbStubStateMachine::Idle(mut gdb) => match gdb.borrow_conn().hear() {
                Heard::Byte(byte) => gdb.incoming_data(&mut session, byte)?,
                Heard::Bell => gdb.into(),
                Heard::End => return Ok(DisconnectReason::Disconnect),
            },
            GdbStubStateMachine::Running(mut gdb) => match session.stop_reason() {
                Some(reason) => gdb.report_stop(&mut session, reason)?,
                None => match gdb.borrow_conn().hear() {
                    Heard::Byte(byte) => gdb.incoming_data(&mut session, byte)?,
                    Heard::Bell => gdb.into(),
                    Heard::End => return Ok(DisconnectReason::Disconnect),
                },
            },
            GdbStubStateMachine::CtrlCInterrupt(gdb) => {
                // What it comes to is told as soon as all threads have stopped.
                control.interrupt();
                gdb.interrupt_handled(&mut session, None::<MultiThreadStopReason<u64>>)?
            }
            GdbStubStateMachine::Disconnected(mut gdb) => {
                // The last packet may not be taken any more.
                let _ = gdb.borrow_conn().flush();
                return Ok(gdb.get_reason());
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_the_console_is_a_packet() {
        assert_eq!(console_packet("Hi\n"), b"$O48690a#bb");
    }
}
