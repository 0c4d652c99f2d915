//! The emitter: what of the guest's state is in variables, and how emitted code meets the processor.
//!
//! A slot is *held* while its variable has its value. What changes goes to memory as well, at once: so whatever is
//! rare, the interpreter's function for a load whose page is not at hand or a way out, finds everything in place and
//! costs no code of its own. The word of predicates is brought up to date late, where something else may look at it,
//! and in [tight loops](crate::tight_loops) so is most of what they change.

mod calls;
mod checked_loads;
mod completing;
mod control;
mod floats;
mod gathering;
mod in_line;
mod leaving;
mod loops;
mod predicates;
mod rotation;
mod steps;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::replace;

use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AliasRegionData, Block, BlockArg, InstBuilder, InstructionData, MemFlagsData, SigRef, StackSlot, Type,
    Value,
};
use cranelift_frontend::{FuncInstBuilder, FunctionBuilder, Variable};

use sidestep_ia64::encoding::StatusField;
use sidestep_ia64::layout;

use crate::chain::Named;
use crate::checked_loads::{CheckedLoad, Pair};
use crate::division::Division;
use crate::held::FloatRegisters;
use crate::region::Region;
use crate::resumption::STOPPED;
use crate::slots::{Slot, Slots};
use crate::tight_loops::{Rotation, TightLoop};

use gathering::Gathering;
use leaving::Left;
pub use predicates::FIRST_ROTATING_PREDICATE;
use predicates::Predicates;
pub use windows::Windows;

#[cfg(test)]
pub use floats::rotated;
pub use floats::{Double, FLOATING_SIZE_LOG2, Floats, rotates};

/// What the function that performs an operation answers: go on behind it.
pub const PERFORMED: i64 = 0;
/// It has raised a fault, which the processor knows.
pub const PERFORMED_RAISED: i64 = 1;
/// It has taken a branch, and the processor is at its target.
pub const PERFORMED_BRANCH: i64 = 2;

/// The bits of what stands for a double that is not at hand, the only NaN that does: a signalling one, on which the
/// host does no arithmetic without raising an exception.
pub const NO_DOUBLE: i64 = 0x7ff4 << 48;
/// What the function that performs an operation which delivers a double answers in place of the double's bits, which
/// are none of a NaN: it has raised a fault.
pub const DELIVERED_FAULT: i64 = i64::MAX;
/// What it has delivered is no double that a register holds as doubles are loaded, or a NaN.
pub const DELIVERED_OTHER: i64 = NO_DOUBLE;

/// Values that hold for the whole function.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The guest's address of the root's first bundle, in system mode, where it may differ from entry to entry.
    pub base: Option<Value>,
    /// The signature of units.
    pub unit_signature: SigRef,
    /// The signature of the functions that perform an operation.
    pub perform_signature: SigRef,
    /// The signature of the function that calls those and changes no register.
    pub preserving_signature: SigRef,
    /// The signature of the functions that change the frame for all units.
    pub shared_signature: SigRef,
    /// The signature of the functions that change the frame.
    pub call_signature: SigRef,
    /// The address of the one that changes it as a call does.
    pub begin_call: i64,
    /// The address of the one that changes it as a return does.
    pub finish_call: i64,
    /// The address of the function that performs an operation.
    pub perform: i64,
    /// The address of the one that performs an operation which delivers a double.
    pub perform_double: i64,
    /// The address of the one that performs an operation which delivers a double of single precision.
    pub perform_single: i64,
    /// The address of the one that gathers what an operation has changed, with its signature.
    pub gather: (i64, SigRef),
    /// The address of the one that rotates registers, with the signature of those that perform.
    pub rotate: i64,
    /// The signatures of functions of four and of six numbers that answer two.
    pub number_signatures: [SigRef; 2],
    /// Whether the host multiplies and adds with one rounding.
    pub is_fused: bool,
    /// Whether memory lies in the host's as it does in the guest's.
    pub has_windows: bool,
    /// Whether what is stored there is to be brought to hand first.
    pub is_careful: bool,
    /// Bits of PSR that are set throughout the function, of those that say which registers were written.
    pub marked: u64,
    /// FPSR as it is most likely, with the flags that stay set.
    pub fpsr: u64,
    /// Bits of FPSR, and what these are throughout the function.
    pub settled: (u64, u64),
    /// Whether numbers are taken to be usual ones, and the block is left to the interpreter where one is not.
    pub leaves_for_numbers: bool,
    /// Whether the host says by exceptions where numbers are not usual.
    pub has_exceptions: bool,
}

