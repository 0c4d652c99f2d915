//! Predicates in place of branches: which, what the text holds, and what stays a branch.

use std::path::Path;
use std::time::Duration;

use sidestep_itanium2::Parameters;
use sidestep_schedule::Options;
use sidestep_schedule::assembly::Ways;
use sidestep_schedule::rewrite::{Rewritten, rewrite};
use tests_need::ASSEMBLER;

fn rewritten(body: &str, is_pipelined: bool) -> Rewritten {
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::ZERO,
    };
    let ways = Ways {
        is_predicated: true,
        is_pipelined,
        ..Ways::default()
    };
    let text = format!(
        "\t.text\n\t.proc f\nf:\n{body}\n\t;;\n\tbr.ret.sptk.many b0\n\t;;\n\t.endp f\n\t.size f, .-f\n"
    );
    rewrite(&text, Path::new("code.s"), None, ways, &options)
        .unwrap_or_else(|error| panic!("{error:#?}\n{text}"))
}

const MINIMUM: &str = "\tld8 r14 = [r32]\n\tld8 r15 = [r33]\n\t;;\n\tcmp.lt p6, p7 = r14, r15\n\t;;\n\
    \t(p6) br.cond.dptk .Lless\n\t;;\n\tmov r14 = r15\n\tadds r16 = 1, r16\n\t;;\n.Lless:\n\tst8 [r32] = r14";
const EITHER: &str = "\tcmp.lt p6, p7 = r32, r33\n\t;;\n\t(p6) br.cond.dptk .Lless\n\t;;\n\
    \tsub r8 = r32, r33\n\tst8 [r34] = r33\n\tbr.cond.sptk .Lend\n\t;;\n\
    .Lless:\n\tsub r8 = r33, r32\n\tst8 [r34] = r32\n\t;;\n.Lend:\n\tadds r8 = 1, r8";

#[test]
fn what_a_branch_goes_around_is_under_the_complement_of_its_predicate() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    for (body, count, under) in [
        (MINIMUM, 2, ["(p7) mov r14 = r15", "(p7) adds r16 = 1, r16"]),
        (EITHER, 4, ["(p7) st8 [r34] = r33", "(p6) st8 [r34] = r32"]),
    ] {
        let rewritten = rewritten(body, false);
        let function = &rewritten.functions[0];
        let [branch] = function.branches.as_slice() else {
            panic!("{:?}\n{}", function.branches, rewritten.text);
        };
        assert_eq!(branch.instructions, count);
        assert!(
            branch.before.iter().all(|cycles| branch.after <= *cycles),
            "{branch:?}"
        );
        assert!(branch.compared.completed > 60, "{branch:?}");
        assert!(function.after <= function.before, "{function:?}");
        assert!(!rewritten.text.contains("br.cond"), "{}", rewritten.text);
        for text in under {
            assert!(rewritten.text.contains(text), "{}", rewritten.text);
        }
        // Lines are those of the source.
        assert_eq!((branch.line, function.blocks[0].line), (4, 4));
    }
}

#[test]
fn what_has_no_complement_stays_a_branch() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    for (from, to) in [
        // Nobody makes the complement,
        ("cmp.lt p6, p7", "cmp.lt p6, p0"),
        // or makes it under a predicate,
        ("\tcmp.lt p6, p7", "\t(p8) cmp.lt p6, p7"),
        // or it is gone,
        ("adds r16 = 1, r16", "cmp.eq p7, p8 = r0, r0"),
        // or an instruction is under another one,
        ("\tmov r14 = r15", "\t(p9) mov r14 = r15"),
        // or may not be under any;
        ("adds r16 = 1, r16", "br.call.sptk b0 = f"),
        ("mov r14 = r15", "flushrs"),
    ] {
        let body = MINIMUM.replace(from, to);
        assert_ne!(body, MINIMUM);
        let rewritten = rewritten(&body, false);
        assert!(rewritten.functions[0].branches.is_empty(), "{}", rewritten.text);
        assert!(rewritten.text.contains("br.cond"), "{}", rewritten.text);
    }
    // or it would take longer one way.
    let long = MINIMUM.replace(
        "\tadds r16 = 1, r16",
        "\t;;\n\txor r17 = r14, r15\n\t;;\n\tshl r17 = r17, r14\n\t;;\n\
         \tshl r17 = r17, r15\n\t;;\n\tadd r16 = r17, r16",
    );
    assert!(rewritten(&long, false).functions[0].branches.is_empty());
}

#[test]
fn a_loop_whose_branches_are_predicates_is_one_block_and_pipelined() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let body = "\tmov ar.lc = r35\n\t;;\n.Lloop:\n\tld8 r14 = [r32], 8\n\t;;\n\tcmp.lt p6, p7 = r14, r8\n\t;;\n\
        \t(p6) br.cond.dptk .Lless\n\t;;\n\tmov r8 = r14\n\t;;\n.Lless:\n\tbr.cloop.sptk.few .Lloop";
    let rewritten = rewritten(body, true);
    let function = &rewritten.functions[0];
    assert_eq!(function.branches.len(), 1, "{}", rewritten.text);
    let found = function.loops[0].outcome.as_ref().expect("it can be pipelined");
    assert!(found.text.contains("br.ctop"), "{}", found.text);
}
