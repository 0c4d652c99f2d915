//! gdb's side of the remote protocol.

#![allow(dead_code, reason = "each test uses a part of it")]

mod packets;

use std::os::unix::net::UnixStream;
use std::thread;

use sidestep_machine::debug::server::{Finish, serve};
use sidestep_machine::debug::target::Debuggee;

pub use packets::*;

/// A session between a debugger and what it debugs; returns how it ended.
pub fn between<D: Debuggee>(debuggee: &mut D, session: impl FnOnce(&mut Debugger) + Send) -> Finish {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut debugger = Debugger(ours);
            assert!(
                debugger
                    .ask("qSupported:multiprocess+;swbreak+;vContSupported+")
                    .contains("PacketSize")
            );
            debugger.ask("?");
            session(&mut debugger);
        });
        serve(Box::new(theirs), debuggee).expect("a session")
    })
}

/// Halts, looks and steps at every call of the monitor until all has ended.
pub fn disturb(debugger: &mut Debugger, symbols: &Symbols) {
    let call = symbols.address("hypercall").expect("a symbol");
    assert_eq!(debugger.ask(&format!("Z0,{call:x},0")), "OK");
    while debugger.ask("vCont;c").starts_with('T') {
        debugger.ask(&format!("m{call:x},10"));
        debugger.ask("vCont;s:p1.1;c");
    }
}
