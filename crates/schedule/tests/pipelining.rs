//! Loops of one block, pipelined: what the text holds, that it is verified, and what is left as it was.

use std::path::Path;
use std::time::Duration;

use sidestep_itanium2::Parameters;
use sidestep_schedule::Options;
use sidestep_schedule::assembly::{Speculation, Ways};
use sidestep_schedule::pipelining::{LoopReport, Pipelined};
use sidestep_schedule::rewrite::{Rewritten, rewrite};
use tests_need::ASSEMBLER;

fn rewritten(text: &str) -> Rewritten {
    rewritten_with(text, Speculation::None)
}

fn rewritten_with(text: &str, speculation: Speculation) -> Rewritten {
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::ZERO,
    };
    let ways = Ways {
        speculation,
        is_pipelined: true,
        is_predicated: false,
    };
    rewrite(text, Path::new("code.s"), None, ways, &options)
        .unwrap_or_else(|error| panic!("{error:#?}\n{text}"))
}

/// A leaf whose loop has these instructions.
fn leaf(body: &str) -> String {
    format!(
        "\t.text\n\t.proc f\nf:\n\t// schedule: apart: r32, r33\n\
         \tmov ar.lc = r35\n\t;;\n.Lloop:\n{body}\n\tbr.cloop.sptk.few .Lloop\n\t;;\n\
         \tbr.ret.sptk.many b0\n\t.endp f\n"
    )
}

fn report(text: &str) -> LoopReport {
    let rewritten = rewritten(text);
    let mut loops = rewritten.functions[0].loops.clone();
    assert_eq!(loops.len(), 1, "{text}");
    loops.remove(0)
}

fn pipelined(body: &str) -> (LoopReport, Pipelined) {
    let report = report(&leaf(body));
    let found = report
        .outcome
        .clone()
        .unwrap_or_else(|reason| panic!("{reason}: {body}"));
    assert!(found.compared.completed > 40, "{:?}", found.compared);
    (report, found)
}

fn rate(cycles: u64) -> f64 {
    cycles as f64 / LoopReport::ITERATIONS as f64
}

const ADD: &str = "\tld8 r14 = [r32], 8\n\t;;\n\tadd r14 = r14, r34\n\t;;\n\tst8 [r33] = r14, 8";
const DAXPY: &str =
    "\tldfd f6 = [r32], 8\n\tldfd f7 = [r33]\n\t;;\n\tfma.d f7 = f6, f8, f7\n\t;;\n\tstfd [r33] = f7, 8";
const DOT: &str = "\tldfd f6 = [r32], 8\n\tldfd f7 = [r33], 8\n\t;;\n\tfma.d f8 = f6, f7, f8";
const CONDITIONAL: &str = "\
\tld8 r14 = [r32], 8\n\t;;\n\
\tcmp.lt p6, p7 = r14, r34\n\t;;\n\
\t(p6) add r15 = r14, r34\n\t(p7) sub r15 = r14, r34\n\t;;\n\
\tst8 [r33] = r15, 8";
const IN_PLACE: &str = "\tld8 r14 = [r32]\n\t;;\n\tadd r14 = r14, r34\n\t;;\n\tst8 [r32] = r14, 8";
const WEIGHTED: &str = "\
\tld8 r14 = [r32], 8\n\t;;\n\
\tsetf.sig f6 = r14\n\t;;\n\
\txma.l f6 = f6, f9, f7\n\t;;\n\
\tgetf.sig r15 = f6\n\t;;\n\
\tadd r20 = r20, r15\n\txor r21 = r14, r15";
const POINTERS: &str = "\
\tld8 r14 = [r16]\n\tadds r16 = 8, r16\n\t;;\n\
\tshladd r15 = r14, 2, r34\n\t;;\n\
\txor r15 = r15, r14\n\t;;\n\
\tst8 [r17] = r15\n\tadds r17 = 8, r17";

