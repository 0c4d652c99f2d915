//! What a processor goes on with when an image ends itself: the registers as they were when it was started.
//!
//! The image's caller is below it on both stacks, where nothing of it has changed: its registers in frames below the
//! current one were stored before the image was started. So only the current frame, the registers that a function
//! preserves and the places of the stacks come back; the image's return is then as any function's.

use sidestep_ia64::Processor;
use sidestep_ia64::registers::application;
use sidestep_ia64::registers::frame::FrameMarker;

use super::super::efi;
use super::guest::Failure;

/// Application registers that functions preserve.
const APPLICATION: [u8; 4] = [
    application::UNAT,
    application::FPSR,
    application::PFS,
    application::LC,
];
/// Floating-point registers that functions preserve.
const FLOATING: [std::ops::RangeInclusive<u8>; 2] = [2..=5, 16..=31];

/// Registers of a processor between two instructions.
pub struct Context {
    status: u64,
    frame: FrameMarker,
    general: Vec<(u64, bool)>,
    predicates: u64,
    branch: [u64; 8],
    application: [u64; APPLICATION.len()],
    floating: Vec<sidestep_ia64::float::FloatRegister>,
    store: u64,
    collection: u64,
}

impl Context {
    /// As the processor has them, once frames below the current one are in memory.
    ///
    /// # Errors
    /// If they cannot be stored there.
    pub fn of(processor: &mut Processor) -> Result<Context, Failure> {
        processor.flush_stack().map_err(|_| efi::OUT_OF_RESOURCES)?;
        let stack = processor.register_stack();
        let (store, collection) = (stack.backing_store_pointer(), stack.collection());
        let general = &processor.general;
        Ok(Context {
            status: processor.status,
            frame: processor.frame,
            general: (0..=127)
                .map(|index| (general.value(index), general.nat(index)))
                .collect(),
            predicates: processor.predicates,
            branch: processor.branch,
            application: APPLICATION.map(|register| processor.application(register)),
            floating: FLOATING
                .into_iter()
                .flatten()
                .map(|index| processor.floating(index))
                .collect(),
            store,
            collection,
        })
    }

    /// Has a processor go on with them.
    pub fn restore(self, processor: &mut Processor) {
        processor.set_status(self.status);
        processor
            .register_stack_mut()
            .restart(self.store, self.collection);
        processor.frame = self.frame;
        for (index, (value, nat)) in (0..=127).zip(self.general).skip(1) {
            processor.general.set_with_nat(index, value, nat);
        }
        processor.predicates = self.predicates;
        processor.branch = self.branch;
        for (register, value) in APPLICATION.into_iter().zip(self.application) {
            processor.set_application(register, value);
        }
        for (index, value) in FLOATING.into_iter().flatten().zip(self.floating) {
            processor.set_floating(index, value);
        }
        processor.forget_advanced_loads();
    }
}
