//! Random instructions on registers that mean something, for tests that make programs of them.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod exceptions;
pub mod loops;

use sidestep_ia64::encoding::{
    Bundle, CompareWidth, Effects, FloatFormat, Form, Instruction, LoadKind, Operation, Size, StatusField,
    StoreKind, Target, Template, Unit, UnitClass, all_forms, decode,
};
use sidestep_ia64::float::{Flags, FloatRegister, StatusRegister};
use sidestep_ia64::registers::application::{CCV, FPSR};
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Exit, Processor, ProcessorState};
use sidestep_translator::{Settings, Translator};

use crate::machine::{DATA, Machine, SECOND_PAGE};

pub const BUNDLES: u64 = 24;
/// Where programs begin: half of them, and of the branches, lead to another page.
pub const CODE: u64 = SECOND_PAGE - BUNDLES / 2 * 16;
pub const INSTRUCTIONS: u64 = 2000;
pub const STACKED: u8 = 48;
/// Template of memory, integer and branch slots; of memory, floating-point and branch slots; each with a stop.
pub const INTEGER: u8 = 0x11;
pub const FLOATING: u8 = 0x1d;

/// Random numbers: SplitMix64.
pub struct Source(pub u64);

impl Source {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A floating-point register: one of few, so that what one instruction writes another reads.
    pub fn floating(&mut self) -> u64 {
        match self.below(8) {
            0 | 1 => self.below(2),
            2 => 32 + self.below(4),
            _ => 6 + self.below(6),
        }
    }

    /// What a floating-point register holds: a small number, single, with halves, or double, a zero, an integer or a
    /// pair of small singles; where anything may be, also a number near the ends of the range of doubles, any double,
    /// any register or a pair of any singles.
    pub fn float(&mut self, may_be_anything: bool) -> FloatRegister {
        let small = self.below(1 << 12) as f64 - 2048.0;
        let fraction = self.below(1 << 40) as f64 / (1u64 << 36) as f64;
        let pair = |high: f32, low: f32| {
            FloatRegister::from_significand(u64::from(high.to_bits()) << 32 | u64::from(low.to_bits()))
        };
        match self.below(if may_be_anything { 16 } else { 11 }) {
            0 => FloatRegister::zero(self.below(2) == 0),
            1 => FloatRegister::from_significand(self.next() >> self.below(64)),
            2..5 => FloatRegister::from_single((small as f32 / 2.0).to_bits()),
            5..8 => FloatRegister::from_double((small + fraction).to_bits()),
            8..10 => pair(small as f32, fraction as f32),
            10 => pair((small + fraction) as f32, -0.0),
            11 => FloatRegister::from_double((fraction * f64::MAX / 16.0).to_bits()),
            12 => FloatRegister::from_double((fraction * f64::MIN_POSITIVE).to_bits()),
            13 => FloatRegister::from_double(self.next()),
            14 => FloatRegister::from_significand(self.next()),
            _ => FloatRegister::from_sign_exponent(self.next(), self.next()),
        }
    }

    /// A register that holds values.
    pub fn register(&mut self) -> u64 {
        match self.below(4) {
            0 => 8 + self.below(8),
            _ => 32 + self.below(u64::from(STACKED)),
        }
    }
}

/// Whether programs have many of an operation.
pub fn is_usual(operation: Operation) -> bool {
    use Operation as O;
    !matches!(
        operation,
        O::Break
            | O::SetUserMask
            | O::ResetUserMask
            | O::MoveToUserMask
            | O::FlushCache { .. }
            | O::LoadRegisterStack
            | O::FlushRegisterStack
            | O::BranchIa32
            | O::Cover
            | O::Probe { .. }
            | O::ProbeFault { .. }
    )
}

