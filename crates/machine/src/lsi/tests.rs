//! A driver of SCRIPTS, as small as one can be: everything that a kernel's driver relies on, and what none would do.

use std::io::Write;

use proptest::prelude::*;
use sidestep_ia64::PhysicalAddress;
use tempfile::NamedTempFile;

use super::*;
use crate::machine::interrupt_block::InterruptBlock;
use crate::memory::MemoryRange;
use crate::storage::disk::Disk;
use crate::storage::scsi::Medium;

const BASE: u32 = 0xe010_0000;
/// Where the driver has its SCRIPTS, its table and its data.
const SCRIPT: u32 = 0x1000;
const TABLE: u32 = 0x2000;
const COMMAND: u32 = 0x2100;
const MESSAGE: u32 = 0x2200;
const STATUS: u32 = 0x2300;
const DATA: u32 = 0x4000;

/// Instructions: select by the table's first entry, move by an entry in a phase, jump, interrupt.
const SELECT: u32 = 0x4700_0000;
const CLEAR_ACKNOWLEDGE: [u32; 2] = [0x6000_0040, 0];
const WAIT_DISCONNECT: [u32; 2] = [0x4800_0000, 0];
const WAIT_RESELECT: u32 = 0x5000_0000;
const JUMP: u32 = 0x8008_0000;
const INTERRUPT: u32 = 0x9808_0000;

fn move_in(phase: u32, entry: u32) -> [u32; 2] {
    [0x1800_0000 | phase << 24, entry]
}

struct Driver {
    controller: Controller,
    memory: Arc<GuestMemory>,
    timeline: Arc<Timeline>,
    file: NamedTempFile,
}

impl Driver {
    fn new() -> Driver {
        let mut file = NamedTempFile::new().expect("a file");
        let bytes: Vec<u8> = (0..64 << 10).map(|at: u32| (at / 512 + at) as u8).collect();
        file.write_all(&bytes).expect("written");
        Driver::on(file)
    }

    fn on(file: NamedTempFile) -> Driver {
        let memory = Arc::new(GuestMemory::new(&[MemoryRange::ram(0, 1 << 20)]).expect("a good layout"));
        let timeline = Arc::new(Timeline::new(Arc::default()));
        let processors = Arc::new(InterruptBlock::new(1, Arc::default()));
        let interrupts = Interrupts::new(0, Box::new(|_| {}), processors);
        let unit = Unit::new(Disk::open(file.path(), false).expect("a disk"), Medium::Disk);
        let mut controller = Controller::new(
            vec![unit],
            Arc::clone(&memory),
            interrupts,
            Arc::clone(&timeline),
            BASE,
            17,
        );
        controller.store_configuration(4, 2, 6);
        Driver {
            controller,
            memory,
            timeline,
            file,
        }
    }

    fn put(&self, at: u32, words: &[u32]) {
        for (at, word) in (u64::from(at)..).step_by(4).zip(words) {
            self.memory
                .write_value(PhysicalAddress(at), *word)
                .expect("memory");
        }
    }

    fn load(&mut self, register: u8, size: u64) -> u32 {
        self.controller.load(u64::from(register), size) as u32
    }

    fn store(&mut self, register: u8, size: u64, value: u32) {
        self.controller.store(u64::from(register), size, u64::from(value));
    }

    fn start(&mut self, at: u32) {
        self.store(at::DSA, 4, TABLE);
        self.store(at::DSP, 4, at);
    }

    /// Lets `turns` turns go by.
    fn wait(&mut self, turns: usize) {
        for _ in 0..turns {
            let Some(next) = self.timeline.next() else {
                return;
            };
            self.timeline.set_now(next);
            self.timeline.perform_until(next);
        }
    }

    /// Does a command with data in a phase, if any, as a script that expects no other; answers the status.
    fn command(&mut self, target: u32, command: &[u8], data: Option<(u32, u32)>) -> u8 {
        self.memory
            .write(PhysicalAddress(u64::from(COMMAND)), command)
            .expect("memory");
        self.memory
            .write(PhysicalAddress(u64::from(MESSAGE)), &[0x80])
            .expect("memory");
        let (phase, count) = data.unwrap_or((1, 0));
        // Target, message, command, data, status, last message.
        self.put(
            TABLE,
            &[
                target << 16,
                0,
                1,
                MESSAGE,
                command.len() as u32,
                COMMAND,
                count,
                DATA,
                1,
                STATUS,
                1,
                STATUS + 1,
            ],
        );
        let mut script = vec![SELECT, SCRIPT + 0x800];
        script.extend(move_in(6, 8));
        script.extend(move_in(2, 16));
        if data.is_some() {
            script.extend(move_in(phase, 24));
        }
        script.extend(move_in(3, 32));
        script.extend(move_in(7, 40));
        script.extend(CLEAR_ACKNOWLEDGE);
        script.extend(WAIT_DISCONNECT);
        script.extend([INTERRUPT, 0x1234]);
        self.put(SCRIPT, &script);
        self.start(SCRIPT);
        self.wait(1);
        self.memory
            .read_value(PhysicalAddress(u64::from(STATUS)))
            .expect("memory")
    }

