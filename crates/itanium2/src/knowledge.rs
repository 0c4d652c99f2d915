//! Processors as others believe them to be.

/// How much is known of what system instructions take: a processor as those believe it to be who schedule for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Knowledge {
    /// All of it.
    #[default]
    Measured,
    /// What Table 4 says of the register stack, and nothing else.
    RegisterStack,
    /// Nothing: what the public documentation of 2004 said, by section 5.3.2.
    Documented,
}
