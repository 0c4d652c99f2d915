//! Bundles, templates and instruction formats, as tables from which decoder and disassembler follow.
