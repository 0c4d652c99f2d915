//! The loops of one block in a function, with what is around them.

use sidestep_ia64::encoding::{BranchKind, Bundle, Instruction, Operation};
use sidestep_ia64::registers::application::EC;

use crate::assembly::{Function, Piece, Source, Statement, Text, goes_back, slots};
use crate::block::Block;
use crate::pipelining::{Frame, Loop, LoopReport, Surroundings};
use crate::sequencing::{Effects, Parts};

/// A loop and what is around it.
pub(super) struct Found<'a> {
    block: &'a Block,
    texts: &'a [Text],
    bundles: &'a [Bundle],
    surroundings: Surroundings,
    label: String,
    /// The line of the source where it begins.
    pub line: usize,
    instructions: usize,
    /// Whether it is one block, and not the last of several.
    pub is_whole: bool,
}

impl Found<'_> {
    /// The loop, to pipeline it.
    pub fn as_loop(&self) -> Loop<'_> {
        Loop {
            block: self.block,
            texts: self.texts,
            bundles: self.bundles,
            surroundings: &self.surroundings,
            label: self.label.clone(),
            speculates: false,
        }
    }

    /// What is said of one that stays.
    pub fn refused(&self, reason: &str) -> LoopReport {
        LoopReport {
            line: self.line,
            instructions: self.instructions,
            before: 0,
            units: 0,
            recurrence: 0,
            outcome: Err(reason.to_owned()),
        }
    }
}

/// By block of a function, the loop that it closes: what goes back to a label before it.
pub(super) fn loops<'a>(source: &Source, function: &'a Function) -> Vec<Option<Found<'a>>> {
    let common = surroundings(source, function);
    let mut loops = Vec::new();
    let mut labels: Vec<&str> = Vec::new();
    // Those before them, with their lines and how many instructions stand before them.
    let mut earlier: Vec<(&str, usize, usize)> = Vec::new();
    let mut passed = 0;
    let mut rest = Vec::new();
    for piece in &function.pieces {
        let Piece::Block {
            block,
            texts,
            original,
            ..
        } = piece
        else {
            continue;
        };
        rest.push((block, texts, original));
    }
    let mut place = 0;
    for piece in &function.pieces {
        let (lines, block, texts, bundles) = match piece {
            Piece::Verbatim { lines } => {
                for line in &source.lines[lines.clone()] {
                    let found = line.statements.iter().filter_map(|statement| match statement {
                        Statement::Label(label) => Some(label.as_str()),
                        _ => None,
                    });
                    for label in found {
                        labels.push(label);
                        earlier.push((label, line.number, passed));
                    }
                }
                continue;
            }
            Piece::Block {
                lines,
                block,
                texts,
                bundles,
                ..
            } => (lines, block, texts, bundles),
        };
        let target = texts
            .last()
            .and_then(|text| text.instruction.split_whitespace().next_back());
        let target = target.unwrap_or_default().trim_end_matches('#');
        let is_branch = block
            .items
            .last()
            .is_some_and(|item| is_loop_branch(&item.instruction));
        let begin = earlier.iter().rfind(|(label, ..)| goes_back(target, label));
        passed += block.items.len();
        let is_whole = labels.iter().any(|label| goes_back(target, label));
        labels.clear();
        let found = begin.filter(|_| is_branch).map(|(_, begin, before)| {
            let mut used_outside = Parts::NONE;
            for (other, (_, _, original)) in rest.iter().enumerate() {
                if other != place {
                    used_outside = used_outside.or(used(original));
                }
            }
            Found {
                block,
                texts,
                bundles,
                surroundings: Surroundings {
                    used_outside,
                    ..common.clone()
                },
                label: format!(
                    ".Lpipelined_{}_{}",
                    function.name, source.lines[lines.start].number
                ),
                line: if is_whole {
                    source.lines[lines.start].number
                } else {
                    *begin
                },
                instructions: passed - before,
                is_whole,
            }
        });
        loops.push(found);
        place += 1;
    }
    loops
}

/// Whether the instruction is a branch that can close a loop.
fn is_loop_branch(instruction: &Instruction) -> bool {
    matches!(instruction.operation, Operation::Branch { .. }) && instruction.is_relative()
}

/// Whether the instruction is a move to or from ar.ec; calls and returns keep it.
fn moves_epilogue_count(instruction: &Instruction) -> bool {
    let is_move = matches!(
        instruction.operation,
        Operation::MoveToApplication { .. } | Operation::MoveFromApplication
    );
    is_move && instruction.ar3() == EC
}

