//! Random programs whose memory lies in the host's as it does in the guest's: what the host refuses translated code,
//! the interpreter refuses, too.

#![cfg(target_arch = "x86_64")]

#[path = "../../ia64/tests/machine/mod.rs"]
mod machine;
mod programs;

use std::ptr;
use std::sync::{Arc, Once};

use machine::{CODE, DATA, Machine};
use programs::{Source, cases, exceptions, execute, loops, run, translator};
use proptest::prelude::*;
use sidestep_ia64::{Access, AddressSpace, HostPage, Processor, Refusal, VirtualAddress, Windows};

const PAGE: u64 = 4096;
const WINDOW_LOG2: u32 = 18;
const WINDOW: usize = 1 << WINDOW_LOG2;

/// Two pages of code and one of data in a window of region 0; region 1 to 3 have nothing in theirs.
struct Arena {
    base: *mut u8,
}

// SAFETY: the memory is never given back, and the processor of one test uses it.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

// SAFETY: the pages are never given back, and allow what is said of them.
unsafe impl AddressSpace for Arena {
    fn resolve(&self, address: VirtualAddress, access: Access) -> Result<HostPage, Refusal> {
        let start = address.0 & !(PAGE - 1);
        let executable = (CODE..CODE + 2 * PAGE).contains(&start);
        if !executable && start != DATA {
            return Err(Refusal::NotPresent);
        }
        if access.writes() && executable {
            return Err(Refusal::AccessRights);
        }
        Ok(HostPage {
            start: VirtualAddress(start),
            size_log2: PAGE.trailing_zeros(),
            host: self.base.wrapping_add(start as usize),
            readable: true,
            writable: !executable,
            executable,
        })
    }

    fn windows(&self) -> Option<Windows> {
        Some(Windows {
            base: self.base,
            size_log2: WINDOW_LOG2,
        })
    }
}

