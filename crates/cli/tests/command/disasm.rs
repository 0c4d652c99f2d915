//! `sidestep disasm` on the repository's guest programs: the same listing as objdump, and one clear error for
//! everything that is not an IA-64 file.
//!
//! `SIDESTEP_DISASM_FILES`, a list of paths as in `PATH`, adds programs, libraries or objects to compare.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn guest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/ia64/bin")
        .join(name)
}

fn disasm(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .arg("disasm")
        .args(arguments)
        .output();
    command.expect("the command runs")
}

/// A file with the bytes, which the caller removes.
fn temporary(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("sidestep-disasm-{}-{name}", std::process::id()));
    fs::write(&path, bytes).expect("a temporary file can be written");
    path
}

/// The one line of an error, which must name the file.
fn error_of(path: &Path, options: &[&str]) -> String {
    let path = path.to_str().expect("a UTF-8 path");
    let output = disasm(&[&[path], options].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "nothing is listed before the error");
    let text = String::from_utf8(output.stderr).expect("errors are UTF-8");
    assert_eq!(text.lines().count(), 1, "{text}");
    text.strip_prefix(&format!("sidestep: {path}: "))
        .expect("the error names the file")
        .trim_end()
        .to_owned()
}

#[test]
fn programs_are_listed_as_objdump_lists_them() {
    let Some(objdump) = tests_need::OBJDUMP.find() else {
        return;
    };
    let more = std::env::var_os("SIDESTEP_DISASM_FILES").unwrap_or_default();
    let guests = ["tour", "nbody", "contend-mutex"].map(guest);
    let more = std::env::split_paths(&more).filter(|path| !path.as_os_str().is_empty());
    for path in guests.into_iter().chain(more) {
        let path = path.to_str().expect("a UTF-8 path");
        let ours = disasm(&[path]);
        assert!(ours.status.success());
        let theirs = Command::new(&objdump)
            .args(["-d", path])
            .output()
            .expect("objdump starts");
        let pairs = ours
            .stdout
            .split(|byte| *byte == b'\n')
            .zip(theirs.stdout.split(|byte| *byte == b'\n'));
        for (number, (our, their)) in pairs.enumerate() {
            let (our, their) = (String::from_utf8_lossy(our), String::from_utf8_lossy(their));
            assert_eq!(our, their, "line {} of {path}", number + 1);
        }
        assert_eq!(ours.stdout.len(), theirs.stdout.len());
    }
}

