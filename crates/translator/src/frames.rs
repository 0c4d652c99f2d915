//! What calls and returns make of the frame, in a unit and in the functions that all units share; and how control goes
//! on with another unit.
//!
//! A call moves the frame's beginning behind the caller's locals, a return moves it back. Emitted code does so where
//! nothing is renamed or NaT and all registers are at hand; a function of the processor's does where not.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, SigRef, Type, Value};
use cranelift_frontend::{FuncInstBuilder, FunctionBuilder};
use sidestep_ia64::layout;
use sidestep_ia64::registers::application::{EC, PFS};
use sidestep_ia64::registers::frame::{
    FrameMarker, STACKED_REGISTERS, previous_function_state as function_state,
};
use sidestep_ia64::registers::status::psr;

use crate::chain::Word;
use crate::links::Links;
use crate::slots::Slot;

/// The sizes of the current frame.
const SIZES: [usize; 3] = [layout::FRAME_SIZE, layout::FRAME_LOCALS, layout::FRAME_ROTATING];
/// Where a frame marker's bits have the size of the locals, seven of them as for the whole frame.
const LOCALS_SHIFT: i64 = 7;
const SIZE_MASK: i64 = 0x7f;
/// How far the size of the rotating part has to be shifted down: it is there in units of eight registers.
const ROTATING_SHIFT: i64 = 14 - 3;
const ROTATING_MASK: i64 = 0xf << 3;
/// The rename bases in a frame marker's bits.
const RENAMES: i64 = FrameMarker::MASK.cast_signed() & -(1 << 18);

/// Code that reads and changes the processor's state.
pub struct Code<'b, 'f> {
    /// Where instructions go.
    pub builder: &'b mut FunctionBuilder<'f>,
    /// Flags of accesses to the state.
    pub flags: MemFlagsData,
    /// The processor's address.
    pub processor: Value,
}

impl<'f> Code<'_, 'f> {
    fn ins(&mut self) -> FuncInstBuilder<'_, 'f> {
        self.builder.ins()
    }

    /// Loads from the processor's state.
    pub fn load(&mut self, kind: Type, place: usize) -> Value {
        let (flags, processor) = (self.flags, self.processor);
        self.ins().load(kind, flags, processor, place as i32)
    }

    /// Stores to the processor's state.
    pub fn store(&mut self, value: Value, place: usize) {
        let (flags, processor) = (self.flags, self.processor);
        self.ins().store(flags, value, processor, place as i32);
    }

    /// A word of 32 bits.
    fn load_word(&mut self, place: usize) -> Value {
        let (flags, processor) = (self.flags, self.processor);
        self.ins().uload32(flags, processor, place as i32)
    }

    /// A value that is not zero where registers are renamed, or one of the frame's has its NaT bit set.
    pub fn unusual_frame(&mut self) -> Value {
        let general = self.load_word(layout::FRAME_RENAME_GENERAL);
        // Those of the predicates lie behind those of the floating-point registers.
        let others = self.load(I64, layout::FRAME_RENAME_FLOATING);
        let has_nat = self.load(I64, layout::GENERAL_HAS_NAT);
        let renamed = self.ins().bor(general, others);
        self.ins().bor(renamed, has_nat)
    }

    /// A value that is negative where registers are renamed, or the frame's or the callers' have a NaT bit set, or the
    /// frame is still being loaded, or another value, which is not, is not zero.
    fn unusual(&mut self, other: Option<Value>) -> Value {
        let stack = self.load_word(layout::STACK_UNUSUAL);
        let frame = self.unusual_frame();
        let mut unusual = self.ins().bor(stack, frame);
        if let Some(other) = other {
            unusual = self.ins().bor(unusual, other);
        }
        self.ins().ineg(unusual)
    }

    /// Whether one of some values is negative.
    fn is_any_negative(&mut self, values: impl IntoIterator<Item = Value>) -> Value {
        let all = values.into_iter().reduce(|all, value| self.ins().bor(all, value));
        let all = all.expect("there are some");
        self.ins().icmp_imm_s(IntCC::SignedLessThan, all, 0)
    }

    /// Puts the processor at an address of the guest.
    pub fn leave_for(&mut self, target: Value, slot: u8) {
        self.store(target, layout::IP);
        let slot = self.ins().iconst(I8, i64::from(slot));
        self.store(slot, layout::SLOT);
    }

    /// How many bytes the link of a place is behind the first one.
    pub fn link_of(&mut self, place: Value) -> Value {
        let [near, far] = Links::RIGHT_SHIFTS.map(|shift| self.ins().ushr_imm_u(place, i64::from(shift)));
        let high = self.ins().ishl_imm_u(place, i64::from(Links::LEFT_SHIFT));
        let index = self.ins().bxor(near, far);
        let index = self.ins().bxor(index, high);
        let index = self.ins().band_imm_u(index, (1 << Links::COUNT_LOG2) - 1);
        self.ins().ishl_imm_u(index, i64::from(Links::SIZE_LOG2))
    }

    /// Goes on with the unit at a place, whose link is so many bytes behind the first one, or stops if there is none.
    pub fn follow(&mut self, (place, link): (Value, Value), unit: SigRef, stop: Block) {
        let flags = self.flags;
        let links = self.load(I64, Word::Links.offset());
        let link = self.ins().iadd(links, link);
        let known = self.ins().load(I64, flags, link, Links::PLACE as i32);
        let is_other = self.ins().icmp(IntCC::NotEqual, known, place);
        self.unless(is_other, stop);
        let word = self.ins().load(I64, flags, link, Links::CODE as i32);
        let code = self.ins().load(I64, flags, word, 0);
        let is_none = self.ins().icmp_imm_u(IntCC::Equal, code, 0);
        self.unless(is_none, stop);
        let followed = self.load(I64, Word::Followed.offset());
        let followed = self.ins().iadd_imm_s(followed, 1);
        self.store(followed, Word::Followed.offset());
        self.ins().return_call_indirect(unit, code, &[]);
    }

    /// Goes elsewhere where a value is not zero.
    fn unless(&mut self, value: Value, elsewhere: Block) {
        let rest = self.builder.create_block();
        self.ins().brif(value, elsewhere, &[], rest, &[]);
        self.builder.switch_to_block(rest);
        self.builder.seal_block(rest);
    }
}