    /// The causes of the interrupt that SCRIPTS ended with: DSTAT, SIST0, SIST1.
    fn causes(&mut self) -> [u8; 3] {
        let [dma, low, high] = [at::DSTAT, at::SIST0, at::SIST1].map(|register| self.load(register, 1) as u8);
        [dma & !bit::DSTAT_EMPTY, low, high]
    }

    fn data(&self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.memory
            .read(PhysicalAddress(u64::from(DATA)), &mut bytes)
            .expect("memory");
        bytes
    }
}

#[test]
fn sectors_are_written_and_read_back() {
    let mut driver = Driver::new();
    let pattern: Vec<u8> = (0..2048).map(|at: u32| (at % 251) as u8).collect();
    driver
        .memory
        .write(PhysicalAddress(u64::from(DATA)), &pattern)
        .expect("memory");
    assert_eq!(
        driver.command(0, &[0x2a, 0, 0, 0, 0, 5, 0, 0, 4, 0], Some((0, 2048))),
        0
    );
    assert_eq!(driver.causes(), [bit::DSTAT_INTERRUPT, 0, 0]);
    assert_eq!(driver.load(at::DSPS, 4), 0x1234);
    let file = std::fs::read(driver.file.path()).expect("the disk");
    assert!(file[5 * 512..9 * 512] == pattern, "what was written");
    assert!(
        file[4 * 512..5 * 512]
            .iter()
            .enumerate()
            .all(|(at, &byte)| byte == (4 + at) as u8)
    );
    driver
        .memory
        .write(PhysicalAddress(u64::from(DATA)), &[0; 2048])
        .expect("memory");
    assert_eq!(
        driver.command(0, &[0x28, 0, 0, 0, 0, 5, 0, 0, 4, 0], Some((1, 2048))),
        0
    );
    assert!(driver.data(2048) == pattern, "what was read");
}

#[test]
fn nobody_answers_a_selection_of_others() {
    for target in [1, 7, 15] {
        let mut driver = Driver::new();
        driver.command(target, &[0; 6], None);
        assert_eq!(driver.causes(), [0, 0, bit::SIST1_SELECTION]);
        assert_eq!(driver.load(at::ISTAT, 1) as u8 & bit::ISTAT_CONNECTED, 0);
    }
}

#[test]
fn fewer_bytes_than_asked_for_jump_or_interrupt() {
    // READ CAPACITY answers eight bytes.
    const CAPACITY: [u8; 10] = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut driver = Driver::new();
    driver.command(0, &CAPACITY, Some((1, 20)));
    assert_eq!(driver.causes(), [0, bit::SIST0_MISMATCH, 0]);
    assert_eq!(driver.load(at::DBC, 4) & 0xff_ffff, 12, "left");
    assert_eq!(driver.data(8), [0, 0, 0, 127, 0, 0, 2, 0]);
    let mut driver = Driver::new();
    driver.put(SCRIPT + 0x900, &[INTERRUPT, 0x77]);
    driver.store(at::PMJAD1, 4, SCRIPT + 0x900);
    driver.store(at::CCNTL0, 1, u32::from(bit::CCNTL0_MISMATCH_JUMP));
    driver.command(0, &CAPACITY, Some((1, 20)));
    assert_eq!(
        (driver.causes(), driver.load(at::DSPS, 4)),
        ([bit::DSTAT_INTERRUPT, 0, 0], 0x77)
    );
    assert_eq!((driver.load(at::RBC, 4), driver.load(at::UA, 4)), (12, DATA + 8));
    assert_eq!(driver.load(at::IA, 4), SCRIPT + 24, "the move of data");
}

#[test]
fn an_endless_loop_stops_nobody_and_can_be_aborted() {
    let mut driver = Driver::new();
    driver.put(SCRIPT, &[JUMP, SCRIPT]);
    driver.start(SCRIPT);
    driver.wait(10);
    assert_eq!(driver.timeline.now(), 10 * LATENCY_TICKS, "a turn at a time");
    assert_eq!(driver.causes(), [0; 3]);
    driver.store(at::ISTAT, 1, u32::from(bit::ISTAT_ABORT));
    assert_eq!(driver.causes(), [bit::DSTAT_ABORTED, 0, 0]);
    driver.wait(2);
    assert_eq!(driver.timeline.next(), None);
}

