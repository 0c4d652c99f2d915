//! `--gdb`: waiting for a debugger, for whatever is debugged.

use std::error::Error;

use sidestep_machine::debug::address::{Address, Listener, Stream};

/// Waits until a debugger connects.
pub fn debugger_at(address: &Address) -> Result<Stream, Box<dyn Error>> {
    let refused = |error| format!("--gdb {address}: cannot wait for a debugger there: {error}");
    let listener = Listener::bind(address).map_err(refused)?;
    say!("sidestep: waiting for gdb: target remote {}", listener.address()?);
    Ok(listener.accept()?)
}
