//! Blocks over branches, with registers of the scheduler's choice. They need GNU as for IA-64.

use std::path::Path;
use std::time::Duration;

use sidestep_itanium2::Parameters;
use sidestep_schedule::Options;
use sidestep_schedule::assembly::Speculation;
use sidestep_schedule::rewrite::{Rewritten, rewrite};
use sidestep_schedule::tools::preprocess;
use tests_need::ASSEMBLER;

fn speculated(text: &str, seconds: u64) -> Rewritten {
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::from_secs(seconds),
    };
    rewrite(text, Path::new("code.s"), None, Speculation::Asserted, &options).expect("it can be scheduled")
}

/// The path of the paper's section 5.3, as one first writes it.
#[test]
fn the_first_path_becomes_what_took_months_by_hand() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/ia64/ipc/first.S");
    let text = preprocess(&source).expect("it can be preprocessed");
    let rewritten = speculated(&text, 60);
    let [function] = &*rewritten.functions else {
        panic!("one function");
    };
    let block = &function.blocks[0];
    assert_eq!(function.before, 132);
    assert_eq!((function.after, block.outcome.bound), (36, 36));
    assert!(block.compared.completed >= 30, "{:?}", block.compared);
    // What is asserted of two control blocks does not hold where they are one.
    assert!(block.compared.excluded < 64, "{:?}", block.compared);
}

/// Two sums with a check between them, which share r14.
const CHECKED: &str = "\
\t.text
\t.proc f
f:
\tld8 r14 = [r32]
\t;;
\tcmp.eq p6, p0 = r14, r0
(p6)\tbr.cond.spnt.few slow
\t;;
\tadd r14 = r33, r34
\t;;
\tshl r14 = r14, 3
\t;;
\tadd r8 = r14, r35
\tbr.ret.sptk.many b0
\t;;
\t.endp f
\t.proc slow
slow:
\tbr.ret.sptk.many b0
\t;;
\t.endp slow
";

fn with(assertions: &str) -> String {
    CHECKED.replacen("f:\n", &format!("f:\n{assertions}"), 1)
}

#[test]
fn nothing_passes_a_branch_that_the_source_does_not_allow_to() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    for (assertions, cycles) in [
        // Nobody said that r14 or r8 is not read behind the label.
        ("", 5),
        // r14 is computed in another register meanwhile; r8 waits for the branch.
        ("\t// schedule: dead at slow: r14, r15\n", 4),
        (
            "\t// schedule: dead at slow: r8, r14, r15\n\t// schedule: dead at return: r14, r15\n",
            3,
        ),
    ] {
        let rewritten = speculated(&with(assertions), 10);
        assert_eq!(rewritten.functions[0].after, cycles, "{assertions}");
    }
}

/// Two moves to one register, under predicates of which the source says that one at most is on.
const EXCLUSIVE: &str = "\
\t.text
\t.proc f
f:
\t.pred.rel \"mutex\", p8, p9
(p8)\tshrp r14 = r32, r33, 8
\t;;
\tadd r16 = r34, r35
(p9)\tshrp r14 = r33, r34, 16
\t;;
\tadd r8 = r16, r35
\tbr.ret.sptk.many b0
\t;;
\t.endp f
";

#[test]
fn states_in_which_exclusive_predicates_are_both_on_are_not_compared() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::from_secs(10),
    };
    let rewritten = rewrite(EXCLUSIVE, Path::new("code.s"), None, Speculation::None, &options);
    let rewritten = rewritten.expect("the moves may change places");
    assert!(rewritten.functions[0].after < rewritten.functions[0].before);
}

/// As compilers write it: with lines around what they were given, and a branch at once where a call returns to.
const COMPILED: &str = "\
\t.text
\t.proc f
f:
#APP
// 1 \"code.c\" 1
\tadd r14 = r32, r33
// 0 \"\" 2
#NO_APP
\t;;
\tadd r15 = r14, r33
\t;;
\tadd r16 = r32, r32
\t;;
\tbr.call.sptk.many b0 = g
\tbr.ret.sptk.many b0
\t;;
\t.endp f
\t.proc g
g:
\tbr.ret.sptk.many b0
\t;;
\t.endp g
";

