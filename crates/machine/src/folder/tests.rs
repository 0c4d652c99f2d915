//! A client's messages, well meant and not.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use rustix::io::Errno;
use tempfile::TempDir;

use super::protocol::{Answer, DATA_OVERHEAD, ERROR, Fields, HEADER_BYTES, Identity, request};
use super::server::Server;
use super::tree::Tree;

const ROOM: usize = 64 << 10;
const ROOT: u32 = 1;

struct Client {
    server: Server,
    folder: TempDir,
}

impl Client {
    /// Of a folder `shared` beside a file `secret`, with its root at hand.
    fn new(read_only: bool) -> Client {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("secret"), "secret").expect("written");
        fs::create_dir(folder.path().join("shared")).expect("made");
        let tree = Tree::open(&folder.path().join("shared"), read_only).expect("a folder");
        let mut client = Client {
            server: Server::new(tree),
            folder,
        };
        let version = Answer::default().word(8192).text(b"9P2000.L");
        let answer = client.ask(request::VERSION, version).expect("a version");
        assert_eq!(answer, Answer::default().word(8192).text(b"9P2000.L").0);
        let attach = Answer::default()
            .word(ROOT)
            .word(u32::MAX)
            .text(b"root")
            .text(b"")
            .word(0);
        client.ask(request::ATTACH, attach).expect("a root");
        client
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("shared").join(name)
    }

    fn ask(&mut self, kind: u8, fields: Answer) -> Result<Vec<u8>, Errno> {
        let answer = self.server.answer(&fields.message(kind, 7), ROOM);
        let mut fields = Fields(&answer);
        assert_eq!(fields.word(), Ok(answer.len() as u32));
        let (answered, tag) = (fields.byte().expect("a kind"), fields.half());
        assert_eq!(tag, Ok(7));
        match answered {
            ERROR => Err(Errno::from_raw_os_error(
                fields.word().expect("a number").cast_signed(),
            )),
            _ => {
                assert_eq!(answered, kind + 1);
                Ok(fields.0.to_owned())
            }
        }
    }

    fn walk(&mut self, to: u32, names: &[&str]) -> Result<usize, Errno> {
        let fields = Answer::default().word(ROOT).word(to).half(names.len() as u16);
        let fields = names
            .iter()
            .fold(fields, |fields, name| fields.text(name.as_bytes()));
        let answer = self.ask(request::WALK, fields)?;
        Ok(answer[2..].len() / Identity::BYTES)
    }

    fn open(&mut self, number: u32, flags: u32) -> Result<Vec<u8>, Errno> {
        self.ask(request::OPEN, Answer::default().word(number).word(flags))
    }

    fn create(&mut self, number: u32, name: &str) -> Result<Vec<u8>, Errno> {
        let fields = Answer::default().word(number).text(name.as_bytes()).word(2);
        self.ask(request::CREATE, fields.word(0o4644).word(0))
    }

    fn write(&mut self, number: u32, offset: u64, data: &[u8]) -> Result<Vec<u8>, Errno> {
        self.ask(
            request::WRITE,
            Answer::default().word(number).long(offset).data(data),
        )
    }

    fn read(&mut self, number: u32, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        let answer = self.ask(
            request::READ,
            Answer::default().word(number).long(offset).word(count),
        );
        answer.map(|answer| answer[4..].to_owned())
    }

    fn names(&mut self, number: u32, at_once: u32) -> Vec<String> {
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let fields = Answer::default().word(number).long(offset).word(at_once);
            let answer = self.ask(request::READ_FOLDER, fields).expect("entries");
            let mut fields = Fields(&answer[4..]);
            if fields.0.is_empty() {
                return names;
            }
            while !fields.0.is_empty() {
                fields.bytes(Identity::BYTES).expect("an identity");
                offset = fields.long().expect("where the next is");
                fields.byte().expect("a kind");
                let name = fields.text().expect("a name");
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
}

#[test]
fn files_are_made_written_read_renamed_and_removed() {
    let mut client = Client::new(false);
    client.walk(2, &[]).expect("the root again");
    client.create(2, "new").expect("a file");
    client.write(2, 3, b"there").expect("written");
    assert_eq!(client.read(2, 0, 100), Ok(b"\0\0\0there".to_vec()));
    assert_eq!(fs::read(client.path("new")).expect("a file"), b"\0\0\0there");
    let mode = fs::metadata(client.path("new"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o644, "it does not run as its owner");

    let fields = Answer::default().word(ROOT).text(b"below").word(0o755).word(0);
    client.ask(request::MAKE_FOLDER, fields).expect("a folder");
    client.walk(3, &["below"]).expect("it is there");
    let fields = Answer::default().word(ROOT).text(b"new").word(3).text(b"old");
    client.ask(request::RENAME, fields).expect("renamed");
    // What is at hand goes with its name.
    client.open(2, 0).expect("opened where it is now");
    let fields = Answer::default()
        .word(ROOT)
        .text(b"below")
        .word(ROOT)
        .text(b"above");
    client.ask(request::RENAME, fields).expect("renamed");
    client.open(2, 0).expect("opened where it is now");
    assert_eq!(
        fs::read(client.path("above/old")).expect("a file"),
        b"\0\0\0there"
    );

    let fields = Answer::default().word(ROOT).text(b"above").word(0x200);
    assert_eq!(client.ask(request::UNLINK, fields), Err(Errno::NOTEMPTY));
    let fields = Answer::default().word(3).text(b"old").word(0);
    client.ask(request::UNLINK, fields).expect("removed");
    assert_eq!(client.read(2, 3, 100), Ok(b"there".to_vec()), "it is open still");
    client
        .ask(request::GET_ATTRIBUTES, Answer::default().word(2).long(0))
        .expect("so it is known");
    client
        .ask(request::CLUNK, Answer::default().word(2))
        .expect("given up");
    assert_eq!(client.read(2, 0, 1), Err(Errno::BADF));
}

#[test]
fn attributes_are_set_one_by_one() {
    let mut client = Client::new(false);
    fs::write(client.path("file"), "12345").expect("written");
    client.walk(2, &["file"]).expect("it is there");
    let set = |which: u32, mode: u32, size: u64, time: u64| {
        let fields = Answer::default().word(2).word(which).word(mode).word(0).word(0);
        [size, time, 1, time, 2].into_iter().fold(fields, Answer::long)
    };
    client
        .ask(request::SET_ATTRIBUTES, set(1 | 8, 0o600, 2, 0))
        .expect("set");
    client
        .ask(request::SET_ATTRIBUTES, set(0x20 | 0x100, 0, 0, 1_000))
        .expect("set");
    let metadata = fs::metadata(client.path("file")).expect("a file");
    assert_eq!(
        (metadata.permissions().mode() & 0o777, metadata.len()),
        (0o600, 2)
    );
    let since = metadata
        .modified()
        .expect("a time")
        .duration_since(std::time::UNIX_EPOCH);
    assert_eq!(since.expect("behind 1970").as_nanos(), 1_000_000_000_002);
    let nobody = Answer::default()
        .word(2)
        .word(2 | 4)
        .word(0)
        .word(u32::MAX)
        .word(u32::MAX);
    let nobody = (0..5).fold(nobody, |fields, _| fields.long(0));
    client
        .ask(request::SET_ATTRIBUTES, nobody)
        .expect("nothing to set");
    let after = fs::metadata(client.path("file")).expect("a file");
    assert_eq!((after.uid(), after.gid()), (metadata.uid(), metadata.gid()));
    client
        .ask(request::STATISTICS, Answer::default().word(2))
        .expect("a file system");
}

#[test]
fn folders_are_listed_by_name_in_as_many_answers_as_it_takes() {
    let mut client = Client::new(true);
    for number in (0..40).rev() {
        fs::write(client.path(&format!("file{number:02}")), "").expect("written");
    }
    client.walk(2, &[]).expect("the root again");
    client.open(2, 0).expect("opened");
    let expected: Vec<String> = [".", ".."]
        .map(str::to_owned)
        .into_iter()
        .chain((0..40).map(|number| format!("file{number:02}")))
        .collect();
    for at_once in [40, 100, 4096] {
        assert_eq!(client.names(2, at_once), expected);
    }
}

#[test]
fn nothing_outside_is_reached() {
    let mut client = Client::new(false);
    symlink("..", client.path("up")).expect("a link");
    symlink("../secret", client.path("leads")).expect("a link");
    assert_eq!(
        client.walk(2, &["..", "secret"]),
        Ok(1),
        "the root is its own parent"
    );
    assert_eq!(client.walk(2, &["../secret"]), Err(Errno::INVAL));
    assert_eq!(client.walk(2, &["/etc"]), Err(Errno::INVAL));
    assert_eq!(client.walk(2, &["up", "secret"]), Ok(1), "no link is followed");
    assert_eq!(client.walk(3, &["leads"]), Ok(1));
    assert_eq!(client.open(3, 0), Err(Errno::PERM), "nor opened");
    let target = client.ask(request::READ_LINK, Answer::default().word(3));
    assert_eq!(target, Ok(Answer::default().text(b"../secret").0));
    for name in ["../new", "..", ".", "", "a/b", "a\0b"] {
        client.walk(9, &[]).expect("the root again");
        assert_eq!(client.create(9, name), Err(Errno::INVAL), "{name:?}");
        client
            .ask(request::CLUNK, Answer::default().word(9))
            .expect("given up");
        let fields = Answer::default()
            .word(ROOT)
            .text(name.as_bytes())
            .word(0o755)
            .word(0);
        assert_eq!(
            client.ask(request::MAKE_FOLDER, fields),
            Err(Errno::INVAL),
            "{name:?}"
        );
    }
    assert_eq!(client.walk(4, &["leads"]), Ok(1));
    let fields = Answer::default().word(4).text(b"new").word(2).word(0o644).word(0);
    assert!(
        client.ask(request::CREATE, fields).is_err(),
        "no file behind a link"
    );
    // The host replaces a folder by a link that leads outside.
    fs::create_dir(client.path("folder")).expect("made");
    client.walk(5, &["folder"]).expect("it is there");
    fs::remove_dir(client.path("folder")).expect("removed");
    symlink("..", client.path("folder")).expect("a link");
    let fields = Answer::default().word(5).word(6).half(1).text(b"secret");
    assert!(client.ask(request::WALK, fields).is_err());
    assert_eq!(
        fs::read(client.folder.path().join("secret")).expect("as it was"),
        b"secret"
    );
}

#[test]
fn pipes_are_not_opened() {
    let mut client = Client::new(false);
    let made = std::process::Command::new("mkfifo")
        .arg(client.path("pipe"))
        .status();
    assert!(made.expect("it runs").success());
    client.walk(2, &["pipe"]).expect("it is there");
    assert_eq!(client.open(2, 0), Err(Errno::PERM));
}

#[test]
fn what_is_read_only_stays_as_it_is() {
    let mut client = Client::new(true);
    fs::write(client.path("file"), "as it was").expect("written");
    client.walk(2, &["file"]).expect("it is there");
    for flags in [1, 2, 0o1000] {
        assert_eq!(client.open(2, flags), Err(Errno::ROFS));
    }
    client.open(2, 0).expect("opened to be read");
    assert!(client.write(2, 0, b"x").is_err());
    client.walk(3, &[]).expect("the root again");
    assert_eq!(client.create(3, "new"), Err(Errno::ROFS));
    let fields = Answer::default().word(ROOT).text(b"file").word(0);
    assert_eq!(client.ask(request::UNLINK, fields), Err(Errno::ROFS));
    assert_eq!(fs::read(client.path("file")).expect("a file"), b"as it was");
}

#[test]
fn answers_fit_their_room() {
    let mut client = Client::new(false);
    fs::write(client.path("file"), [b'x'; 1000]).expect("written");
    client.walk(2, &["file"]).expect("it is there");
    client.open(2, 0).expect("opened");
    let message = Answer::default()
        .word(2)
        .long(0)
        .word(1000)
        .message(request::READ, 1);
    let answer = client.server.answer(&message, 100);
    assert_eq!(answer.len(), 100);
    assert_eq!(answer[DATA_OVERHEAD..], [b'x'; 100 - DATA_OVERHEAD]);
    let message = Answer::default()
        .word(2)
        .long(0)
        .message(request::GET_ATTRIBUTES, 1);
    assert_eq!(client.server.answer(&message, 20)[4], ERROR);
    assert!(client.server.answer(&message, HEADER_BYTES).is_empty());
}

proptest! {
    #[test]
    fn any_message_has_an_answer_and_leaves_what_is_outside_alone(
        messages in prop::collection::vec(
            (prop::sample::select((0u8..130).collect::<Vec<_>>()), prop::collection::vec(any::<u8>(), 0..60)),
            0..40,
        ),
        names in prop::collection::vec("[a./]{1,4}", 8),
    ) {
        let mut client = Client::new(false);
        for (place, (kind, bytes)) in messages.into_iter().enumerate() {
            // Numbers of files that there may be, names that may lead outside, and what is left of the bytes.
            let fields = Answer::default().word(u32::from(bytes.first().copied().unwrap_or(0) % 4));
            let fields = match place % 3 {
                0 => fields.word(place as u32).half(1).text(names[place % 8].as_bytes()),
                1 => fields.text(names[place % 8].as_bytes()).word(1).text(names[(place + 1) % 8].as_bytes()),
                _ => fields,
            };
            let answer = client.server.answer(&fields.bytes(&bytes).message(kind, 1), ROOM);
            prop_assert!(answer.len() >= HEADER_BYTES);
        }
        let outside: Vec<_> = fs::read_dir(client.folder.path()).expect("the folder").collect();
        prop_assert_eq!(outside.len(), 2);
        prop_assert!(Path::new(&client.folder.path().join("secret")).is_file());
    }
}
