//! Any messages to the server of a shared folder: each is answered, and nothing outside the folder changes.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use sidestep_machine::folder::server::Server;
use sidestep_machine::folder::tree::Tree;

const ROOM: usize = 4096;
/// Bytes of size, kind and tag.
const HEADER_BYTES: usize = 7;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).expect("made");
    fs::write(shared.join("a"), "contents").expect("written");
    let mut server = Server::new(Tree::open(&shared, false).expect("a folder"));
    // The root is file 0; what follows is messages by the length of each.
    let attach = [&[19, 0, 0, 0, 104, 0, 0][..], &[0; 12]].concat();
    server.answer(&attach, ROOM);
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first() {
        let (message, next) = behind.split_at(usize::from(*length).min(behind.len()));
        let size = (message.len() + 4) as u32;
        let whole = [&size.to_le_bytes()[..], message].concat();
        let answer = server.answer(&whole, ROOM);
        assert!((HEADER_BYTES..=ROOM).contains(&answer.len()));
        rest = next;
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
});
