//! The assembler: what it accepts, and what it says of what it does not.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sidestep_fuce::assembler::{assemble, assemble_text};
use sidestep_fuce::disassembler::{format_instruction, format_word};
use sidestep_fuce::instruction::Instruction;
use sidestep_fuce::operation::{OPERATIONS, Operand};

fn words(source: &str) -> Vec<u32> {
    assemble_text("test.s", source)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .image
        .text
}

/// The messages for a program, without the quoted lines.
fn errors(source: &str) -> Vec<String> {
    let errors = assemble_text("test.s", source).expect_err("the program is wrong");
    errors
        .0
        .iter()
        .map(|error| error.to_string().lines().next().unwrap_or("").to_string())
        .collect()
}

#[test]
fn each_error_names_place_and_expectation() {
    let cases = [
        (
            "addd r1, r2, r3",
            "test.s:2:1: unknown instruction `addd`; did you mean `add`?",
        ),
        (
            "add r1, r2",
            "test.s:2:11: expected `,` before the next operand, found the end of the line",
        ),
        (
            "add r1, r2, 5",
            "test.s:2:13: expected a register (r0 to r31), found the number 5",
        ),
        (
            "add r1, r2, r32",
            "test.s:2:13: expected a register (r0 to r31), found `r32`",
        ),
        (
            "add r1, r2, r3, r4",
            "test.s:2:15: expected the end of the line after the last operand of `add`, found `,`",
        ),
        (
            "addi r1, r2, 9000",
            "test.s:2:14: `addi` takes a number from -8192 to 8191 here, not 9000",
        ),
        (
            "addi r1, r2, r3",
            "test.s:2:14: expected a number from -8192 to 8191, found the register `r3`",
        ),
        (
            "slli r1, r2, 32",
            "test.s:2:14: `slli` takes a shift amount from 0 to 31 here, not 32",
        ),
        (
            "install user, r1, r2, 0",
            "test.s:2:23: `install` takes a fan-in from 1 to 255 here, not 0",
        ),
        (
            "install root, r1, r2, 1",
            "test.s:2:9: expected a mode (user, interface or kernel), found `root`",
        ),
        ("ldw r1, 4[r2]", "test.s:2:10: unexpected character `[`"),
        (
            "ldw r1, 4",
            "test.s:2:10: expected `(` before the address register, found the end of the line",
        ),
        ("jmp nowhere", "test.s:2:5: undefined label `nowhere`"),
        (
            "jmp bot",
            "test.s:2:5: undefined label `bot`; did you mean `boot`?",
        ),
        ("jmp 2", "test.s:2:5: the target 0x2 of `jmp` is no instruction"),
        (
            "boot: nop",
            "test.s:2:1: label `boot` is defined already, at test.s:1",
        ),
        ("add: nop", "test.s:2:1: `add` is reserved and cannot be a label"),
        (
            "preload r30, 0, 3",
            "test.s:2:9: `preload` of 3 registers from r30 on goes beyond r31",
        ),
        (
            ".wrod 1",
            "test.s:2:1: unknown directive `.wrod`; did you mean `.word`?",
        ),
        (".byte 256", "test.s:2:7: 256 does not fit 8 bits"),
        (
            ".byte 1\nnop",
            "test.s:3:1: an instruction must begin at a multiple of 4; put `.align 4` before it",
        ),
        (".data\nnop", "test.s:3:1: instructions belong into `.text`"),
        (".ascii hello", "test.s:2:8: expected a string in double quotes"),
        (".ascii \"hello", "test.s:2:8: the string has no closing `\"`"),
        (".equ x, 1/0", "test.s:2:10: division by zero"),
        (
            ".equ x, later",
            "test.s:2:9: `later` must be a constant defined before this line",
        ),
        (".if 1\nnop", "test.s:2:1: this `.if` has no `.endif`"),
        (".else", "test.s:2:1: `.else` without `.if`"),
        (".macro m\nnop", "test.s:2:1: macro `m` has no `.endm`"),
        (
            ".macro m a\nnop\n.endm\nm",
            "test.s:5:1: macro `m` takes 1 arguments, not 0",
        ),
        (".include \"none.s\"", "test.s:2:10: cannot read `none.s`"),
        (
            "li r3, 0x1ffffffff",
            "test.s:2:8: 8589934591 does not fit 32 bits",
        ),
        (
            "li r3, 99999999999999999999",
            "test.s:2:8: `99999999999999999999` is not a number of base 10, or too large",
        ),
        (
            "5",
            "test.s:2:1: expected a label, an instruction or a directive, found the number 5",
        ),
    ];
    for (line, expected) in cases {
        let source = format!("boot: end\n{line}\n.text\n.entry boot");
        assert_eq!(
            errors(&source).first().map(String::as_str),
            Some(expected),
            "{line}"
        );
    }
}

