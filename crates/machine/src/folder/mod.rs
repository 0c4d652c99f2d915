//! A folder of the host that a guest may use: a file server by 9P2000.L, as Linux's `9p` file system speaks it.
//!
//! - `protocol`: how messages are written. [`tree`]: the files of the folder, by paths that cannot leave it.
//!   [`server`]: what a client has at hand, and the answer to each message.
//! - [`virtio::folder`](crate::virtio::folder): the device that carries messages.
//!
//! The server is this project's own: the crate `p9` takes names with `..` and `/` as they come, since it is made to run
//! in a jail, and knows no symbolic links. Here every path is opened beneath the folder (`openat2`), whatever the host
//! or another guest does to it meanwhile.
//!
//! Files belong to whoever runs the machine; what that user may not do, the guest may not either. Folders are listed in
//! the order of names, so that a guest sees the same order everywhere; times and numbers of files are the host's.

pub(crate) mod protocol;
pub mod server;
#[cfg(test)]
mod tests;
pub mod tree;
