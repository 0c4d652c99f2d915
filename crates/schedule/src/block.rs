//! Straight code: the instructions that are placed anew, without the `nop`s between them.

use sidestep_ia64::encoding::{
    BranchKind, DecodedSlot, Form, Instruction, LoadKind, Operation, Template, Unit, decode,
};
use sidestep_itanium2::Parameters;
use sidestep_itanium2::dispersal::Port;
use sidestep_itanium2::flags::Flags;
use sidestep_itanium2::instruction::StaticInstruction;

use crate::sequencing::{Effects, Parts};

/// Why an instruction cannot be placed anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It reads where it stands.
    #[error("reads the address of its own bundle")]
    ReadsOwnAddress,
    /// It moves the names of registers.
    #[error("renames registers in the middle of the code")]
    Renames,
    /// Code was stored, of this function or another one.
    #[error("has stored code executed, maybe its own: code that changes is not scheduled")]
    ChangesCode,
    /// Nothing is known of what it does.
    #[error("is not an instruction of this processor")]
    Unknown,
}

/// An instruction to place.
#[derive(Clone, Debug)]
pub struct Item {
    /// As it was decoded.
    pub instruction: Instruction,
    /// What it reads and writes.
    pub effects: Effects,
    /// What the pipeline knows of it.
    pub known: StaticInstruction,
    /// Of a check behind a speculative load: the load as it was. Where the check finds that a fault was deferred, the
    /// load is executed again, and the check as well.
    pub recovers: Option<Instruction>,
}

/// An instruction in a slot of a template.
fn placed(instruction: Instruction, template: Template, slot: u8) -> DecodedSlot {
    DecodedSlot {
        slot,
        instruction: Ok(instruction),
        stop: false,
        template,
    }
}

/// A template in which the instruction's own unit has a slot, and that slot: ports of the M and I units do not depend
/// on the template.
fn usual_place(unit: Unit) -> (u8, u8) {
    match unit {
        Unit::M => (0x00, 0),
        Unit::I => (0x00, 1),
        Unit::F => (0x0c, 1),
        Unit::B => (0x10, 2),
        Unit::L | Unit::X => (0x04, 2),
    }
}

