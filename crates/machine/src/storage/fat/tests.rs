//! File systems that this module and others make, and such as nobody would.
