//! Numbers that look random and depend on nothing but their inputs.

/// A number from some others: the same always, unlike for any small change of the inputs (the finaliser of
/// splitmix64, applied once for each input).
pub fn scatter(inputs: &[u64]) -> u64 {
    inputs.iter().fold(0x9e37_79b9_7f4a_7c15, |state, &input| {
        let mut mixed = (state ^ input).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}
