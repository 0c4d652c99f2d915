//! `--check-groups`: instruction groups that the architecture leaves undefined, over the code of a file.
//!
//! What hangs on values that only a run has is marked as possible: predicates that no compare before says to exclude
//! each other, rows of register files, bits of ar.unat.

use std::collections::BTreeSet;
use std::io::{self, Write};

use sidestep_ia64::encoding::{Bundle, Instruction, Operation, Target};
use sidestep_schedule::groups::{Checker, Violation};
use sidestep_symbols::{Image, Kind, Section, SymbolTable, SymbolsInSection};

/// How many violations there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Those that every run through the code meets.
    pub certain: usize,
    /// Those that hang on values.
    pub possible: usize,
}

/// Checks the code of a file, or what one symbol names, and writes a line for each violation.
pub fn check(
    image: &Image,
    symbols: &SymbolTable,
    wanted: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<Count> {
    let mut count = Count::default();
    for section in &image.sections {
        let entries = entries(image, section);
        let targets = targets(section);
        let mut checker = Checker::default();
        for (address, bundle) in bundles(section) {
            if entries.contains(&address) {
                checker.enter();
            } else if targets.contains(&address) {
                checker.join();
            }
            let mut found = Vec::new();
            checker.bundle(address, bundle, &mut |violation| found.push(violation));
            for violation in found {
                let place = symbols.find(violation.second.0, section, true);
                let is_wanted = wanted
                    .is_none_or(|wanted| place.is_some_and(|place| symbols.get(place).is_named(wanted)));
                if !is_wanted {
                    continue;
                }
                match violation.is_possible {
                    true => count.possible += 1,
                    false => count.certain += 1,
                }
                describe(&violation, section, symbols, out)?;
            }
        }
    }
    writeln!(
        out,
        "{} dependencies inside instruction groups, and {} possible ones",
        count.certain, count.possible
    )?;
    Ok(count)
}

/// The bundles of a section with their addresses.
fn bundles<'a>(section: &'a Section<'a>) -> impl Iterator<Item = (u64, Bundle)> + 'a {
    let chunks = section.data.chunks_exact(Bundle::BYTES as usize).enumerate();
    chunks.map(|(index, bytes)| {
        let address = section.address.wrapping_add(index as u64 * Bundle::BYTES);
        (
            address,
            Bundle::from_bytes(bytes.try_into().expect("the bytes of a bundle")),
        )
    })
}

/// Where functions begin.
fn entries(image: &Image, section: &Section) -> BTreeSet<u64> {
    let functions = image
        .symbols
        .iter()
        .filter(|symbol| symbol.kind == Kind::Function && symbol.is_in(section));
    functions.map(|symbol| symbol.address).collect()
}

/// Where the section's own branches go.
fn targets(section: &Section) -> BTreeSet<u64> {
    let mut targets = BTreeSet::new();
    for (address, bundle) in bundles(section) {
        for instruction in bundle.decode().filter_map(|decoded| decoded.instruction.ok()) {
            if let Operation::Branch {
                target: Target::Relative | Target::Long,
                ..
            } = instruction.operation
            {
                targets.insert(address.wrapping_add(instruction.immediate as u64));
            }
        }
    }
    targets
}

/// The line of a violation: where, both instructions, on what, the rule.
fn describe(
    violation: &Violation,
    section: &Section,
    symbols: &SymbolTable,
    out: &mut dyn Write,
) -> io::Result<()> {
    let named = SymbolsInSection {
        table: symbols,
        section,
    };
    let text = |instruction: &Instruction, address: u64| {
        let mut text = String::new();
        let _ = instruction.write(address, instruction.long_slot(), &named, &mut text);
        text.trim().to_owned()
    };
    let mut name = String::new();
    let place = symbols.find(violation.second.0, section, true);
    let _ = symbols.write_name(place, violation.second.0, section, &mut name);
    let possible = if violation.is_possible { "possible " } else { "" };
    writeln!(
        out,
        "{:x}.{} {name}: `{}` behind `{}` ({:x}.{}): {possible}{} on {}",
        violation.second.0,
        violation.second.1,
        text(&violation.second_instruction, violation.second.0),
        text(&violation.first_instruction, violation.first.0),
        violation.first.0,
        violation.first.1,
        violation.kind.rule(),
        violation.on
    )
}