#[test]
fn a_program_without_an_entry_is_refused() {
    assert_eq!(
        errors("nop"),
        ["test.s:1:1: the program names no boot thread: expected `.entry label`"]
    );
    assert_eq!(
        errors(".entry boot\n.data\nboot: .word 0"),
        ["test.s:1:1: the entry 0x0 is no instruction of the text"]
    );
}

#[test]
fn all_errors_are_reported_together_with_their_lines() {
    let errors =
        assemble_text("two.s", "boot: hlat r0\n\tfrobnicate r1\n.entry boot").expect_err("wrong twice");
    let expected = "two.s:1:7: unknown instruction `hlat`; did you mean `halt`?\n    boot: hlat r0\n          ^\n\
                    two.s:2:2: unknown instruction `frobnicate`\n    \tfrobnicate r1\n    \t^";
    assert_eq!(errors.to_string(), expected);
}

#[test]
fn macros_conditions_constants_and_includes() {
    let source = "
        .equ SIZE, 3 + 4 * 2
        .macro twice register, amount
            .if \\amount > 5
            addi \\register, \\register, \\amount
            .else
            jmp skip\\@
        skip\\@: addi \\register, \\register, \\amount * 2
            .endif
        .endm
        .include \"part.s\"
        .entry boot
        boot: twice r4, SIZE        # a comment, with a comma
            twice r5, 2
    ";
    let part = "part: li r3, FLAG\n";
    let constants = BTreeMap::from([("FLAG".to_string(), 7)]);
    let include = |name: &str| (name == "part.s").then(|| part.to_string());
    let assembly =
        assemble("main.s", source, &constants, &include).unwrap_or_else(|errors| panic!("{errors}"));
    let plain = words("part: addi r3, r0, 7\n.entry part\naddi r4, r4, 11\njmp next\nnext: addi r5, r5, 4");
    assert_eq!(assembly.image.text, plain);
    assert_eq!(assembly.image.entry, 4);
    assert!(
        assembly.listing.contains("part.s:1: part: li r3, FLAG"),
        "{}",
        assembly.listing
    );
}

#[test]
fn a_macro_that_calls_itself_is_an_error() {
    let errors = errors(".macro loop\nloop\n.endm\nboot: end\n.entry boot\nloop");
    assert!(
        errors[0].contains("nest deeper than 64; does `loop` call itself?"),
        "{errors:?}"
    );
}

#[test]
fn pseudo_instructions_stand_for_what_their_table_says() {
    let pairs = [
        ("mv r3, r4", "addi r3, r4, 0"),
        ("neg r3, r4", "sub r3, r0, r4"),
        ("not r3, r4", "sub r3, r0, r4\naddi r3, r3, -1"),
        ("li r3, -8192", "addi r3, r0, -8192"),
        ("li r3, 0x2000", "lui r3, 1"),
        ("li r3, 0xffffffff", "lui r3, 0x7ffff\nori r3, r3, 0x1fff"),
        ("la r3, x", "lui r3, 0\nori r3, r3, 0"),
        ("bgt r3, r4, x", "blt r4, r3, x"),
        ("bleu r3, r4, x", "bgeu r4, r3, x"),
        ("call x", "jal r31, x"),
        ("ret", "jr r31"),
        ("ldw r3, (r4)", "ldw r3, 0(r4)"),
        (".register sum, r9\nadd sum, sum, sum", "add r9, r9, r9"),
    ];
    for (pseudo, plain) in pairs {
        let program = |body: &str| words(&format!("x: end\n.entry x\n{body}"));
        assert_eq!(program(pseudo), program(plain), "{pseudo}");
    }
}