/// Whether an operation is emitted in line, and no other is much like it: most instructions are of these.
pub fn is_preferred(operation: Operation) -> bool {
    use Operation as O;
    match operation {
        O::Load { size, kind, .. } => match kind {
            LoadKind::Fill => true,
            LoadKind::Normal | LoadKind::Advanced | LoadKind::CheckClear => true,
            LoadKind::Speculative | LoadKind::Acquire => size == Size::Eight,
            _ => false,
        },
        O::Store { kind, .. } => kind != StoreKind::Release,
        O::LoadFloat { kind, format, .. } => match kind {
            LoadKind::Normal | LoadKind::Fill => true,
            LoadKind::Advanced | LoadKind::CheckClear => {
                matches!(format, FloatFormat::Single | FloatFormat::Double)
            }
            _ => false,
        },
        O::CheckAdvanced { .. }
        | O::StoreFloat { .. }
        | O::FloatCompare { .. }
        | O::FloatMultiplyAdd { .. }
        | O::FloatMerge { .. }
        | O::ParallelFloatMultiplyAdd { .. }
        | O::FloatPack
        | O::FloatMix { .. }
        | O::FloatClass { .. }
        | O::FloatExtremum { .. }
        | O::LoadFloatPair { .. }
        | O::Exchange { .. }
        | O::CompareExchange { .. }
        | O::FetchAdd { .. }
        | O::ConvertFromFixed
        | O::ConvertToFixed { .. }
        | O::SetFloat { .. }
        | O::GetFloat { .. }
        | O::FixedMultiplyAdd { .. }
        | O::Add { .. }
        | O::Subtract { .. }
        | O::AddPointer { .. }
        | O::Logical { .. }
        | O::ShiftLeftAdd
        | O::ShiftLeftAddPointer
        | O::ShiftRight { .. }
        | O::ShiftLeft
        | O::ShiftRightPair
        | O::Extract { .. }
        | O::Deposit { .. }
        | O::DepositZero { .. }
        | O::ZeroExtend { .. }
        | O::SignExtend { .. }
        | O::Allocate
        | O::MoveToPredicates
        | O::MoveToRotatingPredicates
        | O::MoveFromPredicates
        | O::MoveToBranch
        | O::MoveFromBranch
        | O::MoveFromApplication
        | O::Branch { .. } => true,
        O::Compare { width, .. } => width == CompareWidth::Word,
        _ => false,
    }
}

/// An instruction of one of the forms for a slot, with registers that mean something.
pub fn instruction(
    source: &mut Source,
    forms: &[&Form],
    classes: &[UnitClass],
    unit: Unit,
    bundle: u64,
) -> u64 {
    loop {
        let form = forms[source.below(forms.len() as u64) as usize];
        if !classes.contains(&form.class) || !is_preferred(form.operation) && source.below(8) != 0 {
            continue;
        }
        let mut slot = form.value | source.next() & Bundle::SLOT_MASK & !form.mask;
        let mut put = |shift: u32, bits: u32, value: u64| {
            let field = ((1 << bits) - 1 << shift) & !form.mask;
            slot = slot & !field | value << shift & field;
        };
        let Ok(decoded) = decode(unit, form.value, 0) else {
            continue;
        };
        if form.predicated {
            let predicate = if source.below(2) == 0 { 0 } else { source.below(64) };
            put(0, 6, predicate);
        }
        if decoded.general_target().is_some() {
            put(6, 7, source.register());
        }
        match decoded.operation.memory_access() {
            Some(_) => {
                put(13, 7, source.register());
                put(20, 7, 4 + source.below(4));
            }
            None if matches!(decoded.operation, Operation::AddLongImmediate) => {}
            None if form.class == UnitClass::A || form.class == UnitClass::I => {
                put(13, 7, source.register());
                put(20, 7, source.register());
            }
            None => {}
        }
        match decoded.operation {
            // A frame that can be, and that the registers of most other instructions are in.
            Operation::Allocate => {
                put(13, 7, 60 + source.below(37));
                put(20, 7, source.below(60));
                put(27, 4, source.below(3));
            }
            _ if form.class == UnitClass::F => {
                let [f1, f2, f3, f4] = [(); 4].map(|()| source.floating());
                // A move from one register to another one has that one twice.
                let is_move =
                    matches!(decoded.operation, Operation::FloatMerge { .. }) && source.below(2) == 0;
                for (shift, register) in [(6, f1), (13, f2), (20, if is_move { f2 } else { f3 }), (27, f4)] {
                    put(shift, 7, register);
                }
            }
            // The status of floating-point operations is what most of these change.
            Operation::MoveFromApplication if source.below(2) == 0 => put(20, 7, u64::from(FPSR)),
            Operation::LoadFloat { .. } | Operation::SetFloat { .. } => put(6, 7, source.floating()),
            Operation::StoreFloat { .. } | Operation::GetFloat { .. } => put(13, 7, source.floating()),
            Operation::LoadFloatPair { .. } => {
                put(6, 7, source.floating());
                put(13, 7, source.floating());
            }
            _ => {}
        }
        if is_direct(&decoded) {
            // The displacement in bundles: 20 bits and the sign.
            let distance = source.below(BUNDLES).wrapping_sub(bundle);
            put(13, 20, distance & 0xf_ffff);
            put(36, 1, distance >> 63);
        }
        let Ok(decoded) = decode(unit, slot, 0) else {
            continue;
        };
        if is_usual(decoded.operation) && !decoded.effects().contains(Effects::SERIALIZES) {
            return slot;
        }
    }
}

/// An instruction that does nothing.
pub fn nothing(class: UnitClass) -> u64 {
    let mut forms = all_forms().map(|(_, form)| form);
    let form = forms.find(|form| form.class == class && form.operation == Operation::Nop);
    form.expect("a form of nop").value
}

pub fn is_direct(instruction: &Instruction) -> bool {
    match instruction.operation {
        Operation::Branch { target, .. } | Operation::Call { target } => target == Target::Relative,
        _ => false,
    }
}

