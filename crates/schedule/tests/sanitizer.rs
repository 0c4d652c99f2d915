//! The sanitizer on violations of each rule, and on what the rules permit, each a few instructions on a processor in
//! system mode. Sources are assembled by GNU as, which checks and adds nothing.

use std::process::Command;
use std::sync::Arc;

use object::{Object, ObjectSection};
use sidestep_ia64::registers::system::control;
use sidestep_ia64::{Exit, FaultKind, MemoryRegion, PhysicalAddress, PhysicalMemory, Processor};
use sidestep_schedule::sanitizer::{Finding, Sanitizer};

const MEMORY: usize = 1 << 20;
const CODE: u64 = 0x2_0000;
const DATA: u64 = 0x3_0000;
/// The `break` that ends a run; every interruption vector holds one.
const HYPERCALL: u64 = 0x5ede;
const VECTORS: u64 = 0x8000;

#[repr(C, align(65536))]
struct Bytes([u8; MEMORY]);

struct Memory(*mut Bytes);

// SAFETY: the memory is leaked; the processor of one test uses it.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

// SAFETY: the memory lives as long as the program.
unsafe impl PhysicalMemory for Memory {
    fn region(&self, address: PhysicalAddress) -> Option<MemoryRegion> {
        let region = MemoryRegion {
            start: PhysicalAddress(0),
            size: MEMORY as u64,
            host: self.0.cast(),
            writable: true,
        };
        (address.0 < MEMORY as u64).then_some(region)
    }

    fn load_device(&self, _: PhysicalAddress, _: u64) -> Option<u64> {
        None
    }

    fn store_device(&self, _: PhysicalAddress, _: u64, _: u64) -> bool {
        false
    }
}

/// The machine code of a source.
fn assemble(assembler: &std::path::Path, text: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, object) = (folder.path().join("source.s"), folder.path().join("object.o"));
    std::fs::write(&source, format!(".text\n{text}\n")).expect("a temporary file can be written");
    let mut command = Command::new(assembler);
    let output = command.args(["-xnone", "-o"]).arg(&object).arg(&source).output();
    let output = output.expect("the assembler starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}\n{text}");
    let bytes = std::fs::read(&object).expect("the object is there");
    let file = object::File::parse(&*bytes).expect("an object file");
    let section = file.section_by_name(".text").expect("code");
    section.data().expect("the code's bytes").to_vec()
}

/// A processor at a piece of code. r4 and r5 hold addresses of data with a word between them, r6 a page size as
/// `cr.itir` has it, r7 a region register's value, r10 one; p6 is on and p7 off.
fn processor(code: &[u8]) -> Processor {
    // SAFETY: all zeros are valid bytes.
    let bytes = Box::into_raw(unsafe { Box::<Bytes>::new_zeroed().assume_init() });
    let memory = Arc::new(Memory(bytes));
    let mut processor = Processor::new_system(memory as Arc<dyn PhysicalMemory>);
    processor.set_hypercall(HYPERCALL);
    processor.system.control[usize::from(control::IVA)] = VECTORS;
    // SAFETY: the processor does not run yet.
    let memory = unsafe { &mut (*bytes).0 };
    memory[CODE as usize..CODE as usize + code.len()].copy_from_slice(code);
    for (register, value) in [(4, DATA), (5, DATA + 8), (6, 14 << 2), (7, 14 << 2), (10, 1)] {
        processor.general.set(register, value);
    }
    processor.predicates = 1 | 1 << 6;
    processor.set_instruction_pointer(CODE, 0);
    processor
}

/// Runs code to the `break` behind it, `step` instructions at a time.
fn run(code: &[u8], sanitizer: &mut Sanitizer, step: u64) -> Exit {
    let mut processor = processor(code);
    for _ in 0..10_000 {
        match processor.run_observed(step, sanitizer) {
            Exit::Limit | Exit::Attention => {}
            exit => return exit,
        }
    }
    panic!("it does not end");
}

fn describe(finding: &Finding) -> String {
    format!("{} {}", finding.rule.name(), finding.on)
        .trim()
        .to_owned()
}

/// Holds what is found in each piece of code against what should be.
fn check(cases: &[(&str, &[&str])]) {
    let Some(assembler) = tests_need::ASSEMBLER.find() else {
        return;
    };
    for (text, expected) in cases {
        let code = assemble(&assembler, &format!("{text}\n break.m {HYPERCALL:#x} ;;"));
        // In one go, and an instruction at a time.
        for step in [u64::MAX, 1] {
            let mut sanitizer = Sanitizer::new(false);
            let exit = run(&code, &mut sanitizer, step);
            let ended = matches!(exit, Exit::Fault(fault)
                if fault.kind == FaultKind::Break && fault.immediate == HYPERCALL);
            assert!(ended, "{exit:?}: {text}");
            let found: Vec<String> = sanitizer.findings().iter().map(describe).collect();
            assert_eq!(found, *expected, "in steps of {step}: {text}");
        }
    }
}

