//! Any bytes: the loader answers with an image or an error, and a chip runs the image without panicking.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sidestep_fuce::chip::{Chip, ChipConfig};
use sidestep_fuce::device::{Block, Console, Device, Timer};
use sidestep_fuce::image::Image;

fuzz_target!(|bytes: &[u8]| {
    let Ok(image) = Image::from_bytes(bytes) else { return };
    let config = ChipConfig { memory_bytes: 1 << 20, ..ChipConfig::default() };
    let devices: Vec<Box<dyn Device>> =
        vec![Box::new(Console::new(b"input")), Box::new(Timer::new()), Box::new(Block::new(vec![0; 4096], 10, 1))];
    if let Ok(mut chip) = Chip::new(&config, &image, devices) {
        chip.run(10_000);
        chip.counters();
    }
});
