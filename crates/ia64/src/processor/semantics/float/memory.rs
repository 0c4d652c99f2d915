//! Floating-point loads and stores (formats M6 to M13; manual volume 1, sections 4.4 and 5.3.1).

use super::super::frequent::call;
use super::super::memory::{NoUpdate, Update, UpdateByImmediate, UpdateByRegister, address};
use super::super::{fields, illegal};
use super::{Names, Rotating, Static, is_constant};
use crate::encoding::{BaseUpdate, FloatFormat, Instruction, LoadKind};
use crate::fault::{Access, Fault, isr};
use crate::float::FloatRegister;
use crate::processor::execution::{Execute, Flow, MicroOperation, Step};
use crate::processor::{Processor, Raised};

pub(in crate::processor::semantics) fn lower_load(
    instruction: &Instruction,
    format: FloatFormat,
    kind: LoadKind,
    update: BaseUpdate,
) -> MicroOperation {
    super::with_target(
        load_by_names::<One>(instruction, format, kind, update),
        instruction,
    )
}

pub(in crate::processor::semantics) fn lower_load_pair(
    instruction: &Instruction,
    format: FloatFormat,
    kind: LoadKind,
    update: BaseUpdate,
) -> MicroOperation {
    if is_constant(instruction.f2()) {
        return illegal(instruction.predicate());
    }
    super::with_target(
        load_by_names::<Pair>(instruction, format, kind, update),
        instruction,
    )
}

pub(in crate::processor::semantics) fn lower_store(
    instruction: &Instruction,
    format: FloatFormat,
    update: BaseUpdate,
) -> MicroOperation {
    fields(call(store_by_names(instruction, format, update)), instruction)
}

/// A memory format: how a value is read and written.
trait Format {
    /// Its size in bytes.
    const SIZE: u64;
    fn load(processor: &mut Processor, address: u64) -> Result<FloatRegister, Raised>;
    fn store(processor: &mut Processor, address: u64, value: FloatRegister) -> Result<(), Raised>;
}

struct Single;
struct Double;
struct Significand;
struct Extended;
struct Spill;

impl Format for Single {
    const SIZE: u64 = 4;
    #[inline(always)]
    fn load(processor: &mut Processor, address: u64) -> Result<FloatRegister, Raised> {
        Ok(FloatRegister::from_single(processor.load::<u32>(address)? as u32))
    }
    #[inline(always)]
    fn store(processor: &mut Processor, address: u64, value: FloatRegister) -> Result<(), Raised> {
        processor.store::<u32>(address, u64::from(value.to_single()))
    }
}

impl Format for Double {
    const SIZE: u64 = 8;
    #[inline(always)]
    fn load(processor: &mut Processor, address: u64) -> Result<FloatRegister, Raised> {
        Ok(FloatRegister::from_double(processor.load::<u64>(address)?))
    }
    #[inline(always)]
    fn store(processor: &mut Processor, address: u64, value: FloatRegister) -> Result<(), Raised> {
        processor.store::<u64>(address, value.to_double())
    }
}

impl Format for Significand {
    const SIZE: u64 = 8;
    #[inline(always)]
    fn load(processor: &mut Processor, address: u64) -> Result<FloatRegister, Raised> {
        Ok(FloatRegister::from_significand(processor.load::<u64>(address)?))
    }
    #[inline(always)]
    fn store(processor: &mut Processor, address: u64, value: FloatRegister) -> Result<(), Raised> {
        processor.store::<u64>(address, value.significand())
    }
}