/// Loops, with the least cycles for an iteration that is possible and what they take.
#[test]
fn loops_take_as_many_cycles_an_iteration_as_planned() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    for (body, least, interval) in [
        (ADD, 1, 1),
        (DAXPY, 1, 1),
        (DOT, 4, 4),
        (CONDITIONAL, 1, 1),
        (IN_PLACE, 1, 1),
        (WEIGHTED, 2, 2),
        (POINTERS, 3, 3),
    ] {
        let (report, found) = pipelined(body);
        assert_eq!(report.units.max(report.recurrence), least, "{body}");
        assert_eq!(found.interval, interval, "{body}\n{}", found.text);
        assert!(found.cycles < report.before, "{body}\n{}", found.text);
        println!("{body}\n{} -> {}", rate(report.before), rate(found.cycles));
    }
}

#[test]
fn a_loop_may_begin_at_a_label_that_is_a_number() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let text = leaf(ADD).replace(".Lloop:", "1:").replace(".Lloop", "1b");
    let found = report(&text).outcome.expect("it gains");
    assert_eq!(found.interval, 1, "{}", found.text);
}

/// A leaf whose loop goes back under p6.
fn conditional(body: &str, asserted: &str) -> String {
    leaf(body)
        .replace("\tbr.cloop.sptk.few", "\t(p6) br.cond.dptk.few")
        .replace("// schedule: apart: r32, r33", asserted)
}

/// Loops that a compare ends, their cycles an iteration as planned, without speculation and with it.
#[test]
fn loops_that_a_condition_ends_go_on_under_the_condition_of_the_iteration_before() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    for (name, body, (plain, speculative)) in [
        (
            "a string's end",
            "\tld1 r14 = [r32], 1\n\t;;\n\tcmp.ne p6, p7 = r14, r0\n\t;;",
            (2, 1),
        ),
        (
            "what has a tail",
            "\tld8 r14 = [r32], 8\n\t;;\n\tcmp.ne p6, p7 = r14, r0\n\tsetf.sig f6 = r14\n\t;;\n\
             \txma.l f6 = f6, f9, f7\n\t;;\n\tgetf.sig r15 = f6\n\t;;\n\tadd r20 = r20, r15\n\t;;",
            (2, 2),
        ),
        (
            "a list",
            "\tadds r15 = 8, r14\n\tld8 r14 = [r14]\n\t;;\n\tld8 r16 = [r15]\n\tcmp.ne p6, p7 = r14, r0\n\t;;\n\
             \tshladd r17 = r16, 2, r16\n\t;;\n\tadd r8 = r8, r17\n\t;;",
            (2, 2),
        ),
        (
            "floating point",
            "\tldfd f6 = [r32], 8\n\t;;\n\tfma.d f8 = f6, f9, f8\n\tfcmp.lt p6, p7 = f6, f10\n\t;;",
            (8, 8),
        ),
        (
            "what the exit is not for",
            "\tld8 r14 = [r32], 8\n\t;;\n\tcmp.ne p7, p6 = r14, r0\n\tcmp.lt p8, p9 = r14, r34\n\t;;\n\
             \t(p8) add r15 = r14, r15\n\t(p9) sub r15 = r15, r14\n\t;;\n\tst8 [r33] = r15, 8\n\t;;",
            (4, 4),
        ),
    ] {
        let text = conditional(body, "// schedule: resident: r32");
        for (speculation, interval) in [(Speculation::None, plain), (Speculation::Asserted, speculative)] {
            let rewritten = rewritten_with(&text, speculation);
            let report = &rewritten.functions[0].loops[0];
            let found = report
                .outcome
                .as_ref()
                .unwrap_or_else(|reason| panic!("{name}: {reason}"));
            assert!(found.text.contains("br.wtop"), "{}", found.text);
            assert_eq!(found.interval, interval, "{name}\n{}", found.text);
            assert_eq!(
                found.text.contains("ld1.s"),
                name == "a string's end" && interval == 1
            );
            assert!(
                found.cycles < report.before && found.compared.completed > 60,
                "{name}: {found:?}"
            );
        }
    }
}

