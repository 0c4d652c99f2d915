//! What is at the other end of a machine's serial port or virtio console: `stdio`, `pty` or `tcp:PORT`.
//!
//! - [`stdio`]: this terminal, with keys for the command itself ([`escape`]).
//! - [`status`]: how far a silent guest is.
//! - [`stream`]: a pseudo-terminal, or a connection to a port of this host.

pub mod escape;
pub mod status;
pub mod stdio;
mod stream;

use std::error::Error;
use std::str::FromStr;

use sidestep_machine::machine::hypercall::Console;

use super::control::Requests;

/// Where a console is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// The standard input and output.
    #[default]
    Stdio,
    /// A pseudo-terminal, whose name is printed.
    Pty,
    /// A port of the host's loopback; the machine starts when somebody has connected.
    Tcp(u16),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        match text {
            "stdio" => Ok(Place::Stdio),
            "pty" => Ok(Place::Pty),
            _ => text
                .strip_prefix("tcp:")
                .and_then(|port| port.parse().ok())
                .map(Place::Tcp)
                .ok_or_else(|| format!("`{text}` is none of stdio, pty, tcp:PORT")),
        }
    }
}

impl Place {
    /// Whether somebody may type there.
    pub fn is_live(self) -> bool {
        self != Place::Stdio || stdio::is_live()
    }

    /// Opens the console, which is called `name`; keys for the command go to `requests`.
    pub fn open(self, name: &str, requests: &Requests) -> Result<Box<dyn Console>, Box<dyn Error>> {
        Ok(match self {
            Place::Stdio => Box::new(stdio::Terminal::with_escapes(requests.clone())),
            Place::Pty => Box::new(
                stream::pty(name)
                    .map_err(|error| format!("no pseudo-terminal can be had for the {name}: {error}"))?,
            ),
            Place::Tcp(port) => Box::new(
                stream::tcp(name, port)
                    .map_err(|error| format!("the {name} cannot be at port {port}: {error}"))?,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_three() {
        assert_eq!("stdio".parse(), Ok(Place::Stdio));
        assert_eq!("pty".parse(), Ok(Place::Pty));
        assert_eq!("tcp:4444".parse(), Ok(Place::Tcp(4444)));
        for wrong in ["", "tcp", "tcp:", "tcp:70000", "Stdio"] {
            let error = wrong.parse::<Place>().expect_err(wrong);
            assert!(error.starts_with(&format!("`{wrong}` is none of")), "{error}");
        }
    }
}
