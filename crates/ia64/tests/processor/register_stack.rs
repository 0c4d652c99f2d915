//! The register stack engine against a stack without limits: calls, returns, `alloc`, `flushrs`, `cover` in
//! random order, deep enough to spill and fill, with NaT bits.

use crate::machine::{CODE, DATA, Machine};
use proptest::prelude::*;
use sidestep_ia64::register_stack::{above, below, registers_between};
use sidestep_ia64::registers::application::{BSP, BSPSTORE, PFS};

/// What a program does to its stack.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// `alloc` with this many locals and outputs, then new values in every register.
    Allocate { locals: u8, outputs: u8, seed: u64 },
    /// `br.call`.
    Call,
    /// `br.ret`.
    Return,
    /// `flushrs`.
    Flush,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (0u8..=80, 0u8..=16, any::<u64>())
            .prop_map(|(locals, outputs, seed)| Action::Allocate { locals, outputs, seed }),
        3 => Just(Action::Call),
        3 => Just(Action::Return),
        1 => Just(Action::Flush),
    ]
}

/// A frame of the reference: its registers with NaT bits, and how many are locals.
#[derive(Clone, Default)]
struct Frame {
    registers: Vec<(u64, bool)>,
    locals: usize,
}

/// Registers that fit into the backing store page of the test, with room for collections.
const REGISTERS_MAX: usize = 480;

fn execute(machine: &mut Machine, mnemonic: &str, values: &[i64]) {
    machine
        .run(&[(mnemonic, 0, values)])
        .unwrap_or_else(|fault| panic!("{mnemonic}: {fault}"));
}

/// Compares the registers of the current frame.
fn check(machine: &Machine, frame: &Frame) -> Result<(), TestCaseError> {
    prop_assert_eq!(machine.processor.frame.size as usize, frame.registers.len());
    for (index, &expected) in frame.registers.iter().enumerate() {
        let register = 32 + index as u8;
        let found = (
            machine.processor.general.value(register),
            machine.processor.general.nat(register),
        );
        prop_assert_eq!(found, expected, "r{}", register);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_keep_their_registers(actions in prop::collection::vec(action(), 1..60)) {
        let mut machine = Machine::new();
        machine.processor.register_stack_mut().restart(DATA, 0);
        let mut frame = Frame::default();
        let mut callers: Vec<(Frame, u64)> = Vec::new();
        for action in actions {
            let below_frame: usize = callers.iter().map(|(caller, _)| caller.locals).sum();
            match action {
                Action::Allocate { locals, outputs, seed } => {
                    let size = usize::from(locals + outputs);
                    if below_frame + size > REGISTERS_MAX {
                        continue;
                    }
                    let frame_operands = [14, 64, size as i64, i64::from(locals), 0];
                    execute(&mut machine, "alloc", &frame_operands);
                    for (index, kept) in frame.registers.iter().take(size).enumerate() {
                        let register = 32 + index as u8;
                        let found = machine.processor.general.value(register);
                        prop_assert_eq!(found, kept.0, "alloc keeps r{}", register);
                    }
                    frame.locals = usize::from(locals);
                    frame.registers = (0..size as u64)
                        .map(|index| {
                            let value = seed.wrapping_mul(2 * index + 1);
                            (value, value % 5 == 0)
                        })
                        .collect();
                    for (index, &(value, nat)) in frame.registers.iter().enumerate() {
                        machine.processor.general.set_with_nat(32 + index as u8, value, nat);
                    }
                }
                Action::Call => {
                    execute(&mut machine, "brl.call", &[0, 16]);
                    let outputs = frame.registers.split_off(frame.locals);
                    let callee = Frame { registers: outputs, locals: 0 };
                    callers.push((std::mem::replace(&mut frame, callee), machine.processor.application(PFS)));
                }
                Action::Return => {
                    let Some((caller, state)) = callers.pop() else { continue };
                    machine.processor.set_application(PFS, state);
                    machine.processor.branch[0] = CODE + 16;
                    execute(&mut machine, "br.ret", &[0]);
                    let size = machine.processor.frame.size as usize;
                    let mut registers = caller.registers;
                    registers.extend(frame.registers.iter().copied().take(size - registers.len()));
                    // What the callee gave back of a smaller frame is undefined: take it as it is.
                    for index in registers.len()..size {
                        let register = 32 + index as u8;
                        let general = &machine.processor.general;
                        registers.push((general.value(register), general.nat(register)));
                    }
                    frame = Frame { registers, locals: caller.locals };
                }
                Action::Flush => {
                    execute(&mut machine, "flushrs", &[]);
                    prop_assert_eq!(machine.processor.application(BSP), machine.processor.application(BSPSTORE));
                }
            }
            check(&machine, &frame)?;
            let total: usize = callers.iter().map(|(caller, _)| caller.locals).sum();
            prop_assert_eq!(machine.processor.application(BSP), above(DATA, total as u32));
            prop_assert!(machine.processor.register_stack().dirty() + machine.processor.frame.size <= 96);
        }
    }

    #[test]
    fn backing_store_addresses_count_collections(slot in 0u64..63, count in 0u32..300) {
        let pointer = 0x1000 + slot * 8;
        let top = above(pointer, count);
        prop_assert_eq!(below(top, count), pointer);
        prop_assert_eq!(registers_between(pointer, top), count);
        prop_assert_ne!(top >> 3 & 63, 63, "a register never stands in a collection's place");
    }
}

#[test]
fn a_collection_holds_the_nat_bits_of_the_registers_below_it() {
    let mut machine = Machine::new();
    machine.processor.register_stack_mut().restart(DATA, 0);
    execute(&mut machine, "alloc", &[14, 64, 70, 70, 0]);
    for register in 32..102 {
        machine.processor.general.set_with_nat(
            register,
            u64::from(register),
            register == 33 || register == 100,
        );
    }
    execute(&mut machine, "brl.call", &[0, 16]);
    execute(&mut machine, "flushrs", &[]);
    let word = |machine: &mut Machine, index: usize| {
        u64::from_le_bytes(machine.data()[index * 8..index * 8 + 8].try_into().unwrap())
    };
    assert_eq!(word(&mut machine, 1), 33);
    assert_eq!(
        word(&mut machine, 63),
        1 << 1,
        "the first 63 registers' collection"
    );
    assert_eq!(word(&mut machine, 64), 95, "the register behind the collection");
    assert_eq!(
        machine.processor.register_stack().collection(),
        1 << (100 - 32 - 63)
    );
}

#[test]
fn loadrs_brings_registers_back_that_memory_has_changed() {
    let mut machine = Machine::new();
    machine.processor.register_stack_mut().restart(DATA, 0);
    execute(&mut machine, "alloc", &[14, 64, 10, 10, 0]);
    for register in 32..42 {
        machine.processor.general.set(register, u64::from(register));
    }
    execute(&mut machine, "brl.call", &[0, 16]);
    let state = machine.processor.application(PFS);
    execute(&mut machine, "flushrs", &[]);
    machine.data()[0..8].copy_from_slice(&777u64.to_le_bytes());
    // Without loadrs the clean copies still serve a return; loadrs of nothing gives them up.
    machine.processor.register_stack_mut().set_configuration(0);
    execute(&mut machine, "loadrs", &[]);
    machine.processor.set_application(PFS, state);
    machine.processor.branch[0] = CODE + 16;
    execute(&mut machine, "br.ret", &[0]);
    assert_eq!(machine.processor.general.value(32), 777);
    assert_eq!(machine.processor.general.value(41), 41);
    assert_eq!(machine.processor.register_stack().fills(), 10);
}
