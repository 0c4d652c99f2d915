//! Consoles that are not this terminal: a pseudo-terminal, a connection.
//!
//! What is printed while nobody reads is lost, so that a machine never waits for its console.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{self, OptionalActions};
use sidestep_machine::machine::hypercall::Console;

/// A console whose input comes from a thread.
pub struct Stream<W> {
    output: W,
    input: Receiver<u8>,
}

impl<W: Write + Send> Console for Stream<W> {
    fn write(&mut self, bytes: &[u8]) {
        let _ = self.output.write_all(bytes).and_then(|()| self.output.flush());
    }

    fn read(&mut self) -> Option<u8> {
        self.input.try_recv().ok()
    }
}

/// The machine's side of a pseudo-terminal.
pub struct Master {
    file: File,
    /// Kept open, so that the terminal lives while nobody uses it.
    _terminal: OwnedFd,
}

impl Write for Master {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(&mut self.file, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A new pseudo-terminal, whose name is printed to the standard error.
pub fn pty(name: &str) -> io::Result<Stream<Master>> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let path = ptsname(&master, Vec::new())?;
    let terminal = rustix::fs::open(path.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    let mut modes = termios::tcgetattr(&terminal)?;
    modes.make_raw();
    termios::tcsetattr(&terminal, OptionalActions::Now, &modes)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    say!("sidestep: the {name} is at {}", path.to_string_lossy());
    let file = File::from(master);
    let (sender, input) = mpsc::channel();
    let mut typed = file.try_clone()?;
    thread::spawn(move || {
        loop {
            let ready = poll(&mut [PollFd::new(&typed, PollFlags::IN)], None);
            if ready.is_err() || !forward(&mut typed, &sender) {
                break;
            }
        }
    });
    let output = Master {
        file,
        _terminal: terminal,
    };
    Ok(Stream { output, input })
}

/// Hands on what can be read now; false at the end.
fn forward(from: &mut impl Read, to: &Sender<u8>) -> bool {
    let mut bytes = [0; 256];
    match from.read(&mut bytes) {
        Ok(0) => false,
        Ok(size) => bytes[..size].iter().all(|&byte| to.send(byte).is_ok()),
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

/// Whoever is connected now.
#[derive(Clone, Default)]
pub struct Connection(Arc<Mutex<Option<TcpStream>>>);

impl Connection {
    fn lock(&self) -> MutexGuard<'_, Option<TcpStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.lock() {
            Some(stream) => Write::write(stream, bytes),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A port of the loopback; comes back when somebody has connected. After them, others may.
pub fn tcp(name: &str, port: u16) -> io::Result<Stream<Connection>> {
    /// How long somebody who does not read holds up the machine, once.
    const PATIENCE: std::time::Duration = std::time::Duration::from_millis(200);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    say!(
        "sidestep: waiting for a connection to the {name} at {}",
        listener.local_addr()?
    );
    let output = Connection::default();
    let (sender, input) = mpsc::channel();
    let (first, stream) = (listener.accept()?.0, output.clone());
    let accept = move |connection: TcpStream| -> io::Result<()> {
        connection.set_nodelay(true)?;
        connection.set_write_timeout(Some(PATIENCE))?;
        let mut typed = connection.try_clone()?;
        *stream.lock() = Some(connection);
        while forward(&mut typed, &sender) {}
        *stream.lock() = None;
        Ok(())
    };
    *output.lock() = Some(first.try_clone()?);
    thread::spawn(move || {
        // A connection that breaks makes room for the next.
        let _ = accept(first);
        for connection in listener.incoming().map_while(Result::ok) {
            let _ = accept(connection);
        }
    });
    Ok(Stream { output, input })
}