/// The registers that instructions name.
fn used(instructions: &[Instruction]) -> Parts {
    instructions.iter().fold(Parts::NONE, |used, instruction| {
        let effects = Effects::of(instruction);
        used.or(effects.reads).or(effects.all_writes())
    })
}

/// What a function says as a whole.
fn surroundings(source: &Source, function: &Function) -> Surroundings {
    let instructions: Vec<Instruction> = slots(&function.bundles)
        .into_iter()
        .filter_map(|(_, instruction)| instruction.ok())
        .collect();
    let is_alloc = |instruction: &&Instruction| instruction.operation == Operation::Allocate;
    let allocs: Vec<&Instruction> = instructions.iter().filter(is_alloc).collect();
    let sizes = allocs.first().map(|alloc| Sizes::of(alloc));
    let is_first = instructions.first().is_some_and(|first| is_alloc(&first));
    let rotates = |instruction: &Instruction| {
        matches!(
            instruction.operation,
            Operation::Branch { kind, .. }
                if !matches!(kind, BranchKind::Conditional | BranchKind::CountedLoop)
        )
    };
    let used = used(&instructions);
    let keeps_frame = if allocs.len() > 1 || !allocs.is_empty() && !is_first {
        Some("the function allocates its frame elsewhere than at its begin alone")
    } else if allocs.is_empty() && leaves(source, function) {
        Some("the function hands its frame on")
    } else if names_stacked(source, function) {
        Some("stacked registers are named by what they are for, or in unwind directives")
    } else {
        None
    };
    let keeps_all = if instructions.iter().any(rotates) || sizes.is_some_and(|sizes| sizes.rotating > 0) {
        Some("the function rotates registers already")
    } else if instructions.iter().any(moves_epilogue_count) {
        Some("the function moves ar.ec")
    } else {
        None
    };
    Surroundings {
        frame: sizes.map(|sizes| Frame {
            locals: sizes.locals,
            outputs: sizes.all - sizes.locals,
        }),
        used,
        used_outside: Parts::NONE,
        rotating: sizes.map_or(0, |sizes| 8 * sizes.rotating),
        keeps_frame,
        keeps_all,
    }
}

/// Whether the function goes on elsewhere, by call or by branch, but for returns.
fn leaves(source: &Source, function: &Function) -> bool {
    let lines = &source.lines[function.lines.clone()];
    let statements = lines.iter().flat_map(|line| &line.statements);
    let is_label = |target: &str| {
        statements
            .clone()
            .any(|statement| matches!(statement, Statement::Label(label) if label == target))
    };
    let mut items = function.pieces.iter().flat_map(|piece| match piece {
        Piece::Block { block, texts, .. } => block.items.iter().zip(texts).collect(),
        Piece::Verbatim { .. } => Vec::new(),
    });
    items.any(|(item, text)| match item.instruction.operation {
        Operation::Call { .. } => true,
        Operation::Branch { .. } => {
            let target = text
                .instruction
                .split_whitespace()
                .next_back()
                .unwrap_or_default();
            !item.instruction.is_relative() || !is_label(target.trim_end_matches('#'))
        }
        _ => false,
    })
}

/// The sizes in an `alloc` (manual 3:4.4.9.4, format M34).
#[derive(Clone, Copy)]
struct Sizes {
    all: u8,
    locals: u8,
    rotating: u8,
}

impl Sizes {
    fn of(alloc: &Instruction) -> Sizes {
        let field = |shift: u32, bits: u32| (alloc.slot >> shift & ((1 << bits) - 1)) as u8;
        let all = field(13, 7);
        Sizes {
            all,
            locals: field(20, 7).min(all),
            rotating: field(27, 4),
        }
    }
}

/// Whether a function names stacked registers otherwise than by number in instructions, so that they have to stay.
fn names_stacked(source: &Source, function: &Function) -> bool {
    let lines = &source.lines[function.lines.clone()];
    lines
        .iter()
        .flat_map(|line| &line.statements)
        .any(|statement| match statement {
            Statement::Directive(text) => {
                let is_of_frame = [".save", ".vframe", ".prologue", ".regstk", ".rotr"]
                    .iter()
                    .any(|start| text.starts_with(start));
                is_of_frame
                    && words(text).any(|word| {
                        word.trim_start_matches('r')
                            .parse()
                            .is_ok_and(|number: u32| number >= 32)
                    })
            }
            Statement::Instruction(text) => words(text).any(|word| {
                let is_numbered = |name: &str| {
                    word.strip_prefix(name).is_some_and(|rest| {
                        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
                    })
                };
                is_numbered("in") || is_numbered("loc") || is_numbered("out")
            }),
            _ => false,
        })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_ascii_alphanumeric())
}
