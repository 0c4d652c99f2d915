//! The gdb stub, spoken to in packets as gdb's ia64 target speaks.

mod gdb;
mod guest;

use std::io::Write;
use std::thread;

use gdb::{BSP, CFM, Debugger, F6, R32, Symbols, between, disturb};
use guest::Guest;
use sidestep_machine::End;
use sidestep_machine::debug::server::Finish;
use sidestep_machine::debug::target::Debugged;
use sidestep_machine::machine::VirtualTime;

/// Debugs a machine with `session`; returns how that ended.
fn debug(
    processors: usize,
    parameters: &str,
    session: impl FnOnce(&mut Debugger, &Symbols) + Send,
) -> Finish {
    let Guest {
        mut machine, image, ..
    } = Guest::new(processors, parameters);
    let mut debugged = Debugged {
        machine: &mut machine,
        executor: VirtualTime::default(),
        executed_max: u64::MAX,
    };
    between(&mut debugged, |debugger| session(debugger, &Symbols(image)))
}

#[test]
fn a_step_is_one_instruction() {
    let finish = debug(1, "compute 10", |debugger, symbols| {
        let start = symbols.address("_start").expect("a symbol");
        assert_eq!(debugger.place(), start);
        let mut places = Vec::new();
        for _ in 0..6 {
            assert!(debugger.ask("vCont;s:p1.1").starts_with('T'));
            places.push(debugger.place() - start);
        }
        // The third bundle holds a long instruction, behind which slot 2 is skipped.
        assert_eq!(places, [1, 2, 0x10, 0x11, 0x20, 0x21]);
        debugger.kill();
    });
    assert_eq!(finish, Finish::Killed);
}

#[test]
fn breakpoints_stop_before_their_slot_and_leave_memory_alone() {
    let finish = debug(1, "compute 10", |debugger, symbols| {
        let address = symbols.address("hypercall").expect("a symbol");
        let before = [debugger.word(address), debugger.word(address + 8)];
        for slot in [0, 2] {
            assert_eq!(debugger.ask(&format!("Z0,{:x},0", address + slot)), "OK");
        }
        assert_eq!([debugger.word(address), debugger.word(address + 8)], before);
        assert!(debugger.ask("vCont;c").contains("swbreak"));
        assert_eq!(debugger.place(), address);
        assert!(
            debugger.ask("vCont;c").contains("swbreak"),
            "goes on from a breakpoint to the next"
        );
        assert_eq!(debugger.place(), address + 2);
        for slot in [0, 2] {
            assert_eq!(debugger.ask(&format!("z0,{:x},0", address + slot)), "OK");
        }
        assert!(debugger.ask("vCont;c").starts_with("W00"));
    });
    assert_eq!(finish, Finish::Ended(End::Exit(0)));
}

#[test]
fn stacked_registers_are_found_in_the_backing_store() {
    debug(2, "lock 10", |debugger, symbols| {
        let address = symbols.address("main").expect("a symbol");
        assert_eq!(debugger.ask(&format!("Z1,{address:x},0")), "OK");
        assert!(debugger.ask("vCont;c").starts_with('T'));
        let size = debugger.register(CFM) & 0x7f;
        assert_eq!(size, 2, "the outputs of the caller");
        let first = debugger.register(BSP) - size * 8;
        assert_eq!((debugger.word(first), debugger.word(first + 8)), (0, 2));
        assert_eq!(debugger.register(R32 + 1), 2);
        assert_eq!(
            debugger.ask(&format!("M{:x},8:0300000000000000", first + 8)),
            "OK"
        );
        assert_eq!(debugger.register(R32 + 1), 3);
        assert_eq!(
            debugger.ask(&format!("P{F6:x}=00000000000000800400010000000000")),
            "OK"
        );
        let answer = debugger.ask(&format!("p{F6:x}"));
        assert_eq!(answer, "00000000000000800400010000000000");
        assert!(
            debugger.ask("P0=0100000000000000").starts_with('E'),
            "r0 is a constant"
        );
        assert_eq!(debugger.ask("g").len(), 2 * 4720);
        debugger.kill();
    });
}

