//! Random loops of one block, pipelined: `rewrite` holds each kernel against its loop, and that is the test.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use sidestep_itanium2::Parameters;
use sidestep_schedule::Options;
use sidestep_schedule::assembly::{Speculation, Ways};
use sidestep_schedule::rewrite::rewrite;
use tests_need::ASSEMBLER;

/// Instructions of loops; `A`, `B` are general registers, `P` a pointer, `F`, `G` floating-point ones, `T` two targets.
const KINDS: &[&str] = &[
    "ld8 A = [P], 8",
    "ld8 A = [P], 8",
    "ld4 A = [P]",
    "st8 [P] = A, 8",
    "st8 [P] = A, 8",
    "st4 [P] = A",
    "add A = A, B",
    "add A = B, B",
    "sub A = B, P",
    "adds A = 8, B",
    "adds P = 8, P",
    "add P = A, B",
    "shl A = B, 3",
    "shl A = A, B",
    "popcnt A = B",
    "dep A = A, B, 8, 16",
    "mov A = B",
    "cmp.lt T = A, B",
    "cmp.eq.unc T = A, B",
    "cmp.eq.or T = A, B",
    "cmp.ne.and T = A, B",
    "cmp.eq.or.andcm T = A, B",
    "tbit.nz T = A, 3",
    "fcmp.lt T = F, G",
    "fcmp.lt.unc T = F, G",
    "setf.sig F = A",
    "setf.sig F = A",
    "getf.sig A = F",
    "xma.l F = F, G, G",
    "xma.l F = G, G, F",
    "fmerge.s F = F, G",
    "ldfd F = [P], 8",
    "ldfd F = [P], 8",
    "stfd [P] = F, 8",
    "fma.d F = F, G, F",
    "fma.d F = G, G, G",
    "lfetch [P], 64",
];

/// The predicates before them: most have none, and p10 is never written.
const QUALIFIERS: [&str; 12] = [
    "", "", "", "", "(p6) ", "(p6) ", "(p7) ", "(p8) ", "(p9) ", "(p10) ", "(p12) ", "(p13) ",
];
/// The compare of a loop that a condition ends.
const ENDS: &str = "cmp.ne p12, p13 = A, B";
const APPROXIMATION: &str = "frcpa F, p8 = F, G";

/// What an instruction is drawn from.
type Draws = (usize, usize, [usize; 3]);

fn instruction(kind: &str, [first, second, third]: [usize; 3]) -> String {
    let general = |draw: usize| ["r14", "r15", "r16", "r17"][draw % 4];
    let float = |draw: usize| ["f6", "f7", "f8"][draw % 3];
    kind.replace('A', general(first))
        .replace('B', general(second))
        .replace('P', ["r32", "r33", "r34"][third % 3])
        .replace('F', float(first))
        .replace('G', float(second))
        .replace('T', ["p6, p7", "p8, p9", "p9, p8"][third % 3])
}

/// A leaf with a loop. Its first instructions make a value and predicates, as nothing can be under those that are of
/// the iteration before. The compare that ends it, if one does, stands where `end` says.
fn loop_of(draws: &[Draws], (first, end): (usize, Option<usize>), asserted: &str) -> String {
    let begins = [
        "ld8 r14 = [r32], 8",
        "cmp.lt p6, p7 = r14, r15",
        "cmp.eq p8, p9 = r14, r16",
    ];
    let mut lines: Vec<String> = begins[..first % 4]
        .iter()
        .map(|line| (*line).to_owned())
        .collect();
    let place = end.map(|end| end % (draws.len() + 1));
    for (index, (kind, qualifier, registers)) in draws.iter().enumerate() {
        if place == Some(index) {
            lines.push(instruction(ENDS, *registers));
        }
        let kind = match kind % (KINDS.len() + 1) {
            kind if kind < KINDS.len() => KINDS[kind],
            _ => APPROXIMATION,
        };
        let qualifier = QUALIFIERS[qualifier % QUALIFIERS.len()];
        // What ends the loop is known behind its compare.
        let is_early = qualifier.contains("p1") && place.is_some_and(|place| index < place);
        let qualifier = if is_early { "" } else { qualifier };
        lines.push(format!("{qualifier}{}", instruction(kind, *registers)));
    }
    if place == Some(draws.len()) {
        lines.push(instruction(ENDS, [0, 1, 0]));
    }
    let branch = match place {
        Some(_) => "(p12) br.cond.dptk.few",
        None => "br.cloop.sptk.few",
    };
    leaf(&lines, branch, asserted)
}

