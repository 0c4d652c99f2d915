//! Directories: names, short and long, and what they stand for.

use super::{Fat, FatError, Root, Volume};

const ENTRY_BYTES: usize = 32;
/// The most bytes of a directory (65536 entries).
const DIRECTORY_BYTES_MAX: usize = 65_536 * ENTRY_BYTES;
const REMOVED: u8 = 0xe5;
/// Characters of a long name in one entry.
const OF_ENTRY: usize = 13;
/// Where they are in it.
const CHARACTERS: [usize; OF_ENTRY] = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];
const LONG_NAME: u8 = 0xf;
const LAST_LONG: u8 = 0x40;
/// The most characters of a long name.
const NAME_MAX: usize = 255;

/// What a file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes(pub u8);

impl Attributes {
    /// It is not to be written.
    pub const READ_ONLY: u8 = 1;
    /// It is the volume's name.
    pub const LABEL: u8 = 8;
    /// It is a folder.
    pub const DIRECTORY: u8 = 0x10;
    /// What a caller may change: read-only, hidden, system, archive.
    pub const CHANGEABLE: u8 = 0x27;

    /// Whether it is a folder.
    pub fn is_directory(self) -> bool {
        self.0 & Attributes::DIRECTORY != 0
    }

    /// Whether it is not to be written.
    pub fn is_read_only(self) -> bool {
        self.0 & Attributes::READ_ONLY != 0
    }
}

/// A date and a time of day, as the file system has them.
pub type Stamp = (u16, u16);

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name; the root has none.
    pub name: String,
    /// What it is.
    pub attributes: Attributes,
    /// Bytes of a file.
    pub size: u32,
    /// When it was created, changed, and read: date and time.
    pub stamps: [Stamp; 3],
    pub(super) first: u32,
    place: Option<Place>,
}

/// Where an entry is in its folder: the folder's first cluster, the entries of its long name and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    folder: u32,
    first: usize,
    own: usize,
}

impl Entry {
    pub(super) fn root(first: u32) -> Entry {
        Entry {
            name: String::new(),
            attributes: Attributes(Attributes::DIRECTORY),
            size: 0,
            stamps: [(0, 0); 3],
            first,
            place: None,
        }
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.place.is_none()
    }

    /// Whether it is the same file as another.
    pub fn is_same(&self, other: &Entry) -> bool {
        let own = |entry: &Entry| entry.place.map(|place| (place.folder, place.own));
        own(self) == own(other)
    }
}

impl<V: Volume> Fat<V> {
    /// What is in a folder, in its order.
    ///
    /// # Errors
    /// If it is none, or cannot be read.
    pub fn list(&mut self, folder: &Entry) -> Result<Vec<Entry>, FatError> {
        let bytes = self.contents(folder)?;
        Ok(entries(folder.first, &bytes))
    }

    /// What has this name in a folder, whatever the case of its letters.
    ///
    /// # Errors
    /// If there is no such thing.
    pub fn lookup(&mut self, folder: &Entry, name: &str) -> Result<Entry, FatError> {
        if name == ".." {
            return self.parent(folder);
        }
        let same = |other: &str| other.to_lowercase() == name.to_lowercase();
        let bytes = self.contents(folder)?;
        let found = entries(folder.first, &bytes).into_iter().find(|entry| {
            let own = entry.place.map_or(0, |place| place.own);
            same(&entry.name) || same(&short_name(&bytes[own * ENTRY_BYTES..]))
        });
        found.ok_or(FatError::NotFound)
    }

    /// The folder that a folder is in.
    fn parent(&mut self, folder: &Entry) -> Result<Entry, FatError> {
        let Some(place) = folder.place else {
            return Ok(folder.clone());
        };
        let root = self.root();
        if place.folder == root.first {
            return Ok(root);
        }
        // Its own second entry names the parent, whose parent has an entry for it.
        let of_parent = Entry {
            first: place.folder,
            ..root.clone()
        };
        let bytes = self.contents(&of_parent)?;
        let above = match bytes.chunks_exact(ENTRY_BYTES).nth(1) {
            Some(entry) if entry.starts_with(b"..") => first_cluster(entry),
            _ => return Err(FatError::Corrupt("a folder does not name its parent")),
        };
        let above = Entry {
            first: if above == 0 { root.first } else { above },
            ..root
        };
        let siblings = self.list(&above)?;
        let found = siblings.into_iter().find(|entry| entry.first == place.folder);
        found.ok_or(FatError::Corrupt("a folder is not in its parent"))
    }