#[test]
fn dependencies_inside_a_group_are_found() {
    check(&[
        ("add r8=r9,r10\n add r11=r8,r10 ;;", &["raw r8"]),
        ("add r8=r9,r10\n ld8 r8=[r4] ;;", &["waw r8"]),
        ("add r8=r9,r10 ;;\n add r11=r8,r10 ;;", &[]),
        // What the later one writes the earlier one may read.
        ("add r11=r8,r10\n add r8=r9,r10 ;;", &[]),
        ("ld8 r8=[r4],8\n ld8 r9=[r4] ;;", &["raw r4"]),
        ("fadd f8=f0,f1\n fadd f9=f8,f1 ;;", &["raw f8"]),
        (
            "mov ar.ccv=r4\n cmpxchg8.acq r8=[r4],r5,ar.ccv ;;",
            &["raw ar.ccv"],
        ),
        ("sum 2\n ld8 r8=[r4] ;;\n rum 2 ;;", &["raw psr"]),
        ("fsetc.s1 0,0\n fadd.s1 f8=f0,f1 ;;", &["raw controls 1"]),
        ("fsetc.s1 0,0\n fadd.s2 f8=f0,f1 ;;", &[]),
        ("fadd.s0 f8=f0,f1\n fclrf.s0 ;;", &["waw flags 0"]),
        ("fadd.s0 f8=f0,f1\n fadd.s0 f9=f0,f1 ;;", &[]),
    ]);
}

#[test]
fn predicates_count_as_they_are() {
    check(&[
        ("(p6) add r8=r9,r10\n (p7) add r8=r9,r10 ;;", &[]),
        ("(p6) add r8=r9,r10\n (p6) add r8=r9,r10 ;;", &["waw r8"]),
        ("(p7) add r8=r9,r10\n add r9=r8,r10 ;;", &[]),
        (
            "cmp.eq p8,p9=r0,r0 ;;\n (p8) add r8=r9,r10\n (p9) add r8=r9,r10 ;;",
            &[],
        ),
        // A predicate is read whether it is on or not.
        ("cmp.eq p8,p9=r0,r10\n (p8) add r8=r9,r10 ;;", &["raw p8"]),
        // Under a predicate that is off an unconditional compare writes all the same.
        ("(p7) cmp.eq.unc p8,p9=r0,r0\n (p8) add r8=r9,r10 ;;", &["raw p8"]),
        ("(p7) cmp.eq p8,p9=r0,r0\n (p8) add r8=r9,r10 ;;", &[]),
        ("(p7) cmp.eq.unc p8,p9=r0,r0\n cmp.eq p9,p0=r0,r0 ;;", &["waw p9"]),
    ]);
}

#[test]
fn what_the_manual_permits_is_no_finding() {
    check(&[
        // A compare and the branch on its result; not one of floating-point registers.
        ("cmp.eq p8,p0=r0,r10\n (p8) br.cond.sptk 1f ;;\n1:", &[]),
        ("fcmp.eq p8,p0=f0,f1\n (p8) br.cond.sptk 1f ;;\n1:", &["raw p8"]),
        ("cmp.eq.or p8,p0=r0,r10\n cmp.eq.or p8,p0=r0,r4 ;;", &[]),
        ("cmp.eq.and p8,p0=r0,r10\n cmp.eq.and p8,p0=r0,r4 ;;", &[]),
        ("cmp.eq.or p8,p0=r0,r10\n cmp.eq.and p8,p0=r0,r4 ;;", &["waw p8"]),
        (
            "{ .mii\n nop.m 0\n mov r8=ip\n nop.i 0 ;;\n }\n { .mii\n nop.m 0\n adds r8=48,r8\n nop.i 0 ;;\n }\n \
             { .mib\n nop.m 0\n mov b6=r8\n br.cond.sptk b6 ;;\n }",
            &[],
        ),
        ("mov b6=r4\n mov r8=b6 ;;", &["raw b6"]),
        ("mov ar.lc=r0\n br.cloop.sptk 1f ;;\n1:", &["raw ar.lc"]),
        ("ld8.a r8=[r4] ;;\n ld8.c.clr r8=[r4]\n add r9=r8,r10 ;;", &[]),
        ("ptc.l r4,r6\n ptc.l r5,r6 ;;\n srlz.d ;;", &[]),
    ]);
}