/// What is known of the processor's state at a place of the emitted code.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The slots whose variables have their values.
    held: Slots,
    predicates: Predicates,
    /// Floating-point registers.
    pub floats: Floats,
    /// The way to the windows of addresses.
    pub windows: Windows,
    /// Slots that are held and that memory has once the current instruction is done.
    settled: Slots,
    /// Slots that are held and that memory lacks, in a tight loop.
    late: Slots,
    /// Advanced loads that wait for their checks, the oldest first.
    pub checked_loads: Vec<CheckedLoad>,
    /// A settled slot that memory lacks, with its value before the current instruction.
    before_settling: Option<(Slot, Value)>,
    /// Whether memory has where the node stands.
    is_noted: bool,
    /// How many more instructions have retired where the node begins than memory says.
    retired: u64,
    /// In system mode the last bundle of the node before, in bytes behind the root's first, where memory does not have
    /// it.
    completed: Option<i64>,
    /// The highest register that the frame is known to have.
    framed: u8,
    /// What rotates, if general registers that do are in the function's [buffer](rotation) and not where the frame has
    /// them.
    buffered: Option<Rotation>,
    /// Whether control rarely comes here: blocks that begin here stand apart.
    pub is_rare: bool,
}

/// What the emitter asks of [floating-point registers](crate::float).
#[derive(Clone, Copy)]
pub struct FloatFunctions<'a, 'f> {
    /// Gives a register's value as a double, [`NO_DOUBLE`] where it holds none.
    pub at_hand: fn(&mut Emitter<'a, 'f>, u8) -> Value,
    /// Stores a double that memory lacks of a register, unless it is none.
    pub store_late: fn(&mut Emitter<'a, 'f>, u8, Value),
    /// Gives whether the host may compute under a status field, whose inexact flag is set; `None` where it is known.
    pub is_usual: fn(&mut Emitter<'a, 'f>, StatusField) -> Option<Value>,
}

