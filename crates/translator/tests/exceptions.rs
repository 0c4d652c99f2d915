//! Arithmetic on numbers that are not usual, of which translated code learns by the host's exceptions: it leaves what
//! interpreted code leaves.

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
#[path = "programs/exceptions.rs"]
mod raised;

use machine::{CODE, Line, Machine, bundle};
use sidestep_ia64::encoding::{Bundle, StatusField};
use sidestep_ia64::float::{Flags, FloatRegister, StatusRegister};
use sidestep_ia64::registers::application::FPSR;
use sidestep_ia64::registers::frame::FrameMarker;
use sidestep_ia64::{Exit, Processor, ProcessorState};
use sidestep_translator::{Settings, Translator};

/// How many instructions a turn of the loop has, of which two of three do nothing.
const INSTRUCTIONS: u64 = 3 * 11;
const TURNS: u64 = 6;

/// A loop of every form of arithmetic on f8, f9 and f10, and what uses the results.
fn machine(numbers: [FloatRegister; 3], flags: Flags) -> Machine {
    let back = [-10 * 16];
    let lines: [Line; 11] = [
        ("fma.d.s0", 0, &[11, 8, 9, 10]),
        ("fms.s.s0", 0, &[12, 8, 9, 10]),
        ("fnma.d.s0", 0, &[13, 8, 9, 10]),
        ("fma.d.s0", 0, &[14, 8, 9, 0]),
        ("fma.d.s0", 0, &[15, 8, 1, 10]),
        ("fms.d.s0", 0, &[16, 10, 1, 8]),
        ("fma.s.s0", 0, &[17, 8, 1, 0]),
        ("fnma.d.s0", 0, &[18, 9, 1, 0]),
        ("fma.d.s0", 0, &[19, 11, 13, 14]),
        ("fma.d.s0", 0, &[20, 19, 1, 16]),
        ("br.cond B1", 0, &back),
    ];
    let mut machine = Machine::new();
    let bundles: Vec<Bundle> = lines.iter().map(|line| bundle(*line)).collect();
    machine.write_bundles(CODE, &bundles);
    let processor = &mut machine.processor;
    processor.predicates = 1;
    processor.frame = FrameMarker::default();
    processor.set_instruction_pointer(CODE, 0);
    for (register, number) in (8..).zip(numbers) {
        processor.set_floating(register, number);
    }
    let mut status = StatusRegister::LINUX;
    status.raise(StatusField::S0, flags);
    processor.set_application(FPSR, status.bits());
    machine
}

fn translator() -> Translator {
    let settings = Settings {
        threshold: 1,
        ..Settings::ALWAYS
    };
    Translator::new(settings, None).expect("a host that code can be emitted for")
}

/// Runs the loop; a fault leaves the instruction that raised it, and the loop goes on behind that.
fn end(mut machine: Machine, execute: &mut dyn FnMut(&mut Processor, u64) -> Exit) -> ProcessorState {
    let processor = &mut machine.processor;
    let last = TURNS * INSTRUCTIONS;
    while processor.instructions_retired() < last {
        let left = last - processor.instructions_retired();
        if let Exit::Fault(fault) = execute(processor, left)
            && !fault.kind.is_trap()
        {
            processor.skip_instruction();
        }
    }
    processor.save()
}

fn double(value: f64) -> FloatRegister {
    FloatRegister::from_double(value.to_bits())
}

/// Numbers of every kind.
fn numbers() -> Vec<FloatRegister> {
    let smallest = f64::MIN_POSITIVE;
    let doubles = [
        0.0,
        -1.5,
        0.1,
        3e200,
        -2e-200,
        smallest,
        smallest / 4.0,
        f64::INFINITY,
        f64::NAN,
    ];
    let mut numbers: Vec<_> = doubles.map(double).into();
    numbers.push(FloatRegister::from_double(0x7ff0_0000_0000_0001));
    numbers.push(FloatRegister::new(false, 0xfffd, 0xaaaa_aaaa_aaaa_aaab));
    numbers.push(FloatRegister::NATVAL);
    numbers
}

#[test]
fn every_combination_of_numbers_leaves_what_it_leaves_interpreted() {
    raised::raise();
    let mut left_over = 0;
    for flags in [Flags::empty(), Flags::INEXACT] {
        for one in numbers() {
            for other in numbers() {
                for third in [double(1.5), one, other, double(f64::NEG_INFINITY), double(-3e200)] {
                    let numbers = [one, other, third];
                    let mut translator = translator();
                    let interpreted = end(machine(numbers, flags), &mut |processor, limit| {
                        processor.run(limit)
                    });
                    let translated = end(machine(numbers, flags), &mut |processor, limit| {
                        processor.run_with(limit, &mut translator, &mut ())
                    });
                    assert!(interpreted == translated, "{numbers:?}");
                    left_over += translator.statistics().left_over;
                }
            }
        }
    }
    assert!(left_over > 100, "{left_over}");
}

/// As one does that blocks SIGFPE for a while.
#[test]
fn a_thread_that_may_raise_exceptions_now_and_then_leaves_the_same() {
    raised::raise();
    for one in numbers() {
        for other in numbers() {
            let numbers = [one, other, double(1.5)];
            let (mut translator, mut turn) = (translator(), 0);
            let interpreted = end(machine(numbers, Flags::INEXACT), &mut |processor, limit| {
                processor.run(limit)
            });
            let translated = end(machine(numbers, Flags::INEXACT), &mut |processor, limit| {
                turn += 1;
                sidestep_translator::permit_exceptions(turn % 3 == 0);
                processor.run_with(limit.min(INSTRUCTIONS), &mut translator, &mut ())
            });
            assert!(interpreted == translated, "{numbers:?}");
        }
    }
    sidestep_translator::permit_exceptions(true);
}

/// Rust expects the controls of the host that a process begins with.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_run_leaves_the_controls_of_the_host_as_they_were() {
    raised::raise();
    for numbers in [[double(0.1); 3], [double(1e300); 3]] {
        let mut translator = translator();
        end(machine(numbers, Flags::INEXACT), &mut |processor, limit| {
            processor.run_with(limit, &mut translator, &mut ())
        });
        let mut controls = 0u32;
        // SAFETY: the host stores 32 bits there.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut controls) };
        const FLAGS: u32 = 0x3f;
        assert_eq!(controls & !FLAGS, 0x1f80);
    }
}
