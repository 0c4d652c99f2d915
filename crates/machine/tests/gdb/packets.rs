//! Packets of the remote protocol as gdb's ia64 target sends them.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use object::{Object, ObjectSymbol};

/// gdb's numbers.
pub const R32: usize = 32;
pub const IP: usize = 331;
pub const PSR: usize = 332;
pub const CFM: usize = 333;
pub const BSP: usize = 334 + 17;
pub const F6: usize = 128 + 6;

/// The symbols of an image.
pub struct Symbols(pub Vec<u8>);

impl Symbols {
    /// The address of a name.
    pub fn address(&self, name: &str) -> Option<u64> {
        let image = object::File::parse(&*self.0).expect("an ELF file");
        image.symbol_by_name(name).map(|symbol| symbol.address())
    }
}

/// The other end of the stub's connection.
pub struct Debugger(pub UnixStream);

impl Debugger {
    pub fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        write!(self.0, "${packet}#{sum:02x}").expect("the stub listens");
    }

    pub fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.0.read_exact(&mut byte).expect("the stub answers");
        byte[0]
    }

    /// The next packet, acknowledged; run lengths written out.
    pub fn receive(&mut self) -> String {
        while self.byte() != b'$' {}
        let mut text = String::new();
        loop {
            match self.byte() {
                b'#' => break,
                b'*' => {
                    let count = self.byte() - 29;
                    let last = text.chars().next_back().expect("something to repeat");
                    text.extend(std::iter::repeat_n(last, usize::from(count)));
                }
                byte => text.push(char::from(byte)),
            }
        }
        // The checksum.
        self.byte();
        self.byte();
        // After the last packet the stub does not wait for this.
        let _ = self.0.write_all(b"+");
        text
    }

    /// Ends the machine; comes back when the stub has hung up.
    pub fn kill(&mut self) {
        self.send("k");
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).expect("the stub hangs up");
    }

    pub fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive()
    }

    /// A register of the current thread, the low 8 bytes.
    pub fn register(&mut self, number: usize) -> u64 {
        let answer = self.ask(&format!("p{number:x}"));
        u64::from_str_radix(&answer[..16], 16)
            .expect("hexadecimal digits")
            .swap_bytes()
    }

    pub fn word(&mut self, address: u64) -> u64 {
        let answer = self.ask(&format!("m{address:x},8"));
        u64::from_str_radix(&answer, 16)
            .unwrap_or_else(|_| panic!("no memory at {address:#x}: {answer}"))
            .swap_bytes()
    }

    /// Where the current thread is: bundle and slot in one number, as gdb computes it.
    pub fn place(&mut self) -> u64 {
        self.register(IP) | self.register(PSR) >> 41 & 3
    }
}
