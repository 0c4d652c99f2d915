//! Where the wire of a host's card ends: at another host, at a network of this computer, or nowhere.

use std::fs;

use serde_json::Value;

use crate::host::{HOST, IMAGES, run};

/// A host with a card of this number, whose one guest does this.
fn with_card(number: u64, more: &str, work: &str) -> String {
    format!(
        "[host]\ncores = 2\ncosts = 'xeon'\nsidecores = 1\n[nic]\ndelivery = 'sidecore'\nhost = {number}\n{more}\n\
         [[vm]]\nname = 'guest'\nimage = '{IMAGES}/sidecore-packets'\nparameters = '{work}'\n"
    )
}

#[test]
fn two_hosts_are_joined_by_a_link_and_repeat() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let all = |format: &str| {
        let arguments = ["--format", format, "--trace", "packets.json"];
        fs::write(folder.path().join("other.toml"), with_card(1, "", "take 20 500")).expect("a file");
        let link = "[link]\nhost = 'other.toml'\nlatency-ns = 2000\nmegabits = 100";
        run(folder.path(), &with_card(0, link, "talk 1 0 20"), &arguments)
    };
    let output = all("json");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let (consoles, reports) = printed.split_at(printed.find("[\n").expect("reports"));
    assert!(consoles.contains("other/guest: taken 20"), "{consoles}");
    let reports: Value = serde_json::from_str(reports).expect("JSON");
    assert_eq!(reports[0]["nic"]["interfaces"][0]["sent"], 20);
    assert_eq!(reports[1]["nic"]["interfaces"][0]["received"], 20);
    assert_eq!(output, all("json"));
    let text = String::from_utf8_lossy(&all("text").stderr).into_owned();
    assert!(
        text.contains("host.toml\n") && text.contains("other.toml\n"),
        "{text}"
    );
    // A packet's way leads from an engine of one host to the program on the other.
    let timeline = fs::read(folder.path().join("packets.json")).expect("a timeline");
    let timeline: Value = serde_json::from_slice(&timeline).expect("JSON");
    let events = timeline["traceEvents"].as_array().expect("events");
    let track = |event: &Value| {
        let names = events.iter().filter(|name| name["name"] == "thread_name");
        let mut own = names.filter(|name| name["tid"] == event["tid"]);
        let name = own.next().expect("a track has a name");
        name["args"]["name"].as_str().unwrap_or_default().to_owned()
    };
    let last = events.iter().rfind(|event| event["ph"] == "f");
    let flow = &last.expect("packets have flows")["id"];
    let way = events
        .iter()
        .filter(|event| ["s", "t", "f"].map(Value::from).contains(&event["ph"]) && event["id"] == *flow);
    let way: Vec<String> = way.map(track).collect();
    assert!(way[0].starts_with("host/engine"), "{way:?}");
    assert_eq!(way.last().map(String::as_str), Some("other/interface of guest"));
}

#[test]
fn wires_that_end_nowhere_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("same.toml", &with_card(0, "", "deaf"));
    write(
        "further.toml",
        &with_card(1, "[link]\nhost = 'same.toml'", "deaf"),
    );
    write(
        "none.toml",
        HOST.replace("IMAGES", IMAGES).replace("THREADS", "1").as_str(),
    );
    let link = |name: &str| format!("[link]\nhost = '{name}'");
    let udp = "[uplink]\nkind = 'udp'\nlisten = '127.0.0.1:0'\npeer = '127.0.0.1:9'";
    let cases = [
        (
            with_card(0, &link("same.toml"), "deaf"),
            &[][..],
            "the same addresses: give one `[nic]` another number",
        ),
        (
            with_card(0, &link("further.toml"), "deaf"),
            &[],
            "further.toml: `[link]` of host.toml leads here",
        ),
        (
            with_card(0, &link("none.toml"), "deaf"),
            &[],
            "there is no card: add a table `[nic]`",
        ),
        (
            with_card(0, &link("absent.toml"), "deaf"),
            &[],
            "absent.toml: No such file",
        ),
        (
            with_card(0, &format!("{}\nmegabits = 0", link("same.toml")), "deaf"),
            &[],
            "`megabits` of a link is 0",
        ),
        (
            with_card(0, &format!("{}\n{udp}", link("same.toml")), "deaf"),
            &[],
            "exclude each other",
        ),
        (
            HOST.replace("THREADS", "1") + udp,
            &[],
            "`[uplink]` is for a host with a card",
        ),
        (
            with_card(0, &link("same.toml"), "deaf"),
            &["--matrix", "m.json"],
            "--matrix is for one host by itself",
        ),
        (
            with_card(0, udp, "deaf"),
            &["--gdb", "127.0.0.1:0"],
            "--gdb is for one host by itself",
        ),
        (
            with_card(0, "[uplink]\nkind = 'tap'\nname = 'longer-than-any-name'", "deaf"),
            &[],
            "an interface's name has 1 to 15 bytes",
        ),
    ];
    for (description, arguments, expected) in cases {
        let output = run(folder.path(), &description, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains(expected),
            "`{expected}` in {error}"
        );
    }
}
