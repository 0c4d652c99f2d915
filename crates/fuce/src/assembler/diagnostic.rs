//! What is wrong with a source file, and exactly where.

use std::fmt;
use std::rc::Rc;

/// A place in the source: the line as it was assembled, after macro expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file's name as it was given or included.
    pub file: Rc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The line's text.
    pub text: Rc<str>,
    /// Which macro the line comes from, and where that was called, innermost first.
    pub expansion: Option<Rc<str>>,
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line.
    pub place: Place,
    /// The column of the first character at fault, from 1.
    pub column: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place {
            file,
            line,
            text,
            expansion,
        } = &self.place;
        write!(formatter, "{file}:{line}:{}: {}", self.column, self.message)?;
        if let Some(expansion) = expansion {
            write!(formatter, " ({expansion})")?;
        }
        // Tabs stay tabs in the line below, so that the caret stands under its character.
        let indent: String = text
            .chars()
            .take(self.column.saturating_sub(1))
            .map(|character| if character == '\t' { '\t' } else { ' ' })
            .collect();
        write!(formatter, "\n    {text}\n    {indent}^")
    }
}

/// Every error found in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(formatter)?;
            }
            write!(formatter, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
