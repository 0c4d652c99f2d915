//! ACPI tables: RSDP, XSDT, FADT, FACS, MADT, SPCR and the DSDT with the devices that cannot be probed; SRAT and SLIT
//! of machines with several nodes, HPET of those with that timer.
//!
//! ACPI 2.0 as IA-64 uses it: 64-bit addresses, SAPICs in the MADT, registers of power management in memory.

use acpi_tables::aml::{
    AddressSpace, AddressSpaceCacheable, Device, EISAName, Interrupt, Memory32Fixed, Name, Package, Path,
    ResourceTemplate, Scope,
};
use acpi_tables::facs::FACS;
use acpi_tables::rsdp::Rsdp;
use acpi_tables::sdt::{GenericAddress, Sdt};
use acpi_tables::slit::SLIT;
use acpi_tables::xsdt::XSDT;
use acpi_tables::{Aml, AmlSink};

use super::layout::{self, Node};
use crate::device::{hpet, power, serial};
use crate::memory::INTERRUPT_BLOCK;

const OEM: [u8; 6] = *b"SIDSTP";
const TABLE: [u8; 8] = *b"SIDESTEP";
const REVISION: u32 = 1;

/// How many processors Linux prepares for where no SRAT counts them; with more it stops in its beginning, before it has
/// a console (`arch/ia64/kernel/setup.c`).
const UNCOUNTED_PROCESSORS_MAX: usize = 32;

/// What differs among machines.
#[derive(Clone, Debug)]
pub struct Contents {
    /// How many processors; processor `n` has the local identifier `n`, 0.
    pub processors: usize,
    /// How they and RAM are divided.
    pub nodes: Vec<Node>,
    /// How many devices there are on the last PCI bus: on bus 0 in the slots behind the host bridge's.
    pub pci_devices: usize,
    /// Behind how many other bridges they are.
    pub pci_bridges: usize,
    /// How many have registers in memory.
    pub memory_devices: usize,
    /// Whether there is a high-precision event timer.
    pub has_hpet: bool,
}

struct Bytes(Vec<u8>);