#[test]
fn watchpoints_stop_behind_the_reference() {
    debug(2, "lock 10", |debugger, symbols| {
        let counter = symbols.address("counter").expect("a symbol");
        assert_eq!(debugger.ask(&format!("Z2,{counter:x},8")), "OK");
        for count in 1..=3 {
            let stop = debugger.ask("vCont;c");
            assert!(stop.contains(&format!("watch:{counter:x}")), "{stop}");
            assert_eq!(debugger.word(counter), count);
        }
        assert_eq!(debugger.ask(&format!("z2,{counter:x},8")), "OK");
        assert!(debugger.ask("vCont;c").starts_with("W00"));
    });
}

#[test]
fn processors_are_threads_that_step_alone() {
    debug(3, "lock 1000", |debugger, symbols| {
        assert_eq!(debugger.ask("qfThreadInfo"), "mp01.01,p01.02,p01.03");
        let print = symbols.address("main").expect("a symbol");
        assert_eq!(debugger.ask(&format!("Z0,{print:x},0")), "OK");
        let stop = debugger.ask("vCont;c");
        assert!(stop.contains("thread:p01.01"), "{stop}");
        let stop = debugger.ask("vCont;c");
        assert!(stop.contains("thread:p01.02"), "{stop}");
        assert_eq!(debugger.ask("Hgp1.1"), "OK");
        let first = debugger.place();
        assert!(debugger.ask("vCont;s:p1.2").contains("thread:p01.02"));
        assert_eq!(debugger.ask("Hgp1.1"), "OK");
        assert_eq!(debugger.place(), first, "the others were held");
        assert_eq!(debugger.ask("Hgp1.2"), "OK");
        assert_eq!(debugger.place(), print + 1);
        debugger.kill();
    });
}

#[test]
fn an_interrupt_halts_a_running_machine_and_a_detached_one_goes_on() {
    let finish = debug(1, "compute 1000000000000", |debugger, _| {
        debugger.send("vCont;c");
        thread::sleep(std::time::Duration::from_millis(20));
        debugger.0.write_all(&[3]).expect("the stub listens");
        assert_eq!(debugger.receive(), "S02");
        assert_eq!(debugger.ask("D;1"), "OK");
    });
    assert_eq!(finish, Finish::Detached);
}

#[test]
fn debugging_does_not_change_what_a_machine_does() {
    let mut undisturbed = Guest::new(2, "purge 50").machine;
    let expected = VirtualTime::default().run(&mut undisturbed);
    let Guest {
        mut machine, image, ..
    } = Guest::new(2, "purge 50");
    let mut debugged = Debugged {
        machine: &mut machine,
        executor: VirtualTime::default(),
        executed_max: u64::MAX,
    };
    let finish = between(&mut debugged, |debugger| disturb(debugger, &Symbols(image)));
    assert_eq!(finish, Finish::Ended(End::Exit(0)));
    let limit = VirtualTime {
        instructions_max: 0,
        ..VirtualTime::default()
    };
    let outcome = limit.run(&mut machine);
    assert_eq!(outcome.retired, expected.retired);
}

#[test]
fn a_debugger_has_the_machine_where_its_instructions_end() {
    let Guest { mut machine, .. } = Guest::new(1, "compute 1000");
    let mut debugged = Debugged {
        machine: &mut machine,
        executor: VirtualTime::default(),
        executed_max: 150,
    };
    let finish = between(&mut debugged, |debugger| {
        assert!(debugger.ask("vCont;s:p1.1").starts_with("T05"));
        for _ in 0..2 {
            let answer = debugger.ask("vCont;c");
            assert!(answer.starts_with("S02"), "{answer}");
        }
        debugger.kill();
    });
    assert_eq!(finish, Finish::Killed);
    assert_eq!(machine.executed(), 150);
}
