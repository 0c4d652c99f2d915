//! `info`: reports of how the machine is.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use sidestep_ia64::encoding;
use sidestep_ia64::mmu::buffer::TranslationBuffer;
use sidestep_ia64::registers::system::control;
use sidestep_machine::debug::registers::Register;
use sidestep_machine::machine::Cpu;
use sidestep_machine::memory::MemoryKind;

use super::{Context, unknown};

/// Names of the control registers that decide what a kernel does.
const CONTROL: &[(&str, u8)] = &[
    ("dcr", control::DCR),
    ("itm", control::ITM),
    ("iva", control::IVA),
    ("pta", control::PTA),
    ("ipsr", control::IPSR),
    ("isr", control::ISR),
    ("iip", control::IIP),
    ("ifa", control::IFA),
    ("itir", control::ITIR),
    ("iha", control::IHA),
    ("lid", control::LID),
    ("tpr", control::TPR),
];

/// A report by its name, of a processor where it has one.
type Report = fn(&Context<'_>, usize) -> String;

/// The reports, and whether they are of one processor.
const REPORTS: &[(&str, bool, Report)] = &[
    ("cpus", false, |context, _| cpus(context)),
    ("registers", true, registers),
    ("tlb", true, |context, index| {
        translations(&context.machine.cpus[index])
    }),
    ("devices", false, |context, _| devices(context)),
    ("mem", false, |context, _| memory(context)),
];

/// The report that `words` ask for.
pub fn report(context: &Context<'_>, words: &str) -> String {
    let names = REPORTS.iter().map(|&(name, ..)| name);
    let mut words = words.split_whitespace();
    let Some(name) = words.next() else {
        let names: Vec<&str> = names.collect();
        return format!("info of what? One of {}\n", names.join(", "));
    };
    let Some(&(_, of_processor, report)) = REPORTS.iter().find(|(known, ..)| *known == name) else {
        return unknown("report", name, names);
    };
    let count = context.machine.cpus.len();
    let index = match words.next() {
        None => Some(0),
        Some(word) if of_processor => word.parse().ok().filter(|&index| index < count),
        Some(_) => None,
    };
    match (index, words.next()) {
        (Some(index), None) => report(context, index),
        _ if of_processor => format!(
            "`info {name}` takes the number of a processor, 0 to {}\n",
            count - 1
        ),
        _ => format!("`info {name}` takes nothing more\n"),
    }
}

fn cpus(context: &Context<'_>) -> String {
    let mut text = format!(
        "{:<4} {:<8} {:>16} {:<18} {:>5} {:>16}  at\n",
        "cpu", "does", "ip", "psr", "level", "instructions"
    );
    for (index, cpu) in context.machine.cpus.iter().enumerate() {
        let processor = &cpu.processor;
        let (bundle, slot) = processor.instruction_pointer();
        let activity = format!("{:?}", cpu.activity).to_lowercase();
        let _ = writeln!(
            text,
            "{index:<4} {activity:<8} {bundle:016x} {:#018x} {:>5} {:>16}  {}",
            processor.status,
            processor.privilege_level(),
            processor.instructions_retired(),
            described(context, bundle, slot)
        );
    }
    text
}

fn described(context: &Context<'_>, bundle: u64, slot: u8) -> String {
    let name = encoding::Symbols::describe(context.symbols, bundle);
    format!("{}slot {slot}", if name.is_empty() { name } else { name + ", " })
}

fn registers(context: &Context<'_>, index: usize) -> String {
    let processor = &context.machine.cpus[index].processor;
    let (bundle, slot) = processor.instruction_pointer();
    let mut cells = vec![("ip".to_owned(), bundle)];
    let read = |register: Register| (register.name(), register.read(processor)[0]);
    cells.extend([Register::Status, Register::FrameMarker, Register::Predicates].map(read));
    cells.extend((0..8).map(Register::Branch).map(read));
    let stacked = processor.frame.size.min(96) as u8;
    cells.extend((1..32 + stacked).map(Register::General).map(read));
    const APPLICATION: [u8; 8] = [16, 17, 18, 19, 36, 40, 64, 65];
    cells.extend(APPLICATION.map(Register::Application).map(read));
    let system = &processor.system;
    cells.extend(
        CONTROL
            .iter()
            .map(|&(name, register)| (format!("cr.{name}"), system.control[usize::from(register)])),
    );
    cells.extend((0..8).map(|region| (format!("rr{region}"), system.region[region])));
    let mut text = format!(
        "cpu {index} at {bundle:#x}, {}\n",
        described(context, bundle, slot)
    );
    for row in cells.chunks(4) {
        for (name, value) in row {
            let _ = write!(text, "{name:>8} {value:016x}");
        }
        text.push('\n');
    }
    text
}

fn translations(cpu: &Cpu) -> String {
    let Some(mmu) = cpu.processor.mmu() else {
        return "the processor has no translations\n".to_owned();
    };
    let mut text = String::new();
    for (name, buffer) in [("instruction", &mmu.instruction), ("data", &mmu.data)] {
        let _ = writeln!(
            text,
            "{name} translations\n{:>18} {:>6} {:>8} {:>18} {:>6}  level rights bits attribute",
            "page", "region", "size", "physical", "key"
        );
        buffer_lines(&mut text, buffer);
    }
    let events = &mmu.events;
    let _ = writeln!(
        text,
        "{} data misses, {} instruction misses, {} of {} walks hit, {} inserted by software, {} purges",
        events.data_misses,
        events.instruction_misses,
        events.walker_hits,
        events.walker_reads,
        events.software_insertions,
        events.purges
    );
    text
}

fn buffer_lines(text: &mut String, buffer: &TranslationBuffer) {
    for entry in buffer.entries() {
        let bit = |set: bool, letter: char| if set { letter } else { '-' };
        let _ = writeln!(
            text,
            "{} {:>6x} {:>8} {} {:>6x}  {:>5} {:>6} {}{}{}  {:?}",
            entry.page,
            entry.region,
            size(1 << entry.size_log2),
            entry.physical,
            entry.key,
            entry.level,
            entry.rights,
            bit(entry.present, 'p'),
            bit(entry.accessed, 'a'),
            bit(entry.dirty, 'd'),
            entry.attribute
        );
    }
}

fn devices(context: &Context<'_>) -> String {
    let mut text = String::from("Registers\n");
    for (name, start, bytes) in context.machine.platform().bus.devices() {
        let _ = writeln!(text, "  {start} {:>6}  {name}", size(bytes));
    }
    text.push_str("Virtio devices\n");
    for device in context.parts.iter().flat_map(|parts| &parts.virtio) {
        let counters = device.facilities.counters();
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let _ = writeln!(
            text,
            "  {:<10} at {}, interrupt {}, status {:#x}: {} notifications, {} requests, {} errors",
            device.name,
            device.place,
            device.interrupt,
            device.facilities.status(),
            count(&counters.notifications),
            count(&counters.requests),
            count(&counters.errors)
        );
        for (number, queue) in device.facilities.queues().iter().enumerate() {
            let state = if queue.is_ready { "ready" } else { "not set up" };
            let _ = writeln!(
                text,
                "    queue {number}: {} entries, {state}, {} taken, {} answered",
                queue.size, queue.taken, queue.answered
            );
        }
    }
    text
}

fn memory(context: &Context<'_>) -> String {
    let mut text = String::new();
    for range in context.machine.platform().memory.ranges() {
        let kind = match range.kind {
            MemoryKind::Ram => "RAM",
            MemoryKind::Rom => "ROM",
        };
        let end = range.end() - 1;
        let _ = writeln!(
            text,
            "{} - {end:#018x} {:>6}  {kind}",
            range.start,
            size(range.size)
        );
    }
    text
}

/// Bytes as people write them, where they are whole.
fn size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 3] = [(30, "G"), (20, "M"), (10, "K")];
    UNITS
        .iter()
        .find(|(shift, _)| bytes >> shift != 0 && bytes.trailing_zeros() >= *shift)
        .map_or_else(
            || bytes.to_string(),
            |(shift, unit)| format!("{}{unit}", bytes >> shift),
        )
}