impl AmlSink for Bytes {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

fn bytes(aml: &dyn Aml) -> Vec<u8> {
    let mut bytes = Bytes(Vec::new());
    aml.to_aml_bytes(&mut bytes);
    bytes.0
}

/// All tables, to be put at `start`; the RSDP is the first.
pub fn tables(start: u64, contents: &Contents) -> Vec<u8> {
    const RSDP_ROOM: usize = 64;
    let mut all = vec![0; RSDP_ROOM];
    let mut place = |table: &[u8]| {
        all.resize(all.len().next_multiple_of(64), 0);
        let at = start + all.len() as u64;
        all.extend_from_slice(table);
        at
    };
    let facs = place(&bytes(&FACS::new()));
    let dsdt = place(dsdt(contents).as_slice());
    let mut root = XSDT::new(OEM, TABLE, REVISION);
    for table in [fadt(facs, dsdt), madt(contents.processors), spcr()] {
        root.add_entry(place(table.as_slice()));
    }
    if contents.nodes.len() > 1 || contents.processors > UNCOUNTED_PROCESSORS_MAX {
        root.add_entry(place(srat(&contents.nodes).as_slice()));
        root.add_entry(place(&slit(contents.nodes.len())));
    }
    if contents.has_hpet {
        root.add_entry(place(hpet_table().as_slice()));
    }
    let root = place(&bytes(&root));
    let pointer = bytes(&Rsdp::new(OEM, root));
    all[..pointer.len()].copy_from_slice(&pointer);
    all
}

fn fadt(facs: u64, dsdt: u64) -> Sdt {
    let mut table = Sdt::new(*b"FACP", 244, 3, OEM, TABLE, REVISION);
    table.write_u32(36, facs as u32);
    table.write_u32(40, dsdt as u32);
    table.write_u16(46, layout::POWER_INTERRUPT as u16);
    table.write_u8(88, 4); // bytes of PM1 events
    table.write_u8(89, 2); // bytes of PM1 control
    table.write_u8(91, 4); // bytes of the timer
    table.write_u16(96, 0xffff); // no C2
    table.write_u16(98, 0xffff); // no C3
    // WBINVD works, C1 works; the buttons are no fixed ones; a reset register.
    table.write_u32(112, 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 10);
    let register = |offset| GenericAddress::mmio_address::<u32>(layout::POWER + offset);
    table.write(
        116,
        GenericAddress::mmio_address::<u8>(layout::POWER + power::RESET),
    );
    table.write_u8(128, power::RESET_VALUE);
    table.write_u64(132, facs);
    table.write_u64(140, dsdt);
    table.write(148, register(power::EVENT));
    table.write(
        172,
        GenericAddress::mmio_address::<u16>(layout::POWER + power::CONTROL),
    );
    table.write(208, register(power::TIMER));
    table.update_checksum();
    table
}

fn madt(processors: usize) -> Sdt {
    let mut table = Sdt::new(*b"APIC", 44, 1, OEM, TABLE, REVISION);
    table.write_u32(36, INTERRUPT_BLOCK.0 as u32);
    // A local SAPIC: type 7, 16 bytes; processor, identifier, extended identifier, three reserved, flags: enabled,
    // and the number that the DSDT would call it by.
    for index in 0..processors as u32 {
        let mut entry = vec![7, 16, index as u8, index as u8, 0, 0, 0, 0];
        entry.extend_from_slice(&1u32.to_le_bytes());
        entry.extend_from_slice(&index.to_le_bytes());
        table.append_slice(&entry);
    }
    // The IOSAPIC: type 6, 16 bytes; identifier, reserved, first interrupt, address.
    let mut entry = vec![6, 16, 0, 0, 0, 0, 0, 0];
    entry.extend_from_slice(&layout::IOSAPIC.to_le_bytes());
    table.append_slice(&entry);
    table
}

/// Which processors and which RAM are of one node.
fn srat(nodes: &[Node]) -> Sdt {
    // Revision 1, for every kernel: numbers of nodes have eight bits.
    let mut table = Sdt::new(*b"SRAT", 48, 1, OEM, TABLE, REVISION);
    table.write_u32(36, 1); // reserved, and 1
    for (number, node) in nodes.iter().enumerate() {
        // A processor: type 0, 16 bytes; node, identifier, flags: enabled, extended identifier.
        for index in node.processors.clone() {
            let mut entry = [0; 16];
            entry[..4].copy_from_slice(&[0, 16, number as u8, index as u8]);
            entry[4] = 1;
            table.append_slice(&entry);
        }
        // Memory: type 1, 40 bytes; node at 2, address at 8, size at 16, flags at 28: enabled.
        for (start, size) in &node.memory {
            let mut entry = [0; 40];
            entry[..3].copy_from_slice(&[1, 40, number as u8]);
            entry[8..16].copy_from_slice(&start.to_le_bytes());
            entry[16..24].copy_from_slice(&size.to_le_bytes());
            entry[28] = 1;
            table.append_slice(&entry);
        }
    }
    table
}

/// How far nodes are apart: twice as far as within one, ACPI's usual value, since nothing here takes longer.
fn slit(nodes: usize) -> Vec<u8> {
    const APART: u8 = 20;
    let mut table = SLIT::new(OEM, TABLE, REVISION, nodes as u32);
    for one in 0..nodes {
        for other in 0..one {
            table.set_distance(one, other, APART);
        }
    }
    bytes(&table)
}

fn spcr() -> Sdt {
    let mut table = Sdt::new(*b"SPCR", 80, 1, OEM, TABLE, REVISION);
    table.write_u8(36, 0); // a 16550
    table.write(40, GenericAddress::mmio_address::<u8>(layout::SERIAL));
    table.write_u8(52, 1 << 3); // interrupts by the SAPIC
    table.write_u32(54, layout::SERIAL_INTERRUPT);
    table.write_u8(58, 7); // 115200 bauds
    table.write_u8(60, 1); // one stop bit
    table.write_u16(64, 0xffff); // not a PCI device
    table.write_u16(66, 0xffff);
    table.update_checksum();
    table
}

/// The high-precision event timer (IA-PC HPET Specification, section 3.2.4).
fn hpet_table() -> Sdt {
    let mut table = Sdt::new(*b"HPET", 56, 1, OEM, TABLE, REVISION);
    table.write_u32(36, hpet::BLOCK_IDENTITY);
    table.write(40, GenericAddress::mmio_address::<u64>(layout::HPET));
    table.write_u16(53, 100); // the least steps of a periodic timer: a microsecond
    table.update_checksum();
    table
}

/// The same as a device, as kernels for IA-64 look for it.
fn hpet_device() -> Vec<u8> {
    let identity = Name::new("_HID".into(), &EISAName::new("PNP0103"));
    let unit = Name::new("_UID".into(), &0u8);
    let registers = registers(layout::HPET, hpet::SIZE);
    // Linux leaves a timer alone that names no interrupt here.
    let lines = (0..u32::BITS).filter(|line| hpet::ROUTES >> line & 1 != 0);
    let interrupts: Vec<Interrupt> = lines
        .map(|line| Interrupt::new(true, true, false, false, line))
        .collect();
    let interrupts = interrupts.iter().map(|interrupt| interrupt as &dyn Aml);
    let resources: Vec<&dyn Aml> = [&registers as &dyn Aml].into_iter().chain(interrupts).collect();
    let resources = ResourceTemplate::new(resources);
    let resources = Name::new("_CRS".into(), &resources);
    let device = Device::new("HPET".into(), vec![&identity, &unit, &resources]);
    bytes(&Scope::new("\\_SB_".into(), vec![&device]))
}

fn dsdt(contents: &Contents) -> Sdt {
    let mut table = Sdt::new(*b"DSDT", 36, 2, OEM, TABLE, REVISION);
    let off = power::SLEEP_TYPE_OFF;
    let name = Name::new("_S5_".into(), &Package::new(vec![&off, &off, &0u8, &0u8]));
    table.append_slice(&bytes(&name));
    let identity = Name::new("_HID".into(), &EISAName::new("PNP0501"));
    let resources = resources(layout::SERIAL, serial_registers(), layout::SERIAL_INTERRUPT);
    let unit = Name::new("_UID".into(), &0u8);
    let resources = Name::new("_CRS".into(), &resources.template());
    let port = Device::new("COM0".into(), vec![&identity, &unit, &resources]);
    table.append_slice(&bytes(&Scope::new("\\_SB_".into(), vec![&port])));
    table.append_slice(&host_bridge(contents));
    for index in 0..contents.memory_devices {
        table.append_slice(&virtio(index));
    }
    if contents.has_hpet {
        table.append_slice(&hpet_device());
    }
    table
}

/// The PCI host bridge: the buses behind it, the addresses and ports that it passes on, and where interrupts lead.
///
/// Memory has the same addresses on both sides. So have ports: those of segment 0 are the processor's own, in the
/// sparse space that the EFI memory map names, and need no translation.
fn host_bridge(contents: &Contents) -> Vec<u8> {
    const PORTS: u32 = 1 << 16;
    let buses = AddressSpace::<u16>::new_bus_number(0, 0xff);
    let ports = AddressSpace::<u32>::new_io(0, PORTS - 1, None);
    let (start, end) = (layout::PCI as u32, (layout::PCI + layout::PCI_SIZE - 1) as u32);
    let memory = AddressSpace::<u32>::new_memory(AddressSpaceCacheable::NotCacheable, true, start, end, None);
    let resources = ResourceTemplate::new(vec![&buses, &ports, &memory]);
    let no_routes = bytes(&Name::new("_PRT".into(), &Package::new(Vec::new())));
    // What is on a bus: the last one has the devices, each other one the bridge to the next.
    let mut on_bus = bytes(&Name::new("_PRT".into(), &Raw(&routing(contents))));
    for bus in (0..contents.pci_bridges).rev() {
        // The device in the first slot, on bus 0 behind the host bridge's.
        let address = Name::new("_ADR".into(), &(u32::from(bus == 0) << 16));
        let behind = Raw(&on_bus);
        let bridge = Device::new(Path::new(&format!("BR{bus:02}")), vec![&address, &behind]);
        on_bus = [no_routes.clone(), bytes(&bridge)].concat();
    }
    let on_bus = Raw(&on_bus);
    let fields = [
        Name::new("_HID".into(), &EISAName::new("PNP0A03")),
        Name::new("_UID".into(), &0u8),
        Name::new("_SEG".into(), &0u8),
        Name::new("_BBN".into(), &0u8),
        Name::new("_CRS".into(), &resources),
    ];
    let fields = fields.iter().map(|field| field as &dyn Aml);
    let fields = fields.chain([&on_bus as &dyn Aml]).collect();
    let bridge = Device::new("PCI0".into(), fields);
    bytes(&Scope::new("\\_SB_".into(), vec![&bridge]))
}

/// Of each slot with a device the global system interrupt: any function, its first pin, no link device.
///
/// Interrupts of devices with registers in memory come before those of devices on the bus.
fn routing(contents: &Contents) -> Vec<u8> {
    let first_slot = u32::from(contents.pci_bridges == 0);
    let first = layout::VIRTIO_INTERRUPT + contents.memory_devices as u32;
    let routes: Vec<[u32; 4]> = (0..contents.pci_devices as u32)
        .map(|device| [(device + first_slot) << 16 | 0xffff, 0, 0, first + device])
        .collect();
    let routes: Vec<Package<'_>> = routes
        .iter()
        .map(|route| Package::new(route.iter().map(|field| field as &dyn Aml).collect()))
        .collect();
    bytes(&Package::new(
        routes.iter().map(|route| route as &dyn Aml).collect(),
    ))
}

/// What has been encoded already.
struct Raw<'a>(&'a [u8]);

