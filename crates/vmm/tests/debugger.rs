//! The gdb stub, spoken to in packets as gdb's ia64 target speaks.

mod guest;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use guest::Guest;
use sidestep_vmm::End;
use sidestep_vmm::consolidation::dynamic::SidecorePolicy;
use sidestep_vmm::consolidation::schedule::{PolicyName, Scheduling};
use sidestep_vmm::consolidation::{Host, HostConfig};
use sidestep_vmm::debug::host::DebuggedHost;
use sidestep_vmm::debug::server::{Finish, serve};
use sidestep_vmm::debug::symbols::Symbols;
use sidestep_vmm::debug::target::{Debugged, Debuggee};
use sidestep_vmm::host::HostCosts;
use sidestep_vmm::hypervisor::{VirtualMachine, VirtualMachineConfig};
use sidestep_vmm::machine::VirtualTime;
use sidestep_vmm::sidecall::sidecores::Polling;

/// gdb's numbers.
const R32: usize = 32;
const IP: usize = 331;
const PSR: usize = 332;
const CFM: usize = 333;
const BSP: usize = 334 + 17;
const F6: usize = 128 + 6;

/// The other end of the stub's connection.
struct Debugger(UnixStream);

impl Debugger {
    fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        write!(self.0, "${packet}#{sum:02x}").expect("the stub listens");
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.0.read_exact(&mut byte).expect("the stub answers");
        byte[0]
    }

    /// The next packet, acknowledged; run lengths written out.
    fn receive(&mut self) -> String {
        while self.byte() != b'$' {}
        let mut text = String::new();
        loop {
            match self.byte() {
                b'#' => break,
                b'*' => {
                    let count = self.byte() - 29;
                    let last = text.chars().next_back().expect("something to repeat");
                    text.extend(std::iter::repeat_n(last, usize::from(count)));
                }
                byte => text.push(char::from(byte)),
            }
        }
        // The checksum.
        self.byte();
        self.byte();
        // After the last packet the stub does not wait for this.
        let _ = self.0.write_all(b"+");
        text
    }

    /// Ends the machine; comes back when the stub has hung up.
    fn kill(&mut self) {
        self.send("k");
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).expect("the stub hangs up");
    }

    fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive()
    }

    /// A register of the current thread, the low 8 bytes.
    fn register(&mut self, number: usize) -> u64 {
        let answer = self.ask(&format!("p{number:x}"));
        u64::from_str_radix(&answer[..16], 16)
            .expect("hexadecimal digits")
            .swap_bytes()
    }

    fn word(&mut self, address: u64) -> u64 {
        let answer = self.ask(&format!("m{address:x},8"));
        u64::from_str_radix(&answer, 16)
            .unwrap_or_else(|_| panic!("no memory at {address:#x}: {answer}"))
            .swap_bytes()
    }

    /// Where the current thread is: bundle and slot in one number, as gdb computes it.
    fn place(&mut self) -> u64 {
        self.register(IP) | self.register(PSR) >> 41 & 3
    }
}

/// Debugs a machine with `session`; returns how that ended.
fn debug(
    processors: usize,
    parameters: &str,
    session: impl FnOnce(&mut Debugger, &Symbols) + Send,
) -> Finish {
    let Guest {
        mut machine, symbols, ..
    } = Guest::new(processors, parameters);
    let mut debugged = Debugged {
        machine: &mut machine,
        executor: VirtualTime::default(),
    };
    between(&mut debugged, |debugger| session(debugger, &symbols))
}

/// A session between a debugger and what it debugs; returns how it ended.
fn between<D: Debuggee>(debuggee: &mut D, session: impl FnOnce(&mut Debugger) + Send) -> Finish {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut debugger = Debugger(ours);
            assert!(
                debugger
                    .ask("qSupported:multiprocess+;swbreak+;vContSupported+")
                    .contains("PacketSize")
            );
            debugger.ask("?");
            session(&mut debugger);
        });
        serve(Box::new(theirs), debuggee).expect("a session")
    })
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
        mut machine, symbols, ..
    } = Guest::new(2, "purge 50");
    let mut debugged = Debugged {
        machine: &mut machine,
        executor: VirtualTime::default(),
    };
    let finish = between(&mut debugged, |debugger| disturb(debugger, &symbols));
    assert_eq!(finish, Finish::Ended(End::Exit(0)));
    let limit = VirtualTime {
        instructions_max: 0,
        ..VirtualTime::default()
    };
    let outcome = limit.run(&mut machine);
    assert_eq!(outcome.retired, expected.retired);
}