/// What is emitted for one region.
pub struct Emitter<'a, 'f> {
    /// Where instructions go.
    pub builder: FunctionBuilder<'f>,
    region: &'a Region,
    headers: Vec<Block>,
    /// For each node, where the function is left before it begins.
    stops: Vec<Block>,
    /// Where the function is left by a fault, by what memory lacks: instructions that have retired, and the last bundle
    /// of the node before.
    raised: BTreeMap<(u64, Option<i64>), Block>,
    /// What is known where the nodes begin that one place alone leads to.
    arrivals: Vec<Option<Known>>,
    /// Where the function is left for a place outside, by bytes from the root's first bundle and slot, and by whether
    /// there may be work for the processor first.
    exits: BTreeMap<(i64, u8, bool), Block>,
    entry: Entry,
    functions: FloatFunctions<'a, 'f>,
    /// The processor's address.
    processor: Value,
    /// That address and as many bytes as stacked registers lie further.
    frame: Variable,
    /// The same of rotating registers while they are in the buffer.
    rotating: Variable,
    /// The rename base of floating-point registers meanwhile, in bytes.
    floating_base: Variable,
    /// The buffer, if there is one.
    buffer: Option<StackSlot>,
    state: MemFlagsData,
    guest: MemFlagsData,
    floating: MemFlagsData,
    variables: Vec<Option<Variable>>,
    /// By floating-point register, what has it as a double where a node begins.
    double_variables: Vec<Option<Variable>>,
    /// By base register of a tight loop, what has the way to the window that it points to.
    window_variables: Vec<Option<Variable>>,
    /// By status field, what has whether the host may compute under it in a tight loop.
    status_variables: Vec<Option<Variable>>,
    /// Values that are doubles wherever they are at hand.
    numbers: BTreeSet<Value>,
    is_system: bool,
    general_registers: [u64; 2],
    node: usize,
    index: usize,
    /// What is known here.
    pub known: Known,
    /// The division whose steps follow, if one was begun.
    pub division: Option<Division>,
    /// The places in the node before this one have their code already.
    emitted: usize,
    /// Where advanced loads stand in the node that are checked in it, and where their checks do.
    checked_loads: Vec<Pair>,
    /// Whether something in the node may leave work for the processor before the next block.
    is_pending: bool,
    /// Whether the node ends in a way that no other node may follow directly.
    leaves: bool,
    /// Whether control has gone elsewhere for good.
    is_gone: bool,
    /// What is known of what the code gathers, if it does.
    gathering: Option<Gathering>,
    /// Where the function is left to the interpreter: its parameter is the address of what that is to do.
    leaving: Block,
    /// The blocks that lead there and are emitted last.
    left: Vec<Left>,
    /// What the code names.
    named: Named,
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// An emitter behind the function's entry.
    pub fn new(
        mut builder: FunctionBuilder<'f>,
        region: &'a Region,
        entry: Entry,
        functions: FloatFunctions<'a, 'f>,
    ) -> Emitter<'a, 'f> {
        let mut memory = |user_id: u32, description: &str| {
            let description = description.to_owned().into();
            let data = AliasRegionData { user_id, description };
            let region = builder.func.dfg.alias_regions.insert(data);
            MemFlagsData::trusted().with_alias_region(Some(region))
        };
        let state = memory(0, "the processor");
        let guest = memory(1, "the guest's memory");
        let floating = memory(2, "floating-point registers");
        let headers = region.nodes.iter().map(|_| builder.create_block()).collect();
        let stops = region.nodes.iter().map(|_| builder.create_block()).collect();
        let [frame, rotating, floating_base] = [(); 3].map(|()| builder.declare_var(I64));
        let leaving = builder.create_block();
        builder.append_block_param(leaving, I64);
        Emitter {
            frame,
            rotating,
            floating_base,
            buffer: None,
            processor: builder.ins().get_pinned_reg(I64),
            builder,
            region,
            headers,
            stops,
            raised: BTreeMap::new(),
            arrivals: vec![None; region.nodes.len()],
            exits: BTreeMap::new(),
            state,
            guest,
            floating,
            variables: vec![None; Slot::COUNT],
            double_variables: vec![None; 128],
            window_variables: vec![None; 128],
            status_variables: vec![None; 4],
            numbers: BTreeSet::new(),
            is_system: entry.base.is_some(),
            general_registers: region.general_registers(),
            node: 0,
            index: 0,
            entry,
            functions,
            known: Known::default(),
            division: None,
            emitted: 0,
            checked_loads: Vec::new(),
            is_pending: false,
            leaves: false,
            is_gone: false,
            gathering: None,
            leaving,
            left: Vec::new(),
            named: Named::default(),
        }
    }

    /// What appends an instruction.
    pub fn ins(&mut self) -> FuncInstBuilder<'_, 'f> {
        self.builder.ins()
    }

    /// A constant.
    pub fn constant(&mut self, value: i64) -> Value {
        self.ins().iconst(I64, value)
    }

    /// Loads from the processor's state.
    pub fn load_state(&mut self, kind: Type, offset: usize) -> Value {
        self.code().load(kind, offset)
    }

    /// Stores to the processor's state.
    pub fn store_state(&mut self, value: Value, offset: usize) {
        self.code().store(value, offset);
    }

    /// Flags of accesses to the guest's memory.
    pub fn guest_memory(&self) -> MemFlagsData {
        self.guest
    }

    /// Flags of accesses to the guest's memory that the host may stop.
    pub fn window_memory(&self) -> MemFlagsData {
        self.guest.with_trap_code(Some(STOPPED))
    }