impl Aml for Raw<'_> {
    fn to_aml_bytes(&self, sink: &mut dyn AmlSink) {
        self.0.iter().for_each(|byte| sink.byte(*byte));
    }
}

/// The registers of the port that there are, without the rest of its page.
fn serial_registers() -> u64 {
    8.min(serial::SIZE)
}

fn virtio(index: usize) -> Vec<u8> {
    let path = Path::new(&format!("VR{index:02}"));
    let identity = Name::new("_HID".into(), &"LNRO0005");
    let unit = Name::new("_UID".into(), &(index as u8));
    let resources = resources(
        layout::VIRTIO + index as u64 * layout::VIRTIO_SIZE,
        layout::VIRTIO_SIZE,
        layout::VIRTIO_INTERRUPT + index as u32,
    );
    let resources = Name::new("_CRS".into(), &resources.template());
    let device = Device::new(path, vec![&identity, &unit, &resources]);
    bytes(&Scope::new("\\_SB_".into(), vec![&device]))
}

/// Registers and an interrupt.
struct Resources {
    registers: Memory32Fixed,
    interrupt: Interrupt,
}

fn resources(start: u64, size: u64, interrupt: u32) -> Resources {
    Resources {
        registers: registers(start, size),
        // Level-triggered, active low as on PCI.
        interrupt: Interrupt::new(true, false, true, false, interrupt),
    }
}

