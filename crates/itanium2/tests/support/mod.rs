//! Instructions shown to a pipeline without a machine that executes them.

#![allow(dead_code, reason = "each test uses a part of it")]

use sidestep_ia64::encoding::{Bundle, Form, Operand, Template, UnitClass};
use sidestep_ia64::execution::{Dynamic, Observer, Place, Untranslated};
use sidestep_itanium2::{Counters, Group, Parameters, Pipeline, Stall};

/// Where the code stands: in a line and page of its own.
pub const CODE: u64 = 0x10_0000;

/// An instruction: mnemonic, and the manual's name of its format; operand values as written; an operand that tells
/// forms apart which differ in nothing else.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    pub name: &'a str,
    pub format: &'a str,
    pub values: &'a [i64],
    pub operand: Option<Operand>,
}

/// A line.
pub const fn line<'a>(name: &'a str, format: &'a str, values: &'a [i64]) -> Line<'a> {
    Line {
        name,
        format,
        values,
        operand: None,
    }
}

/// A line of a form with a certain operand.
pub const fn with<'a>(name: &'a str, format: &'a str, values: &'a [i64], operand: Operand) -> Line<'a> {
    Line {
        name,
        format,
        values,
        operand: Some(operand),
    }
}

/// The templates with a stop at the end, and the slot of the instruction in them.
fn place(class: UnitClass) -> (u8, usize) {
    match class {
        UnitClass::M | UnitClass::A => (0x01, 0),
        UnitClass::I => (0x01, 1),
        UnitClass::F => (0x0d, 1),
        UnitClass::B => (0x11, 2),
        UnitClass::LX => (0x05, 2),
    }
}

fn encode(line: Line<'_>) -> (Bundle, usize) {
    let suits = |form: &&Form| {
        form.format == line.format
            && form.operands.len() == line.values.len()
            && line
                .operand
                .is_none_or(|operand| form.operands.contains(&operand))
    };
    let form = Form::named(line.name)
        .find(suits)
        .unwrap_or_else(|| panic!("no form {} {}", line.name, line.format));
    let encoded = form
        .encode(0, line.values, &[])
        .unwrap_or_else(|error| panic!("{}: {error}", line.name));
    let nop = |name| {
        Form::named(name)
            .next()
            .unwrap()
            .encode(0, &[0], &[])
            .unwrap()
            .slot
    };
    let (template, slot) = place(form.class);
    let mut slots = [nop("nop.m"), nop("nop.i"), nop("nop.i")];
    slots[slot] = encoded.slot;
    (Bundle::new(Template::new(template), slots), slot)
}

/// A pipeline that is shown instructions.
pub struct Stream {
    pub pipeline: Pipeline,
    pub ip: u64,
}

impl Stream {
    pub fn new() -> Stream {
        Stream::on(Parameters::default())
    }

    pub fn on(parameters: Parameters) -> Stream {
        let mut stream = Stream {
            pipeline: Pipeline::new(parameters),
            ip: CODE,
        };
        // Everything that a test's code needs is then in the caches.
        for _ in 0..2 {
            for _ in 0..64 {
                stream.show(line("nop.m", "M48", &[0]), None, None);
            }
            stream.ip = CODE;
        }
        stream
    }

    /// Shows a bundle with one instruction, as retired with a memory reference or a taken branch. Answers its address.
    pub fn show(&mut self, line: Line<'_>, reference: Option<u64>, taken: Option<u64>) -> u64 {
        let (bundle, slot) = encode(line);
        self.show_bundle(bundle, |at| {
            if at == slot {
                (reference, taken)
            } else {
                (None, None)
            }
        })
    }

    /// Shows a bundle; `effects` gives the reference and the target of each slot.
    pub fn show_bundle(
        &mut self,
        bundle: Bundle,
        effects: impl Fn(usize) -> (Option<u64>, Option<u64>),
    ) -> u64 {
        let ip = self.ip;
        self.ip += 16;
        for decoded in bundle.decode() {
            let instruction = decoded.instruction.expect("an instruction");
            let (reference, taken) = effects(decoded.slot.into());
            let known = self.pipeline.decode(&instruction, &decoded);
            let slot = decoded.slot;
            let dynamic = Dynamic {
                place: Place { ip, slot },
                executed: true,
                reference,
                taken,
                memory: &Untranslated,
            };
            self.pipeline.retired(&known, &dynamic);
            if let Some(target) = taken {
                self.ip = target;
                break;
            }
        }
        ip
    }

    /// Lets whatever was shown come to rest: a hundred cycles of nops.
    pub fn rest(&mut self) {
        let start = self.ip;
        for _ in 0..100 {
            self.ip = start.max(CODE);
            self.show(line("nop.m", "M48", &[0]), None, None);
        }
    }

    /// Shows instructions, each in a bundle that ends its group; answers the groups that they issued in. An instruction
    /// behind which issue splits leaves the rest of its bundle to a group of its own.
    fn groups(&mut self, lines: &[Line<'_>]) -> Vec<Group> {
        self.pipeline.finish();
        self.pipeline.enable_timeline();
        for line in lines {
            self.show(*line, None, None);
        }
        self.pipeline.take_timeline()
    }

    /// Shows instructions; answers the cycles from the issue of the first to that of the last, and the counters of the
    /// cycles between them, to which the issue of groups between them counts as waiting for `stall`.
    pub fn distance(&mut self, lines: &[Line<'_>], stall: Stall) -> (u64, Counters) {
        let groups = self.groups(lines);
        let address = self.ip - 16;
        let last = groups
            .iter()
            .position(|group| {
                group
                    .instructions
                    .first()
                    .is_some_and(|first| first.ip == address)
            })
            .expect("the group of the last bundle");
        let mut counters = lost(&groups[1..=last]);
        counters.book(stall, last as u64 - 1);
        (groups[last].cycle - groups[0].cycle, counters)
    }

    /// Shows an instruction and another; answers the cycles from its issue to that of whatever comes next.
    pub fn distance_to_any(&mut self, line: Line<'_>, other: Line<'_>) -> (u64, Counters) {
        let groups = self.groups(&[line, other]);
        (groups[1].cycle - groups[0].cycle, lost(&groups[1..2]))
    }
}

/// What the cycles before groups were lost to.
fn lost(groups: &[Group]) -> Counters {
    let mut counters = Counters::default();
    for group in groups {
        for (stall, length, _) in &group.bubbles {
            counters.book(*stall, *length);
        }
    }
    counters
}
