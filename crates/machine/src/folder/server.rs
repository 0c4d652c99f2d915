//! What a client has at hand, and the answer to each of its messages.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;

use super::protocol::{
    Answer, DATA_OVERHEAD, ERROR, Fields, HEADER_BYTES, Identity, NO_TAG, VERSION, request,
};
use super::tree::{self, Change, Entry, Tree};

/// The most bytes of a message.
pub const MESSAGE_BYTES_MAX: u32 = 512 << 10;
/// The least that a client may ask for.
const MESSAGE_BYTES_MIN: u32 = 256;
/// The most files that a client has at hand, and how many of them are open on the host.
const HANDLES_MAX: usize = 1 << 18;
const OPEN_MAX: usize = 512;
/// The most names in one walk.
const WALK_MAX: u16 = 16;

/// What is open on the host.
enum Open {
    File(File),
    /// A folder, with its entries once they were asked for.
    Folder(Vec<Entry>),
}

/// A server for one client.
pub struct Server {
    tree: Tree,
    message_bytes: u32,
    /// Where what a client has at hand is, by the client's numbers, and what of that is open.
    handles: BTreeMap<u32, PathBuf>,
    open: BTreeMap<u32, Open>,
}

/// Bits of the attributes to be set.
mod setting {
    pub const MODE: u32 = 1 << 0;
    pub const USER: u32 = 1 << 1;
    pub const GROUP: u32 = 1 << 2;
    pub const SIZE: u32 = 1 << 3;
    pub const READ_TIME: u32 = 1 << 4;
    pub const WRITE_TIME: u32 = 1 << 5;
    pub const READ_TIME_GIVEN: u32 = 1 << 7;
    pub const WRITE_TIME_GIVEN: u32 = 1 << 8;
}

