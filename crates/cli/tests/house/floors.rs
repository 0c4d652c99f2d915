//! The workspace has seven floors; a crate may depend only on crates of lower floors.
//!
//! Crates on one floor do not know each other. The table below is the architecture: a new crate needs a row.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Every crate folder and its floor.
const FLOORS: &[(&str, u32)] = &[
    ("cli", 6),
    ("python", 6),
    ("experiments", 5),
    ("lab", 4),
    ("runner", 4),
    ("hypervisor", 3),
    ("linux-user", 3),
    ("schedule", 3),
    ("itanium2", 2),
    ("machine", 2),
    ("symbols", 2),
    ("translator", 2),
    ("gang-linux", 2),
    ("sidecall-kvm", 2),
    ("ia64", 1),
    ("fuce", 1),
    ("sidecall", 1),
    ("zerowait", 1),
    ("gang", 1),
    ("files", 1),
    ("guests", 1),
    ("tests-need", 0),
];

#[test]
fn a_crate_imports_only_floors_below_its_own() {
    let floors: BTreeMap<&str, u32> = FLOORS.iter().copied().collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("crates/ above crates/cli");
    let entries = fs::read_dir(crates).expect("crates/ can be listed");
    let entries = entries.map(|entry| entry.expect("an entry of crates/").path());
    for entry in entries.chain([crates.with_file_name("python")]) {
        let folder = entry
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a UTF-8 folder name")
            .to_owned();
        let floor = *floors
            .get(folder.as_str())
            .unwrap_or_else(|| panic!("crates/{folder} has no floor in this test's table"));
        let manifest = fs::read_to_string(entry.join("Cargo.toml")).expect("a crate has a manifest");
        let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
        let parts = ["dependencies", "dev-dependencies", "build-dependencies"];
        let needed = parts.iter().filter_map(|part| manifest.get(*part)?.as_table());
        // Folders are named as packages are, without the project's name before them.
        let rooms = needed.flat_map(toml::Table::keys).filter_map(|package| {
            let room = package.strip_prefix("sidestep-");
            room.or_else(|| floors.contains_key(package.as_str()).then_some(package.as_str()))
        });
        for target in rooms {
            let below = *floors
                .get(target)
                .unwrap_or_else(|| panic!("crates/{folder} depends on unknown {target}"));
            assert!(
                below < floor,
                "crates/{folder} (floor {floor}) must not depend on crates/{target} (floor {below})"
            );
        }
    }
}
