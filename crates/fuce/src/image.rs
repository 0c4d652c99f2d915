//! A FUCE program as a file: what the assembler writes and the chip loads.
//!
//! All numbers are little-endian 32-bit words. Header: the bytes `FUCE`, version 1, entry address, text bytes, data
//! address, data bytes, zero bytes that follow the data, user region start, user region end, chunk bytes, symbol bytes.
//! Then the text (loaded at address 0); the data as chunks, each an offset, a length and that many bytes, with zeros
//! between them; and the symbols, each an address, a length in one byte, and that many bytes of UTF-8.

use thiserror::Error;

/// The bytes a FUCE image begins with.
pub const MAGIC: [u8; 4] = *b"FUCE";
const VERSION: u32 = 1;
const HEADER_WORDS: usize = 10;
/// The most data, initialised and zero: the paper's memory.
const DATA_BYTES_MAX: u64 = 256 << 20;
/// Runs of zeros in the data from this length on are left out of the file.
const ZERO_RUN: usize = 64;
/// The largest text, as 19 bits of instruction number allow.
pub const TEXT_BYTES_MAX: u32 = 1 << 21;

/// A program ready to load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// The boot thread's first instruction.
    pub entry: u32,
    /// Instructions, loaded at address 0.
    pub text: Vec<u32>,
    /// Where the data goes.
    pub data_address: u32,
    /// Initialised data.
    pub data: Vec<u8>,
    /// Zeroed bytes after the data.
    pub zero_bytes: u32,
    /// The memory user threads may use: first byte, and the byte after the last.
    pub user: (u32, u32),
    /// Names of addresses, by address.
    pub symbols: Vec<(u32, String)>,
}

/// Why bytes are not an image.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImageError {
    /// The first four bytes are others.
    #[error("not a FUCE image: it does not begin with the bytes `FUCE`")]
    Magic,
    /// Another version wrote it.
    #[error("image version {0} is not known; this program reads version {VERSION}")]
    Version(u32),
    /// The file is too short for what its header promises, or longer.
    #[error("the image has {actual} bytes where its header promises {expected}")]
    Length {
        /// What the header promises.
        expected: u64,
        /// What is there.
        actual: u64,
    },
    /// A field contradicts the others.
    #[error("image header: {field} {value:#x} {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A chunk of data is cut off, out of order or beyond the data.
    #[error("the image's chunk at byte {0} of its data is cut off, out of order or beyond the data")]
    Chunk(usize),
    /// A symbol is cut off or no UTF-8.
    #[error("the image's symbol at byte {0} of its symbol table is cut off or not UTF-8")]
    Symbol(usize),
    /// The program does not fit into the chip's memory.
    #[error("the image needs {needed} bytes of memory; the chip has {available}")]
    TooLarge {
        /// What it needs.
        needed: u64,
        /// What there is.
        available: u32,
    },
    /// A name that the program was to define.
    #[error("the image defines no symbol `{0}`")]
    MissingSymbol(String),
}

