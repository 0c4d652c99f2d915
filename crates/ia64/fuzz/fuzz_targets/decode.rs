//! Any bytes are bundles: they decode, disassemble and encode again without a panic, and to the same bits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sidestep_ia64::encoding::{Bundle, NoSymbols, UnitClass};

fuzz_target!(|data: &[u8]| {
    for (index, bytes) in data.chunks_exact(16).enumerate() {
        let bundle = Bundle::from_bytes(bytes.try_into().expect("chunks of 16 bytes"));
        for slot in bundle.decode() {
            let text = slot.text(bundle, index as u64 * Bundle::BYTES, &NoSymbols);
            assert!(!text.is_empty());
            let Ok(instruction) = slot.instruction else { continue };
            let (sources, destinations) = (instruction.sources(), instruction.destinations());
            assert!(sources.len() + destinations.len() < 16);
            let form = instruction.form();
            let long = if form.class == UnitClass::LX { bundle.slot(1) } else { 0 };
            let values: Vec<i64> =
                form.operands.iter().map(|operand| operand.extract(instruction.slot, long)).collect();
            let hints: Vec<usize> = form.hints.iter().map(|hint| hint.value(instruction.slot)).collect();
            let encoded = form
                .encode(instruction.predicate(), &values, &hints)
                .expect("what was decoded can be encoded");
            // Ignored bits may differ; everything with a meaning is the same.
            for (operand, value) in form.operands.iter().zip(values) {
                assert_eq!(operand.extract(encoded.slot, encoded.long), value);
            }
        }
    }
});
