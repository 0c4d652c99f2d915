//! Lock step: a program is interpreted and translated, stretch by stretch, and both must end alike.
//!
//! A copy of the processor interprets each stretch first, on a copy of what it writes; then the processor itself
//! executes it by the translator. Registers, hidden state, counts and every byte written are compared.
//!
//! Limits: programs only, and only while nobody else writes their memory: then nothing is compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use sidestep_ia64::memory::GRANULE_LOG2;
use sidestep_ia64::{
    Access, AddressSpace, Exit, HostPage, Processor, ProcessorState, Refusal, VirtualAddress,
};

use crate::translator::Translator;

/// Instructions of the longest stretch. Their lengths differ, so that stretches end anywhere.
const STRETCH_MAX: u64 = 50_000;
const GRANULE: usize = 1 << GRANULE_LOG2;
const WORDS: usize = GRANULE / 8;

/// Runs a processor by a translator and compares it with the interpreter.
pub struct LockStep {
    translator: Translator,
    stretches: u64,
    difference: Option<String>,
}

impl LockStep {
    /// Checks what a translator does.
    pub fn new(translator: Translator) -> LockStep {
        LockStep {
            translator,
            stretches: 0,
            difference: None,
        }
    }

    /// The translator that is checked.
    pub fn translator(&self) -> &Translator {
        &self.translator
    }

    /// The same, to be changed between two runs.
    pub fn translator_mut(&mut self) -> &mut Translator {
        &mut self.translator
    }

    /// What was different first, in words.
    pub fn difference(&self) -> Option<&str> {
        self.difference.as_deref()
    }

    /// As [`Processor::run`]; [`Exit::Halted`] where the two ways differ.
    pub fn run(&mut self, processor: &mut Processor, limit: u64) -> Exit {
        let end = processor.instructions_retired().saturating_add(limit);
        loop {
            let left = end - processor.instructions_retired();
            let exit = self.stretch(processor, left);
            if self.difference.is_some() {
                return Exit::Halted;
            }
            if exit != Exit::Limit || processor.instructions_retired() == end {
                return exit;
            }
        }
    }

    /// Runs a stretch both ways.
    fn stretch(&mut self, processor: &mut Processor, left: u64) -> Exit {
        self.stretches += 1;
        // A multiplicative sequence: every run of a program is cut in the same places.
        let length = self.stretches.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let length = (1 + length % STRETCH_MAX).min(left);
        let start = processor.save();
        let Some((mut other, memory)) = copy(processor, &start) else {
            return processor.run_with(left, &mut self.translator, &mut ());
        };
        let expected = other.run(length);
        let executed = other.instructions_retired() - start.instructions_retired();
        // Where it stopped early to see other instructions, the processor stops, too.
        let (length, expected) = match expected {
            Exit::Attention if executed > 0 => (executed, Exit::Limit),
            expected => (length, expected),
        };
        let exit = processor.run_with(length, &mut self.translator, &mut ());
        if exit == Exit::Attention {
            // Somebody wants the processor: there is nothing to compare with.
            return exit;
        }
        let mut told = String::new();
        if exit != expected {
            let _ = writeln!(told, "interpreted: {expected:?}, translated: {exit:?}");
        }
        compare_states(&mut told, &other.save(), &processor.save());
        memory.compare(&mut told);
        if !told.is_empty() {
            let (ip, slot) = start.instruction_pointer();
            self.difference = Some(format!(
                "translated code differs from the interpreter within {executed} instructions from {ip:#x}, \
                 slot {slot}\n{told}"
            ));
        }
        exit
    }
}

/// A processor in the same state whose stores go to copies; `None` in system mode, and where others write the memory.
fn copy(processor: &Processor, state: &ProcessorState) -> Option<(Processor, Arc<CopyOnWrite>)> {
    let space = processor.address_space().filter(|space| !space.is_shared())?;
    let memory = Arc::new(CopyOnWrite {
        space: Arc::clone(space),
        copies: Mutex::default(),
        attention: Mutex::default(),
    });
    let mut other = processor.duplicate(Arc::clone(&memory) as Arc<dyn AddressSpace>);
    other.restore(state).ok()?;
    *lock(&memory.attention) = Some(other.attention());
    Some((other, memory))
}