#[test]
fn where_no_memory_is_the_bus_faults() {
    let mut driver = Driver::new();
    driver.start(0xd000_0000);
    driver.wait(1);
    assert_eq!(driver.causes(), [bit::DSTAT_BUS_FAULT, 0, 0], "of instructions");
    driver.put(SCRIPT, &[0xc000_0010, DATA, 0xffff_fff8]);
    driver.start(SCRIPT);
    driver.wait(1);
    assert_eq!(driver.causes(), [bit::DSTAT_BUS_FAULT, 0, 0], "of a memory move");
    driver.put(SCRIPT, &[0xffff_ffff, 0]);
    driver.start(SCRIPT);
    driver.wait(1);
    assert_eq!(
        driver.causes(),
        [bit::DSTAT_ILLEGAL, 0, 0],
        "seven bytes of registers"
    );
}

#[test]
fn scripts_run_in_the_controllers_own_memory_and_wait_for_a_signal() {
    let mut driver = Driver::new();
    let own = BASE + RAM_BYTES;
    for (at, word) in [(0, WAIT_RESELECT), (4, own + 8), (8, INTERRUPT), (12, 5)] {
        driver
            .controller
            .store(u64::from(RAM_BYTES) + at, 4, u64::from(word));
    }
    driver.start(own);
    driver.wait(3);
    assert_eq!(
        (driver.causes(), driver.timeline.next()),
        ([0; 3], None),
        "it waits"
    );
    driver.store(at::ISTAT, 1, u32::from(bit::ISTAT_SIGNAL));
    driver.wait(1);
    assert_eq!(driver.causes(), [bit::DSTAT_INTERRUPT, 0, 0]);
    assert_eq!(
        driver.load(at::CTEST2, 1) as u8 & bit::CTEST2_SIGNAL,
        bit::CTEST2_SIGNAL
    );
    assert_eq!(
        driver.load(at::CTEST2, 1) as u8 & bit::CTEST2_SIGNAL,
        0,
        "told once"
    );
}

#[test]
fn a_controller_goes_on_as_another_was_saved() {
    let mut old = Driver::new();
    old.put(SCRIPT, &[JUMP, SCRIPT]);
    old.store(at::STIME1, 1, 3);
    old.start(SCRIPT);
    let saved = old.controller.save();
    let Driver { file, timeline, .. } = old;
    let (now, sequence) = (timeline.now(), timeline.sequence());
    drop(old.controller);
    let mut new = Driver::on(file);
    new.timeline.restore(now, sequence);
    new.put(SCRIPT, &[INTERRUPT, 9]);
    assert!(new.controller.restore(&saved));
    assert!(new.controller.save() == saved, "nothing is lost");
    new.wait(1);
    assert_eq!(new.causes(), [bit::DSTAT_INTERRUPT, 0, 0], "its turn came");
    new.wait(1);
    assert_eq!(new.causes(), [0, 0, bit::SIST1_TIMER], "and the end of its timer");
    assert!(!new.controller.restore(&saved[1..]), "damaged");
}

#[test]
fn the_last_registers_are_loaded_and_stored_like_others() {
    for direction in [0, 1 << 24] {
        let mut driver = Driver::new();
        driver.put(SCRIPT, &[0xe0fc_0004 | direction, DATA, INTERRUPT, 7]);
        driver.start(SCRIPT);
        driver.wait(1);
        assert_eq!(driver.causes()[0], bit::DSTAT_INTERRUPT);
    }
}

proptest! {
    /// Whatever a guest stores to registers and lets run, it harms nothing but its own disk.
    #[test]
    fn any_script_ends_its_turn(
        words in prop::collection::vec(any::<u32>(), 1..80),
        stores in prop::collection::vec((any::<u8>(), any::<u32>()), 0..40),
    ) {
        let mut driver = Driver::new();
        driver.put(TABLE, &[0, 0, 4, MESSAGE, 10, COMMAND, 512, DATA]);
        driver.put(SCRIPT, &words);
        for (register, value) in stores {
            driver.store(register & !3, 4, value);
        }
        driver.start(SCRIPT);
        driver.wait(20);
        driver.store(at::ISTAT, 1, u32::from(bit::ISTAT_RESET));
        let file = std::fs::metadata(driver.file.path()).expect("the disk");
        prop_assert_eq!(file.len(), 64 << 10);
        prop_assert_eq!(driver.command(0, &[0; 6], None), 0, "and it works after a reset");
    }
}