#[test]
fn sections_and_symbols_are_laid_out() {
    let source = ".entry b\nb: end\n.user\nu: .word 1, . , u\n.data\nd: .asciz \"ab\\n\"\n.align 4\n.word user_start, program_end";
    let image = assemble_text("t.s", source)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .image;
    assert_eq!((image.data_address, image.user), (64, (128, 192)));
    assert_eq!(
        &image.data[..12],
        [b'a', b'b', b'\n', 0, 128, 0, 0, 0, 192, 0, 0, 0]
    );
    assert_eq!(
        &image.data[64..],
        [1, 0, 0, 0, 132, 0, 0, 0, 128],
        "zeros at the end are not stored"
    );
    assert_eq!(image.symbol("u"), Ok(128));
    assert_eq!(image.end(), 192);
}

proptest! {
    #[test]
    fn what_is_disassembled_assembles_to_the_same_word(row in 0..OPERATIONS.len(), seeds in any::<[u32; 4]>()) {
        let mut instruction = Instruction::new(OPERATIONS[row].operation);
        for (operand, seed) in OPERATIONS[row].operands.iter().zip(seeds) {
            let (low, high) = operand.range();
            let (low, high) = if operand.is_place() { (-1000, 1000) } else { (low, high) };
            instruction.set_operand(*operand, low + i64::from(seed) % (high - low + 1));
            if *operand == Operand::Address {
                instruction.b = (seeds[3] % 32) as u8;
            }
        }
        if OPERATIONS[row].mnemonic == "preload" {
            instruction.b = instruction.b.min(32 - instruction.a);
        }
        let text = format_instruction(&instruction, 8000, |_| None);
        let source = format!("b: .space 8000\n.entry b\n{text}");
        prop_assert_eq!(words(&source).last().copied(), Some(instruction.encode()), "{}", text);
    }

    #[test]
    fn any_text_of_words_survives_disassembly_and_assembly(text in prop::collection::vec(any::<u32>(), 1..20)) {
        let mut source = String::from(".entry b\n.space 0x10000\nb:\n");
        for (index, word) in text.iter().enumerate() {
            let line = format_word(*word, 0x10000 + index as u32 * 4, |_| None);
            // A distance may point below address 0, which assembly cannot write.
            source.push_str(&if line.contains("0xf") { format!(".word {word:#x}") } else { line });
            source.push('\n');
        }
        if let Ok(assembly) = assemble_text("round.s", &source) {
            prop_assert_eq!(&assembly.image.text[0x4000..], &text[..]);
        }
    }

    #[test]
    fn no_source_makes_the_assembler_panic(lines in prop::collection::vec(line(), 0..20)) {
        let _ = assemble_text("fuzz.s", &lines.join("\n"));
    }
}

/// Lines that look like assembly often enough to get deep.
fn line() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        (0..OPERATIONS.len()).prop_map(|row| OPERATIONS[row].mnemonic.to_string()),
        prop::sample::select(vec![
            ".macro m a",
            ".endm",
            ".if 1",
            ".else",
            ".endif",
            ".equ a, 3",
            ".space",
            ".align",
            ".word",
            ".ascii \"x\\n\"",
            "m",
            "li",
            "la",
            "call",
            "r1",
            "r31",
            "a",
            "a:",
            "(",
            ")",
            ",",
            "-",
            "~",
            "<<",
            "4",
            "0x7fffffffffffffff",
            "\\a",
            "\\@",
            "'",
            "\"",
            "#",
            ".entry",
            ".register q, r4",
            "q",
            "user",
            ".user",
            ".data",
            ".text",
            "é",
            ".",
        ])
        .prop_map(str::to_string),
        any::<String>(),
    ];
    prop::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
}