impl Image {
    /// Whether bytes begin as an image does.
    pub fn is_image(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The first byte after everything the image loads.
    pub fn end(&self) -> u64 {
        u64::from(self.data_address) + self.data.len() as u64 + u64::from(self.zero_bytes)
    }

    /// The address of a symbol.
    ///
    /// # Errors
    /// When the program defines no such name.
    pub fn symbol(&self, name: &str) -> Result<u32, ImageError> {
        self.symbols
            .iter()
            .find(|(_, symbol)| symbol == name)
            .map(|(address, _)| *address)
            .ok_or_else(|| ImageError::MissingSymbol(name.to_string()))
    }

    /// Sets the data word that a symbol names, as a run's parameter.
    ///
    /// # Errors
    /// When there is no such symbol, or it does not lie in the data.
    pub fn set_word(&mut self, name: &str, value: u32) -> Result<(), ImageError> {
        let address = self.symbol(name)?;
        let field = |problem| ImageError::Field {
            field: "parameter",
            value: address,
            problem,
        };
        let offset = address
            .checked_sub(self.data_address)
            .ok_or(field("lies before the data"))? as usize;
        if u64::from(address) + 4 > self.end() {
            return Err(field("lies beyond the data"));
        }
        if offset + 4 > self.data.len() {
            self.zero_bytes -= (offset + 4 - self.data.len()) as u32;
            self.data.resize(offset + 4, 0);
        }
        self.data[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// The name of the last symbol at or before a text address, with the distance from it.
    pub fn describe(&self, address: u32) -> String {
        let index = self.symbols.partition_point(|(symbol, _)| *symbol <= address);
        match index.checked_sub(1).map(|last| &self.symbols[last]) {
            Some((start, name)) if *start == address => name.clone(),
            Some((start, name)) => format!("{name}+{:#x}", address - start),
            None => format!("{address:#x}"),
        }
    }

    /// The image as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut symbols = Vec::new();
        for (address, name) in &self.symbols {
            let name = &name.as_bytes()[..name.len().min(255)];
            symbols.extend_from_slice(&address.to_le_bytes());
            symbols.push(name.len() as u8);
            symbols.extend_from_slice(name);
        }
        let chunks = write_chunks(&self.data);
        let header: [u32; HEADER_WORDS] = [
            VERSION,
            self.entry,
            self.text.len() as u32 * 4,
            self.data_address,
            self.data.len() as u32,
            self.zero_bytes,
            self.user.0,
            self.user.1,
            chunks.len() as u32,
            symbols.len() as u32,
        ];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(
            header
                .iter()
                .chain(&self.text)
                .flat_map(|word| word.to_le_bytes()),
        );
        bytes.extend_from_slice(&chunks);
        bytes.extend_from_slice(&symbols);
        bytes
    }

    /// Reads an image.
    ///
    /// # Errors
    /// When the bytes are not an image, are cut off, or contradict themselves.
    pub fn from_bytes(bytes: &[u8]) -> Result<Image, ImageError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(ImageError::Magic)?;
        let length = |expected| ImageError::Length {
            expected,
            actual: bytes.len() as u64,
        };
        let header_bytes = HEADER_WORDS * 4;
        let header = rest.get(..header_bytes).ok_or(length(4 + header_bytes as u64))?;
        let words: Vec<u32> = header
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        let [
            version,
            entry,
            text_bytes,
            data_address,
            data_bytes,
            zero_bytes,
            user_start,
            user_end,
            chunk_bytes,
            symbol_bytes,
        ] = words[..]
        else {
            unreachable!("the header has {HEADER_WORDS} words");
        };
        if version != VERSION {
            return Err(ImageError::Version(version));
        }
        let expected = 4
            + header_bytes as u64
            + u64::from(text_bytes)
            + u64::from(chunk_bytes)
            + u64::from(symbol_bytes);
        if expected != bytes.len() as u64 {
            return Err(length(expected));
        }
        let field = |field, value, problem| {
            Err(ImageError::Field {
                field,
                value,
                problem,
            })
        };
        if !text_bytes.is_multiple_of(4) || text_bytes == 0 || text_bytes > TEXT_BYTES_MAX {
            return field(
                "text size",
                text_bytes,
                "is not a multiple of 4 from 4 to 2097152",
            );
        }
        if !entry.is_multiple_of(4) || entry >= text_bytes {
            return field("entry", entry, "is not an instruction of the text");
        }
        if data_address < text_bytes || !data_address.is_multiple_of(4) {
            return field(
                "data address",
                data_address,
                "lies in the text or is not a multiple of 4",
            );
        }
        if u64::from(data_bytes) + u64::from(zero_bytes) > DATA_BYTES_MAX {
            return field(
                "data size",
                data_bytes,
                "is, with the zeros that follow, more than 256 MB",
            );
        }
        if user_start < text_bytes || user_end < user_start {
            return field(
                "user region",
                user_start,
                "overlaps the text or ends before it begins",
            );
        }
        let (text, rest) = rest[header_bytes..].split_at(text_bytes as usize);
        let (chunks, symbols) = rest.split_at(chunk_bytes as usize);
        Ok(Image {
            entry,
            text: text
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
                .collect(),
            data_address,
            data: read_chunks(chunks, data_bytes as usize)?,
            zero_bytes,
            user: (user_start, user_end),
            symbols: read_symbols(symbols)?,
        })
    }
}

/// The data without its long runs of zeros.
fn write_chunks(data: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    let mut at = 0;
    while let Some(skipped) = data[at..].iter().position(|byte| *byte != 0) {
        let start = at + skipped;
        // The chunk ends where a long run of zeros begins, or with the data.
        let mut end = start;
        let mut zeros = 0;
        for (index, byte) in data.iter().enumerate().skip(start) {
            zeros = if *byte == 0 { zeros + 1 } else { 0 };
            if zeros == ZERO_RUN {
                break;
            }
            if *byte != 0 {
                end = index + 1;
            }
        }
        chunks.extend_from_slice(&(start as u32).to_le_bytes());
        chunks.extend_from_slice(&((end - start) as u32).to_le_bytes());
        chunks.extend_from_slice(&data[start..end]);
        at = end;
    }
    chunks
}

fn read_chunks(bytes: &[u8], length: usize) -> Result<Vec<u8>, ImageError> {
    let mut data = vec![0; length];
    let mut filled = 0;
    let mut at = 0;
    while at < bytes.len() {
        let chunk = (|| {
            let word = |from: usize| {
                let word = bytes.get(from..from + 4)?;
                Some(u32::from_le_bytes(word.try_into().ok()?) as usize)
            };
            let (offset, length) = (word(at)?, word(at + 4)?);
            let source = bytes.get(at + 8..(at + 8).checked_add(length)?)?;
            let target = data.get_mut(offset..offset.checked_add(length)?)?;
            if offset < filled || length == 0 {
                return None;
            }
            target.copy_from_slice(source);
            Some((offset, length))
        })();
        let (offset, length) = chunk.ok_or(ImageError::Chunk(at))?;
        filled = offset + length;
        at += 8 + length;
    }
    Ok(data)
}

fn read_symbols(bytes: &[u8]) -> Result<Vec<(u32, String)>, ImageError> {
    let mut symbols = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let symbol = (|| {
            let address = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
            let length = usize::from(*bytes.get(at + 4)?);
            let name = std::str::from_utf8(bytes.get(at + 5..at + 5 + length)?).ok()?;
            Some((address, name.to_string()))
        })();
        let symbol = symbol.ok_or(ImageError::Symbol(at))?;
        at += 5 + symbol.1.len();
        symbols.push(symbol);
    }
    symbols.sort();
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Image {
        Image {
            entry: 4,
            text: vec![0x4a00_0000; 3],
            data_address: 64,
            data: vec![1, 2, 3, 4, 5],
            zero_bytes: 11,
            user: (68, 80),
            symbols: vec![(4, "start".into()), (64, "word".into())],
        }
    }

