//! The encoding from outside: properties of the tables, and GNU binutils as an oracle.

mod dependencies;
mod oracle;
mod properties;
mod support;
