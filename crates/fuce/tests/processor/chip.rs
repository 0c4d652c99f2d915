//! Whole programs on the chip.

use sidestep_fuce::assembler::assemble_text;
use sidestep_fuce::chip::{Cause, Chip, ChipConfig, Stop};
use sidestep_fuce::controller::FaultCause;
use sidestep_fuce::device::{Block, Console, Device, Timer};
use sidestep_fuce::image::Image;

fn image(source: &str) -> Image {
    assemble_text("test.s", source)
        .unwrap_or_else(|errors| panic!("{errors}"))
        .image
}

fn chip(source: &str, units: usize, devices: Vec<Box<dyn Device>>) -> Chip {
    let config = ChipConfig {
        units,
        memory_bytes: 1 << 20,
        ..ChipConfig::default()
    };
    Chip::new(&config, &image(source), devices).expect("the chip can be made")
}

fn run(source: &str, units: usize) -> Stop {
    chip(source, units, Vec::new()).run(1_000_000)
}

#[test]
fn the_boot_thread_computes_and_halts() {
    let source = "
        .entry boot
        boot:   li r3, 10
                li r4, 0
        loop:   add r4, r4, r3
                addi r3, r3, -1
                bnez r3, loop
                halt r4
    ";
    assert_eq!(run(source, 1), Stop::Halt(55));
}

#[test]
fn memory_bytes_halves_and_words() {
    let source = "
        .entry boot
        boot:   la r3, numbers
                ldb r4, 0(r3)
                ldbu r5, (r3)
                ldh r6, 2(r3)
                ldhu r7, 2(r3)
                add r4, r4, r5          # -1 + 255
                add r6, r6, r7          # -2 + 65534
                add r4, r4, r6
                stw r4, 4(r3)
                sth r4, 8(r3)
                stb r4, 10(r3)
                ldw r8, 4(r3)
                ldw r9, 8(r3)
                sub r8, r8, r9
                halt r8
        .data
        numbers: .byte 255, 0
                .half 65534
                .space 8
    ";
    let sum = 254u32 + 65532;
    let stored = (sum & 0xffff) | (sum & 0xff) << 16;
    assert_eq!(run(source, 1), Stop::Halt(sum.wrapping_sub(stored)));
}

/// A boot thread makes an instance whose thread 0 sums what three continuations bring.
const JOIN: &str = "
    .entry boot
    boot:   la r3, frame
            create r4, r3, 4
            la r5, sum
            install kernel, r4, r5, 3
            li r6, 5
            contd r4, r6, 0
            contd r4, r6, 1
            contd r4, r6, 2
            end
    sum:    preload r3, 0, 3
            add r3, r3, r4
            add r3, r3, r5
            ldw r6, 8(r1)
            add r3, r3, r6
            halt r3
    .data
    frame:  .space 16
";

#[test]
fn continuations_with_data_meet_in_a_thread() {
    for units in [1, 2, 64] {
        assert_eq!(run(JOIN, units), Stop::Halt(20), "{units} units");
    }
}

#[test]
fn every_cycle_of_every_unit_has_one_cause() {
    let mut chip = chip(JOIN, 3, Vec::new());
    chip.run(1000);
    let counters = chip.counters();
    for unit in &counters.units {
        assert_eq!(unit.cycles.iter().sum::<u64>(), counters.cycles);
    }
    assert_eq!(counters.controller.activations, 2);
    assert_eq!(counters.controller.continuations, 3);
    assert_eq!(counters.threads(), 2);
    assert!(counters.of(Cause::Idle) > 0 && counters.of(Cause::InstructionCache) > 0);
}

#[test]
fn a_user_thread_that_continues_to_a_kernel_thread_faults_and_the_fault_is_a_continuation() {
    let source = "
        .equ SYSTEM, 0xf0000000
        .entry boot
        boot:   create r4, r0, 0
                la r5, kernel_thread
                install kernel, r4, r5, 1           # entry 0: what must not be reached
                addi r6, r4, 1
                la r5, user_thread
                install user, r6, r5, 1             # entry 1
                addi r7, r4, 2
                la r5, faults
                install kernel, r7, r5, 1           # entry 2: the fault thread
                li r8, SYSTEM
                stw r7, 4(r8)
                cont r6
                end
        user_thread:
                addi r3, r2, -1
                cont r3
        spin:   jmp spin                            # the fault ends the thread
        kernel_thread: halt r0
        faults: li r8, SYSTEM
                ldw r9, 12(r8)                      # cause
                ldw r10, 20(r8)                     # address
                slli r10, r10, 8
                or r9, r9, r10
                halt r9
    ";
    let program = image(source);
    let user = program.symbol("user_thread").expect("a label");
    let expected = (user + 4) << 8 | FaultCause::ModeProtection as u32;
    for units in [1, 4] {
        assert_eq!(run(source, units), Stop::Halt(expected));
    }
}

