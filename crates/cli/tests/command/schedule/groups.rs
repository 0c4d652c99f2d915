//! The issue groups of a program are checked.

use tests_need::ASSEMBLER;

use super::*;

#[test]
fn groups_are_checked_and_only_what_is_certain_fails() {
    let Some(assembler) = ASSEMBLER.find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let certain = ".proc f\nf:\n{ .mmi\nadd r8 = r9, r10\nadd r11 = r8, r10\nnop.i 0\n;;\n}\n.endp f\n";
    let possible =
        ".proc f\nf:\n{ .mmi\n(p6) add r8 = r9, r10\n(p7) add r8 = r8, r10\nnop.i 0\n;;\n}\n.endp f\n";
    for (text, code, said) in [
        (certain, 1, "RAW dependency, manual 3:5.3.2, table 5-2 on r8"),
        (possible, 0, "possible RAW dependency"),
        (
            SLOW,
            0,
            "0 dependencies inside instruction groups, and 0 possible ones",
        ),
    ] {
        let file = written(&folder, text);
        let object = folder.path().join("code.o");
        let assembled = Command::new(&assembler)
            .arg("-xnone")
            .arg("-o")
            .arg(&object)
            .arg(&file)
            .status();
        assert!(assembled.expect("the assembler starts").success());
        let output = sidestep(&["disasm", "--check-groups", &object.display().to_string()]);
        let list = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{list}");
        assert!(list.contains(said), "{list}");
    }
}
