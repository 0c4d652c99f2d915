//! `backtrace`: who called whom.

use std::fmt::Write;

use sidestep_machine::Machine;
use sidestep_machine::debug::unwind::table::UnwindTable;
use sidestep_machine::debug::unwind::{Frame, Reached, backtrace};
use sidestep_symbols::Names;

use super::Context;

/// The procedure in which Linux panics.
const PANIC: &str = "panic";

/// The frames of a processor by its number, of the first one without.
pub fn report(context: &Context<'_>, cpu: &str) -> String {
    let count = context.machine.cpus.len();
    let number = if cpu.is_empty() { Ok(0) } else { cpu.parse() };
    let Some(index) = number.ok().filter(|&index| index < count) else {
        return format!(
            "`backtrace` takes the number of a processor, 0 to {}\n",
            count - 1
        );
    };
    let table = UnwindTable::of_image(context.image);
    if table.is_empty() {
        return "the image has no unwind tables\n".to_owned();
    }
    lines(&frames(context.machine, index, &table), context.symbols, &table)
}

/// The frames of the processor whose kernel has panicked; nothing if none of them is known to be in `panic`.
pub fn of_panic(machine: &Machine, symbols: &Names, image: &[u8]) -> String {
    let table = UnwindTable::of_image(image);
    let panics = |frame: &Frame| symbols.find(frame.place()).is_some_and(|(name, _)| name == PANIC);
    (0..machine.cpus.len())
        .map(|index| frames(machine, index, &table))
        .find(|frames| frames.iter().any(panics))
        .map_or_else(String::new, |frames| lines(&frames, symbols, &table))
}

fn frames(machine: &Machine, index: usize, table: &UnwindTable) -> Vec<Frame> {
    backtrace(&machine.cpus[index].processor, &machine.platform().memory, table)
}

/// A line a frame; addresses beyond the image, as firmware's, have no name.
fn lines(frames: &[Frame], symbols: &Names, table: &UnwindTable) -> String {
    let mut text = String::new();
    for (number, frame) in frames.iter().enumerate() {
        let symbol = table
            .find(frame.place())
            .and_then(|_| symbols.find(frame.place()));
        let name = symbol.map_or_else(String::new, |(name, offset)| {
            let offset = offset + (frame.address - frame.place());
            format!("  {name}+{offset:#x}")
        });
        let reached = if frame.reached == Reached::ByInterruption {
            "  interrupted"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "#{number:<3} {:016x}  sp {:016x}  bsp {:016x}{name}{reached}",
            frame.address, frame.stack, frame.backing_store
        );
    }
    text
}