/// A call that changes the frame.
pub struct Call {
    sizes: [Value; 3],
    base: Value,
}

impl Call {
    /// Looks at the frame, and answers whether the processor's function has to change it.
    pub fn look(code: &mut Code) -> (Call, Value) {
        let sizes = SIZES.map(|place| code.load_word(place));
        let base = code.load(I64, layout::GENERAL_BASE);
        let base = code.ins().iadd(base, sizes[1]);
        let unusual = code.unusual(None);
        let highest = code.ins().iconst(I64, layout::GENERAL_BASE_MAX as i64);
        let room = code.ins().isub(highest, base);
        let is_rare = code.is_any_negative([unusual, room]);
        (Call { sizes, base }, is_rare)
    }

    /// Changes it, and answers where the frame begins.
    pub fn make(self, code: &mut Code) -> Value {
        let Call { sizes, base } = self;
        let [size, locals, _] = sizes;
        let state = Call::function_state(code, sizes);
        code.store(state, Slot::application(PFS).offset());
        code.store(base, layout::GENERAL_BASE);
        let position = code.load(I64, layout::STACK_POSITION);
        let position = code.ins().iadd(position, locals);
        code.store(position, layout::STACK_POSITION);
        // The upper half says that there are no locals.
        let outputs = code.ins().isub(size, locals);
        code.store(outputs, layout::FRAME_SIZE);
        let none = code.ins().iconst(I32, 0);
        code.store(none, layout::FRAME_ROTATING);
        base
    }

    /// What a call saves in PFS, where nothing is renamed.
    fn function_state(code: &mut Code, [size, locals, rotating]: [Value; 3]) -> Value {
        let epilogue = code.load(I64, Slot::application(EC).offset());
        let status = code.load(I64, layout::STATUS);
        let level = code.ins().ushr_imm_u(status, i64::from(psr::CPL_SHIFT));
        let parts = [
            (locals, LOCALS_SHIFT),
            (rotating, ROTATING_SHIFT),
            (epilogue, i64::from(function_state::EPILOGUE_COUNT_SHIFT)),
            (level, i64::from(function_state::PRIVILEGE_SHIFT)),
        ];
        parts.into_iter().fold(size, |state, (part, shift)| {
            let part = code.ins().ishl_imm_u(part, shift);
            code.ins().bor(state, part)
        })
    }
}

/// A return that changes the frame.
pub struct Return {
    /// What the call has saved in PFS.
    state: Value,
    sizes: [Value; 3],
    base: Value,
    position: Value,
}