    /// A value of a general register that is about to be stored: in a register of the host's, so that nothing has to be
    /// fetched when it is known that it may be stored where the host may stop that.
    pub fn at_hand(&mut self, value: Value) -> Value {
        match self.entry.has_windows {
            true => self.ins().iadd_imm_s(value, 0),
            false => value,
        }
    }

    /// The same of a number, if care is taken: most are in registers.
    pub fn number_at_hand(&mut self, value: Value) -> Value {
        match self.entry.is_careful {
            true => {
                let kind = self.builder.func.dfg.value_type(value);
                let bits = Type::int_with_byte_size(kind.bytes() as u16).expect("a number of 8 to 64 bits");
                let bits = self.bits(value, bits);
                self.ins().iadd_imm_s(bits, 0)
            }
            false => value,
        }
    }

    /// Whether the guest's memory has windows.
    pub fn has_windows(&self) -> bool {
        self.entry.has_windows
    }

    /// Flags of accesses to the floating-point registers.
    pub fn floating_memory(&self) -> MemFlagsData {
        self.floating
    }

    /// Whether the host multiplies and adds with one rounding.
    pub fn is_fused(&self) -> bool {
        self.entry.is_fused
    }

    /// The processor's address.
    pub fn processor(&self) -> Value {
        self.processor
    }

    /// Flags of accesses to the processor's state.
    pub fn state_memory(&self) -> MemFlagsData {
        self.state
    }

    /// The address of the table of translations.
    pub fn translations(&mut self) -> Value {
        self.load_state(I64, layout::TRANSLATIONS)
    }

    fn variable(&mut self, slot: Slot) -> Variable {
        let place = &mut self.variables[slot.index()];
        *place.get_or_insert_with(|| self.builder.declare_var(I64))
    }

    /// The value of a slot.
    pub fn get(&mut self, slot: Slot) -> Value {
        if slot == Slot::general(0) {
            return self.constant(0);
        }
        let variable = self.variable(slot);
        if !self.known.held.contains(slot) {
            let value = self.load_slot(slot);
            self.builder.def_var(variable, value);
            self.known.held.insert(slot);
        }
        self.builder.use_var(variable)
    }

    /// Loads a slot from memory.
    fn load_slot(&mut self, slot: Slot) -> Value {
        let (flags, start) = (self.state, self.start_of(slot));
        self.ins().load(I64, flags, start, slot.offset() as i32)
    }

    /// Stores a slot to memory.
    pub fn store_slot(&mut self, value: Value, slot: Slot) {
        let (flags, start) = (self.state, self.start_of(slot));
        self.ins().store(flags, value, start, slot.offset() as i32);
    }

    /// What a slot's offset is counted from.
    fn start_of(&mut self, slot: Slot) -> Value {
        let buffered = self.known.buffered;
        let rotates = buffered.is_some_and(|rotation| slot.rotates_among(rotation.size));
        match slot.is_stacked() {
            true if rotates => self.builder.use_var(self.rotating),
            true => self.builder.use_var(self.frame),
            false => self.processor(),
        }
    }

    /// Changes a slot.
    pub fn set(&mut self, slot: Slot, value: Value) {
        let variable = self.variable(slot);
        self.builder.def_var(variable, value);
        self.known.held.insert(slot);
        self.keep(value, slot);
    }

    /// Sees to it that memory gets what a slot holds: at once, or in a tight loop when something asks for it.
    pub fn keep(&mut self, value: Value, slot: Slot) {
        self.known.before_settling = None;
        match self.tight_loop() {
            Some(tight_loop) if tight_loop.late.contains(slot) => self.known.late.insert(slot),
            _ => self.store_slot(value, slot),
        }
    }

    /// Whether the current operation is in a tight loop.
    fn is_in_tight_loop(&self) -> bool {
        self.tight_loop().is_some()
    }

