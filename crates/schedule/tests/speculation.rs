//! Blocks over branches, with registers of the scheduler's choice. They need GNU as for IA-64.

use std::path::Path;
use std::time::Duration;

use sidestep_itanium2::Parameters;
use sidestep_schedule::Options;
use sidestep_schedule::assembly::{Rewritten, Speculation, rewrite};
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
    assert!(function.after <= 39, "{}", function.after);
    assert!(
        (33..=function.after).contains(&block.outcome.bound),
        "{}",
        block.outcome.bound
    );
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