impl Arena {
    /// An arena with the memory of a machine.
    fn of(code: &[u8], data: &[u8]) -> Arena {
        let (all, flags) = (
            5 * WINDOW,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a fresh mapping without access.
        let found = unsafe { libc::mmap(ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(found, libc::MAP_FAILED);
        let base = found
            .wrapping_byte_add(found.addr().wrapping_neg() % WINDOW)
            .cast::<u8>();
        let protect = |address: u64, length: usize, rights| {
            let start = base.wrapping_add(address as usize);
            // SAFETY: the pages are the mapping's.
            assert_eq!(unsafe { libc::mprotect(start.cast(), length, rights) }, 0);
            start
        };
        for (address, bytes, rights) in [
            (CODE, code, libc::PROT_READ),
            (DATA, data, libc::PROT_READ | libc::PROT_WRITE),
        ] {
            let place = protect(address, bytes.len(), libc::PROT_READ | libc::PROT_WRITE);
            // SAFETY: the pages may be written and nobody else uses them.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
            protect(address, bytes.len(), rights);
        }
        Arena { base }
    }

    fn data(&self) -> Vec<u8> {
        // SAFETY: the page may be read, and no processor runs.
        unsafe { std::slice::from_raw_parts(self.base.wrapping_add(DATA as usize), PAGE as usize) }.to_vec()
    }
}

unsafe extern "C" fn go_on_elsewhere(signal: i32, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel passes a context.
    let place = unsafe { &mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize] };
    match sidestep_translator::resumption(*place as usize) {
        Some(elsewhere) => *place = elsewhere as i64,
        // SAFETY: the access is repeated and ends the test.
        None => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}

fn catch_faults() {
    static CAUGHT: Once = Once::new();
    CAUGHT.call_once(|| {
        // SAFETY: an action is plain data, and the handler does what handlers may do.
        let done = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = go_on_elsewhere as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut())
        };
        assert_eq!(done, 0);
    });
}

/// Runs a program in an arena, translated, and interpreted on its own pages; answers how many of its instructions
/// retired in translated code.
fn compare(seed: u64, threshold: u32) -> Result<u64, TestCaseError> {
    catch_faults();
    exceptions::raise();
    let (expected, data) = run(seed, Processor::run);
    let mut machine = programs::machine(seed);
    let code = machine.code().to_vec();
    let arena = Arc::new(Arena::of(&code, machine.data()));
    let mut processor = machine
        .processor
        .duplicate(Arc::clone(&arena) as Arc<dyn AddressSpace>);
    let mut translator = translator(threshold);
    execute(&mut processor, seed, |processor, limit| {
        processor.run_with(limit, &mut translator, &mut ())
    });
    prop_assert!(processor.has_windows());
    prop_assert!(processor.save() == expected);
    prop_assert!(arena.data() == data);
    Ok(translator.statistics().translated)
}

/// Most of what it executes is translated.
#[test]
fn programs_in_windows_are_translated() {
    let translated: u64 = (0..8).map(|seed| compare(seed, 1).expect("the same state")).sum();
    assert!(translated > 2000, "{translated}");
}

/// Runs a loop a few times in an arena, translated, and interpreted on its own pages.
fn compare_loops(make: fn(&mut Source) -> Machine, iterations: u64, seed: u64) -> Result<u64, TestCaseError> {
    catch_faults();
    exceptions::raise();
    let mut machine = make(&mut Source(seed));
    let code = machine.code().to_vec();
    let arena = Arc::new(Arena::of(&code, machine.data()));
    let mut processor = machine
        .processor
        .duplicate(Arc::clone(&arena) as Arc<dyn AddressSpace>);
    let mut translator = translator(3);
    for round in 0..8 {
        let seed = seed ^ round << 32;
        loops::execute_up_to(iterations, &mut machine.processor, seed, Processor::run);
        loops::execute_up_to(iterations, &mut processor, seed, |processor, limit| {
            processor.run_with(limit, &mut translator, &mut ())
        });
        prop_assert!(processor.save() == machine.processor.save(), "round {round}");
        prop_assert!(arena.data() == machine.data());
    }
    Ok(translator.statistics().translated)
}

/// A line of a program that owns its operands.
type OwnedLine = (String, u8, Vec<i64>);

/// Advanced loads and their checks with stores and loads around them, in one block: of few registers, at places near
/// each other.
fn advanced_loads(source: &mut Source) -> Vec<OwnedLine> {
    const TARGETS: [i64; 4] = [14, 15, 16, 33];
    const FLOATING_TARGETS: [i64; 3] = [8, 9, 32];
    let mut lines: Vec<OwnedLine> = vec![("alloc".to_owned(), 0, vec![34, 64, 64, 0, 0])];
    if source.below(4) == 0 {
        // The table is nearly full of others.
        let first = 36 + source.below(8) as i64;
        lines.extend((first..68).map(|register| ("ld8.a".to_owned(), 0, vec![register, 8])));
    }
    for _ in 0..8 + source.below(12) {
        let base = 8 + source.below(5) as i64;
        let size = 1 << source.below(4);
        let target = TARGETS[source.below(4) as usize];
        let predicate = [0, 0, 0, 6, 7][source.below(5) as usize];
        let (mnemonic, operands) = match source.below(20) {
            14..17 => {
                let mnemonic = ["ldfd.a", "ldfs.a"][source.below(2) as usize];
                (
                    mnemonic.to_owned(),
                    vec![FLOATING_TARGETS[source.below(3) as usize], base],
                )
            }
            17..20 => {
                let mnemonic = ["ldfd.c.clr", "ldfs.c.clr"][source.below(2) as usize];
                (
                    mnemonic.to_owned(),
                    vec![FLOATING_TARGETS[source.below(3) as usize], base],
                )
            }
            0..4 => (format!("ld{size}.a"), vec![target, base]),
            4..8 => (format!("ld{size}.c.clr"), vec![target, base]),
            8 | 9 => (format!("st{size}"), vec![base, 20]),
            10 => {
                let mnemonic = ["stfd", "stfs", "stfe", "stf.spill"][source.below(4) as usize];
                (mnemonic.to_owned(), vec![base, 6 + source.below(2) as i64])
            }
            11 => (format!("ld{size}"), vec![20, base]),
            12 => ("adds".to_owned(), vec![20, 1, 20]),
            _ => ("invala.e M26".to_owned(), vec![target]),
        };
        let predicate = match mnemonic.starts_with("ld") && mnemonic.contains('.') {
            true if source.below(8) > 0 => 0,
            _ => predicate,
        };
        lines.push((mnemonic, predicate, operands));
    }
    // A pair with a store in between, whatever else there is.
    let base = 8 + source.below(3) as i64;
    lines.push(("ld8.a".to_owned(), 0, vec![15, base]));
    lines.push(("st4".to_owned(), 0, vec![8 + source.below(5) as i64, 20]));
    lines.push(("ld8.c.clr".to_owned(), 0, vec![15, base]));
    let base = 8 + source.below(3) as i64;
    lines.push(("ldfd.a".to_owned(), 0, vec![9, base]));
    lines.push(("stfd".to_owned(), 0, vec![8 + source.below(5) as i64, 6]));
    lines.push(("fma.d.s0".to_owned(), 0, vec![10, 6, 6, 1]));
    lines.push(("ldfd.c.clr".to_owned(), 0, vec![9, base]));
    lines
}

/// Runs such a program a few times with other addresses, translated and interpreted.
fn compare_advanced_loads(seed: u64) -> Result<u64, TestCaseError> {
    catch_faults();
    exceptions::raise();
    let mut source = Source(seed);
    let lines = advanced_loads(&mut source);
    let lines: Vec<machine::Line> = lines
        .iter()
        .map(|(mnemonic, predicate, operands)| (mnemonic.as_str(), *predicate, operands.as_slice()))
        .collect();
    let mut machine = machine::Machine::new();
    machine.load(&lines);
    let code = machine.code().to_vec();
    let arena = Arc::new(Arena::of(&code, machine.data()));
    let mut processor = machine
        .processor
        .duplicate(Arc::clone(&arena) as Arc<dyn AddressSpace>);
    let mut translator = translator(2);
    for round in 0..12 {
        let mut addresses = [0; 5];
        for address in &mut addresses {
            *address = DATA + 16 * source.below(3);
            match source.below(12) {
                0 => *address += source.below(16),
                1 => *address += 8,
                2 => *address = 0x10_0000,
                _ => {}
            }
        }
        let (value, predicates, number) = (source.next(), source.next(), source.float(true));
        // Behind the last is a break.
        let limit = match source.below(16) {
            0 => source.below(3 * lines.len() as u64),
            _ => u64::MAX,
        };
        for (processor, translator) in [
            (&mut machine.processor, None),
            (&mut processor, Some(&mut translator)),
        ] {
            processor.set_instruction_pointer(CODE, 0);
            processor.predicates = predicates | 1;
            for (register, address) in (8..).zip(addresses) {
                processor.general.set(register, address);
            }
            processor.general.set(20, value);
            processor.set_floating(6, number);
            match translator {
                None => processor.run(limit),
                Some(translator) => processor.run_with(limit, translator, &mut ()),
            };
        }
        prop_assert!(processor.save() == machine.processor.save(), "round {round}");
        let events = [&processor, &machine.processor].map(|one| one.advanced_load_events());
        prop_assert_eq!(events[0], events[1], "round {}", round);
        prop_assert!(arena.data() == machine.data(), "round {}", round);
    }
    Ok(translator.statistics().translated)
}

/// They are translated.
#[test]
fn programs_of_advanced_loads_are_translated() {
    let translated = (0..8).map(|seed| compare_advanced_loads(seed).expect("the same state"));
    assert!(translated.sum::<u64>() > 500);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn a_program_in_windows_does_what_an_interpreted_one_does(seed: u64, threshold in 1u32..6) {
        compare(seed, threshold)?;
    }

    #[test]
    fn an_advanced_load_in_windows_stands_as_an_interpreted_one_does(seed: u64) {
        compare_advanced_loads(seed)?;
    }

    #[test]
    fn a_tight_loop_in_windows_does_what_an_interpreted_one_does(seed: u64) {
        compare_loops(loops::tight, 8, seed)?;
    }

    #[test]
    fn a_rotating_loop_in_windows_does_what_an_interpreted_one_does(seed: u64) {
        for iterations in [8, 600] {
            compare_loops(loops::rotating, iterations, seed)?;
        }
    }
}
