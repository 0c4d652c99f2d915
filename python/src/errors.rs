//! The package's exception, with the command's own messages.

use pyo3::PyErr;
use pyo3::exceptions::PyException;
use sidestep_runner::causes::with_causes;

pyo3::create_exception!(
    sidestep,
    Error,
    PyException,
    "What went wrong: the input, the place and what would be right."
);

/// An error with the chain of its causes, as the command says it.
pub fn error(cause: impl std::error::Error) -> PyErr {
    Error::new_err(with_causes(&cause))
}

/// The same of what is an error and nothing else.
pub fn boxed(cause: Box<dyn std::error::Error>) -> PyErr {
    Error::new_err(with_causes(cause.as_ref()))
}
