//! From a region to host code: one function, through Cranelift.

use std::mem::offset_of;
use std::sync::Arc;

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, Function, InstBuilder, MemFlagsData, SigRef, Signature, UserFuncName, Value,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{CodegenError, Context};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use sidestep_ia64::encoding::Effects;
use sidestep_ia64::execution::{Flow, MicroOperation, Step};
use sidestep_ia64::registers::application::FPSR;
use sidestep_ia64::registers::status::psr;
use sidestep_ia64::{Processor, Raised, layout};

use crate::chain::{self, Named, Request, Word};
use crate::emitter::{
    DELIVERED_FAULT, DELIVERED_OTHER, Emitter, Entry, FloatFunctions, PERFORMED, PERFORMED_BRANCH,
    PERFORMED_RAISED,
};
use crate::frames::{self, Code};
use crate::region::Region;
use crate::resumption::are_resumable;
use crate::{advanced, call, exceptions, float, operations};

/// Why there is no compiler.
#[derive(Debug, thiserror::Error)]
pub enum CompilerError {
    /// The host is none that Cranelift emits code for.
    #[error("code cannot be emitted for this host: {0}")]
    Host(&'static str),
    /// Cranelift does not take its settings.
    #[error("the code generator refuses its settings")]
    Settings(#[source] Box<CodegenError>),
    /// The host grants no thread.
    #[error("no thread to translate on can be had")]
    Thread(#[source] std::io::Error),
}

/// What a region executes in, as far as its code depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// A processor in system mode.
    pub is_system: bool,
    /// Memory that lies in the host's as it does in the guest's.
    pub has_windows: bool,
    /// In a program the bits of PSR that are set and say which floating-point registers were written: hardly any clears
    /// them.
    pub marked: u64,
    /// In a program FPSR, whose inexact flags stay set once they are, as a rule.
    pub fpsr: u64,
    /// Whether FPSR is taken to stay as it is, as far as arithmetic depends on it, and numbers to be usual ones: what
    /// is emitted then is left where it finds that they are not.
    pub is_settled: bool,
    /// Whether the host says by exceptions where numbers are not.
    pub has_exceptions: bool,
}

impl Surroundings {
    /// Those of a processor.
    pub fn of(processor: &Processor) -> Surroundings {
        let is_system = processor.mmu().is_some();
        let of_program = |word: u64| if is_system { 0 } else { word };
        Surroundings {
            is_system,
            has_windows: processor.has_windows() && cfg!(target_arch = "x86_64"),
            marked: of_program(processor.status & (psr::MFL | psr::MFH)),
            fpsr: of_program(processor.application(FPSR)),
            is_settled: !is_system,
            has_exceptions: exceptions::are_raised_for(processor),
        }
    }
}

/// Emitted code, which may be put anywhere.
pub struct Emitted {
    /// A unit.
    pub unit: Vec<u8>,
    /// What it leaves to the interpreter, by addresses in its code.
    pub named: Named,
    /// Bits of FPSR, and what these have to be where it is entered.
    pub settled: (u64, u64),
    /// What units are used with: the same for all.
    pub support: Arc<SupportCode>,
}

/// The functions that all units are used with.
pub struct SupportCode {
    /// The one by which units are entered, an [`Enter`](crate::chain::Enter).
    pub enter: Vec<u8>,
    /// The one that performs an operation for units and changes no register of the host.
    pub preserving: Vec<u8>,
    /// The one that looks at the advanced loads that a store may have hit.
    pub store_hit: Vec<u8>,
    /// The one that changes the frame as a call does.
    pub call: Vec<u8>,
    /// The one that changes it as a return does.
    pub return_: Vec<u8>,
}

/// Emits functions.
///
/// Units end by jumping to the next one, so they have a calling convention of their own: one register has the
/// processor's address, all others are anybody's.
pub struct Compiler {
    isa: OwnedTargetIsa,
    context: Context,
    frontend: FunctionBuilderContext,
    control: ControlPlane,
    support: Option<Arc<SupportCode>>,
    /// Whether the host multiplies and adds with one rounding.
    is_fused: bool,
}

impl Compiler {
    /// A compiler for this host.
    ///
    /// # Errors
    /// Cranelift knows nothing of the host.
    pub fn new() -> Result<Compiler, CompilerError> {
        let mut flags = settings::builder();
        // Optimising once more takes longer than it saves: what could be found twice is in variables.
        let wanted = [
            ("opt_level", "none"),
            ("enable_verifier", VERIFIER),
            // Nobody unwinds through emitted code.
            ("unwind_info", "false"),
            // Jumps from unit to unit need them.
            ("preserve_frame_pointers", "true"),
            // Where an access has to stand that the host may stop.
            ("machine_code_cfg_info", "true"),
            // It has the processor's address.
            ("enable_pinned_reg", "true"),
        ];
        for (name, value) in wanted {
            let set = flags.set(name, value);
            set.map_err(|_| CompilerError::Host("a setting of the code generator is unknown"))?;
        }
        let builder = cranelift_native::builder().map_err(CompilerError::Host)?;
        let isa = builder.finish(settings::Flags::new(flags));
        let isa = isa.map_err(|error| CompilerError::Settings(Box::new(error)))?;
        Ok(Compiler {
            is_fused: is_fused(&isa),
            isa,
            context: Context::new(),
            frontend: FunctionBuilderContext::new(),
            control: ControlPlane::default(),
            support: None,
        })
    }

    /// The code of a region; `None` where Cranelift refuses it, as for being too large.
    pub fn compile(&mut self, region: &Region, surroundings: Surroundings) -> Option<Emitted> {
        // Whether it is known where to go on from each access that may be stopped is seen when there is code.
        let tries = [(true, false), (true, true), (false, false)];
        let mut tries = tries
            .into_iter()
            .filter(|(has_windows, _)| surroundings.has_windows || !has_windows);
        tries.find_map(|(has_windows, is_careful)| {
            self.compile_in(
                region,
                Surroundings {
                    has_windows,
                    ..surroundings
                },
                is_careful,
            )
        })
    }

    fn compile_in(
        &mut self,
        region: &Region,
        Surroundings {
            is_system,
            has_windows,
            marked,
            fpsr,
            is_settled,
            has_exceptions,
        }: Surroundings,
        is_careful: bool,
    ) -> Option<Emitted> {
        if self.support.is_none() {
            self.support = Some(Arc::new(SupportCode {
                enter: self.compile_enter()?,
                preserving: self.compile_preserving()?,
                store_hit: self.compile_store_hit()?,
                call: self.compile_shared(call::begin_call as *const (), frames::emit_call)?,
                return_: self.compile_shared(call::finish_call as *const (), |code, by_function| {
                    frames::emit_return(code, is_system, by_function);
                })?,
            }));
        }
        let support = self.support.clone()?;
        let signatures = (self.unit_signature(), self.perform_signature());
        let call_signature = self.call_signature();
        let mut number_signatures = [4, 6].map(|parameters| signature(self.host_convention(), parameters));
        for signature in &mut number_signatures {
            signature.returns.push(AbiParam::new(I64));
        }
        let mut gather_signature = signature(self.host_convention(), 3);
        gather_signature.returns.clear();
        let is_fused = self.is_fused;
        let decisive = region.control_bits().filter(|_| is_settled);
        let leaves_for_numbers = decisive.is_some();
        let decisive = decisive.unwrap_or(0);
        let settled = (decisive, fpsr & decisive);
        let mut named = Named::default();
        let unit = self.emit(signatures.0.clone(), |mut builder, _| {
            let entry = Entry {
                base: is_system.then(|| {
                    let flags = MemFlagsData::trusted();
                    let processor = builder.ins().get_pinned_reg(I64);
                    builder.ins().load(I64, flags, processor, layout::IP as i32)
                }),
                unit_signature: builder.import_signature(signatures.0),
                perform_signature: builder.import_signature(signatures.1),
                preserving_signature: builder.import_signature(preserving_signature()),
                shared_signature: builder.import_signature(Signature::new(CallConv::Tail)),
                call_signature: builder.import_signature(call_signature),
                perform: perform as *const () as i64,
                begin_call: call::begin_call as *const () as i64,
                finish_call: call::finish_call as *const () as i64,
                perform_double: perform_double as *const () as i64,
                perform_single: perform_single as *const () as i64,
                gather: (
                    gather as *const () as i64,
                    builder.import_signature(gather_signature),
                ),
                rotate: rotate as *const () as i64,
                number_signatures: number_signatures.map(|signature| builder.import_signature(signature)),
                is_fused,
                has_windows,
                is_careful,
                marked: region.marked().filter(|bits| bits & !marked == 0).unwrap_or(0),
                fpsr,
                settled,
                leaves_for_numbers,
                has_exceptions: has_exceptions && is_settled && region.gathers.is_none(),
            };
            let functions = FloatFunctions {
                at_hand: float::at_hand,
                store_late: float::store_late,
                is_usual: float::arithmetic::is_usual,
            };
            let mut emitter = Emitter::new(builder, region, entry, functions);
            emitter.check_entry();
            for node in 0..region.nodes.len() {
                emitter.begin_node(node);
                emit_node(&mut emitter, region, node);
            }
            let (builder, left) = emitter.finish();
            named = left;
            builder
        })?;
        Some(Emitted {
            unit,
            named,
            settled,
            support,
        })
    }

    /// The function by which units are entered. The register that they have the processor's address in is to be what it
    /// was when it returns.
    fn compile_enter(&mut self) -> Option<Vec<u8>> {
        let unit = self.unit_signature();
        self.emit(self.perform_signature(), |mut builder, parameters| {
            let unit = builder.import_signature(unit);
            let before = builder.ins().get_pinned_reg(I64);
            builder.ins().set_pinned_reg(parameters[0]);
            let call = builder.ins().call_indirect(unit, parameters[1], &[]);
            let answer = builder.inst_results(call)[0];
            builder.ins().set_pinned_reg(before);
            builder.ins().return_(&[answer]);
            builder
        })
    }

    /// The function that does what a [`Request`] of a unit says. It finds that by a word that units share, puts the
    /// answer there and changes no register: where something rare is called, nothing has to be out of the way, not even
    /// for parameters.
    fn compile_preserving(&mut self) -> Option<Vec<u8>> {
        let perform = self.perform_signature();
        self.emit(preserving_signature(), |mut builder, _| {
            let perform = builder.import_signature(perform);
            let flags = MemFlagsData::trusted();
            let processor = builder.ins().get_pinned_reg(I64);
            let word = Word::Request.offset() as i32;
            let request = builder.ins().load(I64, flags, processor, word);
            let [function, argument, block] = [
                offset_of!(Request, function),
                offset_of!(Request, argument),
                offset_of!(Request, block),
            ]
            .map(|offset| builder.ins().load(I64, flags, request, offset as i32));
            let start = layout::BLOCK_START as i32;
            let noted = builder.ins().load(I64, flags, processor, start);
            let is_noted = builder
                .ins()
                .icmp_imm_s(IntCC::Equal, block, Request::NOTED.cast_signed());
            let block = builder.ins().select(is_noted, noted, block);
            builder.ins().store(flags, block, processor, start);
            let call = builder
                .ins()
                .call_indirect(perform, function, &[processor, argument]);
            let answer = builder.inst_results(call)[0];
            builder.ins().store(flags, answer, processor, word);
            builder.ins().return_(&[]);
            builder
        })
    }

    /// The function that looks at the advanced loads that a store may have hit: as the one before it, but most often it
    /// need not call another one, and then saves a few registers only.
    fn compile_store_hit(&mut self) -> Option<Vec<u8>> {
        self.emit(preserving_signature(), |mut builder, _| {
            let preserving = builder.import_signature(preserving_signature());
            advanced::look_at_entries(&mut builder, preserving);
            builder
        })
    }

    /// A function that changes the frame for units, by one of the processor's where that is rare.
    fn compile_shared(
        &mut self,
        function: *const (),
        body: impl FnOnce(Code, (SigRef, *const ())),
    ) -> Option<Vec<u8>> {
        let by_function = self.call_signature();
        self.emit(Signature::new(CallConv::Tail), |mut builder, _| {
            let by_function = (builder.import_signature(by_function), function);
            let code = Code {
                flags: MemFlagsData::trusted(),
                processor: builder.ins().get_pinned_reg(I64),
                builder: &mut builder,
            };
            body(code, by_function);
            builder.seal_all_blocks();
            builder
        })
    }

    /// The code of a function whose body is built behind its first block.
    fn emit(
        &mut self,
        signature: Signature,
        body: impl for<'f> FnOnce(FunctionBuilder<'f>, &[Value]) -> FunctionBuilder<'f>,
    ) -> Option<Vec<u8>> {
        self.context.clear();
        self.context.func = Function::with_name_signature(UserFuncName::default(), signature);
        let mut builder = FunctionBuilder::new(&mut self.context.func, &mut self.frontend);
        let block = builder.create_block();
        builder.append_block_params_for_function_params(block);
        builder.switch_to_block(block);
        builder.seal_block(block);
        let parameters = builder.block_params(block).to_vec();
        let builder = body(builder, &parameters);
        builder.finalize(self.isa.frontend_config());
        let compiled = self.context.compile(&*self.isa, &mut self.control).ok()?;
        // What is called is called through constants.
        let is_complete = compiled.buffer.relocs().is_empty();
        (is_complete && are_resumable(compiled)).then(|| compiled.code_buffer().to_vec())
    }

    fn host_convention(&self) -> CallConv {
        CallConv::triple_default(self.isa.triple())
    }

    fn unit_signature(&self) -> Signature {
        signature(CallConv::Tail, 0)
    }

    fn call_signature(&self) -> Signature {
        let mut signature = signature(self.host_convention(), 1);
        signature.returns.clear();
        signature
    }

    fn perform_signature(&self) -> Signature {
        signature(self.host_convention(), 2)
    }
}

/// A function of so many 64-bit numbers that answers one.
fn signature(convention: CallConv, parameters: usize) -> Signature {
    let mut signature = Signature::new(convention);
    signature
        .params
        .extend(std::iter::repeat_n(AbiParam::new(I64), parameters));
    signature.returns.push(AbiParam::new(I64));
    signature
}

/// The signature of the function that calls another one for units and changes no register.
fn preserving_signature() -> Signature {
    Signature::new(CallConv::PreserveAll)
}

/// Cranelift checks its own input where tests run.
const VERIFIER: &str = if cfg!(debug_assertions) { "true" } else { "false" };

/// Whether the host has an instruction that multiplies and adds with one rounding.
fn is_fused(isa: &OwnedTargetIsa) -> bool {
    let mut flags = isa.isa_flags().into_iter();
    cfg!(target_arch = "aarch64") || flags.any(|flag| flag.name == "has_fma" && flag.as_bool() == Some(true))
}

/// Emits the instructions of a block.
fn emit_node(emitter: &mut Emitter, region: &Region, node: usize) {
    let node = &region.nodes[node];
    let count = node.block.instructions.len();
    let gathered = region.gathers.unwrap_or(count);
    let entries = node.block.instructions.iter().zip(&node.operations);
    for (index, (entry, operation)) in entries.take(gathered).enumerate() {
        if emitter.is_emitted(index) {
            continue;
        }
        emitter.begin_operation(index);
        if let Ok(instruction) = &entry.decoded.instruction {
            emitter.gather(instruction);
            if !float::goes_without_look(emitter, instruction) {
                emitter.look_for_exceptions();
            }
        }
        match &entry.decoded.instruction {
            // The interpreter names no operation for what is illegal.
            Ok(instruction) if operation.opcode.is_some() => operations::emit(emitter, instruction),
            _ => emitter.perform(None),
        }
        emitter.gather_changes();
    }
    if gathered < count {
        emitter.begin_operation(gathered);
        return emitter.leave_the_rest();
    }
    emitter.begin_operation(node.operations.len() - 1);
    emitter.end_node();
}

/// Executes an operation for emitted code.
///
/// # Safety
/// The processor is the one that the code was entered with, and nobody else uses it; the operation belongs to the
/// region that runs.
unsafe extern "C" fn perform(processor: *mut Processor, operation: *const MicroOperation) -> i64 {
    // SAFETY: as the caller says; the region keeps its operations as long as its code.
    let (processor, operation) = unsafe { (&mut *processor, &*operation) };
    processor.find_frame();
    match processor.perform(operation) {
        Ok(Flow::Next) => PERFORMED,
        Ok(Flow::Branch) => PERFORMED_BRANCH,
        Err(Raised) => PERFORMED_RAISED,
    }
}

/// Executes an operation that delivers a double to f1 for emitted code: answers its bits, [`DELIVERED_OTHER`] or
/// [`DELIVERED_FAULT`].
///
/// # Safety
/// As [`perform`].
unsafe extern "C" fn perform_double(processor: *mut Processor, operation: *const MicroOperation) -> i64 {
    // SAFETY: as in `perform`.
    let (processor, operation) = unsafe { (&mut *processor, &*operation) };
    processor.find_frame();
    let performed = processor.perform(operation);
    deliver(processor, operation, performed)
}

/// As [`perform_double`], for an operation that mostly delivers a value of single precision. With an exponent that only
/// registers have room for, it does not.
///
/// # Safety
/// As [`perform`].
unsafe extern "C" fn perform_single(processor: *mut Processor, operation: *const MicroOperation) -> i64 {
    // SAFETY: as in `perform`.
    let (processor, operation) = unsafe { (&mut *processor, &*operation) };
    processor.find_frame();
    let performed = processor.perform(operation);
    let delivered = deliver(processor, operation, performed);
    if matches!(delivered, DELIVERED_OTHER | DELIVERED_FAULT) {
        return delivered;
    }
    let value = f64::from_bits(delivered.cast_unsigned());
    let single = value as f32;
    let is_single = single.is_normal() && f64::from(single) == value || value == 0.0;
    match is_single {
        true => delivered,
        false => DELIVERED_OTHER,
    }
}

/// Rotates registers once for emitted code.
///
/// # Safety
/// As [`perform`].
unsafe extern "C" fn rotate(processor: *mut Processor, _: *const MicroOperation) -> i64 {
    // SAFETY: as in `perform`.
    let processor = unsafe { &mut *processor };
    processor.find_frame();
    processor.rotate_once();
    PERFORMED
}

/// Gathers what an operation has changed for emitted code: what of it, by the bits of its effects.
///
/// # Safety
/// As [`perform`], and the code gathers.
unsafe extern "C" fn gather(processor: *mut Processor, operation: *const MicroOperation, effects: u64) {
    // SAFETY: as in `perform`.
    let (processor, operation) = unsafe { (&mut *processor, &*operation) };
    processor.find_frame();
    // SAFETY: the code gathers, and waits for this function.
    let gathered = unsafe { chain::gathered(processor) };
    processor.gather_changes(gathered, operation, Effects::from_bits_truncate(effects as u16));
}

/// What is answered of an operation that was to deliver a double.
fn deliver(processor: &Processor, operation: &MicroOperation, performed: Step) -> i64 {
    match performed {
        Ok(_) => {
            let delivered = processor.floating(operation.r1).as_double();
            delivered.map_or(DELIVERED_OTHER, u64::cast_signed)
        }
        Err(Raised) => DELIVERED_FAULT,
    }
}