impl Format for Extended {
    const SIZE: u64 = 10;
    fn load(processor: &mut Processor, address: u64) -> Result<FloatRegister, Raised> {
        processor.check_reference(address, Self::SIZE, ALIGNMENT_OF_WIDE, Access::Read)?;
        if processor.is_big_endian() {
            let image = load_bytes(processor, address, Self::SIZE)?;
            return Ok(FloatRegister::from_extended(image as u64, (image >> 64) as u16));
        }
        let significand = processor.load::<u64>(address)?;
        let sign_exponent = processor.load::<u16>(address.wrapping_add(8))?;
        Ok(FloatRegister::from_extended(significand, sign_exponent as u16))
    }
    fn store(processor: &mut Processor, address: u64, value: FloatRegister) -> Result<(), Raised> {
        processor.check_reference(address, Self::SIZE, ALIGNMENT_OF_WIDE, Access::Write)?;
        let (significand, sign_exponent) = value.to_extended();
        if processor.is_big_endian() {
            let image = u128::from(sign_exponent) << 64 | u128::from(significand);
            return store_bytes(processor, address, Self::SIZE, image);
        }
        processor.store::<u64>(address, significand)?;
        processor.store::<u16>(address.wrapping_add(8), u64::from(sign_exponent))
    }
}

impl Format for Spill {
    const SIZE: u64 = 16;
    fn load(processor: &mut Processor, address: u64) -> Result<FloatRegister, Raised> {
        processor.check_reference(address, Self::SIZE, ALIGNMENT_OF_WIDE, Access::Read)?;
        let mut image = [
            processor.load::<u64>(address)?,
            processor.load::<u64>(address.wrapping_add(8))?,
        ];
        if processor.is_big_endian() {
            image.reverse();
        }
        Ok(FloatRegister::from_spill(image))
    }
    fn store(processor: &mut Processor, address: u64, value: FloatRegister) -> Result<(), Raised> {
        processor.check_reference(address, Self::SIZE, ALIGNMENT_OF_WIDE, Access::Write)?;
        let mut image = value.to_spill();
        if processor.is_big_endian() {
            image.reverse();
        }
        processor.store::<u64>(address, image[0])?;
        processor.store::<u64>(address.wrapping_add(8), image[1])
    }
}

/// The alignment of the formats of 10 and 16 bytes and of pairs of 8 bytes.
const ALIGNMENT_OF_WIDE: u64 = 16;

/// Bytes of a big-endian image, the first one highest.
#[cold]
fn load_bytes(processor: &mut Processor, address: u64, size: u64) -> Result<u128, Raised> {
    (0..size).try_fold(0, |image, offset| {
        let byte = processor.load::<u8>(address.wrapping_add(offset))?;
        Ok(image << 8 | u128::from(byte))
    })
}

/// As [`load_bytes`], the other way.
#[cold]
fn store_bytes(processor: &mut Processor, address: u64, size: u64, image: u128) -> Result<(), Raised> {
    (0..size).try_for_each(|offset| {
        let byte = (image >> (8 * (size - 1 - offset))) as u64 & 0xFF;
        processor.store::<u8>(address.wrapping_add(offset), byte)
    })
}

/// How many registers a load writes.
trait Count {
    /// What is loaded.
    type Values: Copy;
    /// Deferred-exception tokens.
    const NATVALS: Self::Values;
    /// How many values.
    const COUNT: u64;
    fn check(processor: &mut Processor, operation: &MicroOperation) -> Result<(), Raised>;
    fn load<F: Format>(processor: &mut Processor, address: u64) -> Result<Self::Values, Raised>;
    fn write<N: Names>(processor: &mut Processor, operation: &MicroOperation, values: Self::Values);
}

struct One;
struct Pair;

impl Count for One {
    type Values = FloatRegister;
    const NATVALS: FloatRegister = FloatRegister::NATVAL;
    const COUNT: u64 = 1;
    #[inline(always)]
    fn check(processor: &mut Processor, operation: &MicroOperation) -> Result<(), Raised> {
        processor.check_floating_enabled(&[operation.r1], isr::READ)
    }
    #[inline(always)]
    fn load<F: Format>(processor: &mut Processor, address: u64) -> Result<FloatRegister, Raised> {
        F::load(processor, address)
    }
    #[inline(always)]
    fn write<N: Names>(processor: &mut Processor, operation: &MicroOperation, value: FloatRegister) {
        N::write(processor, operation.r1, value);
    }
}