impl Item {
    /// An instruction to place.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn new(instruction: Instruction, parameters: &Parameters) -> Result<Item, Refusal> {
        match instruction.operation {
            Operation::MoveFromIp => return Err(Refusal::ReadsOwnAddress),
            Operation::ClearRegisterRename { .. } | Operation::Cover => return Err(Refusal::Renames),
            Operation::SynchronizeInstructionCache => return Err(Refusal::ChangesCode),
            Operation::BranchIa32 | Operation::VirtualMachineSwitch { .. } => return Err(Refusal::Unknown),
            _ => {}
        }
        let (template, slot) = usual_place(instruction.unit);
        Ok(Item {
            effects: Effects::of(&instruction),
            known: StaticInstruction::new(
                &instruction,
                &placed(instruction, Template::new(template), slot),
                parameters,
            ),
            instruction,
            recovers: None,
        })
    }

    /// The check of what a load, executed before it as a speculative one, has loaded. It reads the address as well, and
    /// memory: the load may be executed again.
    ///
    /// # Panics
    /// If it is no plain load of a general register: a broken invariant.
    pub(crate) fn check(load: &Instruction, parameters: &Parameters) -> Item {
        let form = Form::named("chk.s.m").next().expect("it is an instruction");
        let encoded = form.encode(load.predicate(), &[i64::from(load.r1()), 0], &[]);
        let check = decode(Unit::M, encoded.expect("a register").slot, 0).expect("what was encoded");
        let mut item = Item::new(check, parameters).expect("a check can be placed");
        item.effects.reads.general |= 1 << load.r3();
        item.effects.memory = Effects::of(load).memory;
        // It comes back, so it leaves nothing.
        item.known.flags.remove(Flags::CHECKS);
        item.recovers = Some(*load);
        item
    }

    /// A load as a speculative one: of x6, bits 30 to 35, the size and 4 (manual 3:4.4.1, table 4-33).
    ///
    /// # Panics
    /// If it is no plain load of a general register: a broken invariant.
    pub(crate) fn speculative(&self, parameters: &Parameters) -> Item {
        let slot = self.instruction.slot | 4 << 30;
        let instruction = decode(Unit::M, slot, 0).expect("each load has a speculative one");
        let is_speculative = matches!(
            instruction.operation,
            Operation::Load {
                kind: LoadKind::Speculative,
                ..
            }
        );
        assert!(is_speculative, "of a plain load");
        Item::new(instruction, parameters).expect("a load can be placed")
    }

    /// What it does beside reading and writing registers.
    pub fn flags(&self) -> Flags {
        self.known.flags
    }

    /// Whether it may go elsewhere than to the instruction behind it.
    pub fn is_branch(&self) -> bool {
        self.flags().contains(Flags::BRANCH)
    }

    /// Whether it may leave the block: a branch or a check.
    pub fn is_exit(&self) -> bool {
        self.is_branch() || self.flags().contains(Flags::CHECKS) && !self.flags().contains(Flags::LOAD)
    }

    /// Whether it has to be the first of its group.
    pub fn begins_group(&self) -> bool {
        self.flags().contains(Flags::SPLIT_BEFORE)
            || matches!(
                self.instruction.operation,
                Operation::Allocate | Operation::FlushRegisterStack | Operation::LoadRegisterStack
            )
    }

    /// Whether it has to be in the last slot of a bundle: branches that count.
    pub fn ends_bundle(&self) -> bool {
        matches!(
            self.instruction.operation,
            Operation::Branch { kind, .. } if kind != BranchKind::Conditional
        )
    }

    /// Whether it has to be in the first slot of a bundle: where it is returned to.
    pub fn begins_bundle(&self) -> bool {
        self.recovers.is_some()
    }

    /// Slots that it fills: a long one fills two.
    pub fn slots(&self) -> u8 {
        1 + u8::from(self.instruction.is_long())
    }

    /// The instruction as a slot of a unit would hold it, and the port that it then asks for; `None` if the unit does
    /// not have it.
    pub fn in_slot(
        &self,
        unit: Unit,
        slot: u8,
        template: Template,
        parameters: &Parameters,
    ) -> Option<(Instruction, Port)> {
        let own = self.instruction.unit;
        let fits = own == unit || self.is_of_both() && matches!(unit, Unit::M | Unit::I);
        if !fits {
            return None;
        }
        let instruction = match own == unit {
            true => self.instruction,
            false => decode(unit, self.instruction.slot, 0).ok()?,
        };
        let known = StaticInstruction::new(&instruction, &placed(instruction, template, slot), parameters);
        Some((instruction, known.port))
    }

    /// Whether M slots and I slots hold it, with the same bits.
    pub fn is_of_both(&self) -> bool {
        self.instruction.unit_class() == sidestep_ia64::encoding::UnitClass::A
    }
}

/// Straight code.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Its instructions in order.
    pub items: Vec<Item>,
    /// Pairs of predicate registers, with the item before which the source says that at most one of them is on.
    pub mutex: Vec<(usize, u64)>,
    /// What is known of the memory that items refer to, beyond their own registers: by item, an object and an offset
    /// in it. Two objects never overlap.
    pub objects: Vec<Option<(u64, i64)>>,
    /// By item, the area of memory that it refers to, where the source names one; two areas never overlap.
    pub areas: Vec<Option<u8>>,
    /// By item, whether the source says that what it refers to is in memory and translated whenever it is executed: as
    /// a speculative load it may pass branches before it, without a check.
    pub resident: Vec<bool>,
    /// By item, of one that may leave the block: what nobody reads where it goes before it is written there. What
    /// writes nothing else may be executed before the branch is.
    pub dead: Vec<Parts>,
    /// By item, of a branch that goes to a label if its predicate is on: which. Two to one label may change places.
    pub targets: Vec<Option<u32>>,
    /// Whether the source says that no reference to memory here is by what is written to PSR and to region registers
    /// here, and that PSR is given no other mask of interrupts.
    pub is_addressing_kept: bool,
}

impl Block {
    /// A block of instructions; `nop`s are left out.
    ///
    /// # Errors
    /// The index of the instruction, and why it cannot be placed.
    pub fn new(instructions: &[Instruction], parameters: &Parameters) -> Result<Block, (usize, Refusal)> {
        let mut block = Block::default();
        for (index, instruction) in instructions.iter().enumerate() {
            if instruction.operation != Operation::Nop {
                block
                    .items
                    .push(Item::new(*instruction, parameters).map_err(|refusal| (index, refusal))?);
            }
        }
        block.objects = vec![None; block.items.len()];
        block.areas = vec![None; block.items.len()];
        block.resident = vec![false; block.items.len()];
        block.targets = vec![None; block.items.len()];
        block.dead = vec![Parts::NONE; block.items.len()];
        Ok(block)
    }
}