#[cfg(test)]
mod tests {
    use sidestep_machine::memory::{GuestMemory, MemoryRange};
    use sidestep_machine::{Machine, MachineBuilder};
    use sidestep_symbols::Names;

    use super::super::{After, Context, command};

    fn machine() -> Machine {
        let memory = GuestMemory::new(&[MemoryRange::ram(0, 1 << 20)]).expect("a good layout");
        MachineBuilder::new(memory, 2).build()
    }

    #[test]
    fn reports_say_how_the_machine_is() {
        let mut machine = machine();
        let symbols = Names::default();
        let mut context = Context {
            machine: &mut machine,
            parts: None,
            symbols: &symbols,
            image: &[],
        };
        for (line, expected) in [
            ("info mem", "1M  RAM"),
            ("info cpus", "1    stopped"),
            ("info registers 1", "cpu 1 at 0x0, slot 0"),
            ("info tlb", "data translations"),
            ("info devices", "Virtio devices"),
            ("info", "info of what?"),
            ("info cpu", "did you mean `cpus`?"),
            ("info registers 2", "takes the number of a processor, 0 to 1"),
            ("info mem 2", "takes nothing more"),
            ("inf", "unknown command `inf` (did you mean `info`?)"),
            ("backtrace", "the image has no unwind tables"),
            ("backtrace 2", "takes the number of a processor, 0 to 1"),
            ("help", "Ctrl-a c"),
            ("save x", "only machines that start a kernel"),
            ("reset", "only machines that start a kernel"),
        ] {
            let (text, after) = command(&mut context, line);
            assert!(text.contains(expected), "{line}: {text}");
            assert_eq!(after, After::Nothing, "{line}");
        }
        for (line, expected) in [
            ("stop", After::Stop),
            (" cont ", After::Continue),
            ("quit", After::Quit),
        ] {
            assert_eq!(command(&mut context, line).1, expected);
        }
    }
}