impl Count for Pair {
    type Values = [FloatRegister; 2];
    const NATVALS: [FloatRegister; 2] = [FloatRegister::NATVAL; 2];
    const COUNT: u64 = 2;
    /// The targets must be an even and an odd physical register.
    #[inline(always)]
    fn check(processor: &mut Processor, operation: &MicroOperation) -> Result<(), Raised> {
        let (first, second) = (
            processor.floating_index(operation.r1),
            processor.floating_index(operation.r2),
        );
        if (first ^ second) & 1 == 0 {
            return Err(processor.raise(Fault::illegal_operation()));
        }
        processor.check_floating_enabled(&[operation.r1, operation.r2], isr::READ)
    }
    #[inline(always)]
    fn load<F: Format>(processor: &mut Processor, address: u64) -> Result<[FloatRegister; 2], Raised> {
        processor.check_reference(address, 2 * F::SIZE, 2 * F::SIZE, Access::Read)?;
        Ok([
            F::load(processor, address)?,
            F::load(processor, address.wrapping_add(F::SIZE))?,
        ])
    }
    #[inline(always)]
    fn write<N: Names>(
        processor: &mut Processor,
        operation: &MicroOperation,
        [first, second]: [FloatRegister; 2],
    ) {
        N::write(processor, operation.r1, first);
        N::write(processor, operation.r2, second);
    }
}

fn load_by_names<C: Count>(
    instruction: &Instruction,
    format: FloatFormat,
    kind: LoadKind,
    update: BaseUpdate,
) -> Execute {
    let registers = [instruction.f1(), instruction.f2()];
    if super::are_static(&registers[..C::COUNT as usize]) {
        load_function::<C, Static>(format, kind, update)
    } else {
        load_function::<C, Rotating>(format, kind, update)
    }
}

fn load_function<C: Count, N: Names>(format: FloatFormat, kind: LoadKind, update: BaseUpdate) -> Execute {
    fn by_kind<C: Count, N: Names, F: Format>(kind: LoadKind, update: BaseUpdate) -> Execute {
        match update {
            BaseUpdate::None => by_update::<C, N, F, NoUpdate>(kind),
            BaseUpdate::Register => by_update::<C, N, F, UpdateByRegister>(kind),
            BaseUpdate::Immediate => by_update::<C, N, F, UpdateByImmediate>(kind),
        }
    }
    fn by_update<C: Count, N: Names, F: Format, U: Update>(kind: LoadKind) -> Execute {
        match kind {
            LoadKind::Speculative => load_speculative::<C, N, F, U, false>,
            LoadKind::SpeculativeAdvanced => load_speculative::<C, N, F, U, true>,
            LoadKind::Advanced => load::<C, N, F, U, true>,
            LoadKind::CheckKeep => load_check::<C, N, F, U, false>,
            LoadKind::CheckClear | LoadKind::CheckClearAcquire => load_check::<C, N, F, U, true>,
            LoadKind::Normal | LoadKind::Acquire | LoadKind::Bias | LoadKind::Fill => {
                load::<C, N, F, U, false>
            }
        }
    }
    match format {
        FloatFormat::Single => by_kind::<C, N, Single>(kind, update),
        FloatFormat::Double => by_kind::<C, N, Double>(kind, update),
        FloatFormat::Significand => by_kind::<C, N, Significand>(kind, update),
        FloatFormat::Extended => by_kind::<C, N, Extended>(kind, update),
        FloatFormat::Register => by_kind::<C, N, Spill>(kind, update),
    }
}

fn load<C: Count, N: Names, F: Format, U: Update, const ADVANCED: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    C::check(processor, operation)?;
    let address = address(processor, operation, isr::READ)?;
    let values = C::load::<F>(processor, address)?;
    U::update(processor, operation, address);
    C::write::<N>(processor, operation, values);
    if ADVANCED {
        remember::<C, F>(processor, operation, address);
    }
    Ok(Flow::Next)
}