#[test]
fn spills_meet_in_the_bits_of_unat() {
    check(&[
        ("st8.spill [r4]=r8\n st8.spill [r5]=r9 ;;", &[]),
        ("st8.spill [r4]=r8\n st8.spill [r4]=r9 ;;", &["waw ar.unat"]),
        ("st8.spill [r4]=r8\n ld8.fill r9=[r5] ;;", &[]),
        ("st8.spill [r4]=r8\n ld8.fill r9=[r4] ;;", &["raw ar.unat"]),
        ("st8.spill [r4]=r8\n mov r9=ar.unat ;;", &["raw ar.unat"]),
    ]);
}

#[test]
fn groups_go_on_until_a_stop_or_a_taken_branch() {
    check(&[
        (
            "add r8=r9,r10\n (p7) br.cond.sptk 1f\n add r11=r8,r10 ;;\n1:",
            &["raw r8"],
        ),
        (
            "add r8=r9,r10\n (p6) br.cond.sptk 1f ;;\n1: add r11=r8,r10 ;;",
            &[],
        ),
        ("add r8=r9,r10\n br.sptk 1f\n1: add r11=r8,r10 ;;", &[]),
        // A loop's branch ends its block, not the group, where it is not taken.
        (
            "mov ar.lc=r0 ;;\n1: add r8=r9,r10\n br.cloop.sptk 1b\n add r11=r8,r10 ;;",
            &["raw r8"],
        ),
        ("mov ar.lc=r10 ;;\n1: add r8=r8,r10\n br.cloop.sptk 1b ;;", &[]),
        // So do instructions behind which a block ends for another reason.
        ("add r8=r9,r10\n rum 8\n add r11=r8,r10 ;;", &["raw r8"]),
    ]);
}

#[test]
fn registers_go_by_what_their_numbers_name() {
    let body = |use_of: &str| {
        format!(
            "alloc r8=ar.pfs,0,16,0,16 ;;\n clrrrb ;;\n mov ar.lc=r10\n mov ar.ec=r10 ;;\n1: \
             {{ .mii\n (p6) add r32=r9,r10\n (p6) add r40={use_of},r10\n nop.i 0\n }}\n \
             {{ .mib\n nop.m 0\n nop.i 0\n br.ctop.sptk 1b ;;\n }}"
        )
    };
    // The value of the round before has another register.
    check(&[(&body("r33"), &[]), (&body("r32"), &["raw r32"])]);
}

#[test]
fn alloc_is_seen_by_its_group_and_what_it_writes_is_not() {
    check(&[
        (
            "{ .mii\n alloc r9=ar.pfs,0,2,0,0\n mov r8=r9\n nop.i 0 ;;\n }",
            &["raw r9"],
        ),
        (
            "{ .mii\n alloc r9=ar.pfs,0,2,0,0\n mov r33=r10\n nop.i 0 ;;\n }",
            &[],
        ),
    ]);
}

#[test]
fn instructions_with_a_place_in_their_group_have_it() {
    let Some(assembler) = tests_need::ASSEMBLER.find() else {
        return;
    };
    // The assembler puts their stops itself: the template of the first bundle takes them away.
    for (text, template, expected) in [
        (
            "{ .mmi\n add r8=r11,r10\n alloc r9=ar.pfs,0,2,0,0\n nop.i 0 ;;\n }",
            0x09,
            "first",
        ),
        (
            "{ .mii\n nop.m 0\n nop.i 0\n nop.i 0\n }\n { .mii\n flushrs\n nop.i 0\n nop.i 0 ;;\n }",
            0x00,
            "first",
        ),
        (
            "{ .mmb\n nop.m 0\n nop.m 0\n clrrrb\n }\n nop.m 0 ;;",
            0x18,
            "last",
        ),
    ] {
        let mut code = assemble(&assembler, &format!("{text}\n break.m {HYPERCALL:#x} ;;"));
        for (is_there, wanted) in [(true, vec![]), (false, vec![expected])] {
            if !is_there {
                code[0] = code[0] & !0x1f | template;
            }
            for step in [u64::MAX, 1] {
                let mut sanitizer = Sanitizer::new(false);
                run(&code, &mut sanitizer, step);
                let found: Vec<String> = sanitizer.findings().iter().map(describe).collect();
                assert_eq!(found, wanted, "in steps of {step}: {text}");
            }
        }
    }
}