#[test]
fn what_cannot_be_pipelined_stays_with_a_reason() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let ends_by_two = conditional(
        "\tld8 r14 = [r32], 8\n\t;;\n\tcmp.ne p6, p7 = r14, r0\n\t;;\n\tcmp.ne.and p6, p0 = r14, r34\n\t;;",
        "",
    );
    let ends_by_older = conditional("\tld8 r14 = [r32], 8\n\t;;\n\tadd r15 = r14, r15", "");
    let rotates = leaf(ADD).replace("br.cloop", "br.ctop");
    let leaves = leaf(&format!(
        "{ADD}\n\t(p6) br.cond.spnt .Lout\n\t;;\n\tadd r20 = r20, r14"
    ))
    .replace("\tbr.ret", ".Lout:\n\tbr.ret");
    for (text, reason) in [
        (
            ends_by_two,
            "p6, which ends it, is not made anew in each iteration by one compare",
        ),
        (ends_by_older, "p6, which ends it, is not made anew"),
        (rotates, "no order of fewer cycles has been found"),
        (
            leaf("\tld8.a r14 = [r32], 8\n\t;;\n\tst8 [r33] = r14, 8"),
            "address is remembered",
        ),
        (
            leaf("\tld8 r14 = [r32], 8\n\t;;\n\tmov ar.ec = r14"),
            "moves ar.ec",
        ),
        (
            leaf("\tld8 r14 = [r32], 8\n\t;;\n\tmov pr = r14, -1"),
            "names all predicates",
        ),
        (
            leaf("\tld8 r14 = [r32], 8\n\t;;\n\t(p6) st8 [r33] = r14, 8"),
            "p6, which is not made anew",
        ),
        (
            leaf("\tld8 r14 = [r32], 8\n\t;;\n\tmov r15 = ar.lc"),
            "is about an application register",
        ),
        (leaf("\tadd r14 = r14, r34"), "no schedule of fewer cycles"),
        (leaves, "of several blocks"),
        (
            leaf(ADD).replace("br.cloop", "br.wtop"),
            "rotates registers already",
        ),
        (
            leaf("\tld8.s r14 = [r32], 8\n\t;;\n\tchk.s r14, .Lout\n\tadd r15 = r14, r15")
                .replace("\tbr.ret", ".Lout:\n\tbr.ret"),
            "may leave it in the middle",
        ),
    ] {
        let said = report(&text).outcome.expect_err(&text);
        assert!(said.contains(reason), "{said}\n{text}");
    }
}

