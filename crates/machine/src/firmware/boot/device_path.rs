//! Device paths: where a device or a file is, as a sequence of nodes (EFI 1.10, chapter 8).

/// Types of nodes.
mod node {
    pub const HARDWARE: u8 = 1;
    pub const ACPI: u8 = 2;
    pub const MESSAGING: u8 = 3;
    pub const MEDIA: u8 = 4;
    pub const END: u8 = 0x7f;
}
/// The subtype of the node that ends the whole path.
const END_ENTIRE: u8 = 0xff;
const HEADER: usize = 4;
/// The most bytes of a path that an application gives.
pub const BYTES_MAX: usize = 16 << 10;

/// The identifier of devices of this machine that no other node names.
const VENDOR: [u8; 16] = super::super::efi::guid(
    0x5ede_57e9,
    0x1a64,
    0x4d4d,
    [0x89, 0x10, b'v', b'i', b'r', b't', b'i', b'o'],
);

/// How a partition is told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// By the signature of a master boot record.
    Mbr(u32),
    /// By the identifier in a partition table.
    Gpt([u8; 16]),
}

/// A device path without its end, which [`bytes`](DevicePath::bytes) adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DevicePath(Vec<u8>);

impl DevicePath {
    fn node(mut self, kind: u8, subtype: u8, fields: &[&[u8]]) -> DevicePath {
        let length = HEADER + fields.iter().map(|field| field.len()).sum::<usize>();
        self.0.extend([kind, subtype]);
        self.0.extend((length as u16).to_le_bytes());
        self.0.extend(fields.concat());
        self
    }

    /// Behind the PCI host bridge.
    pub fn host_bridge() -> DevicePath {
        /// `PNP0A03`, compressed.
        const HOST_BRIDGE: u32 = 0x0a03_41d0;
        DevicePath::default().node(node::ACPI, 1, &[&HOST_BRIDGE.to_le_bytes(), &[0; 4]])
    }

    /// The serial console: a port that ACPI names.
    pub fn console() -> DevicePath {
        /// `PNP0501`, compressed.
        const SERIAL_PORT: u32 = 0x0501_41d0;
        let port = DevicePath::default().node(node::ACPI, 1, &[&SERIAL_PORT.to_le_bytes(), &[0; 4]]);
        let speed = crate::device::serial::BAUD_MAX.to_le_bytes();
        // 8 bits, no parity, one stop bit; then what the terminal understands.
        let port = port.node(node::MESSAGING, 14, &[&[0; 4], &speed, &[8, 1, 1]]);
        port.node(node::MESSAGING, 10, &[&VT_100])
    }

    /// A function of a PCI device.
    pub fn pci(self, device: u8) -> DevicePath {
        self.node(node::HARDWARE, 1, &[&[0, device]])
    }

    /// Something at an address that no bus has.
    pub fn at(address: u64) -> DevicePath {
        DevicePath::default().node(node::HARDWARE, 4, &[&VENDOR, &address.to_le_bytes()])
    }

    /// A target on a SCSI bus, its first logical unit.
    pub fn scsi(self, target: u16) -> DevicePath {
        self.node(node::MESSAGING, 2, &[&target.to_le_bytes(), &[0; 2]])
    }

    /// A drive on a Serial ATA port, with no port multiplier.
    pub fn sata(self, port: u16) -> DevicePath {
        self.node(
            node::MESSAGING,
            18,
            &[&port.to_le_bytes(), &[0xff, 0xff], &[0; 2]],
        )
    }

    /// A partition: its number, first block and count of blocks.
    pub fn hard_drive(self, number: u32, start: u64, blocks: u64, signature: Signature) -> DevicePath {
        let mut identifier = [0; 16];
        let (format, kind) = match signature {
            Signature::Mbr(signature) => {
                identifier[..4].copy_from_slice(&signature.to_le_bytes());
                (1, 1)
            }
            Signature::Gpt(of_partition) => {
                identifier = of_partition;
                (2, 2)
            }
        };
        let (start, blocks) = (start.to_le_bytes(), blocks.to_le_bytes());
        let number = number.to_le_bytes();
        self.node(
            node::MEDIA,
            1,
            &[&number, &start, &blocks, &identifier, &[format, kind]],
        )
    }

    /// An image on a CD-ROM: the entry in its boot catalogue, first block and count of blocks.
    pub fn cdrom(self, entry: u32, start: u64, blocks: u64) -> DevicePath {
        let (start, blocks) = (start.to_le_bytes(), blocks.to_le_bytes());
        self.node(node::MEDIA, 2, &[&entry.to_le_bytes(), &start, &blocks])
    }

