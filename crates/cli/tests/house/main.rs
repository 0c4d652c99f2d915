//! What the tree is held to: floors, modules without circles, lines of a width.

mod floors;
mod modules;
mod widths;
