//! The emitter: what of the guest's state is in variables, and how emitted code meets the processor.
//!
//! A slot is *held* while its variable has its value, and *dirty* while memory does not have it yet. Memory is brought
//! up to date wherever something else may look: before the interpreter's functions are called, and before the next
//! block. Calls that are made rarely, such as those of a load whose page is not at hand, stand in cold blocks with the
//! stores that they need.

mod control;
mod floats;

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{AliasRegionData, Block, InstBuilder, MemFlagsData, SigRef, Type, Value};
use cranelift_frontend::{FuncInstBuilder, FunctionBuilder, Variable};

use crate::region::Region;
use crate::slots::{Slot, Slots};

pub use floats::{Double, Floats};

/// What emitted code answers: that the next block follows at the instruction pointer.
pub const NEXT_BLOCK: i64 = 0;
/// That an instruction has raised a fault.
pub const RAISED: i64 = 1;
/// That the interpreter goes on within a block: this plus the node, shifted by [`OPERATION_BITS`], and the operation.
pub const LEFT_OVER: i64 = 2;
/// Bits for the number of an operation in a block.
pub const OPERATION_BITS: u32 = 16;

/// What the function that performs an operation answers: go on behind it.
pub const PERFORMED: i64 = 0;
/// It has raised a fault, which the processor knows.
pub const PERFORMED_RAISED: i64 = 1;
/// It has taken a branch, and the processor is at its target.
pub const PERFORMED_BRANCH: i64 = 2;

/// What the function that performs an operation which delivers a double answers in place of the double's bits, which
/// are none of a NaN: it has raised a fault.
pub const DELIVERED_FAULT: i64 = i64::MAX;
/// What it has delivered is no double that a register holds as doubles are loaded.
pub const DELIVERED_OTHER: i64 = i64::MAX - 1;

/// Values that hold for the whole function.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The processor's address.
    pub processor: Value,
    /// The guest's address of the root's first bundle.
    pub base: Value,
    /// How many instructions may have retired when the run ends.
    pub end: Value,
    /// The address of the table of translations.
    pub translations: Value,
    /// The addresses of the flags at which it stops.
    pub flags: [Value; 2],
    /// The function that performs an operation.
    pub perform: Value,
    /// The address of the one that performs an operation which delivers a double.
    pub perform_double: i64,
    /// Whether the host multiplies and adds with one rounding.
    pub is_fused: bool,
}

/// What is known of the slots at a place of the emitted code.
#[derive(Clone, Debug)]
pub struct Known {
    held: Slots,
    dirty: Slots,
    predicates: HashMap<u8, Value>,
    floats: Floats,
}