#[test]
fn system_state_is_serialised_before_it_is_read() {
    check(&[
        (
            "mov rr[r0]=r7 ;;\n ld8 r8=[r4] ;;\n srlz.d ;;",
            &["srlz.d region"],
        ),
        ("mov rr[r0]=r7 ;;\n srlz.d\n ld8 r8=[r4] ;;", &[]),
        ("mov rr[r0]=r7\n srlz.d ;;\n srlz.d ;;", &["raw region"]),
        // Instruction serialisation is for groups behind its own.
        ("mov rr[r0]=r7 ;;\n srlz.i\n ld8 r8=[r4] ;;", &["srlz.i region"]),
        ("mov rr[r0]=r7 ;;\n srlz.i ;;\n ld8 r8=[r4] ;;", &[]),
        // Another region's register is another one.
        (
            "mov r8=-1 ;;\n mov rr[r8]=r7 ;;\n ld8 r8=[r4] ;;\n srlz.d ;;",
            &[],
        ),
        // What names the register itself needs a stop and no more.
        ("mov rr[r0]=r7 ;;\n mov r8=rr[r0] ;;\n srlz.d ;;", &[]),
        ("mov rr[r0]=r7\n mov r8=rr[r0] ;;\n srlz.d ;;", &["raw region"]),
        ("mov cr.itv=r0 ;;\n mov r8=cr.itv ;;", &["srlz.d cr.itv"]),
        (
            "mov r8=cr.iva ;;\n mov cr.iva=r8 ;;\n srlz.d ;;\n mov r8=cr.iva ;;",
            &["srlz.i cr.iva"],
        ),
        (
            "mov r8=cr.iva ;;\n mov cr.iva=r8 ;;\n srlz.i ;;\n mov r8=cr.iva ;;",
            &[],
        ),
        ("mov cr.itir=r6\n mov cr.ifa=r4 ;;\n itc.d r0 ;;\n srlz.d ;;", &[]),
        (
            "mov cr.itir=r6 ;;\n mov cr.ifa=r4\n itc.d r0 ;;\n srlz.d ;;",
            &["raw cr.ifa"],
        ),
        (
            "mov cr.itir=r6\n mov cr.ifa=r4 ;;\n itc.d r0 ;;\n ld8 r8=[r4] ;;\n srlz.d ;;",
            &["srlz.d data translation"],
        ),
        ("rsm 0x2000 ;;\n mov cr.ifa=r4 ;;", &["srlz.d psr"]),
        ("rsm 0x2000 ;;\n srlz.d ;;\n mov cr.ifa=r4 ;;", &[]),
        ("rsm 0x2000 ;;\n mov r8=psr ;;", &[]),
        ("rsm 0x2000\n mov r8=psr ;;", &["raw psr"]),
        ("ssm 8 ;;\n ld8 r8=[r4] ;;\n srlz.d ;;", &["srlz.d psr"]),
    ]);
}

#[test]
fn stacked_registers_without_a_value_are_not_read() {
    let call = |frame: &str, read: &str| {
        format!(
            "alloc r8=ar.pfs,0,1,3,0 ;;\n mov r33=r10\n mov r35=r10\n br.call.sptk b0=1f ;;\n mov r9={read} ;;\n \
             br.sptk 2f ;;\n1: {frame}\n br.ret.sptk b0 ;;\n2:"
        )
    };
    check(&[
        ("alloc r8=ar.pfs,0,2,0,0 ;;\n add r8=r36,r10 ;;", &["frame r36"]),
        ("add r8=r36,r10 ;;", &["frame r36"]),
        ("(p7) add r8=r36,r10 ;;", &[]),
        (&call("alloc r32=ar.pfs,1,0,0,0 ;;", "r35"), &["return r35"]),
        (&call("alloc r32=ar.pfs,1,0,0,0 ;;", "r33"), &[]),
        (&call("nop.m 0 ;;", "r35"), &[]),
    ]);
}

#[test]
fn a_place_counts_once_however_often_it_runs_and_can_end_the_run() {
    let Some(assembler) = tests_need::ASSEMBLER.find() else {
        return;
    };
    let text = "mov r8=9 ;;\n mov ar.lc=r8 ;;\n1: add r8=r9,r10\n add r11=r8,r10 ;;\n br.cloop.sptk 1b ;;\n";
    let code = assemble(&assembler, &format!("{text}\n break.m {HYPERCALL:#x} ;;"));
    let mut sanitizer = Sanitizer::new(false);
    run(&code, &mut sanitizer, u64::MAX);
    let counts: Vec<u64> = sanitizer.findings().iter().map(|finding| finding.count).collect();
    assert_eq!(counts, [10]);
    let mut sanitizer = Sanitizer::new(true);
    let mut processor = processor(&code);
    assert_eq!(processor.run_observed(u64::MAX, &mut sanitizer), Exit::Halted);
    // Whoever knows of the place goes on to the end.
    sanitizer.go_on();
    let exit = processor.run_observed(u64::MAX, &mut sanitizer);
    assert!(matches!(exit, Exit::Fault(_)), "{exit:?}");
    let counts: Vec<u64> = sanitizer.findings().iter().map(|finding| finding.count).collect();
    assert_eq!(counts, [10]);
}