    /// The bytes of a folder.
    fn contents(&mut self, folder: &Entry) -> Result<Vec<u8>, FatError> {
        if !folder.attributes.is_directory() {
            return Err(FatError::NotFound);
        }
        match self.root {
            Root::Fixed { start, size } if folder.first == 0 => {
                let mut bytes = vec![0; size as usize];
                self.read_at(start, &mut bytes)?;
                Ok(bytes)
            }
            _ => {
                let chain = self.table.chain(&self.volume, folder.first)?;
                let size = chain.len() as u64 * self.cluster_bytes;
                if chain.is_empty() || size > (DIRECTORY_BYTES_MAX as u64).max(self.cluster_bytes) {
                    return Err(FatError::Corrupt("a folder has no clusters or too many"));
                }
                let mut bytes = vec![0; size as usize];
                let clusters = bytes.chunks_exact_mut(self.cluster_bytes as usize);
                for (cluster, part) in chain.iter().zip(clusters) {
                    self.read_at(self.place(*cluster)?, part)?;
                }
                Ok(bytes)
            }
        }
    }

    /// Writes an entry of a folder.
    fn set_entry(&mut self, folder: u32, index: usize, entry: &[u8]) -> Result<(), FatError> {
        let at = (index * ENTRY_BYTES) as u64;
        let start = match self.root {
            Root::Fixed { start, .. } if folder == 0 => start + at,
            _ => {
                let chain = self.table.chain(&self.volume, folder)?;
                let cluster = chain.get((at / self.cluster_bytes) as usize);
                let cluster = cluster.ok_or(FatError::Corrupt("a folder is shorter than it was"))?;
                self.place(*cluster)? + at % self.cluster_bytes
            }
        };
        self.write_at(start, entry)
    }

    /// Writes what is known of a file to its folder: first cluster, size, attributes, times.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn update(&mut self, file: &Entry) -> Result<(), FatError> {
        let Some(place) = file.place else {
            return Ok(());
        };
        self.check_writable()?;
        let folder = Entry {
            first: place.folder,
            ..self.root()
        };
        let bytes = self.contents(&folder)?;
        let range = place.own * ENTRY_BYTES..(place.own + 1) * ENTRY_BYTES;
        let mut entry = bytes
            .get(range)
            .ok_or(FatError::Corrupt("a folder is shorter than it was"))?
            .to_vec();
        fill(&mut entry, file);
        self.set_entry(place.folder, place.own, &entry)
    }

    /// Makes a file or a folder; `stamp` is the date and the time.
    ///
    /// # Errors
    /// If no file can have the name, or there is no room.
    pub fn create(
        &mut self,
        folder: &Entry,
        name: &str,
        attributes: Attributes,
        stamp: Stamp,
    ) -> Result<Entry, FatError> {
        self.check_writable()?;
        let characters: Vec<u16> = name.encode_utf16().collect();
        let is_forbidden = |character: char| character < ' ' || "\"*/:<>?\\|".contains(character);
        let is_name = !name.trim_matches(['.', ' ']).is_empty() && !name.ends_with(['.', ' ']);
        if !is_name || characters.len() > NAME_MAX || name.chars().any(is_forbidden) {
            return Err(FatError::Name);
        }
        let bytes = self.contents(folder)?;
        let (short, is_whole) = short_form(name, &bytes);
        let long = if is_whole {
            0
        } else {
            characters.len().div_ceil(OF_ENTRY)
        };
        let first = self.room(folder, &bytes, long + 1)?;
        let mut made = Entry {
            name: name.to_owned(),
            attributes,
            size: 0,
            stamps: [stamp; 3],
            first: 0,
            place: Some(Place {
                folder: folder.first,
                first,
                own: first + long,
            }),
        };
        if attributes.is_directory() {
            made.first = self.table.extend(&self.volume, None, 1)?;
            let mut contents = vec![0; self.cluster_bytes as usize];
            let is_above_root = folder.is_root();
            let parent = if is_above_root { 0 } else { folder.first };
            for (index, (dots, cluster)) in [(&b".          "[..], made.first), (b"..         ", parent)]
                .into_iter()
                .enumerate()
            {
                let entry = &mut contents[index * ENTRY_BYTES..][..ENTRY_BYTES];
                entry[..11].copy_from_slice(dots);
                let own = Entry {
                    first: cluster,
                    ..made.clone()
                };
                fill(entry, &own);
            }
            self.write_at(self.place(made.first)?, &contents)?;
        }
        let sum = checksum(&short);
        for part in (0..long).rev() {
            let entry = long_entry(&characters, part, part + 1 == long, sum);
            self.set_entry(folder.first, first + long - 1 - part, &entry)?;
        }
        let mut entry = [0; ENTRY_BYTES];
        entry[..11].copy_from_slice(&short);
        fill(&mut entry, &made);
        self.set_entry(folder.first, first + long, &entry)?;
        Ok(made)
    }

    /// The first of so many entries of a folder in a row that are free; it grows where it must.
    fn room(&mut self, folder: &Entry, bytes: &[u8], count: usize) -> Result<usize, FatError> {
        let mut free = 0;
        let mut is_behind = false;
        for (index, entry) in bytes.chunks_exact(ENTRY_BYTES).enumerate() {
            is_behind |= entry[0] == 0;
            free = if is_behind || entry[0] == REMOVED {
                free + 1
            } else {
                0
            };
            if free == count {
                return Ok(index + 1 - count);
            }
        }
        if folder.first == 0 || bytes.len() + self.cluster_bytes as usize > DIRECTORY_BYTES_MAX {
            return Err(FatError::Full);
        }
        let chain = self.table.chain(&self.volume, folder.first)?;
        let added = self.table.extend(&self.volume, chain.last().copied(), 1)?;
        self.write_at(self.place(added)?, &vec![0; self.cluster_bytes as usize])?;
        let bytes = self.contents(folder)?;
        self.room(folder, &bytes, count)
    }

    /// Removes a file, or a folder with nothing in it.
    ///
    /// # Errors
    /// If there is something in it, or it is the root.
    pub fn remove(&mut self, file: &Entry) -> Result<(), FatError> {
        self.check_writable()?;
        let place = file.place.ok_or(FatError::NotEmpty)?;
        if file.attributes.is_directory() {
            let mut inside = self.list(file)?;
            inside.retain(|entry| entry.name != "." && entry.name != "..");
            if !inside.is_empty() {
                return Err(FatError::NotEmpty);
            }
        }
        let folder = Entry {
            first: place.folder,
            ..self.root()
        };
        let bytes = self.contents(&folder)?;
        for index in place.first..=place.own {
            let range = index * ENTRY_BYTES..(index + 1) * ENTRY_BYTES;
            let mut entry = bytes
                .get(range)
                .ok_or(FatError::Corrupt("a folder is shorter than it was"))?
                .to_vec();
            entry[0] = REMOVED;
            self.set_entry(place.folder, index, &entry)?;
        }
        let chain = self.table.chain(&self.volume, file.first)?;
        self.table.release(&self.volume, None, &chain)
    }
}