#[test]
fn each_fault_is_reported_with_its_cause() {
    let cases = [
        ("ldw r3, 1(r0)", FaultCause::Misaligned),
        ("li r3, 0x100000\nldw r3, 0(r3)", FaultCause::MemoryProtection),
        ("stw r3, 0(r0)", FaultCause::MemoryProtection),
        ("div r3, r3, r0", FaultCause::DivideByZero),
        (".word 0", FaultCause::IllegalInstruction),
        ("li r3, 8000\njr r3", FaultCause::CodeBounds),
        ("li r3, 2\njr r3", FaultCause::Misaligned),
        ("li r3, 80\ncont r3", FaultCause::MissingEntry),
        ("li r3, -1\nlock r4, r3", FaultCause::MissingEntry),
        ("cont r2", FaultCause::NotArmed),
        ("unlock r2", FaultCause::NotLocked),
        ("li r3, 256\nsetcount r2, r3", FaultCause::CounterRange),
        ("setcount r2, r0", FaultCause::CounterRange),
        (
            "li r3, 1\nsetcount r2, r3\ncontd r2, r3, 0",
            FaultCause::FrameBounds,
        ),
        ("li r3, 1\nsetcount r2, r3\nself", FaultCause::NotSpent),
        ("preload r3, 0, 1", FaultCause::FrameBounds),
        ("li r3, 2\ninstall kernel, r2, r3, 1", FaultCause::CodeBounds),
        ("create r3, r0, 1", FaultCause::MemoryProtection),
    ];
    for (body, cause) in cases {
        let source = format!(".entry boot\nboot:\n{body}\nspin: jmp spin");
        match run(&source, 2) {
            Stop::UnhandledFault(fault) => assert_eq!(fault.cause, cause, "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn falling_off_the_end_of_the_text_faults() {
    let stop = run(".entry boot\nboot: nop", 1);
    assert!(
        matches!(stop, Stop::UnhandledFault(fault) if fault.cause == FaultCause::CodeBounds),
        "{stop:?}"
    );
}

#[test]
fn an_image_too_large_for_the_memory_is_refused() {
    let program = image(".entry boot\nboot: end\n.data\n.space 0x200000");
    let config = ChipConfig {
        memory_bytes: 1 << 20,
        ..ChipConfig::default()
    };
    let error = Chip::new(&config, &program, Vec::new()).err().expect("refused");
    assert_eq!(
        error.to_string(),
        "the image needs 2097216 bytes of memory; the chip has 1048576"
    );
    let config = ChipConfig {
        units: 65,
        ..ChipConfig::default()
    };
    let error = Chip::new(&config, &program, Vec::new()).err().expect("refused");
    assert_eq!(error.to_string(), "units must be 1 to 64, not 65");
}

/// Every thread of as many pages as there are becomes ready at once and adds one to a cell.
fn flood(queue: u16) -> (Stop, u64, u32) {
    let source = "
        .entry boot
        .register total, r10
        boot:   li total, 0
                la r5, worker
        next:   create r4, r0, 0
                bltz r4, full
                li r6, 8
        entry:  install kernel, r4, r5, 1
                cont r4
                addi r4, r4, 1
                addi r6, r6, -1
                addi total, total, 1
                bnez r6, entry
                jmp next
        full:   la r3, expected
                stw total, 0(r3)
                end
        worker: la r3, counter
        again:  lock r4, r0                # entry 0 of page 0, the boot thread's, serves as the lock
                beqz r4, again
                ldw r5, 0(r3)
                addi r5, r5, 1
                stw r5, 0(r3)
                ldw r6, 4(r3)
                unlock r0
                beq r5, r6, done
                end
        done:   halt r5
        .data
        counter: .word 0
        expected: .word -1
    ";
    let config = ChipConfig {
        units: 2,
        pages: 40,
        queue,
        memory_bytes: 1 << 20,
        ..ChipConfig::default()
    };
    let mut chip = Chip::new(&config, &image(source), Vec::new()).expect("the chip can be made");
    let stop = chip.run(10_000_000);
    let expected = chip
        .memory()
        .word(image(source).symbol("expected").expect("a label"))
        .expect("in memory");
    (stop, chip.counters().controller.spills, expected)
}

#[test]
fn a_full_queue_and_a_full_activation_memory_lose_nothing() {
    let (stop, spills, expected) = flood(1024);
    assert_eq!((stop, spills, expected), (Stop::Halt(312), 0, 312));
    let (stop, spills, _) = flood(1);
    assert_eq!(stop, Stop::Halt(312));
    assert!(spills > 100, "{spills} threads found the queue of one entry full");
}

#[test]
fn the_timer_and_the_disk_continue_to_their_handlers() {
    let source = "
        .equ TIMER, 0xf0000100
        .equ DISK, 0xf0000200
        .entry boot
        boot:   create r4, r0, 0
                la r5, tick
                install kernel, r4, r5, 1
                addi r6, r4, 1
                la r5, loaded
                install kernel, r6, r5, 1
                li r7, TIMER
                stw r4, 4(r7)
                li r8, 500
                stw r8, 8(r7)
                li r7, DISK
                stw r6, 4(r7)
                end
        tick:   li r7, DISK
                li r8, 1
                stw r8, 8(r7)               # sector 1
                stw r8, 12(r7)              # one of them
                la r9, buffer
                stw r9, 16(r7)
                stw r8, 20(r7)              # read
                end
        loaded: la r9, buffer
                ldw r3, 508(r9)
                halt r3
        .data
        buffer: .space 512
    ";
    let mut contents = vec![0u8; 1024];
    contents[1020] = 77;
    let devices: Vec<Box<dyn Device>> =
        vec![Box::new(Timer::new()), Box::new(Block::new(contents, 1000, 100))];
    let mut chip = chip(source, 1, devices);
    assert_eq!(chip.run(100_000), Stop::Halt(77));
    assert!(chip.now() > 1600 && chip.now() < 2000, "{}", chip.now());
}

#[test]
fn console_input_and_output() {
    let source = "
        .equ CONSOLE, 0xf0000100
        .entry boot
        boot:   create r4, r0, 0
                la r5, typed
                install kernel, r4, r5, 1
                li r7, CONSOLE
                stw r4, 4(r7)
                end
        typed:  li r7, CONSOLE
        more:   ldw r3, 8(r7)
                bltz r3, empty
                xori r3, r3, 0x20
                stw r3, 8(r7)
                jmp more
        empty:  halt r0
    ";
    let mut chip = chip(source, 1, vec![Box::new(Console::new(b"Hello"))]);
    assert_eq!(chip.run(100_000), Stop::Halt(0));
    assert_eq!(
        chip.bus().get::<Console>(1).expect("a console").output(),
        b"hELLO"
    );
}

#[test]
fn a_chip_with_nothing_left_to_do_says_so() {
    assert_eq!(run(".entry boot\nboot: end", 4), Stop::Idle);
    assert_eq!(run(".entry boot\nboot: jmp boot", 4), Stop::CycleLimit);
}

#[test]
fn two_chips_in_one_process_are_the_same_and_share_nothing() {
    let mut first = chip(JOIN, 4, Vec::new());
    let mut second = chip(JOIN, 4, Vec::new());
    first.run(50);
    assert_eq!(second.run(10_000), first.run(10_000));
    assert_eq!(first.counters(), second.counters());
}

#[test]
fn preloading_hides_the_loads_of_the_next_thread() {
    let cycles = |preload| {
        let config = ChipConfig {
            units: 1,
            preload,
            memory_bytes: 1 << 20,
            ..ChipConfig::default()
        };
        let source = "
            .entry boot
            boot:   la r3, frame
                    la r5, worker
                    li r6, 8
                    create r4, r3, 16
            next:   install kernel, r4, r5, 1
                    cont r4
                    addi r4, r4, 1
                    addi r6, r6, -1
                    bnez r6, next
                    end
            worker: preload r3, 0, 16
                    li r20, 30
            work:   addi r20, r20, -1
                    bnez r20, work
                    end
            .data
            frame:  .space 64
        ";
        let mut chip = Chip::new(&config, &image(source), Vec::new()).expect("the chip can be made");
        assert_eq!(chip.run(100_000), Stop::Idle);
        chip.counters().of(Cause::Preload)
    };
    let (with, without) = (cycles(true), cycles(false));
    assert!(
        with * 3 < without,
        "{with} cycles waited with preloading, {without} without"
    );
}