/// Sets the floating-point registers and their status.
pub fn set_numbers(processor: &mut Processor, source: &mut Source) {
    // Translated code leaves a block where a result is no number.
    let may_be_anything = source.below(3) == 0;
    for register in (6..12).chain(32..36) {
        processor.set_floating(register, source.float(may_be_anything));
    }
    let mut status = StatusRegister::LINUX;
    if source.below(2) == 0 {
        // Programs that have computed something have had an inexact result, and converted an unsigned integer.
        for field in [StatusField::S0, StatusField::S1, StatusField::S2] {
            status.raise(field, Flags::INEXACT | Flags::DENORMAL);
        }
    }
    processor.set_application(FPSR, status.bits());
}

/// Makes the registers that addresses are taken from point to data, and branch registers to code.
pub fn aim(processor: &mut Processor, source: &mut Source) {
    for register in 4..8 {
        processor.general.set(register, DATA + 8 * source.below(240));
    }
    for register in &mut processor.branch {
        *register = CODE + 16 * source.below(BUNDLES);
    }
}

/// How many programs are tried; `SIDESTEP_PROGRAMS` says otherwise.
pub fn cases() -> u32 {
    let given = std::env::var("SIDESTEP_PROGRAMS").ok();
    given.and_then(|count| count.parse().ok()).unwrap_or(12)
}

pub fn translator(threshold: u32) -> Translator {
    let settings = Settings {
        threshold,
        code_bytes_max: 1 << 20,
        ..Settings::ALWAYS
    };
    Translator::new(settings, None).expect("a host that code can be emitted for")
}

/// A program of usual instructions on registers with values.
pub fn machine(seed: u64) -> Machine {
    let mut source = Source(seed);
    let forms: Vec<&Form> = all_forms()
        .map(|(_, form)| form)
        .filter(|form| is_usual(form.operation))
        .collect();
    let mut code = Vec::new();
    // Every other program computes with floating-point numbers most of the time.
    let integer_share = [3, 1][source.below(2) as usize];
    for bundle in 0..BUNDLES {
        use UnitClass::{A, B, F, I, M};
        let memory = instruction(&mut source, &forms, &[A, M], Unit::M, bundle);
        let branch = instruction(&mut source, &forms, &[B], Unit::B, bundle);
        let (template, middle) = match source.below(4) < integer_share {
            false => (FLOATING, instruction(&mut source, &forms, &[F], Unit::F, bundle)),
            true => (
                INTEGER,
                instruction(&mut source, &forms, &[A, I], Unit::I, bundle),
            ),
        };
        code.push(Bundle::new(Template::new(template), [memory, middle, branch]));
    }
    let mut machine = Machine::new();
    machine.load_bundles_at(CODE, &code);
    let processor = &mut machine.processor;
    processor.predicates = source.next() | 1;
    processor.frame = FrameMarker {
        size: u32::from(STACKED),
        locals: 40,
        rotating: 8 * source.below(5) as u32,
        ..FrameMarker::default()
    };
    let has_nats = source.below(8) == 0;
    for register in 1..32 + STACKED {
        let value = source.next() >> source.below(64);
        let nat = has_nats && source.below(16) == 0;
        processor.general.set_with_nat(register, value, nat);
    }
    // The register stack engine has the upper half of the page.
    processor.register_stack_mut().restart(DATA + 2048, 0);
    set_numbers(processor, &mut source);
    // What memory is compared with: nothing, what no element of less than eight bytes holds, or anything.
    let expected = [0, 1 << 32, source.next()][source.below(3) as usize];
    processor.set_application(CCV, expected);
    for register in 65..67 {
        processor.set_application(register, source.below(20));
    }
    aim(processor, &mut source);
    machine
}

/// Where a program has got after its instructions: the processor's state, and the data.
pub fn run(seed: u64, run: impl FnMut(&mut Processor, u64) -> Exit) -> (ProcessorState, Vec<u8>) {
    let mut machine = machine(seed);
    execute(&mut machine.processor, seed, run);
    let state = machine.processor.save();
    (state, machine.data().to_vec())
}

/// Executes the instructions of a program in pieces, whatever faults.
pub fn execute(processor: &mut Processor, seed: u64, mut run: impl FnMut(&mut Processor, u64) -> Exit) {
    let mut source = Source(seed ^ 1);
    for _ in 0..INSTRUCTIONS {
        let left = INSTRUCTIONS.saturating_sub(processor.instructions_retired());
        if left == 0 {
            break;
        }
        let piece = 1 + source.below(600);
        if let Exit::Fault(fault) = run(processor, piece.min(left)) {
            if !fault.kind.is_trap() {
                processor.skip_instruction();
            }
            aim(processor, &mut source);
            if !(CODE..CODE + 16 * BUNDLES).contains(&processor.instruction_pointer().0) {
                processor.set_instruction_pointer(CODE + 16 * source.below(BUNDLES), 0);
            }
        }
    }
}
