//! Disassembly against GNU binutils: the same text, and the same slots that are no instruction.
//!
//! Needs `ia64-linux-gnu-objdump`, see [`tests_need`]. `SIDESTEP_ORACLE_BUNDLES` sets how many bundles each test
//! compares; the full run is one million:
//!
//! ```text
//! SIDESTEP_ORACLE_BUNDLES=1000000 cargo test --release -p sidestep-ia64 --test encoding oracle
//! ```

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::{Random, bundle_of};
use sidestep_ia64::encoding::{Bundle, NoSymbols, Template, all_forms};

/// The number of bundles to compare.
fn bundle_count() -> usize {
    match std::env::var("SIDESTEP_ORACLE_BUNDLES") {
        Ok(text) => text.parse().expect("SIDESTEP_ORACLE_BUNDLES is a number"),
        Err(_) => 20_000,
    }
}

/// Compares the disassembly of the bundles, line by line.
fn compare(name: &str, bundles: &[Bundle]) {
    let Some(objdump) = tests_need::OBJDUMP.find() else {
        return;
    };
    let path = std::env::temp_dir().join(format!("sidestep-oracle-{}-{name}.bin", std::process::id()));
    let bytes: Vec<u8> = bundles.iter().flat_map(|bundle| bundle.to_bytes()).collect();
    fs::write(&path, bytes).expect("a temporary file can be written");
    let mut objdump = Command::new(objdump)
        .args(["--disassemble-zeroes", "-D", "-b", "binary", "-m", "ia64"])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("objdump starts");
    let output = BufReader::new(objdump.stdout.take().expect("objdump's output is piped"));
    // Lines with an instruction have three columns: address, bytes, text; the bytes of a long one continue.
    let mut expected = output
        .lines()
        .map(|line| line.expect("objdump writes text"))
        .filter_map(|line| {
            let mut columns = line.split('\t').skip(2);
            columns.next().map(|text| text.to_owned())
        });
    let mut compared = 0;
    for (index, bundle) in bundles.iter().enumerate() {
        let address = index as u64 * Bundle::BYTES;
        for slot in bundle.decode() {
            let template = match slot.slot {
                0 => format!("[{}]", bundle.template()),
                _ => "     ".to_owned(),
            };
            let ours = format!("{template} {}", slot.text(*bundle, address, &NoSymbols));
            let theirs = expected.next().expect("objdump has a line for every slot");
            assert_eq!(
                ours,
                theirs,
                "slot {} of bundle {:#034x}",
                slot.slot,
                bundle.bits()
            );
            compared += 1;
        }
    }
    assert_eq!(expected.next(), None, "objdump has no more lines");
    assert!(objdump.wait().expect("objdump ends").success());
    fs::remove_file(&path).expect("the temporary file can be removed");
    println!(
        "{name}: {compared} slots of {} bundles are the same",
        bundles.len()
    );
}

#[test]
fn every_form_with_random_and_edge_operands_reads_as_objdump_writes_it() {
    let mut random = Random(1);
    let forms: Vec<_> = all_forms().map(|(_, form)| form).collect();
    let rounds = bundle_count() / forms.len() + 1;
    let bundles: Vec<_> = (0..rounds)
        .flat_map(|_| {
            forms
                .iter()
                .map(|form| bundle_of(form, &mut random))
                .collect::<Vec<_>>()
        })
        .collect();
    compare("forms", &bundles);
}

#[test]
fn random_slots_under_valid_templates_read_as_objdump_writes_them() {
    let mut random = Random(2);
    let bundles: Vec<_> = (0..bundle_count())
        .map(|_| Bundle::new(random.template(), random.slots()))
        .collect();
    compare("slots", &bundles);
}

#[test]
fn random_bundles_read_as_objdump_writes_them() {
    let mut random = Random(3);
    let bits = |random: &mut Random| u128::from(random.bits()) << 64 | u128::from(random.bits());
    let bundles: Vec<_> = (0..bundle_count())
        .map(|_| Bundle::from_bits(bits(&mut random)))
        .collect();
    compare("bundles", &bundles);
}

#[test]
fn every_pattern_of_the_opcode_fields_reads_as_objdump_writes_it() {
    // Bits 26 to 40 and 12, 13 hold nearly all opcode fields: walk the first ones, draw the rest.
    let mut random = Random(4);
    let step = (1 << 15) * 3 / bundle_count().min((1 << 15) * 3);
    let bundles: Vec<_> = (0u64..1 << 15)
        .step_by(step.max(1))
        .flat_map(|opcode| {
            [0x08, 0x0e, 0x16].map(|template| {
                let slots = random.slots().map(|slot| slot & ((1 << 26) - 1) | opcode << 26);
                Bundle::new(Template::new(template), slots)
            })
        })
        .collect();
    compare("opcodes", &bundles);
}