    /// The tight loop that the current operation is in.
    fn tight_loop(&self) -> Option<&'a TightLoop> {
        let member = self.region.tight_loops[self.node].as_ref();
        let member = member.filter(|member| self.index <= member.last)?;
        Some(&member.tight_loop)
    }

    /// Whether the double of a floating-point register need not be in memory.
    pub fn may_be_late(&self, register: u8) -> bool {
        let tight_loop = self.tight_loop();
        tight_loop.is_some_and(|tight_loop| tight_loop.late_doubles.contains(register))
    }

    /// Changes a slot before what the instruction does is certain: whoever does that stores it then. Where the
    /// interpreter's function executes the instruction, it does.
    pub fn settle(&mut self, slot: Slot, value: Value) {
        let variable = self.variable(slot);
        if self.known.late.contains(slot) {
            self.known.before_settling = Some((slot, self.builder.use_var(variable)));
            self.known.late.remove(slot);
        }
        self.builder.def_var(variable, value);
        self.known.held.insert(slot);
        self.known.settled.insert(slot);
    }

    /// A general register.
    pub fn general(&mut self, register: u8) -> Value {
        self.get(Slot::general(register))
    }

    /// The opposite of a truth value: of a comparison the opposite one, so that the host need not make a number of
    /// what it branches on.
    pub fn not(&mut self, value: Value) -> Value {
        let graph = &self.builder.func.dfg;
        let made_by = graph.value_def(value).inst().map(|made_by| graph.insts[made_by]);
        match made_by {
            Some(InstructionData::IntCompare {
                cond, args: [a, b], ..
            }) => self.ins().icmp(cond.complement(), a, b),
            Some(InstructionData::FloatCompare {
                cond, args: [a, b], ..
            }) => self.ins().fcmp(cond.complement(), a, b),
            _ => self.ins().icmp_imm_u(IntCC::Equal, value, 0),
        }
    }

    /// Whether a value that may be in none of the host's registers is not zero. To look for a zero the host would
    /// compare the value with itself, which fetches it twice.
    pub fn is_set(&mut self, value: Value) -> Value {
        self.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, value, 1)
    }

    /// Changes a slot where a predicate is true.
    pub fn set_under(&mut self, predicate: u8, slot: Slot, value: Value) {
        let value = match self.predicate(predicate) {
            None => value,
            Some(condition) => {
                let old = self.get(slot);
                self.ins().select(condition, value, old)
            }
        };
        self.set(slot, value);
    }

    /// Emits something that happens only where a predicate is true and changes no slots but `targets`, which the word
    /// of predicates is not one of.
    pub fn under(&mut self, predicate: u8, targets: Slots, body: impl FnOnce(&mut Self)) {
        let Some(condition) = self.predicate(predicate) else {
            return body(self);
        };
        for slot in targets.iter() {
            self.get(slot);
        }
        let [then, otherwise, join] = [(); 3].map(|()| self.builder.create_block());
        self.ins().brif(condition, then, &[], otherwise, &[]);
        self.begin(then);
        let before = self.known.clone();
        body(self);
        // A register that rotates is written under the predicate of its stage, and read under that of a later one.
        let written = match u32::from(predicate) >= FIRST_ROTATING_PREDICATE {
            true => self.floats_written(),
            false => FloatRegisters::default(),
        };
        let doubles = self.known.floats.doubles().filter_map(|(register, after)| {
            let before = before.floats.double(register);
            let is_merged = before.is_some_and(|before| before != after)
                || before.is_none() && rotates(register) && written.contains(register);
            is_merged.then_some((register, after, before))
        });
        let doubles: Vec<(u8, Double, Option<Double>)> = doubles.collect();
        let (late, was_late) = (&self.known.floats, &before.floats);
        let may_differ = late.late().chain(was_late.late()).map(|(register, _)| register);
        let differ =
            may_differ.filter(|&register| late.late_value(register) != was_late.late_value(register));
        let differ: BTreeSet<u8> = differ.collect();
        let [merged, merged_late] = [doubles.len(), differ.len()].map(|count| {
            let parameters = (0..count).map(|_| self.builder.append_block_param(join, F64));
            parameters.collect::<Vec<Value>>()
        });
        let values = doubles.iter().map(|(_, after, _)| after.value.into());
        let mut values: Vec<BlockArg> = values.collect();
        values.extend(self.late_arguments(&differ));
        self.ins().jump(join, &values);
        self.begin(otherwise);
        let after = replace(&mut self.known, before);
        let values = doubles.iter().map(|(_, _, before)| match before {
            Some(before) => before.value.into(),
            // Whoever reads it nevertheless goes to the interpreter's function.
            None => self.no_double().into(),
        });
        let mut values: Vec<BlockArg> = values.collect();
        values.extend(self.late_arguments(&differ));
        self.ins().jump(join, &values);
        self.begin(join);
        // FPSR may be another where it was executed.
        self.known.held = self.known.held.intersection(after.held);
        self.known.late = self.known.late.union(after.late);
        self.known.floats.meet(&after.floats);
        self.known.windows.meet(&after.windows);
        for ((register, after, before), value) in doubles.into_iter().zip(merged) {
            let double = Double {
                value,
                is_single: after.is_single && before.is_none_or(|before| before.is_single),
            };
            let late = self.known.floats.late_value(register);
            self.known.floats.note(register, Some(double));
            if let Some(late) = late {
                self.known.floats.note_late(register, late);
            }
        }
        for (register, value) in differ.into_iter().zip(merged_late) {
            self.known.floats.note_late(register, value);
        }
    }

    /// What memory lacks of a register: what stands for no double where it has that.
    fn late_or_none(&mut self, register: u8) -> Value {
        let late = self.known.floats.late_value(register);
        late.unwrap_or_else(|| self.no_double())
    }

    /// The same of some registers.
    fn late_arguments(&mut self, registers: &BTreeSet<u8>) -> Vec<BlockArg> {
        let arguments = registers
            .iter()
            .map(|&register| self.late_or_none(register).into());
        arguments.collect()
    }

    /// Goes on with a block to which nothing else will jump.
    pub fn begin(&mut self, block: Block) {
        if self.known.is_rare {
            self.builder.set_cold_block(block);
        }
        self.builder.switch_to_block(block);
        self.builder.seal_block(block);
    }

    /// The place of the current instruction in its block.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The floating-point registers that the current instruction writes.
    fn floats_written(&self) -> FloatRegisters {
        let entry = &self.region.nodes[self.node].block.instructions[self.index];
        let instruction = entry.decoded.instruction.as_ref();
        instruction.map_or_else(|_| FloatRegisters::default(), FloatRegisters::written_by)
    }

    /// Emits something in a block of its own that rarely runs; control does not come back from it.
    pub fn aside(&mut self, condition: Value, body: impl FnOnce(&mut Self)) {
        let [aside, rest] = [(); 2].map(|()| self.builder.create_block());
        self.ins().brif(condition, aside, &[], rest, &[]);
        let before = self.known.clone();
        self.known.is_rare = true;
        self.begin(aside);
        body(self);
        self.known = before;
        self.begin(rest);
    }

    /// Emits something in a block that rarely runs, from which control comes to another one in the end. It changes
    /// nothing of what is known.
    pub fn rarely(&mut self, block: Block, body: impl FnOnce(&mut Self), rest: Block) {
        let was_rare = replace(&mut self.known.is_rare, true);
        self.begin(block);
        body(self);
        self.known.is_rare = was_rare;
        self.ins().jump(rest, &[]);
        self.begin(rest);
    }

    /// The bits of a value as an integer of a type: of a number those that it has, of another integer the low ones.
    pub fn bits(&mut self, value: Value, kind: Type) -> Value {
        let given = self.builder.func.dfg.value_type(value);
        match given {
            F32 | F64 => self.ins().bitcast(kind, MemFlagsData::new(), value),
            _ if given == kind => value,
            _ => self.ins().ireduce(kind, value),
        }
    }

    /// Sign-extends or zero-extends the low bytes of a value.
    pub fn extend(&mut self, value: Value, bytes: u32, is_signed: bool) -> Value {
        let kind = match bytes {
            1 => I8,
            2 => I16,
            4 => I32,
            _ => return value,
        };
        let low = self.ins().ireduce(kind, value);
        match is_signed {
            true => self.ins().sextend(I64, low),
            false => self.ins().uextend(I64, low),
        }
    }
}