    /// A file.
    pub fn file(self, name: &str) -> DevicePath {
        let name: Vec<u8> = name
            .encode_utf16()
            .chain([0])
            .flat_map(u16::to_le_bytes)
            .collect();
        self.node(node::MEDIA, 4, &[&name])
    }

    /// The path with its end.
    pub fn bytes(&self) -> Vec<u8> {
        self.clone().node(node::END, END_ENTIRE, &[]).0
    }

    /// Its nodes.
    fn nodes(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let length = node_bytes(rest)?;
            let (node, behind) = rest.split_at(length);
            rest = behind;
            Some(node)
        })
    }

    /// The path up to its first end, from bytes that begin with one.
    pub fn parse(bytes: &[u8]) -> Option<DevicePath> {
        let mut length = 0;
        loop {
            let rest = bytes.get(length..)?;
            let count = node_bytes(rest)?;
            if rest[0] == node::END {
                return Some(DevicePath(bytes[..length].to_vec()));
            }
            length += count;
        }
    }

    /// What is behind this path in a longer one that begins with it.
    pub fn behind(&self, longer: &DevicePath) -> Option<DevicePath> {
        let rest = longer.0.strip_prefix(&self.0[..])?;
        Some(DevicePath(rest.to_vec()))
    }

    /// How many bytes it has without its end.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// The partition that a short path names: one that begins with it and not with the device.
    pub fn short_partition(&self) -> Option<(Signature, DevicePath)> {
        let first = self.nodes().next()?;
        if first.len() != 42 || first[..2] != [node::MEDIA, 1] {
            return None;
        }
        let identifier: [u8; 16] = first[24..40].try_into().ok()?;
        let signature = match first[41] {
            1 => Signature::Mbr(u32::from_le_bytes(identifier[..4].try_into().ok()?)),
            _ => Signature::Gpt(identifier),
        };
        Some((signature, DevicePath(self.0[first.len()..].to_vec())))
    }

    /// The file that its nodes name, if all of them are such.
    pub fn file_name(&self) -> Option<String> {
        let mut name = String::new();
        for node in self.nodes() {
            if node[..2] != [node::MEDIA, 4] {
                return None;
            }
            let characters = node[HEADER..].chunks_exact(2);
            let characters = characters.map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            let characters: Vec<u16> = characters.take_while(|character| *character != 0).collect();
            if !name.is_empty() && !name.ends_with('\\') {
                name.push('\\');
            }
            name.push_str(&String::from_utf16_lossy(&characters));
        }
        (!name.is_empty()).then_some(name)
    }
}

/// The identifier of a terminal that understands VT-100's sequences.
const VT_100: [u8; 16] = super::super::efi::guid(
    0xdfa6_6065,
    0xb419,
    0x11d3,
    [0x9a, 0x2d, 0, 0x90, 0x27, 0x3f, 0xc1, 0x4d],
);

/// Bytes of the node that bytes begin with, if it is whole.
fn node_bytes(bytes: &[u8]) -> Option<usize> {
    let length = usize::from(u16::from_le_bytes([*bytes.get(2)?, *bytes.get(3)?]));
    (length >= HEADER && length <= bytes.len()).then_some(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_read_as_they_are_written() {
        let disk = DevicePath::host_bridge().pci(3).scsi(2);
        let partition = disk.clone().hard_drive(1, 2048, 4096, Signature::Gpt([7; 16]));
        let file = partition.clone().file("\\EFI").file("BOOT.EFI");
        let parsed = DevicePath::parse(&file.bytes()).expect("a path");
        assert_eq!(parsed, file);
        let rest = partition.behind(&parsed).expect("it begins so");
        assert_eq!(rest.file_name().as_deref(), Some("\\EFI\\BOOT.EFI"));
        assert_eq!(file.file_name(), None);
        let short = DevicePath::parse(&disk.behind(&partition).expect("begins so").bytes()).expect("a path");
        let (signature, behind) = short.short_partition().expect("it is a partition");
        assert_eq!((signature, behind.length()), (Signature::Gpt([7; 16]), 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_path_or_none(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(path) = DevicePath::parse(&bytes) {
                path.file_name();
                path.short_partition();
                prop_assert_eq!(DevicePath::parse(&path.bytes()), Some(path));
            }
        }
    }
}