/// The entries of a folder's bytes, without the volume's name.
fn entries(folder: u32, bytes: &[u8]) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut long = LongName::default();
    for (index, entry) in bytes.chunks_exact(ENTRY_BYTES).enumerate() {
        match entry[0] {
            0 => break,
            REMOVED => long = LongName::default(),
            _ if entry[11] & 0x3f == LONG_NAME => long.add(index, entry),
            _ => {
                let long = std::mem::take(&mut long);
                if entry[11] & Attributes::LABEL == 0 {
                    found.push(of_bytes(folder, index, entry, &long));
                }
            }
        }
    }
    found
}

fn of_bytes(folder: u32, index: usize, entry: &[u8], long: &LongName) -> Entry {
    let half = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
    let named = long.name(entry);
    let first = named.as_ref().map_or(index, |_| long.start);
    Entry {
        name: named.unwrap_or_else(|| short_name(entry)),
        attributes: Attributes(entry[11]),
        size: u32::from(half(28)) | u32::from(half(30)) << 16,
        stamps: [(half(16), half(14)), (half(24), half(22)), (half(18), 0)],
        first: first_cluster(entry),
        place: Some(Place {
            folder,
            first,
            own: index,
        }),
    }
}

fn first_cluster(entry: &[u8]) -> u32 {
    u32::from(u16::from_le_bytes([entry[26], entry[27]]))
        | u32::from(u16::from_le_bytes([entry[20], entry[21]])) << 16
}

/// Writes what is known of a file into its entry, all but its name.
fn fill(entry: &mut [u8], file: &Entry) {
    let mut put = |at: usize, value: u16| entry[at..at + 2].copy_from_slice(&value.to_le_bytes());
    let [created, changed, read] = file.stamps;
    put(16, created.0);
    put(14, created.1);
    put(24, changed.0);
    put(22, changed.1);
    put(18, read.0);
    put(20, (file.first >> 16) as u16);
    put(26, file.first as u16);
    let size = if file.attributes.is_directory() {
        0
    } else {
        file.size
    };
    put(28, size as u16);
    put(30, (size >> 16) as u16);
    entry[11] = file.attributes.0;
}