/// Instructions that no predicate of a stage guards are executed for iterations before the first and behind the last.
#[test]
fn iterations_that_do_not_exist_change_nothing() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    // Its predicate is on for all iterations or for none: it would add to what was in r14 before the loop.
    let sum = "\tld8 r17 = [r32], 8\n\t;;\n\txor r14 = r14, r17\n\t;;\n\t(p6) add r14 = r14, r16";
    let said = report(&leaf(sum))
        .outcome
        .expect_err("r14 is changed before the loop");
    assert!(said.contains("takes the place of what was there"), "{said}");
    // A compare under such a predicate can turn on that of a store.
    let stores = "\tld8 r17 = [r32], 8\n\t;;\n\t(p6) cmp.eq.unc p8, p9 = r17, r15\n\t;;\n\
        \t(p8) st8 [r33] = r17, 8\n\tldfd f6 = [r34], 8\n\t;;\n\tfma.d f6 = f6, f7, f8\n\t;;\n\
        \tfma.d f6 = f6, f7, f8\n\t;;\n\tstfd [r18] = f6, 8";
    let said = report(&leaf(stores))
        .outcome
        .expect_err("a store of no iteration");
    assert!(
        said.contains("p8, which is not made anew in each iteration"),
        "{said}"
    );
    // Or say of iterations that end the loop that there is another one.
    let ends = "\tld8 r14 = [r32], 8\n\t;;\n\t(p8) cmp.ne.unc p6, p7 = r14, r0\n\t;;";
    let said = report(&conditional(ends, "")).outcome.expect_err("no end");
    assert!(said.contains("p8, which is not made anew"), "{said}");
    // The predicate that ends the loop is on for the iteration before the first, as that says that there is a first:
    // what it decides may not be of that one.
    let copies = "\tld8 r14 = [r32], 8\n\t;;\n\tcmp.ne p6, p7 = r14, r0\n\t;;\n\t(p6) st8 [r33] = r14, 8";
    let said = report(&conditional(copies, "")).outcome;
    let said = said.expect_err("a store of the iteration before the first");
    assert!(said.contains("is asked for too early"), "{said}");
    // Of what is kept in one predicate nothing is written anew.
    let kept = "\tld8 r14 = [r32], 8\n\t;;\n\tcmp.eq.or p8, p0 = r14, r0\n\tadd r15 = r14, r34\n\t;;\n\
        \t(p8) add r15 = r14, r14\n\t;;\n\tcmp.lt p8, p9 = r15, r34\n\t;;\n\tst8 [r33] = r15, 8";
    let said = report(&leaf(kept)).outcome.expect_err("p8 would be cleared");
    assert!(said.contains("p8, which keeps what it was"), "{said}");
    // An approximation that is not executed keeps its value, of this iteration.
    let approximates = "\tldfd f6 = [r32], 8\n\tldfd f7 = [r34], 8\n\t;;\n\tfcmp.lt p6, p7 = f6, f9\n\t;;\n\
        \t(p6) frcpa f6, p8 = f10, f7\n\t;;\n\tstfd [r33] = f6, 8";
    let (_, found) = pipelined(approximates);
    assert!(found.text.contains("frcpa"), "{}", found.text);
    // With speculation a sum may be computed ahead, but not before the first iteration.
    let ahead = "\tsub r17 = r15, r34\n\t;;\n\tadd r14 = r14, r17\n\t;;\n\tcmp.ne p6, p7 = r14, r15\n\t;;";
    let rewritten = rewritten_with(
        &conditional(ahead, "// schedule: resident: r32"),
        Speculation::Asserted,
    );
    let found = rewritten.functions[0].loops[0]
        .outcome
        .as_ref()
        .expect("it gains");
    assert_eq!(found.interval, 2, "{}", found.text);
}

/// A kernel of two stages, in the order of its stages: the second one's instructions wait for the first one's.
#[test]
fn a_loop_that_rotates_already_gets_the_order_that_its_passes_need() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let kernel = "\t(p16) ldfd f32 = [r32], 8\n\t;;\n\t(p18) fma.d f40 = f34, f8, f9\n\t;;\n\
        \t(p19) stfd [r33] = f41, 8\n\t;;\n\tadds r14 = 1, r14\n\t;;";
    let text = leaf(kernel).replace("br.cloop", "br.ctop");
    let report = report(&text);
    let found = report
        .outcome
        .as_ref()
        .unwrap_or_else(|reason| panic!("{reason}"));
    assert!(found.cycles < report.before, "{}\n{}", report.before, found.text);
    assert!(
        found.text.contains("br.ctop") && found.compared.completed > 60,
        "{found:?}"
    );
}

/// A function with a frame of its own, whose loop's registers are in it.
#[test]
fn the_frame_is_elsewhere_while_general_registers_rotate() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    let text = leaf(DAXPY).replace(
        "\tmov ar.lc",
        "\talloc r2 = ar.pfs, 4, 3, 2, 0\n\tmov r40 = r32\n\tmov ar.lc",
    );
    let found = report(&text).outcome.expect("it gains");
    assert!(found.rotating >= 8, "{}", found.text);
    assert!(found.text.contains("ar.pfs, 0, 7, 2, 0"), "{}", found.text);
    // Where the function saves something in a stacked register for unwinding, they stay, and nothing is gained here.
    let saving = text.replace("\talloc r2", "\t.prologue\n\t.save ar.pfs, r37\n\talloc r37");
    let said = report(&saving).outcome.expect_err("it would have to rotate them");
    assert!(said.contains("no schedule of fewer cycles"), "{said}");
}