/// Tells the lines in which two states differ when they are written out.
fn compare_states(told: &mut String, interpreted: &ProcessorState, translated: &ProcessorState) {
    if interpreted == translated {
        return;
    }
    let texts = [interpreted, translated].map(|state| format!("{state:#x?}"));
    let mut heading = "";
    for (number, (one, other)) in texts[0].lines().zip(texts[1].lines()).enumerate() {
        let is_heading = one.ends_with('[') || one.ends_with('{');
        heading = if is_heading { one.trim() } else { heading };
        if one != other {
            let (one, other) = (one.trim(), other.trim());
            let _ = writeln!(
                told,
                "line {number}, {heading} interpreted: {one} translated: {other}"
            );
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it copies memory")
}

/// Words of a granule; atomic, as processors access them.
type Copied = Box<[AtomicU64; WORDS]>;

/// Memory whose contents are another's until they are written.
struct CopyOnWrite {
    space: Arc<dyn AddressSpace>,
    /// The granules that were written, by their guest addresses.
    copies: Mutex<BTreeMap<u64, Copied>>,
    /// What makes the processor look for changed instructions.
    attention: Mutex<Option<Arc<AtomicBool>>>,
}

impl CopyOnWrite {
    /// Tells where what was written is not what the other memory holds now.
    fn compare(&self, told: &mut String) {
        for (&start, words) in lock(&self.copies).iter() {
            let Ok(page) = self.space.resolve(VirtualAddress(start), Access::Read) else {
                continue;
            };
            for (index, interpreted) in words.iter().enumerate() {
                let interpreted = interpreted.load(Ordering::Relaxed);
                let address = start + index as u64 * 8;
                let translated = load(&page, address);
                if interpreted != translated {
                    let _ = writeln!(
                        told,
                        "memory at {address:#x} interpreted: {interpreted:#x} translated: {translated:#x}"
                    );
                }
            }
        }
    }
}

/// The word at an address within a page.
fn load(page: &HostPage, address: u64) -> u64 {
    let place = page.host.wrapping_add((address - page.start.0) as usize);
    // SAFETY: the address space answered that the page may be read, the address is a multiple of eight in it, and
    // memory is accessed atomically.
    unsafe { AtomicU64::from_ptr(place.cast()) }.load(Ordering::Relaxed)
}

// SAFETY: a granule that was copied stays where it is as long as the object lives; the others are the other memory's,
// which the processor whose copy uses this one keeps.
unsafe impl AddressSpace for CopyOnWrite {
    fn resolve(&self, address: VirtualAddress, access: Access) -> Result<HostPage, Refusal> {
        let page = self.space.resolve(address, access)?;
        let start = address.0 & !(GRANULE as u64 - 1);
        let mut copies = lock(&self.copies);
        let end = page.start.0 + (1 << page.size_log2);
        if access == Access::Execute && copies.range(page.start.0..end).next().is_none() {
            // Blocks end where their page does.
            return Ok(HostPage {
                writable: false,
                ..page
            });
        }
        if access.writes() && !copies.contains_key(&start) {
            let words = (0..WORDS as u64).map(|word| match page.readable {
                true => AtomicU64::new(load(&page, start + word * 8)),
                false => AtomicU64::new(0),
            });
            let words: Box<[AtomicU64]> = words.collect();
            let words = words.try_into().expect("the words of a granule");
            copies.insert(start, words);
        }
        let copied = copies.get(&start);
        let host = match copied {
            Some(words) => words.as_ptr().cast_mut().cast(),
            None => page.host.wrapping_add((start - page.start.0) as usize),
        };
        Ok(HostPage {
            start: VirtualAddress(start),
            size_log2: GRANULE_LOG2,
            host,
            writable: page.writable && copied.is_some(),
            ..page
        })
    }

    fn instructions_changed(&self, _: VirtualAddress) {
        if let Some(attention) = &*lock(&self.attention) {
            attention.store(true, Ordering::Relaxed);
        }
    }

    fn is_shared(&self) -> bool {
        self.space.is_shared()
    }
}