#[test]
fn a_compilers_comments_are_none_of_the_code_and_a_call_ends_a_block() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::from_secs(10),
    };
    let rewritten = rewrite(COMPILED, Path::new("code.s"), None, Speculation::None, &options);
    let rewritten = rewritten.expect("it can be scheduled");
    assert_eq!(rewritten.functions[0].blocks.len(), 2);
    assert!(rewritten.functions[0].after < rewritten.functions[0].before);
}

/// A load behind a check of its address.
const GUARDED: &str = "\
\t.text
\t.proc f
f:
\tld8 r14 = [r32]
\t;;
\tcmp.eq p6, p0 = r14, r0
(p6)\tbr.cond.spnt.few slow
\t;;
\tld8.nt1 r15 = [r33]
\t;;
\tadd r8 = r15, r35
\tbr.ret.sptk.many b0
\t;;
\t.endp f
\t.proc slow
slow:
\tbr.ret.sptk.many b0
\t;;
\t.endp slow
";

#[test]
fn a_load_of_what_is_resident_passes_a_branch_as_a_speculative_one() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let dead = "\t// schedule: dead at slow: r8, r14, r15\n\t// schedule: dead at return: r14, r15\n";
    for (resident, cycles, load) in [
        // With a check where it was.
        ("", 3, "\tchk.s.m\tr"),
        ("\t// schedule: resident: r33\n", 2, "\tld8.s.nt1 r"),
        // Another pointer's.
        ("\t// schedule: resident: r34\n", 3, "\tchk.s.m\tr"),
    ] {
        let text = GUARDED.replacen("f:\n", &format!("f:\n{dead}{resident}"), 1);
        let rewritten = speculated(&text, 10);
        assert_eq!(rewritten.functions[0].after, cycles, "{resident}");
        assert!(rewritten.text.contains(load), "{}", rewritten.text);
        assert_eq!(
            rewritten.text.contains("chk.s"),
            cycles == 3,
            "{}",
            rewritten.text
        );
    }
}

/// A list's head, looked at where there is one: two loads one behind the other, and a sum.
const LISTED: &str = "\
\t.text
\t.global f
\t.proc f
f:
\t// schedule: dead at none: r8, r14-r17
\t// schedule: dead at return: r14-r17
\tcmp.eq p6, p7 = 0, r32
(p6)\tbr.cond.spnt none
\t;;
\tld8 r14 = [r32]
\t;;
\tadd r15 = r14, r33
\t;;
\tld8 r16 = [r33]\t// the other one
\t;;
\tadd r8 = r15, r16
\tbr.ret.sptk.many b0
\t;;
none:
\tmov r8 = 99
\tbr.ret.sptk.many b0
\t;;
\t.endp f
";

#[test]
fn a_load_passes_a_branch_with_a_check_behind_it() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let rewritten = speculated(LISTED, 10);
    let function = &rewritten.functions[0];
    let block = &function.blocks[0];
    assert_eq!(block.checks, 2, "{}", rewritten.text);
    assert!(function.after < function.before);
    // In most states the loads' pages are not mapped, so that they defer, and the checks have them done over.
    assert!(block.compared.completed >= 64, "{:?}", block.compared);
    for part in [
        "ld8.s r",
        "chk.s.m\tr",
        ".Lrecover_f_1:",
        "br.cond.sptk.few\t.Lchecked_f_0",
        "// the other one",
    ] {
        assert!(rewritten.text.contains(part), "{part}: {}", rewritten.text);
    }
    // Where unwinding tells of places in the function it gets no more code.
    let framed = LISTED.replacen(
        "f:\n",
        "f:\n\t.prologue\n\t.save rp, r34\n\tmov r34 = b0\n\t.body\n",
        1,
    );
    assert_eq!(
        speculated(&framed, 10).functions[0]
            .blocks
            .iter()
            .map(|block| block.checks)
            .sum::<usize>(),
        0
    );
}

#[test]
fn a_wrong_assertion_is_refused_with_its_line() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::ZERO,
    };
    let text = with("\t// schedule: dead at slow: f6\n");
    let refused = rewrite(&text, Path::new("code.s"), None, Speculation::Asserted, &options);
    let error = refused.expect_err("f6 cannot be called dead").to_string();
    assert!(
        error.starts_with("code.s: line 4: `f6` cannot be called dead"),
        "{error}"
    );
}