/// What is emitted for one region.
pub struct Emitter<'a, 'f> {
    /// Where instructions go.
    pub builder: FunctionBuilder<'f>,
    region: &'a Region,
    headers: Vec<Block>,
    /// For each node, where the function is left before it begins.
    stops: Vec<Block>,
    /// Where the function is left by a fault.
    raised: Block,
    entry: Entry,
    perform_signature: SigRef,
    state: MemFlagsData,
    guest: MemFlagsData,
    floating: MemFlagsData,
    variables: Vec<Option<Variable>>,
    is_system: bool,
    general_registers: [u64; 2],
    node: usize,
    index: usize,
    /// Instructions that may still retire where the node begins.
    left: Value,
    held: Slots,
    dirty: Slots,
    /// Predicates whose value is at hand as a truth value.
    known: HashMap<u8, Value>,
    /// What is known of floating-point registers.
    pub floats: Floats,
    /// Whether something in the node may leave work for the processor before the next block.
    is_pending: bool,
    /// Whether the node ends in a way that no other node may follow directly.
    leaves: bool,
    /// Whether control has gone elsewhere for good.
    is_gone: bool,
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// An emitter behind the function's entry.
    pub fn new(
        mut builder: FunctionBuilder<'f>,
        region: &'a Region,
        entry: Entry,
        left: Value,
        perform_signature: SigRef,
        is_system: bool,
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
        let raised = builder.create_block();
        Emitter {
            builder,
            region,
            headers,
            stops,
            raised,
            perform_signature,
            state,
            guest,
            floating,
            variables: vec![None; Slot::COUNT],
            is_system,
            general_registers: region.general_registers(),
            node: 0,
            index: 0,
            left,
            entry,
            held: Slots::NONE,
            dirty: Slots::NONE,
            known: HashMap::new(),
            floats: Floats::default(),
            is_pending: false,
            leaves: false,
            is_gone: false,
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
        let (flags, processor) = (self.state, self.entry.processor);
        self.ins().load(kind, flags, processor, offset as i32)
    }

    /// Stores to the processor's state.
    pub fn store_state(&mut self, value: Value, offset: usize) {
        let (flags, processor) = (self.state, self.entry.processor);
        self.ins().store(flags, value, processor, offset as i32);
    }

    /// Flags of accesses to the guest's memory.
    pub fn guest_memory(&self) -> MemFlagsData {
        self.guest
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
        self.entry.processor
    }

    /// Flags of accesses to the processor's state.
    pub fn state_memory(&self) -> MemFlagsData {
        self.state
    }

    /// The address of the table of translations.
    pub fn translations(&self) -> Value {
        self.entry.translations
    }

    fn variable(&mut self, slot: Slot) -> Variable {
        let place = &mut self.variables[slot.index()];
        *place.get_or_insert_with(|| self.builder.declare_var(I64))
    }

    /// What is known of the slots here.
    pub fn slots(&self) -> Known {
        Known {
            held: self.held,
            dirty: self.dirty,
            predicates: self.known.clone(),
            floats: self.floats.clone(),
        }
    }

    /// Makes something else known of the slots, where control comes from elsewhere; answers what was.
    pub fn restore_slots(&mut self, known: Known) -> Known {
        Known {
            held: std::mem::replace(&mut self.held, known.held),
            dirty: std::mem::replace(&mut self.dirty, known.dirty),
            predicates: std::mem::replace(&mut self.known, known.predicates),
            floats: std::mem::replace(&mut self.floats, known.floats),
        }
    }

    /// The value of a slot.
    pub fn get(&mut self, slot: Slot) -> Value {
        if slot == Slot::general(0) {
            return self.constant(0);
        }
        let variable = self.variable(slot);
        if !self.held.contains(slot) {
            let value = self.load_state(I64, slot.offset());
            self.builder.def_var(variable, value);
            self.held.insert(slot);
        }
        self.builder.use_var(variable)
    }

    /// Changes a slot.
    pub fn set(&mut self, slot: Slot, value: Value) {
        let variable = self.variable(slot);
        self.builder.def_var(variable, value);
        self.held.insert(slot);
        self.dirty.insert(slot);
        if slot == Slot::PREDICATES {
            self.known.clear();
        }
    }

    /// A general register.
    pub fn general(&mut self, register: u8) -> Value {
        self.get(Slot::general(register))
    }

    /// Whether a predicate is true: a value that is zero or not. `None` for one that always is.
    pub fn predicate(&mut self, predicate: u8) -> Option<Value> {
        if predicate == 0 {
            return None;
        }
        if let Some(&known) = self.known.get(&predicate) {
            return Some(known);
        }
        let word = self.get(Slot::PREDICATES);
        let bit = self.constant(1i64 << predicate);
        let bit = self.ins().band(word, bit);
        Some(self.builder.ins().icmp_imm_u(IntCC::NotEqual, bit, 0))
    }

    /// Changes the word of predicates and says what some of them are now.
    pub fn set_predicates(&mut self, word: Value, written: [(u8, Option<Value>); 2]) {
        let known = std::mem::take(&mut self.known);
        self.set(Slot::PREDICATES, word);
        self.known = known;
        for (predicate, value) in written {
            match value {
                Some(value) if predicate != 0 => self.known.insert(predicate, value),
                _ => self.known.remove(&predicate),
            };
        }
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

    /// Emits something that happens only where a predicate is true and changes no slots but `targets`.
    pub fn under(&mut self, predicate: u8, targets: Slots, body: impl FnOnce(&mut Self)) {
        let Some(condition) = self.predicate(predicate) else {
            return body(self);
        };
        for slot in targets.iter() {
            self.get(slot);
        }
        let [then, join] = [(); 2].map(|()| self.builder.create_block());
        self.ins().brif(condition, then, &[], join, &[]);
        self.begin(then);
        let before = self.slots();
        body(self);
        self.ins().jump(join, &[]);
        self.begin(join);
        let after = self.restore_slots(before);
        self.dirty = self.dirty.union(targets);
        self.floats.meet(&after.floats);
        if targets.contains(Slot::PREDICATES) {
            self.known.clear();
        }
    }

    /// Goes on with a block to which nothing else will jump.
    pub fn begin(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.builder.seal_block(block);
    }

    /// Emits something in a block of its own that rarely runs; control does not come back from it.
    pub fn aside(&mut self, condition: Value, body: impl FnOnce(&mut Self)) {
        let [aside, rest] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(aside);
        self.ins().brif(condition, aside, &[], rest, &[]);
        self.begin(aside);
        let (held, dirty) = (self.held, self.dirty);
        body(self);
        self.held = held;
        self.dirty = dirty;
        self.begin(rest);
    }

    /// Brings memory up to date.
    fn flush(&mut self) {
        self.flush_of(Slots::ALL);
    }

    /// Brings memory up to date where it has some of the slots.
    fn flush_of(&mut self, slots: Slots) {
        let (left, flushed) = (self.dirty.without(slots), self.dirty);
        for slot in flushed.without(left).iter() {
            let variable = self.variable(slot);
            let value = self.builder.use_var(variable);
            self.store_state(value, slot.offset());
        }
        self.dirty = left;
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
