//! The report of a crash: what faulted where, the instructions, the registers.

use std::fmt::Write;

use sidestep_ia64::encoding::{Bundle, NoSymbols};
use sidestep_ia64::registers::application;
use sidestep_ia64::{Fault, FaultKind};

use crate::code_names::CodeNames;
use crate::thread::Thread;
use crate::thread::faults::FaultSignal;
use crate::thread::strace::names;

/// Describes a fault that ends the process.
pub fn report(thread: &Thread, fault: &Fault, signal: &FaultSignal) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut text, thread, fault, signal);
    text
}

fn write_report(text: &mut String, thread: &Thread, fault: &Fault, signal: &FaultSignal) -> std::fmt::Result {
    let processor = &thread.processor;
    let (ip, slot) = if fault.kind.is_trap() {
        processor.trapped_instruction()
    } else {
        processor.instruction_pointer()
    };
    let name = names::signal(signal.signal);
    let program = thread.process.program.path.display();
    writeln!(
        text,
        "sidestep: {program}: {fault} in thread {}, killed by {name} (code {})",
        thread.identifier, signal.code
    )?;
    let symbols = CodeNames::of(&thread.process.memory);
    let describe = |address| {
        symbols
            .find(address)
            .map_or_else(String::new, |place| format!(" {place}"))
    };
    let place = describe(ip);
    writeln!(text, "  ip {ip:#018x} slot {slot}{place}")?;
    match fault.kind {
        FaultKind::Break => writeln!(text, "  immediate {:#x}", fault.immediate)?,
        _ if fault.address.0 != 0 || signal.signal == libc::SIGSEGV => {
            let place = describe(fault.address.0);
            writeln!(text, "  address {:#018x}{place}", fault.address.0)?;
        }
        _ => {}
    }
    write_bundle(text, thread, ip, slot)?;
    write_registers(text, thread)
}

fn write_bundle(text: &mut String, thread: &Thread, ip: u64, slot: u8) -> std::fmt::Result {
    let mut bytes = [0u8; 16];
    let gate = thread.process.memory.gate().bytes();
    let on_gate = usize::try_from(ip.wrapping_sub(crate::memory::gate::ADDRESS))
        .ok()
        .and_then(|at| gate.get(at..at + 16));
    match on_gate {
        Some(found) => bytes.copy_from_slice(found),
        None if thread.process.memory.read_bytes(ip, &mut bytes).is_err() => return Ok(()),
        None => {}
    }
    let bundle = Bundle::from_bytes(bytes);
    for decoded in bundle.decode() {
        let mark = if decoded.slot == slot { "=>" } else { "  " };
        writeln!(
            text,
            "  {mark} {}",
            decoded.text(bundle, ip, &NoSymbols).trim_start()
        )?;
    }
    Ok(())
}

fn write_registers(text: &mut String, thread: &Thread) -> std::fmt::Result {
    let processor = &thread.processor;
    let frame = processor.frame;
    let value = |number: u8| processor.application(number);
    writeln!(
        text,
        "  cfm size {} locals {} rotating {}  pr {:016x}  psr {:016x}",
        frame.size, frame.locals, frame.rotating, processor.predicates, processor.status
    )?;
    let lines = [
        [
            ("rsc", application::RSC),
            ("bsp", application::BSP),
            ("bspstore", application::BSPSTORE),
        ],
        [
            ("rnat", application::RNAT),
            ("pfs", application::PFS),
            ("unat", application::UNAT),
        ],
        [
            ("fpsr", application::FPSR),
            ("lc", application::LC),
            ("ec", application::EC),
        ],
    ];
    for line in lines {
        for (name, number) in line {
            write!(text, "  {name:<8} {:016x}", value(number))?;
        }
        writeln!(text)?;
    }
    for (number, branch) in processor.branch.iter().enumerate() {
        write!(
            text,
            "  b{number:<3} {branch:016x}{}",
            if number % 4 == 3 { "\n" } else { "" }
        )?;
    }
    let last = 32 + frame.size.min(96);
    for number in 1..last as u8 {
        let mark = if processor.general.nat(number) { '*' } else { ' ' };
        let end = if number % 4 == 0 || u32::from(number) == last - 1 {
            "\n"
        } else {
            ""
        };
        write!(
            text,
            "  r{number:<3}{mark}{:016x}{end}",
            processor.general.value(number)
        )?;
    }
    Ok(())
}
