//! What the arguments of system calls are: enough to translate the plain ones and to print all of them.

use crate::thread::strace::names::Names;

/// What one argument is.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A signed 32-bit number.
    Int,
    /// A signed 64-bit number.
    Long,
    /// An unsigned 64-bit number, such as a size.
    Size,
    /// Bits without names.
    Hex,
    /// A file mode.
    Mode,
    /// A file descriptor.
    Descriptor,
    /// The folder at which the path in the next argument starts: a descriptor, or `AT_FDCWD`.
    Folder,
    /// A signal number.
    Signal,
    /// One of several named values, or a set of named bits.
    Named(&'static Names),
    /// The path of a file.
    Path,
    /// The path of a name: a symbolic link at its end stands for itself.
    Link,
    /// `AT_*` flags, which may change what a symbolic link at the end of a path stands for.
    AtFlags,
    /// Another string.
    Text,
    /// Bytes the call reads; their number is the argument of the given index.
    Input(usize),
    /// Bytes the call writes; their number is the result.
    Output,
    /// A structure or an array.
    Pointer,
    /// A signal set.
    SignalSet,
    /// A `timespec`.
    Timespec,
    /// A null-terminated array of strings.
    Strings,
}

impl Shape {
    /// Whether the argument is an address of guest memory.
    pub const fn is_pointer(self) -> bool {
        match self {
            Shape::Path
            | Shape::Link
            | Shape::Text
            | Shape::Input(_)
            | Shape::Output
            | Shape::Pointer
            | Shape::SignalSet
            | Shape::Timespec
            | Shape::Strings => true,
            Shape::Int
            | Shape::Long
            | Shape::Size
            | Shape::Hex
            | Shape::Mode
            | Shape::Descriptor
            | Shape::Folder
            | Shape::AtFlags
            | Shape::Signal
            | Shape::Named(_) => false,
        }
    }
}