    #[test]
    fn an_image_survives_its_file() {
        assert_eq!(Image::from_bytes(&sample().to_bytes()), Ok(sample()));
    }

    #[test]
    fn long_runs_of_zeros_take_no_room() {
        let mut image = sample();
        image.data = vec![0; 100_000];
        (
            image.data[0],
            image.data[63],
            image.data[50_000],
            image.data[99_999],
        ) = (1, 2, 3, 4);
        let bytes = image.to_bytes();
        assert!(bytes.len() < 300, "{} bytes", bytes.len());
        assert_eq!(Image::from_bytes(&bytes), Ok(image));
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = sample().to_bytes();
        for length in 0..bytes.len() {
            assert!(Image::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn parameters_are_set_by_name() {
        let mut image = sample();
        image.set_word("word", 9).expect("`word` is data");
        assert_eq!(image.data, [9, 0, 0, 0, 5]);
        let end = image.end();
        image.symbols.push((72, "zero".into()));
        image.set_word("zero", 7).expect("`zero` is data");
        assert_eq!((image.data.len(), image.end()), (12, end));
        assert_eq!(
            image.set_word("none", 9),
            Err(ImageError::MissingSymbol("none".into()))
        );
        assert!(matches!(
            image.set_word("start", 9),
            Err(ImageError::Field { .. })
        ));
        assert_eq!(image.describe(8), "start+0x4");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_loader_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), keep in 0..80usize) {
            let _ = Image::from_bytes(&bytes);
            let good = sample().to_bytes();
            let keep = keep.min(good.len());
            bytes.splice(0..keep.min(bytes.len()), good[..keep].iter().copied());
            let _ = Image::from_bytes(&bytes);
        }
    }
}
