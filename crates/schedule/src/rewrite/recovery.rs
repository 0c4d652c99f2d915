//! Behind checks: the code that executes a load which has deferred a fault, and goes back.

use sidestep_ia64::encoding::{Form, Instruction, Unit, decode};

use crate::assembly::{Function, Source, Statement, Text, UNWINDING};
use crate::block::Block;

/// The lowest bits of an instruction, which name its predicate.
const PREDICATE: u64 = 0x3f;

/// What is executed where a check finds that a fault was deferred.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// A bundle, with its label.
    pub text: String,
    /// The load, and the branch back to the check.
    pub instructions: [Instruction; 2],
}

/// Whether unwinding a function needs to know where in it a processor is, or something stands behind its code: it gets
/// no more code then.
pub fn has_frame(source: &Source, function: &Function) -> bool {
    const HANDLED: &[&str] = &[".handlerdata", ".personality"];
    let lines = &source.lines[function.lines.clone()];
    let mut statements = lines.iter().flat_map(|line| &line.statements);
    statements.any(|statement| match statement {
        Statement::Directive(text) => (UNWINDING.iter().chain(HANDLED)).any(|start| text.starts_with(start)),
        _ => false,
    })
}

/// Gives the checks of a block their texts and labels; `known` are the checks of the function before it.
pub fn checks(texts: &mut [Text], block: &Block, function: &str, known: usize) -> Vec<Recovery> {
    let branch = Form::named("br.cond").find(|form| form.operands.len() == 1 && form.immediate.is_some());
    let branch = branch.expect("a branch to an address").encode(0, &[0], &[]);
    let branch = decode(Unit::B, branch.expect("no distance").slot, 0).expect("what was encoded");
    let mut recoveries = Vec::new();
    for (item, text) in block.items.iter().zip(texts) {
        let Some(load) = item.recovers else { continue };
        let number = known + recoveries.len();
        let (label, back) = (
            format!(".Lrecover_{function}_{number}"),
            format!(".Lchecked_{function}_{number}"),
        );
        let reload = match text.instruction.split_once(')') {
            Some((predicate, rest)) if predicate.starts_with('(') => rest.trim(),
            _ => text.instruction.trim(),
        };
        let reloaded =
            format!("{label}:\n{{\t.mib\n\t{reload}\n\tnop.i\t0\n\tbr.cond.sptk.few\t{back}\n\t;;\n}}\n");
        let predicate = match load.predicate() {
            0 => String::new(),
            number => format!("(p{number})\t"),
        };
        *text = Text {
            label: back,
            instruction: format!("{predicate}chk.s.m\tr{}, {label}", load.r1()),
            ..Text::default()
        };
        let load = decode(Unit::M, load.slot & !PREDICATE, 0).expect("the same load");
        recoveries.push(Recovery {
            text: reloaded,
            instructions: [load, branch],
        });
    }
    recoveries
}