impl Server {
    /// Of this folder.
    pub fn new(tree: Tree) -> Server {
        Server {
            tree,
            message_bytes: MESSAGE_BYTES_MAX,
            handles: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// Forgets its client.
    pub fn reset(&mut self) {
        self.handles.clear();
        self.open.clear();
        self.message_bytes = MESSAGE_BYTES_MAX;
    }

    /// The answer to a message, of at most `room` bytes; none if there is no room for any.
    pub fn answer(&mut self, message: &[u8], room: usize) -> Vec<u8> {
        let (kind, tag, done) = match header(message) {
            Some((kind, tag, body)) => (kind, tag, self.perform(kind, body, room)),
            None => (0, NO_TAG, Err(Errno::PROTO)),
        };
        let answer = match done {
            Ok(answer) => answer.message(kind + 1, tag),
            Err(error) => failed(error, tag),
        };
        let answer = match answer.len() <= room {
            true => answer,
            false => failed(Errno::MSGSIZE, tag),
        };
        if answer.len() <= room { answer } else { Vec::new() }
    }

    /// Bytes of data that an answer may have.
    fn data_room(&self, wanted: u32, room: usize) -> usize {
        let most = room
            .min(self.message_bytes as usize)
            .saturating_sub(DATA_OVERHEAD);
        most.min(wanted as usize)
    }

    fn path(&self, number: u32) -> Result<&Path, Errno> {
        self.handles.get(&number).map(PathBuf::as_path).ok_or(Errno::BADF)
    }

    fn file(&self, number: u32) -> Result<&File, Errno> {
        match self.open.get(&number) {
            Some(Open::File(file)) => Ok(file),
            Some(Open::Folder(_)) | None => Err(Errno::BADF),
        }
    }

    fn add(&mut self, number: u32, path: PathBuf) -> Result<(), Errno> {
        if self.handles.len() >= HANDLES_MAX {
            return Err(Errno::NFILE);
        }
        self.handles.insert(number, path);
        self.open.remove(&number);
        Ok(())
    }

    fn open(&mut self, number: u32, path: PathBuf, open: Open) -> Result<(), Errno> {
        if self.open.len() >= OPEN_MAX {
            return Err(Errno::MFILE);
        }
        self.handles.insert(number, path);
        self.open.insert(number, open);
        Ok(())
    }

    /// The identity of a file that was just made.
    fn made(&self, path: &Path) -> Result<Answer, Errno> {
        let stat = self.tree.attributes(path)?;
        Ok(Answer::default().identity(tree::identity(&stat)))
    }

    fn perform(&mut self, kind: u8, mut fields: Fields<'_>, room: usize) -> Result<Answer, Errno> {
        let fields = &mut fields;
        match kind {
            request::VERSION => self.version(fields),
            request::ATTACH => {
                let (number, _) = (fields.word()?, fields.word()?);
                if self.handles.contains_key(&number) {
                    return Err(Errno::BADF);
                }
                self.add(number, PathBuf::new())?;
                self.made(Path::new(""))
            }
            request::WALK => self.walk(fields),
            request::CLUNK => {
                let number = fields.word()?;
                self.handles.remove(&number).ok_or(Errno::BADF)?;
                self.open.remove(&number);
                Ok(Answer::default())
            }
            // Whatever is to be given up has been done already.
            request::FLUSH => Ok(Answer::default()),
            request::GET_ATTRIBUTES => self.get_attributes(fields.word()?),
            request::SET_ATTRIBUTES => self.set_attributes(fields),
            request::STATISTICS => self.statistics(fields.word()?),
            request::OPEN => self.open_handle(fields),
            request::CREATE => self.create(fields),
            request::READ => {
                let (number, offset, count) = (fields.word()?, fields.long()?, fields.word()?);
                let mut data = vec![0; self.data_room(count, room)];
                let read = self.file(number)?.read_at(&mut data, offset).map_err(reason)?;
                Ok(Answer::default().data(&data[..read]))
            }
            request::WRITE => {
                let (number, offset, count) = (fields.word()?, fields.long()?, fields.word()?);
                let data = fields.bytes(count as usize)?;
                let written = self.file(number)?.write_at(data, offset).map_err(reason)?;
                Ok(Answer::default().word(written as u32))
            }
            request::READ_FOLDER => self.read_folder(fields, room),
            request::SYNCHRONIZE => {
                let (number, of_data) = (fields.word()?, fields.word()?);
                match self.open.get(&number).ok_or(Errno::BADF)? {
                    Open::File(file) if of_data != 0 => file.sync_data().map_err(reason)?,
                    Open::File(file) => file.sync_all().map_err(reason)?,
                    Open::Folder(_) => self.tree.synchronize(self.path(number)?)?,
                }
                Ok(Answer::default())
            }
            request::READ_LINK => {
                let target = self.tree.target(self.path(fields.word()?)?)?;
                Ok(Answer::default().text(&target))
            }
            request::MAKE_FOLDER => {
                let path = self.new_path(fields)?;
                self.tree.make_folder(&path, fields.word()?)?;
                self.made(&path)
            }
            request::SYMBOLIC_LINK => {
                let path = self.new_path(fields)?;
                self.tree.make_link(&path, fields.text()?)?;
                self.made(&path)
            }
            request::LINK => {
                let (folder, number) = (fields.word()?, fields.word()?);
                let path = tree::entry(self.path(folder)?, fields.text()?)?;
                self.tree.link(self.path(number)?, &path)?;
                Ok(Answer::default())
            }
            request::RENAME => {
                let (from, to) = (self.new_path(fields)?, self.new_path(fields)?);
                self.tree.rename(&from, &to)?;
                self.follow(&from, &to);
                Ok(Answer::default())
            }
            request::UNLINK => {
                const IS_FOLDER: u32 = 0x200;
                let path = self.new_path(fields)?;
                let is_folder = fields.word()? & IS_FOLDER != 0;
                self.tree.unlink(&path, is_folder)?;
                Ok(Answer::default())
            }
            // Locks are among the guest's processes, whose kernel keeps them.
            request::LOCK => {
                self.file(fields.word()?)?;
                Ok(Answer::default().byte(0))
            }
            request::GET_LOCK => {
                const UNLOCKED: u8 = 2;
                let (number, _) = (fields.word()?, fields.byte()?);
                self.file(number)?;
                Ok(Answer::default().byte(UNLOCKED).bytes(fields.0))
            }
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    fn version(&mut self, fields: &mut Fields<'_>) -> Result<Answer, Errno> {
        let wanted = fields.word()?;
        if wanted < MESSAGE_BYTES_MIN {
            return Err(Errno::INVAL);
        }
        self.reset();
        self.message_bytes = wanted.min(MESSAGE_BYTES_MAX);
        let version = match fields.text()? {
            VERSION => VERSION,
            _ => b"unknown",
        };
        Ok(Answer::default().word(self.message_bytes).text(version))
    }

    fn walk(&mut self, fields: &mut Fields<'_>) -> Result<Answer, Errno> {
        let (from, to, count) = (fields.word()?, fields.word()?, fields.half()?);
        if count > WALK_MAX || from != to && self.handles.contains_key(&to) {
            return Err(Errno::INVAL);
        }
        let mut path = self.path(from)?.to_owned();
        let mut found: Vec<Identity> = Vec::new();
        for _ in 0..count {
            let next = Tree::step(&path, fields.text()?);
            match next.and_then(|next| Ok((self.tree.attributes(&next)?, next))) {
                Ok((stat, next)) => {
                    found.push(tree::identity(&stat));
                    path = next;
                }
                Err(error) if found.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        // Only who arrives has a new file at hand.
        if found.len() == usize::from(count) {
            self.add(to, path)?;
        }
        let answer = Answer::default().half(found.len() as u16);
        Ok(found.into_iter().fold(answer, Answer::identity))
    }

    fn get_attributes(&self, number: u32) -> Result<Answer, Errno> {
        /// All up to the number of blocks.
        const VALID: u64 = 0x7ff;
        let stat: Stat = match self.open.get(&number) {
            // Also of one that has no name any more.
            Some(Open::File(file)) => rustix::fs::fstat(file)?,
            Some(Open::Folder(_)) | None => self.tree.attributes(self.path(number)?)?,
        };
        let numbers = [
            stat.st_nlink,
            stat.st_rdev,
            stat.st_size as u64,
            stat.st_blksize as u64,
            stat.st_blocks as u64,
            stat.st_atime as u64,
            stat.st_atime_nsec,
            stat.st_mtime as u64,
            stat.st_mtime_nsec,
            stat.st_ctime as u64,
            stat.st_ctime_nsec,
            // When it was made, its generation and its version, which are not known.
            0,
            0,
            0,
            0,
        ];
        let answer = Answer::default().long(VALID).identity(tree::identity(&stat));
        let answer = answer.word(stat.st_mode).word(stat.st_uid).word(stat.st_gid);
        Ok(numbers.into_iter().fold(answer, Answer::long))
    }

    fn set_attributes(&mut self, fields: &mut Fields<'_>) -> Result<Answer, Errno> {
        let (number, which) = (fields.word()?, fields.word()?);
        let given = |bit: u32| which & bit != 0;
        let (mode, user, group, size) = (fields.word()?, fields.word()?, fields.word()?, fields.long()?);
        let mut time = |changed: u32, set: u32| -> Result<Timespec, Errno> {
            let (seconds, nanoseconds) = (fields.long()?.cast_signed(), fields.long()?.cast_signed());
            Ok(Timespec {
                tv_sec: seconds,
                tv_nsec: match (given(changed), given(set)) {
                    (false, _) => UTIME_OMIT,
                    (true, false) => UTIME_NOW,
                    (true, true) => nanoseconds,
                },
            })
        };
        let times = Timestamps {
            last_access: time(setting::READ_TIME, setting::READ_TIME_GIVEN)?,
            last_modification: time(setting::WRITE_TIME, setting::WRITE_TIME_GIVEN)?,
        };
        let change = Change {
            mode: given(setting::MODE).then_some(mode),
            user: given(setting::USER).then_some(user),
            group: given(setting::GROUP).then_some(group),
            size: given(setting::SIZE).then_some(size),
            times: given(setting::READ_TIME | setting::WRITE_TIME).then_some(times),
        };
        self.tree.change(self.path(number)?, &change)?;
        Ok(Answer::default())
    }

    fn statistics(&self, number: u32) -> Result<Answer, Errno> {
        /// How Linux numbers the file system of this protocol.
        const KIND: u32 = 0x0102_1997;
        let of = self.tree.statistics(self.path(number)?)?;
        let numbers = [of.f_blocks, of.f_bfree, of.f_bavail, of.f_files, of.f_ffree, 0];
        let answer = Answer::default().word(KIND).word(of.f_bsize as u32);
        let answer = numbers.into_iter().fold(answer, Answer::long);
        Ok(answer.word(of.f_namelen as u32))
    }

    fn open_handle(&mut self, fields: &mut Fields<'_>) -> Result<Answer, Errno> {
        let (number, flags) = (fields.word()?, fields.word()?);
        let path = self.path(number)?.to_owned();
        let stat = self.tree.attributes(&path)?;
        let open = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Open::Folder(Vec::new()),
            _ => Open::File(self.tree.open_file(&path, flags)?),
        };
        self.open(number, path, open)?;
        // Requests are as long as messages allow.
        Ok(Answer::default().identity(tree::identity(&stat)).word(0))
    }

    fn create(&mut self, fields: &mut Fields<'_>) -> Result<Answer, Errno> {
        let number = fields.word()?;
        let path = tree::entry(self.path(number)?, fields.text()?)?;
        let (flags, mode) = (fields.word()?, fields.word()?);
        let file = self.tree.create(&path, flags, mode)?;
        let answer = self.made(&path)?;
        self.open(number, path, Open::File(file))?;
        Ok(answer.word(0))
    }

    fn read_folder(&mut self, fields: &mut Fields<'_>, room: usize) -> Result<Answer, Errno> {
        let (number, offset, count) = (fields.word()?, fields.long()?, fields.word()?);
        let room = self.data_room(count, room);
        let (Some(path), Some(Open::Folder(entries))) =
            (self.handles.get(&number), self.open.get_mut(&number))
        else {
            return Err(Errno::BADF);
        };
        if offset == 0 {
            *entries = self.tree.entries(path)?;
        }
        let first = usize::try_from(offset).unwrap_or(usize::MAX).min(entries.len());
        let mut data = Answer::default();
        for (next, entry) in (offset + 1..).zip(&entries[first..]) {
            const FIXED_BYTES: usize = Identity::BYTES + 8 + 1 + 2;
            if data.0.len() + FIXED_BYTES + entry.name.len() > room {
                break;
            }
            data = data
                .identity(entry.identity)
                .long(next)
                .byte(entry.kind)
                .text(&entry.name);
        }
        Ok(Answer::default().data(&data.0))
    }

    /// A folder that is at hand, and the name of an entry of it.
    fn new_path(&self, fields: &mut Fields<'_>) -> Result<PathBuf, Errno> {
        let folder = self.path(fields.word()?)?;
        tree::entry(folder, fields.text()?)
    }

    /// What is at hand of something that was renamed, or of what is in it, has another path now.
    fn follow(&mut self, from: &Path, to: &Path) {
        for path in self.handles.values_mut() {
            if let Ok(rest) = path.strip_prefix(from) {
                // Joining nothing would end the path in a slash.
                *path = match rest.as_os_str().is_empty() {
                    true => to.to_owned(),
                    false => to.join(rest),
                };
            }
        }
    }
}

/// The kind, the tag and the fields of a message that is whole.
fn header(message: &[u8]) -> Option<(u8, u16, Fields<'_>)> {
    let mut fields = Fields(message);
    let size = fields.word().ok()? as usize;
    let (kind, tag) = (fields.byte().ok()?, fields.half().ok()?);
    let is_request = kind < u8::MAX && kind.is_multiple_of(2);
    let body = fields.0.get(..size.checked_sub(HEADER_BYTES)?)?;
    is_request.then_some((kind, tag, Fields(body)))
}

fn failed(error: Errno, tag: u16) -> Vec<u8> {
    let answer = Answer::default().word(error.raw_os_error().cast_unsigned());
    answer.message(ERROR, tag)
}

/// The host's number of an error.
fn reason(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
