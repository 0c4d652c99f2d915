//! Loops of one block, pipelined: what the text holds, that it is verified, and what is left as it was.

use std::path::Path;
use std::time::Duration;

use sidestep_itanium2::Parameters;
use sidestep_schedule::Options;
use sidestep_schedule::assembly::{Rewritten, Speculation, Ways, rewrite};
use sidestep_schedule::pipelining::{LoopReport, Pipelined};
use tests_need::ASSEMBLER;

fn rewritten(text: &str) -> Rewritten {
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::ZERO,
    };
    let ways = Ways {
        speculation: Speculation::None,
        is_pipelined: true,
    };
    rewrite(text, Path::new("code.s"), None, ways, &options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A leaf whose loop has these instructions.
fn leaf(body: &str) -> String {
    format!(
        "\t.text\n\t.proc f\nf:\n\t// schedule: apart: r32, r33\n\tmov ar.lc = r35\n\t;;\n.Lloop:\n{body}\n\tbr.cloop.sptk.few .Lloop\n\t;;\n\tbr.ret.sptk.many b0\n\t.endp f\n"
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
const CONDITIONAL: &str = "\tld8 r14 = [r32], 8\n\t;;\n\tcmp.lt p6, p7 = r14, r34\n\t;;\n\t(p6) add r15 = r14, r34\n\t(p7) sub r15 = r14, r34\n\t;;\n\tst8 [r33] = r15, 8";
const IN_PLACE: &str = "\tld8 r14 = [r32]\n\t;;\n\tadd r14 = r14, r34\n\t;;\n\tst8 [r32] = r14, 8";
const WEIGHTED: &str = "\tld8 r14 = [r32], 8\n\t;;\n\tsetf.sig f6 = r14\n\t;;\n\txma.l f6 = f6, f9, f7\n\t;;\n\tgetf.sig r15 = f6\n\t;;\n\tadd r20 = r20, r15\n\txor r21 = r14, r15";
const POINTERS: &str = "\tld8 r14 = [r16]\n\tadds r16 = 8, r16\n\t;;\n\tshladd r15 = r14, 2, r34\n\t;;\n\txor r15 = r15, r14\n\t;;\n\tst8 [r17] = r15\n\tadds r17 = 8, r17";

#[test]
fn show() {
    if ASSEMBLER.find().is_none() {
        return;
    }
    for body in [ADD, DAXPY, DOT, CONDITIONAL, IN_PLACE, WEIGHTED, POINTERS] {
        let report = report(&leaf(body));
        println!(
            "{body}\n{} units {} recurrence {}",
            rate(report.before),
            report.units,
            report.recurrence
        );
        match &report.outcome {
            Ok(found) => println!(
                "interval {} stages {} rate {} rotating {} from {:?} {:?}\n{}",
                found.interval,
                found.stages,
                rate(found.cycles),
                found.rotating,
                found.worth_from,
                found.compared,
                found.text
            ),
            Err(reason) => println!("{reason}"),
        }
    }
    let _ = pipelined;
}
