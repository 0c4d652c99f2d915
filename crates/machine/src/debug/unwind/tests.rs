use proptest::prelude::*;

use super::descriptor::{Place, Record, Records};
use super::state::{Saved, rules_at};
use super::table::UnwindTable;

/// A prologue of three slots that saves rp and ar.pfs in r34 and r35 and makes a frame of 64 bytes, a body of 27 slots
/// with an epilogue two slots before its end.
const PLAIN: &[u8] = &[0x46, 0x22, 3, 0xe6, 0, 0xe0, 1, 4, 0xe4, 2, 0x3b, 0xc0, 2];

#[test]
fn records_are_decoded_in_order() {
    let records: Vec<Record> = Records::new(PLAIN).collect();
    assert_eq!(
        records,
        [
            Record::Region {
                is_body: false,
                slots: 3,
                saves: Some((12, 34))
            },
            Record::When(Saved::FunctionState, 0),
            Record::FixedFrame { slot: 1, bytes: 64 },
            Record::When(Saved::ReturnAddress, 2),
            Record::Region {
                is_body: true,
                slots: 27,
                saves: None
            },
            Record::Epilogue { slots: 2, count: 0 },
        ]
    );
}

#[test]
fn a_register_is_saved_only_behind_the_instruction_that_saves_it() {
    let at = |slot| rules_at(PLAIN, slot);
    assert!(at(0).places.is_empty());
    assert_eq!(
        at(1).places.into_iter().collect::<Vec<_>>(),
        [(Saved::FunctionState, Place::General(35))]
    );
    assert_eq!(at(1).frame_bytes, 0);
    assert_eq!(at(2).frame_bytes, 64);
    assert_eq!(at(2).places.get(&Saved::ReturnAddress), None);
    for slot in [3, 10, 27] {
        let rules = at(slot);
        assert_eq!(rules.places[&Saved::ReturnAddress], Place::General(34), "{slot}");
        assert_eq!(rules.frame_bytes, 64, "{slot}");
    }
    // In the epilogue the stack pointer is the caller's again; what registers hold is still there.
    let rules = at(28);
    assert_eq!(rules.frame_bytes, 0);
    assert_eq!(rules.places[&Saved::ReturnAddress], Place::General(34));
}

#[test]
fn a_copied_state_holds_behind_an_epilogue() {
    // Prologue, body with label 1 and an epilogue, body that copies the state of label 1.
    let descriptors = [0x46, 0x22, 3, 0xe0, 1, 4, 0x29, 0x81, 0xc0, 0, 0x26, 0xa1];
    assert_eq!(rules_at(&descriptors, 11).frame_bytes, 64);
    assert_eq!(rules_at(&descriptors, 12).frame_bytes, 64);
    assert_eq!(rules_at(&descriptors[..11], 12).frame_bytes, 0);
}

#[test]
fn spilled_registers_lie_below_the_base_of_the_spill_area() {
    // Two slots, the second spills a general register: r4. A register more by X1: b1 at sp + 32.
    let descriptors = [0x02, 0xe2, 0, 0xb8, 0x20, 0xd1, 0xf9, 0xc1, 0, 8, 0x2a];
    let rules = rules_at(&descriptors, 3);
    assert_eq!(rules.places[&Saved::General(4)], Place::CallerStack(8));
    assert_eq!(rules.places[&Saved::Branch(1)], Place::Stack(32));
    assert_eq!(rules_at(&descriptors, 1).places.get(&Saved::General(4)), None);
}

proptest! {
    #[test]
    fn hostile_descriptors_end(bytes in proptest::collection::vec(any::<u8>(), 0..200), slot in any::<u64>()) {
        let _ = rules_at(&bytes, slot % 400);
        let _ = rules_at(&bytes, slot);
    }

    #[test]
    fn hostile_images_have_no_table_or_a_sound_one(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut image = bytes;
        for (at, byte) in [0x7f, b'E', b'L', b'F', 2, 1, 1].into_iter().enumerate() {
            if let Some(to) = image.get_mut(at) {
                *to = byte;
            }
        }
        let table = UnwindTable::of_image(&image);
        for procedure in table.procedures() {
            assert!(procedure.start <= procedure.end);
        }
    }
}
