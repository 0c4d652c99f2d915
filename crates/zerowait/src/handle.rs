//! Handles: what a graph gives out, and what bodies continue by.
//!
//! A thread's handle names it. An edge is the right of one thread to continue to another; only the graph
//! makes edges, after checking the modes, and a body can continue by no other means. Handles are `Copy` and
//! are moved into the bodies' closures. A handle is good for the graph that made it.

use std::marker::PhantomData;

/// Declares a `Copy` handle type with an index-like body, generic over the data it brings.
macro_rules! handle {
    ($(#[$attribute:meta])* $name:ident { $($(#[$field_attribute:meta])* $field:ident: $type:ty),* }) => {
        $(#[$attribute])*
        #[derive(Debug)]
        pub struct $name<T> {
            $($(#[$field_attribute])* pub(crate) $field: $type,)*
            pub(crate) data: PhantomData<fn(T)>,
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}
    };
}

handle! {
    /// A thread that each continuation to it starts once, with data of type `T`.
    Thread { thread: u32 }
}
handle! {
    /// A thread that starts when an activation's counter reaches zero, with data of type `T`.
    Join { thread: u32, join: u32 }
}
handle! {
    /// A thread that never runs twice at once, entered with data of type `T`.
    Gate { thread: u32, gate: u32 }
}
handle! {
    /// The right of one thread to continue to a [`Thread`].
    Edge { from: u32, to: u32, place: u16 }
}
handle! {
    /// The right of one thread to activate a [`Join`] and to continue to its activations.
    JoinEdge { from: u32, to: u32, place: u16, join: u32, near: bool }
}
handle! {
    /// The right of one thread to enter a [`Gate`].
    Entry { from: u32, to: u32, place: u16, gate: u32 }
}
handle! {
    /// The right of one thread to end a hold of a [`Gate`], which continues to its next entry.
    Release { from: u32, to: u32, place: u16, gate: u32 }
}
handle! {
    /// Where the host program continues to a thread from outside.
    Port { to: u32, place: u16 }
}

/// Anything that has a body and can therefore be where a continuation comes from.
pub trait Origin: sealed::Sealed {
    /// Index of its thread.
    #[doc(hidden)]
    fn index(&self) -> u32;
}

/// What each continuation or each completed counter starts: a [`Thread`] or a [`Join`].
pub trait Shared<T>: Origin {}

impl<T> Origin for Thread<T> {
    fn index(&self) -> u32 {
        self.thread
    }
}
impl<T> Origin for Join<T> {
    fn index(&self) -> u32 {
        self.thread
    }
}
impl<T> Origin for Gate<T> {
    fn index(&self) -> u32 {
        self.thread
    }
}
impl<T> Shared<T> for Thread<T> {}
impl<T> Shared<T> for Join<T> {}

mod sealed {
    /// Only this crate's handles are origins.
    pub trait Sealed {}
    impl<T> Sealed for super::Thread<T> {}
    impl<T> Sealed for super::Join<T> {}
    impl<T> Sealed for super::Gate<T> {}
}
