//! Random instructions on the chip: faults, never a panic, and every cycle accounted for.

use proptest::prelude::*;
use sidestep_fuce::chip::{Chip, ChipConfig, InterruptConfig};
use sidestep_fuce::device::{Block, Console, Device, Packets, RequestDevice, Timer};
use sidestep_fuce::image::Image;
use sidestep_fuce::operation::OPERATIONS;

/// Mostly valid words, with small numbers, so that threads, entries and devices are met often.
fn word() -> impl Strategy<Value = u32> {
    let likely = (0..OPERATIONS.len(), any::<u32>(), any::<bool>()).prop_map(|(row, bits, small)| {
        let row = &OPERATIONS[row];
        let bits = if small { bits & 0x0039_c00f } else { bits };
        u32::from(row.opcode) << 24 | bits & row.used_bits() & 0x00ff_ffff
    });
    // Registers that point at devices and into memory, and page after page.
    let useful = prop::sample::select(vec![
        0x1a1f_8000u32, // lui r3, 0x78000: the system device
        0x45a0_0004,    // create r20, r0, 4, or its neighbours
        0x1118_4040,    // addi r3, r1, 64
        0x4900_0000,    // rearm
        0x4200_0000,    // self
    ]);
    prop_oneof![8 => likely, 1 => useful, 1 => any::<u32>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_program_makes_the_chip_panic(
        text in prop::collection::vec(word(), 1..120),
        data in prop::collection::vec(any::<u8>(), 0..64),
        units in prop::sample::select(vec![1usize, 2, 5]),
        (pages, queue, fault_records) in (1..20u16, 1..20u16, 1..4usize),
        interrupts: bool,
    ) {
        let data_address = (text.len() as u32 * 4).next_multiple_of(64);
        let image = Image {
            entry: 0,
            text,
            data_address,
            data,
            zero_bytes: 0,
            user: (data_address, data_address + 512),
            symbols: Vec::new(),
        };
        let devices: Vec<Box<dyn Device>> = vec![
            Box::new(Console::new(b"typed")),
            Box::new(Timer::new()),
            Box::new(Block::new(vec![7; 2048], 20, 3)),
            Box::new(RequestDevice::new(30)),
            Box::new(Packets::new(40, 0, 4000, 4)),
        ];
        let config = ChipConfig {
            units,
            pages,
            queue,
            fault_records,
            memory_bytes: 1 << 16,
            interrupts: interrupts.then_some(InterruptConfig { entry_cycles: 9, exit_cycles: 5 }),
            ..ChipConfig::default()
        };
        let mut chip = Chip::new(&config, &image, devices).expect("a chip");
        chip.run(5_000);
        let counters = chip.counters();
        for unit in &counters.units {
            prop_assert_eq!(unit.cycles.iter().sum::<u64>(), counters.cycles);
        }
        let controller = counters.controller;
        let waiting = chip.controller().queue().len() as u64 + u64::from(chip.controller().memory().spilled());
        prop_assert_eq!(controller.activations, controller.dispatches + waiting);
    }
}