/// Allocates an ALAT entry for the first target, covering everything that was loaded.
fn remember<C: Count, F: Format>(processor: &mut Processor, operation: &MicroOperation, address: u64) {
    let target = processor.advanced_floating(operation.r1);
    processor
        .advanced_loads
        .insert(target, address, C::COUNT * F::SIZE);
}

fn load_speculative<C: Count, N: Names, F: Format, U: Update, const ADVANCED: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    C::check(processor, operation)?;
    let address = processor.general.value(operation.r3);
    let loaded = if processor.defers_at_once(operation.r3) {
        None
    } else {
        match C::load::<F>(processor, address) {
            Ok(loaded) => Some(loaded),
            Err(Raised) => {
                processor.defer(C::COUNT * F::SIZE)?;
                None
            }
        }
    };
    U::update(processor, operation, address);
    C::write::<N>(processor, operation, loaded.unwrap_or(C::NATVALS));
    if ADVANCED {
        if loaded.is_some() {
            remember::<C, F>(processor, operation, address);
        } else {
            let target = processor.advanced_floating(operation.r1);
            processor.advanced_loads.remove(target);
        }
    }
    Ok(Flow::Next)
}

fn load_check<C: Count, N: Names, F: Format, U: Update, const CLEAR: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    C::check(processor, operation)?;
    let address = address(processor, operation, isr::READ)?;
    let target = processor.advanced_floating(operation.r1);
    if !processor.keeps_advanced_load::<CLEAR>(target) {
        return load_missed::<C, N, F, U, CLEAR>(processor, operation, address);
    }
    U::update(processor, operation, address);
    Ok(Flow::Next)
}

/// A check load whose advanced load is no longer remembered loads again.
fn load_missed<C: Count, N: Names, F: Format, U: Update, const CLEAR: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
    address: u64,
) -> Step {
    let values = C::load::<F>(processor, address)?;
    U::update(processor, operation, address);
    C::write::<N>(processor, operation, values);
    if !CLEAR {
        remember::<C, F>(processor, operation, address);
    }
    Ok(Flow::Next)
}

fn store_by_names(instruction: &Instruction, format: FloatFormat, update: BaseUpdate) -> Execute {
    if super::are_static(&[instruction.f2()]) {
        store_function::<Static>(format, update)
    } else {
        store_function::<Rotating>(format, update)
    }
}

fn store_function<N: Names>(format: FloatFormat, update: BaseUpdate) -> Execute {
    fn by_update<N: Names, F: Format, const SPILL: bool>(update: BaseUpdate) -> Execute {
        match update {
            BaseUpdate::None => store::<N, F, NoUpdate, SPILL>,
            BaseUpdate::Register | BaseUpdate::Immediate => store::<N, F, UpdateByImmediate, SPILL>,
        }
    }
    match format {
        FloatFormat::Single => by_update::<N, Single, false>(update),
        FloatFormat::Double => by_update::<N, Double, false>(update),
        FloatFormat::Significand => by_update::<N, Significand, false>(update),
        FloatFormat::Extended => by_update::<N, Extended, false>(update),
        FloatFormat::Register => by_update::<N, Spill, true>(update),
    }
}

/// Storing NaTVal consumes it, but for a spill.
fn store<N: Names, F: Format, U: Update, const SPILL: bool>(
    processor: &mut Processor,
    operation: &MicroOperation,
) -> Step {
    processor.check_floating_enabled(&[operation.r2], isr::WRITE)?;
    let address = address(processor, operation, isr::WRITE)?;
    let value = N::read(processor, operation.r2);
    if !SPILL && value.is_natval() {
        return Err(processor.raise(Fault::register_nat_consumption(isr::WRITE)));
    }
    F::store(processor, address, value)?;
    U::update(processor, operation, address);
    Ok(Flow::Next)
}