fn leaf(lines: &[String], branch: &str, head: &str) -> String {
    let body = lines.join("\n\t;;\n\t");
    format!(
        "\t.text\n\t.proc f\nf:\n\t{head}\n\tmov ar.lc = r35\n\t;;\n.Lloop:\n\t{body}\n\t;;\n\t{branch} .Lloop\n\t;;\n\
         \tbr.ret.sptk.many b0\n\t.endp f\n"
    )
}

/// Pipelines the loops of a text.
fn holds(text: &str, speculation: Speculation) -> Result<(), TestCaseError> {
    let options = Options {
        parameters: Parameters::default(),
        time_limit: Duration::ZERO,
    };
    let ways = Ways {
        speculation,
        is_pipelined: true,
        is_predicated: false,
    };
    let rewritten = rewrite(text, Path::new("code.s"), None, ways, &options);
    let rewritten = rewritten.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    for report in &rewritten.functions[0].loops {
        if let Ok(found) = &report.outcome {
            prop_assert!(found.compared.completed > 0, "{}\n{}", text, found.text);
        }
    }
    Ok(())
}

fn draws() -> impl Strategy<Value = Vec<Draws>> {
    prop::collection::vec(any::<Draws>(), 2..10)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn random_loops_that_count_do_the_same(draws in draws(), first: usize) {
        if ASSEMBLER.find().is_some() {
            holds(&loop_of(&draws, (first, None), ""), Speculation::None)?;
        }
    }

    #[test]
    fn random_loops_that_a_condition_ends_do_the_same(draws in draws(), first: usize, end: usize) {
        if ASSEMBLER.find().is_some() {
            let asserted = "// schedule: resident: r32, r33, r34";
            for speculation in [Speculation::None, Speculation::Asserted] {
                holds(&loop_of(&draws, (first, Some(end)), asserted), speculation)?;
            }
        }
    }

    /// Kernels that rotate already; their registers r14 to r17, f6 to f8 and p6 to p9 are ones that do.
    #[test]
    fn random_kernels_do_the_same(draws in draws()) {
        if ASSEMBLER.find().is_some() {
            let rotating = |line: String, stage: usize| {
                let mut line = line;
                for (from, to) in [("r14", 48), ("r15", 49), ("r16", 50), ("r17", 51)] {
                    line = line.replace(from, &format!("r{}", to + stage));
                }
                for (from, to) in [("f6", 40), ("f7", 41), ("f8", 42)] {
                    line = line.replace(from, &format!("f{}", to + stage));
                }
                for (from, to) in [("p6", 24), ("p7", 25), ("p8", 26), ("p9", 27)] {
                    line = line.replace(from, &format!("p{}", to + stage));
                }
                line
            };
            let lines = draws.iter().map(|(kind, qualifier, registers)| {
                let (stage, kind) = (qualifier % 4, KINDS[kind % KINDS.len()]);
                let qualifier = match qualifier / 4 % 3 {
                    0 => "(p6) ".to_owned(),
                    _ => format!("(p{}) ", 16 + stage),
                };
                rotating(format!("{qualifier}{}", instruction(kind, *registers)), stage)
            });
            let head = "alloc r2 = ar.pfs, 8, 40, 0, 48\n\t;;";
            holds(&leaf(&lines.collect::<Vec<_>>(), "br.ctop.sptk.few", head), Speculation::None)?;
        }
    }
}

/// How many loops of each sort are tried; `SIDESTEP_RANDOM_LOOPS` sets more.
fn cases() -> u32 {
    match std::env::var("SIDESTEP_RANDOM_LOOPS") {
        Ok(text) => text.parse().expect("SIDESTEP_RANDOM_LOOPS is a number"),
        Err(_) => 8,
    }
}