/// The entries of a long name, as they come: the last part first.
#[derive(Default)]
struct LongName {
    start: usize,
    /// Parts, the last one first.
    parts: Vec<[u16; OF_ENTRY]>,
    /// How many are still to come; not so many if the name is none.
    missing: u8,
    sum: u8,
}

impl LongName {
    fn add(&mut self, index: usize, entry: &[u8]) {
        let number = entry[0] & !LAST_LONG;
        if entry[0] & LAST_LONG != 0 {
            *self = LongName {
                start: index,
                parts: Vec::new(),
                missing: number,
                sum: entry[13],
            };
        }
        let is_next = number != 0 && number == self.missing && entry[13] == self.sum;
        if !is_next || usize::from(number) > NAME_MAX.div_ceil(OF_ENTRY) {
            *self = LongName::default();
            return;
        }
        self.missing -= 1;
        self.parts
            .push(CHARACTERS.map(|at| u16::from_le_bytes([entry[at], entry[at + 1]])));
    }

    /// The name, if it is whole and that of this short entry.
    fn name(&self, entry: &[u8]) -> Option<String> {
        if self.parts.is_empty() || self.missing != 0 || self.sum != checksum(&entry[..11]) {
            return None;
        }
        let characters = self.parts.iter().rev().flatten().copied();
        let characters: Vec<u16> = characters.take_while(|character| *character != 0).collect();
        Some(String::from_utf16_lossy(&characters))
    }
}

/// The entry with part `part` of a long name.
fn long_entry(characters: &[u16], part: usize, is_last: bool, sum: u8) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    entry[0] = part as u8 + 1 | if is_last { LAST_LONG } else { 0 };
    entry[11] = LONG_NAME;
    entry[13] = sum;
    let behind = characters.len();
    for (index, at) in CHARACTERS.into_iter().enumerate() {
        let character = match part * OF_ENTRY + index {
            index if index < behind => characters[index],
            index if index == behind => 0,
            _ => 0xffff,
        };
        entry[at..at + 2].copy_from_slice(&character.to_le_bytes());
    }
    entry
}

/// What tells that a long name belongs to a short one.
fn checksum(short: &[u8]) -> u8 {
    short[..11]
        .iter()
        .fold(0, |sum: u8, byte| sum.rotate_right(1).wrapping_add(*byte))
}

/// The short name of an entry; bits of byte 12 say that its parts are in small letters.
fn short_name(entry: &[u8]) -> String {
    let part = |bytes: &[u8], is_small: bool| {
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        let text = text.trim_end().to_owned();
        if is_small { text.to_ascii_lowercase() } else { text }
    };
    let mut base = part(&entry[..8], entry[12] & 8 != 0);
    // A first letter that would say that the entry was removed.
    if entry[0] == 5 {
        base.replace_range(..1, "\u{e5}");
    }
    let extension = part(&entry[8..11], entry[12] & 0x10 != 0);
    match extension.is_empty() {
        true => base,
        false => format!("{base}.{extension}"),
    }
}

/// A short name for a file that no other in the folder has, and whether it says all of the name.
fn short_form(name: &str, folder: &[u8]) -> ([u8; 11], bool) {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"$%'-_@~`!(){}^#&".contains(&byte);
    let (base, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let kept = |text: &str| -> Vec<u8> {
        let bytes = text.bytes().filter(|byte| !b". ".contains(byte));
        bytes
            .map(|byte| {
                if is_kept(byte) {
                    byte.to_ascii_uppercase()
                } else {
                    b'_'
                }
            })
            .collect()
    };
    let (short_base, short_extension) = (kept(base), kept(extension));
    let form = |base: &[u8]| {
        let mut short = [b' '; 11];
        short[..base.len()].copy_from_slice(base);
        let count = short_extension.len().min(3);
        short[8..8 + count].copy_from_slice(&short_extension[..count]);
        short
    };
    let is_taken = |short: &[u8; 11]| {
        folder
            .chunks_exact(ENTRY_BYTES)
            .any(|entry| entry[..11] == *short)
    };
    let says_all = short_base.len() <= 8
        && short_extension.len() <= 3
        && short_base == base.as_bytes()
        && short_extension == extension.as_bytes();
    let whole = form(&short_base[..short_base.len().min(8)]);
    if says_all && !is_taken(&whole) {
        return (whole, true);
    }
    let numbered = (1..=999_999).map(|number| {
        let tail = format!("~{number}");
        let mut base = short_base[..short_base.len().min(8 - tail.len())].to_vec();
        base.extend(tail.bytes());
        form(&base)
    });
    let free = { numbered }.find(|short| !is_taken(short));
    (free.unwrap_or(whole), false)
}