impl Return {
    /// Looks at the frame, and answers whether the processor's function has to change it.
    pub fn look(code: &mut Code, is_system: bool) -> (Return, Value) {
        let state = code.load(I64, Slot::application(PFS).offset());
        let size = code.ins().band_imm_u(state, SIZE_MASK);
        let locals = code.ins().ushr_imm_u(state, LOCALS_SHIFT);
        let locals = code.ins().band_imm_u(locals, SIZE_MASK);
        let rotating = code.ins().ushr_imm_u(state, ROTATING_SHIFT);
        let rotating = code.ins().band_imm_u(rotating, ROTATING_MASK);
        let renames = code.ins().band_imm_s(state, RENAMES);
        let unusual = code.unusual(Some(renames));

        let base = code.load(I64, layout::GENERAL_BASE);
        let base = code.ins().isub(base, locals);
        let position = code.load(I64, layout::STACK_POSITION);
        let position = code.ins().isub(position, locals);
        let [stored, loaded] =
            [layout::STACK_STORED, layout::STACK_LOADED].map(|place| code.load(I64, place));
        let capacity = code.load(I64, layout::STACK_CAPACITY);
        let end = code.ins().iadd(position, size);
        let lowest = code.ins().isub(end, capacity);
        // Nothing of this may be negative: the sizes fit each other, the registers are dirty and have their places,
        // what is at hand of the callers fits the file beside the frame, and the privilege, of which programs have
        // the least, stays or becomes smaller.
        let full = code.ins().iconst(I64, i64::from(STACKED_REGISTERS));
        let mut limits = vec![
            (size, locals),
            (size, rotating),
            (full, size),
            (position, stored),
            (loaded, lowest),
        ];
        if is_system {
            let status = code.load(I64, layout::STATUS);
            let level = code.ins().ushr_imm_u(status, i64::from(psr::CPL_SHIFT));
            let level = code.ins().band_imm_u(level, 3);
            let privilege = i64::from(function_state::PRIVILEGE_SHIFT);
            let returned = code.ins().ushr_imm_u(state, privilege);
            limits.push((level, returned));
        }
        let rests = limits.into_iter().map(|(more, less)| code.ins().isub(more, less));
        let rests: Vec<Value> = rests.chain([unusual, base]).collect();
        let is_rare = code.is_any_negative(rests);
        let changed = Return {
            state,
            sizes: [size, locals, rotating],
            base,
            position,
        };
        (changed, is_rare)
    }

    /// Changes it, and answers where the frame begins.
    pub fn make(self, code: &mut Code) -> Value {
        let epilogue = i64::from(function_state::EPILOGUE_COUNT_SHIFT);
        let epilogue = code.ins().ushr_imm_u(self.state, epilogue);
        let epilogue = code.ins().band_imm_u(epilogue, 0x3f);
        code.store(epilogue, Slot::application(EC).offset());
        code.store(self.base, layout::GENERAL_BASE);
        code.store(self.position, layout::STACK_POSITION);
        for (size, place) in self.sizes.into_iter().zip(SIZES) {
            let size = code.ins().ireduce(I32, size);
            code.store(size, place);
        }
        self.base
    }
}

/// The body of the function that changes the frame as a call does, or of the one that does as a return, for units: by
/// `make`, or by a function of the processor's, of some signature, where that is rare.
fn change_frame(
    mut code: Code,
    is_rare: Value,
    (signature, function): (SigRef, *const ()),
    make: impl FnOnce(&mut Code) -> Value,
) {
    let [rare, usual] = [(); 2].map(|()| code.builder.create_block());
    code.builder.set_cold_block(rare);
    code.ins().brif(is_rare, rare, &[], usual, &[]);

    code.builder.switch_to_block(rare);
    let function = code.ins().iconst(I64, function as i64);
    let processor = code.processor;
    code.ins().call_indirect(signature, function, &[processor]);
    code.ins().return_(&[]);

    code.builder.switch_to_block(usual);
    make(&mut code);
    code.ins().return_(&[]);
}

/// The body of the function that changes the frame as a call does.
pub fn emit_call(mut code: Code, by_function: (SigRef, *const ())) {
    let (call, is_rare) = Call::look(&mut code);
    change_frame(code, is_rare, by_function, |code| call.make(code));
}

/// The body of the function that changes the frame as a return does.
pub fn emit_return(mut code: Code, is_system: bool, by_function: (SigRef, *const ())) {
    let (changed, is_rare) = Return::look(&mut code, is_system);
    change_frame(code, is_rare, by_function, |code| changed.make(code));
}
