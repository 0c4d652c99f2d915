//! Reads arbitrary bytes as an ELF image: errors are fine, panics and inconsistent images are not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sidestep_linux_user::elf::image::Image;

fuzz_target!(|bytes: &[u8]| {
    let limit = (1 << 44) - (1 << 14);
    if let Ok(image) = Image::read(&bytes, limit) {
        assert!(image.start() < image.end());
        assert!(image.loads.windows(2).all(|pair| pair[0].end() <= pair[1].address));
        for load in &image.loads {
            assert!(load.offset + load.file_size <= bytes.len() as u64);
            assert!(load.file_size <= load.memory_size);
        }
    }
});