/// What a device occupies.
///
/// An address space would say that the device passes it on to others, as a bridge does; Linux 2.6 then takes a device
/// for one without registers.
fn registers(start: u64, size: u64) -> Memory32Fixed {
    let below_4_gb = |number: u64| u32::try_from(number).expect("devices are below 4 GB");
    Memory32Fixed::new(true, below_4_gb(start), below_4_gb(size))
}

impl Resources {
    fn template(&self) -> ResourceTemplate<'_> {
        ResourceTemplate::new(vec![&self.registers, &self.interrupt])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x10_0000;

    fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
        let mut value = [0; 8];
        value[..size].copy_from_slice(&bytes[at..at + size]);
        u64::from_le_bytes(value)
    }

    fn sum(bytes: &[u8]) -> u8 {
        bytes.iter().fold(0, |sum, &byte| sum.wrapping_add(byte))
    }

    /// The table at a physical address, whose header says its length and whose bytes sum up to zero.
    fn table(all: &[u8], address: u64) -> &[u8] {
        let from = (address - START) as usize;
        let length = number(all, from + 4, 4) as usize;
        let table = &all[from..from + length];
        assert_eq!(sum(table), 0, "{:?}", &table[..4]);
        table
    }

    /// The tables that the root names, as a kernel finds them.
    fn found(all: &[u8]) -> Vec<&[u8]> {
        assert_eq!(&all[..8], b"RSD PTR ");
        assert_eq!((sum(&all[..20]), sum(&all[..36])), (0, 0));
        let root = table(all, number(all, 24, 8));
        assert_eq!(&root[..4], b"XSDT");
        let entries = (36..root.len()).step_by(8);
        entries.map(|at| table(all, number(root, at, 8))).collect()
    }

    fn without_devices(processors: usize, nodes: Vec<Node>) -> Contents {
        Contents {
            processors,
            nodes,
            pci_devices: 0,
            pci_bridges: 0,
            memory_devices: 0,
            has_hpet: false,
        }
    }

    fn named<'a>(tables: &[&'a [u8]], name: &[u8; 4]) -> &'a [u8] {
        tables
            .iter()
            .find(|table| table.starts_with(name))
            .expect("the table is there")
    }

    #[test]
    fn every_table_is_found_from_the_root_and_sums_to_zero() {
        const MOST: usize = layout::VIRTIO_MAX;
        for (processors, pci_devices, memory_devices) in
            [(1, 0, 0), (16, 3, 0), (16, 0, 3), (256, MOST, 0), (256, 0, MOST)]
        {
            let all = tables(
                START,
                &Contents {
                    processors,
                    nodes: layout::nodes(processors.min(64), processors, 16 << 30),
                    pci_devices,
                    pci_bridges: 0,
                    memory_devices,
                    has_hpet: true,
                },
            );
            assert!(all.len() as u64 <= layout::BOOT_DATA - layout::ACPI_TABLES);
            let tables = found(&all);
            let fadt = named(&tables, b"FACP");
            assert_eq!(
                (number(fadt, 36, 4), number(fadt, 40, 4)),
                (number(fadt, 132, 8), number(fadt, 140, 8))
            );
            let dsdt = table(&all, number(fadt, 140, 8));
            assert_eq!(&dsdt[..4], b"DSDT");
            let devices = dsdt.windows(8).filter(|bytes| bytes == b"LNRO0005").count();
            assert_eq!(devices, memory_devices);
            for slot in 1..=pci_devices as u32 {
                let address = (slot << 16 | 0xffff).to_le_bytes();
                let routes = dsdt.windows(4).filter(|bytes| *bytes == address).count();
                assert_eq!(routes, 1, "the interrupt of slot {slot}");
            }
            assert_eq!(&all[(number(fadt, 132, 8) - START) as usize..][..4], b"FACS");
            assert_eq!(number(named(&tables, b"SPCR"), 44, 8), layout::SERIAL);
            assert_eq!(number(named(&tables, b"HPET"), 44, 8), layout::HPET);
        }
    }

    #[test]
    fn the_madt_lists_every_processor_and_the_iosapic() {
        let all = tables(START, &without_devices(256, layout::nodes(1, 256, 1 << 30)));
        let madt = named(&found(&all), b"APIC");
        assert_eq!(number(madt, 36, 4), INTERRUPT_BLOCK.0);
        let (mut at, mut identifiers, mut iosapics) = (44, Vec::new(), Vec::new());
        while at < madt.len() {
            match madt[at] {
                7 if madt[at + 8] & 1 != 0 => identifiers.push(madt[at + 3]),
                6 => iosapics.push(number(madt, at + 8, 8)),
                kind => panic!("an entry of type {kind}"),
            }
            at += usize::from(madt[at + 1]);
        }
        assert_eq!(at, madt.len());
        assert_eq!(identifiers, (0..=255).collect::<Vec<u8>>());
        assert_eq!(iosapics, [layout::IOSAPIC]);
    }

    #[test]
    fn devices_occupy_their_registers_and_do_not_pass_them_on() {
        let contents = Contents {
            processors: 1,
            nodes: layout::nodes(1, 1, 1 << 30),
            pci_devices: 0,
            pci_bridges: 0,
            memory_devices: 2,
            has_hpet: true,
        };
        let table = dsdt(&contents);
        let aml = table.as_slice();
        for (start, size) in [
            (layout::SERIAL, serial_registers()),
            (layout::HPET, hpet::SIZE),
            (layout::VIRTIO, layout::VIRTIO_SIZE),
            (layout::VIRTIO + layout::VIRTIO_SIZE, layout::VIRTIO_SIZE),
        ] {
            let fixed = [
                &[0x86, 9, 0, 1][..],
                &(start as u32).to_le_bytes(),
                &(size as u32).to_le_bytes(),
            ]
            .concat();
            assert!(aml.windows(fixed.len()).any(|bytes| bytes == fixed), "{start:#x}");
        }
    }

    #[test]
    fn nodes_have_every_processor_and_all_memory_once() {
        for (count, processors, size) in [
            (1, 1, 64 << 20),
            (2, 4, 1 << 30),
            (3, 7, 5 << 30),
            (4, 4, 13 << 30),
        ] {
            let nodes = layout::nodes(count, processors, size);
            let of = |node: &Node| node.processors.clone().collect::<Vec<_>>();
            let all: Vec<usize> = nodes.iter().flat_map(of).collect();
            assert_eq!(all, (0..processors).collect::<Vec<_>>());
            let mut memory: Vec<(u64, u64)> = Vec::new();
            for (start, size) in nodes.iter().flat_map(|node| &node.memory) {
                match memory.last_mut() {
                    Some(last) if last.0 + last.1 == *start => last.1 += size,
                    _ => memory.push((*start, *size)),
                }
            }
            let ranges = layout::memory(size);
            let expected: Vec<_> = ranges.iter().map(|range| (range.start.0, range.size)).collect();
            assert_eq!(memory, expected);
            let sizes = nodes
                .iter()
                .map(|node| node.memory.iter().map(|(_, size)| size).sum::<u64>());
            let (least, most) = (sizes.clone().min(), sizes.max());
            assert!(most <= least.map(|least| least + 2 * layout::NODE_GRANULE));
        }
    }

    #[test]
    fn interrupts_of_devices_behind_bridges_are_those_of_their_bus() {
        let contents = Contents {
            processors: 1,
            nodes: layout::nodes(1, 1, 1 << 30),
            pci_devices: 3,
            pci_bridges: 2,
            memory_devices: 0,
            has_hpet: false,
        };
        let aml = host_bridge(&contents);
        let places = |name: &[u8]| -> Vec<usize> {
            let found = aml.windows(name.len()).enumerate();
            found
                .filter(|(_, bytes)| *bytes == name)
                .map(|(at, _)| at)
                .collect()
        };
        let (first, second, tables) = (places(b"BR00"), places(b"BR01"), places(b"_PRT"));
        assert_eq!((first.len(), second.len(), tables.len()), (1, 1, 3));
        // The first two tables are empty; a device's fields come before the devices that are in it.
        assert!(
            tables[0] < first[0] && first[0] < tables[1] && tables[1] < second[0] && second[0] < tables[2]
        );
        for slot in 0..3u32 {
            // Of the first one the number is encoded as a word.
            let route: Vec<usize> = match slot {
                0 => places(&[0x0b, 0xff, 0xff]),
                _ => places(&(slot << 16 | 0xffff).to_le_bytes()),
            };
            assert_eq!(
                route.iter().filter(|at| **at > tables[2]).count(),
                1,
                "slot {slot}"
            );
        }
    }

    #[test]
    fn srat_and_slit_say_what_is_of_which_node() {
        let nodes = layout::nodes(2, 3, 4 << 30);
        let all = tables(START, &without_devices(3, nodes));
        let found = found(&all);
        let srat = named(&found, b"SRAT");
        let (mut at, mut processors, mut memory) = (48, Vec::new(), Vec::new());
        while at < srat.len() {
            match srat[at] {
                0 if srat[at + 4] == 1 => processors.push((srat[at + 2], srat[at + 3])),
                1 if srat[at + 28] == 1 => {
                    memory.push((srat[at + 2], number(srat, at + 8, 8), number(srat, at + 16, 8)));
                }
                kind => panic!("an entry of type {kind}"),
            }
            at += usize::from(srat[at + 1]);
        }
        assert_eq!(processors, [(0, 0), (1, 1), (1, 2)]);
        let (half, gigabyte) = (2 << 30, 1 << 30);
        assert_eq!(
            memory,
            [(0, 0, half), (1, half, gigabyte), (1, 1 << 32, gigabyte)]
        );
        let slit = named(&found, b"SLIT");
        assert_eq!((number(slit, 36, 8), &slit[44..]), (2, &[10, 20, 20, 10][..]));
    }

    #[test]
    fn srat_counts_processors_where_they_are_many() {
        for (processors, is_counted) in [(1, false), (32, false), (33, true), (256, true)] {
            let nodes = layout::nodes(1, processors, 1 << 30);
            let all = tables(START, &without_devices(processors, nodes));
            let found = found(&all);
            let counts = found.iter().any(|table| table.starts_with(b"SRAT"));
            assert_eq!(counts, is_counted, "{processors} processors");
        }
    }
}