/// A minimal relocatable file: two functions of a bundle each, and a table they do not use.
fn object_file() -> Vec<u8> {
    const NOP_BUNDLE: [u8; 16] = [0x01, 0, 0, 0, 0x01, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0x04, 0];
    const SECTION_NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0";
    const SYMBOL_NAMES: &[u8] = b"\0first\0second\0table\0";
    let text = NOP_BUNDLE.repeat(3);
    let mut symbols = vec![0; 24];
    // Name, type (global), offset, size, all in .text: two functions of one bundle, and data.
    for (name, kind, value) in [(1u32, 0x12u8, 0u64), (7, 0x12, 16), (14, 0x11, 32)] {
        symbols.extend(name.to_le_bytes());
        symbols.extend([kind, 0, 1, 0]);
        symbols.extend(value.to_le_bytes());
        symbols.extend(16u64.to_le_bytes());
    }
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([1, 0, 50, 0, 1, 0, 0, 0]);
    file.resize(64, 0);
    let mut headers = vec![0; 64];
    struct Section {
        name: u32,
        kind: u32,
        flags: u64,
        contents: Vec<u8>,
        link: u32,
        /// Of a symbol table, the number of its first global symbol.
        info: u32,
        alignment: u64,
        entry: u64,
    }
    let names = [SYMBOL_NAMES, SECTION_NAMES].concat();
    let sections = [
        Section {
            name: 1,
            kind: 1,
            flags: 6,
            contents: text,
            link: 0,
            info: 0,
            alignment: 16,
            entry: 0,
        },
        Section {
            name: 7,
            kind: 2,
            flags: 0,
            contents: symbols,
            link: 3,
            info: 1,
            alignment: 8,
            entry: 24,
        },
        Section {
            name: 15,
            kind: 3,
            flags: 0,
            contents: names,
            link: 0,
            info: 0,
            alignment: 1,
            entry: 0,
        },
    ];
    for Section {
        name,
        kind,
        flags,
        contents,
        link,
        info,
        alignment,
        entry,
    } in sections
    {
        // Section names follow the symbols' names in the one string table.
        headers.extend((name + SYMBOL_NAMES.len() as u32).to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for word in [flags, 0, file.len() as u64, contents.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(link.to_le_bytes());
        headers.extend(info.to_le_bytes());
        headers.extend(alignment.to_le_bytes());
        headers.extend(entry.to_le_bytes());
        file.extend(contents);
        file.resize(file.len().next_multiple_of(8), 0);
    }
    let header_offset = file.len() as u64;
    file[40..48].copy_from_slice(&header_offset.to_le_bytes());
    file[52..54].copy_from_slice(&64u16.to_le_bytes());
    file[58..64].copy_from_slice(&[64, 0, 4, 0, 3, 0]);
    file.extend(headers);
    file
}

#[test]
fn a_symbol_is_listed_alone_and_unknown_ones_get_suggestions() {
    let path = temporary("object", &object_file());
    let name = path.to_str().expect("a UTF-8 path");
    let listing = |options: &[&str]| {
        let output = disasm(&[&[name], options].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("a listing is UTF-8")
    };
    let heading = format!("\n{name}:     file format elf64-ia64-little\n\n\nDisassembly of section .text:\n");
    let function = |label: &str, offset: u32| {
        let address = |part: u32| format!("{:>4x}", offset + part);
        format!(
            "\n{offset:016x} <{label}>:\n{}:\t01 00 00 00 01 00 \t[MII]       nop.m 0x0\n\
             {}:\t00 00 00 02 00 00 \t            nop.i 0x0\n{}:\t00 00 04 00       \t            nop.i 0x0;;\n",
            address(0),
            address(6),
            address(12),
        )
    };
    let data = "\n0000000000000020 <table>:\n  20:\t01 00 00 00 01 00 00 00 00 02 00 00 00 00 04 00     ................\n";
    let expected = format!(
        "{heading}{}{}{data}",
        function("first", 0),
        function("second", 16)
    );
    assert_eq!(listing(&[]), expected);
    assert_eq!(
        listing(&["--symbol", "second"]),
        format!("{heading}{}", function("second", 16))
    );
    assert_eq!(
        error_of(&path, &["--symbol", "secnd"]),
        "no symbol `secnd` in its code; the nearest names are second, first, table"
    );
    fs::remove_file(path).expect("the temporary file can be removed");
}

#[test]
fn what_is_no_ia64_file_is_one_error() {
    let program = fs::read(guest("nbody")).expect("a guest program");
    let changed = |offset: usize, value: u8| {
        let mut bytes = program.clone();
        bytes[offset] = value;
        bytes
    };
    let cases = [
        ("empty", Vec::new(), "not an ELF file"),
        ("text", b"int main;\n".to_vec(), "not an ELF file"),
        (
            "class",
            changed(4, 1),
            "ELF class 1 where IA-64 programs have 2 (64-bit)",
        ),
        ("machine", changed(18, 62), "for machine 62 where IA-64 is 50"),
        ("header", program[..40].to_vec(), "damaged: "),
        ("sections", program[..program.len() / 2].to_vec(), "damaged: "),
    ];
    for (name, bytes, expected) in cases {
        let path = temporary(name, &bytes);
        let error = error_of(&path, &[]);
        assert!(error.starts_with(expected), "{name}: {error}");
        fs::remove_file(path).expect("the temporary file can be removed");
    }
    assert!(error_of(Path::new("/no/such/file"), &[]).starts_with("cannot be read: "));
}

#[test]
fn damaged_files_are_listed_or_refused_but_never_panic() {
    let program = fs::read(guest("sieve")).expect("a guest program");
    let section_headers = u64::from_le_bytes(program[40..48].try_into().expect("eight bytes")) as usize;
    for round in 0..120u64 {
        // Reproducible damage: a few bytes of the file header, of the section headers, or of anything.
        let mut bytes = program.clone();
        let mut random = round.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for _ in 0..1 + round % 4 {
            random = (random ^ random >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let place = (random >> 8) as usize;
            let place = match round % 3 {
                0 => 16 + place % 48,
                1 => section_headers + place % (bytes.len() - section_headers),
                _ => place % bytes.len(),
            };
            bytes[place] = random as u8;
        }
        let path = temporary("damaged", &bytes);
        let output = disasm(&[path.to_str().expect("a UTF-8 path")]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "round {round}: {error}"
        );
        fs::remove_file(path).expect("the temporary file can be removed");
    }
}
