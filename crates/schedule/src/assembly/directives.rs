//! What may stand between `.proc` and `.endp` beside instructions and labels.

use std::path::Path;

use super::AssemblyError;
use super::source::{Source, Statement, begins_section, names};

/// Directives that belong to the instruction behind them, beside those in [`UNWINDING`].
const ATTACHED: &[&str] = &[".pred.rel", ".mem.offset", ".reg.val", ".loc"];
/// Those of them that say what the instruction behind them does to a frame, for unwinding.
pub(crate) const UNWINDING: &[&str] = &[
    ".save", ".spill", ".restore", ".fframe", ".vframe", ".altrp", ".unwabi",
];
/// Directives between blocks.
const BETWEEN: &[&str] = &[
    ".body",
    ".prologue",
    ".label_state",
    ".copy_state",
    ".align",
    ".p2align",
    ".balign",
    ".entry",
    ".regstk",
    ".rotr",
    ".rotp",
    ".rotf",
    ".global",
    ".globl",
    ".hidden",
    ".type",
    ".size",
    ".handlerdata",
    ".personality",
    ".pred.safe_across_calls",
    ".explicit",
    ".auto",
    ".default",
    ".file",
    ".ln",
    ".loc_mark_labels",
    ".weak",
    ".proc",
    ".endp",
    ".cfi_startproc",
    ".cfi_endproc",
    ".radix",
    ".alias",
    ".local",
    ".xdata",
    ".serialize.data",
    ".serialize.instruction",
    ".estate",
    ".set",
    ".equ",
];

/// Statements without a dot that put data where they stand, whatever follows behind a dot of their own.
const DATA: &[&str] = &[
    "data1", "data2", "data4", "data8", "data16", "real4", "real8", "real10", "real16", "string", "stringz",
];

/// Whether a directive belongs to the instruction behind it.
pub(super) fn is_attached(word: &str) -> bool {
    let mut attached = ATTACHED.iter().chain(UNWINDING);
    attached.any(|start| word.starts_with(start)) && word != ".loc_mark_labels"
}

/// Whether a directive may stand between two blocks.
pub(super) fn is_between(word: &str) -> bool {
    BETWEEN.contains(&word)
}

/// Why a directive is refused.
pub(super) fn unknown(word: &str) -> String {
    format!("`{word}` in the code of a function: data, or a directive that is not known here")
}

/// Refuses data, and what could be, in the functions of a source, or in that of a name. The assembler's own complaint
/// about it, that bundles do not begin where they could, names no line.
///
/// # Errors
/// [`AssemblyError`] with the line.
pub(crate) fn expect_code(source: &Source, wanted: Option<&str>, path: &Path) -> Result<(), AssemblyError> {
    let chosen = names(source)
        .into_iter()
        .filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
    for (_, start) in chosen {
        let mut in_handler_data = false;
        for line in &source.lines[start..] {
            if in_handler_data {
                in_handler_data = !line.statements.iter().any(begins_section);
                continue;
            }
            let mut is_end = false;
            for statement in &line.statements {
                let (Statement::Directive(text) | Statement::Instruction(text)) = statement else {
                    continue;
                };
                let word = text.split([' ', '\t']).next().unwrap_or_default();
                let is_known = match statement {
                    Statement::Directive(_) => is_attached(word) || is_between(word),
                    _ => {
                        let is_assignment =
                            word.contains('=') || text[word.len()..].trim_start().starts_with('=');
                        !is_assignment && !DATA.contains(&word.split('.').next().unwrap_or_default())
                    }
                };
                if !is_known {
                    return Err(AssemblyError::statement(path, line.number, unknown(word)));
                }
                is_end |= word == ".endp";
                in_handler_data |= word == ".handlerdata";
            }
            if is_end {
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_in_code_is_refused_with_its_line() {
        let said = |lines: &str, wanted| {
            let text = format!(".proc f\nf:\n{lines}\nbr.ret.sptk b0\n.endp f\n.data\ndata8 1\n.word 1\n");
            let found = expect_code(&Source::parse(&text), wanted, Path::new("code.s"));
            found.err().map(|error| error.to_string())
        };
        for data in [
            "data8 1",
            "data4.ua 1",
            "string \"f\"",
            "real8 1.0",
            ".word 1",
            ".incbin \"f\"",
            ".end",
            "x = 3",
        ] {
            let said = said(&format!("add r8 = r9, r10\n{data}"), None).expect(data);
            let word = data.split(' ').next().unwrap_or_default();
            assert!(
                said.starts_with(&format!("code.s: line 4: `{word}` in the code")),
                "{said}"
            );
        }
        assert_eq!(said("data8 1", Some("g")), None);
        assert_eq!(
            said(
                ".align 32\n.save rp, r33\nmov r33 = b0\n.handlerdata\ndata8 1\n.text",
                None
            ),
            None
        );
    }
}