/// Halts, looks and steps at every call of the monitor until all has ended.
fn disturb(debugger: &mut Debugger, symbols: &Symbols) {
    let call = symbols.address("hypercall").expect("a symbol");
    assert_eq!(debugger.ask(&format!("Z0,{call:x},0")), "OK");
    while debugger.ask("vCont;c").starts_with('T') {
        debugger.ask(&format!("m{call:x},10"));
        debugger.ask("vCont;s:p1.1;c");
    }
}

/// A host of two virtual machines, the second of two processors.
fn host() -> (Host, Symbols) {
    const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/ia64/bin/machine-smp");
    let image = std::fs::read(IMAGE).expect("the image is committed");
    let machine = |index, (processors, parameters): (usize, &str)| {
        let mut config = VirtualMachineConfig::new(&format!("guest {index}"));
        config.processors = processors;
        config.parameters = parameters.to_owned();
        VirtualMachine::new(index, config, &image).expect("a good virtual machine")
    };
    let machines = [(1, "compute 1000"), (2, "lock 100")].into_iter().enumerate();
    let config = HostConfig {
        cores: 2,
        costs: Arc::new(HostCosts::preset("itanium2-vti").expect("a preset")),
        sidecores: SidecorePolicy::Fixed(0),
        polling: Polling {
            spin: 20_000,
            saves_energy: true,
        },
        scheduling: Scheduling {
            policy: PolicyName::Free,
            slot_ns: 100_000,
        },
        host_threads: 2,
        trace: true,
    };
    let machines = machines.map(|(index, what)| machine(index, what)).collect();
    let host = Host::new(config, machines).expect("a good host");
    (host, Symbols::of_image(&image))
}

#[test]
fn every_virtual_processor_of_a_host_is_a_thread_with_its_own_memory() {
    let (mut host, symbols) = host();
    let mut shown = 0;
    let mut debugged = DebuggedHost::new(&mut host, u64::MAX, |_| shown += 1);
    let finish = between(&mut debugged, |debugger| {
        assert_eq!(debugger.ask("qfThreadInfo"), "mp01.01,p01.02,p01.03");
        let main = symbols.address("main").expect("a symbol");
        let counter = symbols.address("counter").expect("a symbol");
        assert_eq!(debugger.ask(&format!("Z0,{main:x},0")), "OK");
        for thread in ["p01.01", "p01.02", "p01.03"] {
            let stop = debugger.ask("vCont;c");
            assert!(
                stop.contains("swbreak") && stop.contains(&format!("thread:{thread}")),
                "{stop}"
            );
            assert_eq!(debugger.place(), main);
        }
        assert_eq!(debugger.ask("Hgp1.1"), "OK");
        let first = debugger.place();
        assert!(debugger.ask("vCont;s:p1.3").contains("thread:p01.03"));
        assert_eq!(debugger.place(), main + 1, "a step is an instruction");
        assert_eq!(debugger.ask("Hgp1.1"), "OK");
        assert_eq!(debugger.place(), first, "the others were held");
        assert_eq!(debugger.ask(&format!("M{counter:x},8:efbe000000000000")), "OK");
        assert_eq!(debugger.word(counter), 0xbeef);
        assert_eq!(debugger.ask("Hgp1.2"), "OK");
        let before = debugger.word(counter);
        assert_ne!(before, 0xbeef, "another virtual machine's memory");
        assert_eq!(debugger.ask(&format!("Z2,{counter:x},8")), "OK");
        let stop = debugger.ask("vCont;c");
        assert!(stop.contains(&format!("watch:{counter:x}")), "{stop}");
        assert_eq!(debugger.word(counter), before + 1);
        debugger.kill();
    });
    assert_eq!(finish, Finish::Killed);
    drop(debugged);
    assert!(shown > 0);
}

#[test]
fn debugging_does_not_change_what_a_host_does() {
    let (mut undisturbed, _) = host();
    undisturbed.run(u64::MAX).expect("services end");
    let (mut host, symbols) = host();
    let mut debugged = DebuggedHost::new(&mut host, u64::MAX, |_| ());
    let finish = between(&mut debugged, |debugger| disturb(debugger, &symbols));
    assert_eq!(finish, Finish::Ended(End::Exit(0)));
    drop(debugged);
    assert_eq!(host.report(), undisturbed.report());
    assert_eq!(host.spans(), undisturbed.spans());
}
