//! What a directory without a manifest is taken for, and a file by its first bytes.

use super::*;

fn make(files: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in files {
        let path = directory.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"").unwrap();
    }
    directory
}

#[test]
fn default_names_are_found_and_machines_get_their_parents() {
    let directory = make(&[
        "L0/trace.dat",
        "L1-web/ctf/metadata",
        "L1/perf.data",
        "L1/budget.toml",
        "L2/trace.partial/x",
        "L2/bench/exits.json",
        "L2/samples/readme",
        "notes/trace.dat",
    ]);
    std::fs::write(directory.path().join("L2/samples/readme"), "how they were made").unwrap();
    std::fs::write(directory.path().join("L2/samples/run.txt"), "# Histogram\n").unwrap();
    let recording = Recording::open(directory.path()).unwrap();
    let parts: Vec<_> = recording.parts.iter().map(|part| (part.path.to_str().unwrap(), part.kind)).collect();
    assert_eq!(
        parts,
        [
            ("L0/trace.dat", PartKind::TraceDat),
            ("L1/perf.data", PartKind::PerfData),
            ("L1/budget.toml", PartKind::Budget),
            ("L1-web/ctf", PartKind::Ctf),
            ("L2/trace.partial", PartKind::TraceDat),
            ("L2/bench/exits.json", PartKind::Bench),
            ("L2/samples/run.txt", PartKind::Samples),
        ]
    );
    assert_eq!(recording.parts[4].state, PartState::Partial);
    let parents: Vec<_> = recording.machines.iter().map(|machine| machine.parent.as_deref()).collect();
    assert_eq!(parents, [None, Some("L0"), Some("L0"), Some("L1")]);
}

#[test]
fn a_ctf_directory_is_a_bare_part_and_an_empty_one_is_nothing() {
    let ctf = make(&["ust/uid/0/64-bit/metadata"]);
    let recording = Recording::open(ctf.path()).unwrap();
    assert_eq!((recording.parts.len(), recording.parts[0].kind), (1, PartKind::Ctf));
    assert_eq!(recording.root.join(&recording.parts[0].path), ctf.path());
    let error = Recording::open(make(&["readme"]).path()).unwrap_err();
    assert!(matches!(error, Error::Empty { .. }), "{error}");
}

#[test]
fn parts_of_several_machines_are_one_recording() {
    let directory = make(&["a", "b", "c"]);
    let named = |level, name: Option<&str>, file: &str| Named {
        level,
        name: name.map(str::to_owned),
        path: directory.path().join(file),
    };
    let files = [named(1, Some("web"), "b"), named(0, None, "a"), named(1, Some("db"), "c")];
    let recording = Recording::of_files(&files, Some(Emulator::Tcg)).unwrap();
    let ids: Vec<_> = recording.machines.iter().map(|machine| machine.id.as_str()).collect();
    assert_eq!(ids, ["L0", "L1-web", "L1-db"]);
    assert_eq!(recording.machines[1].parent.as_deref(), Some("L0"));
    let twice = [named(1, None, "b"), named(1, None, "c")];
    let error = Recording::of_files(&twice, None).unwrap_err().to_string();
    assert!(error.contains("L1:web="), "{error}");
}

#[test]
fn a_machine_has_one_trace_and_any_number_of_results() {
    let directory = make(&["L0/trace.dat", "guest.txt"]);
    let result = directory.path().join("cyclictest.txt");
    std::fs::write(&result, "# Histogram\n").unwrap();
    let named = |level, path: &Path| Named { level, name: None, path: path.to_owned() };
    let (of_host, of_guest) = (named(0, &result), named(1, &result));
    let recording = Recording::open(directory.path()).unwrap().with_files(&[of_guest.clone(), of_host]).unwrap();
    let kinds: Vec<_> = recording.parts.iter().map(|part| (part.machine.as_str(), part.kind)).collect();
    assert_eq!(
        kinds,
        [("L0", PartKind::TraceDat), ("L0", PartKind::Samples), ("L1", PartKind::Samples)],
        "{recording:?}"
    );
    assert_eq!(recording.root.join(&recording.parts[2].path), result);
    assert_eq!(recording.machines[1].parent.as_deref(), Some("L0"));
    let guest = named(1, &directory.path().join("guest.txt"));
    assert!(recording.clone().with_files(std::slice::from_ref(&guest)).is_ok(), "the guest has no trace yet");
    assert!(recording.with_files(&[guest.clone(), guest]).is_err());
}

#[test]
fn pairs_of_clocks_are_no_part_and_a_machine_has_one_file_of_them() {
    let directory = make(&["L0/trace.dat"]);
    let file = |name: &str| {
        let path = directory.path().join(name);
        let pair = |monotonic_ns| ClockPair {
            machine: String::new(),
            at: super::super::Moment::Begin,
            realtime_ns: monotonic_ns,
            monotonic_ns,
            tsc: Some(2 * monotonic_ns),
            error_ns: 9,
            utc_error_ns: None,
        };
        std::fs::write(&path, pair(100).as_file() + &pair(900).as_file()).unwrap();
        Named { level: 1, name: None, path }
    };
    let recording = Recording::open(directory.path()).unwrap().with_files(&[file("clocks.txt")]).unwrap();
    assert_eq!((recording.parts.len(), recording.machines.len()), (1, 2));
    assert_eq!(recording.wall_clock("L1").unwrap().tsc_of(500), Some((1_000, 9)));
    let again = recording.with_files(&[file("again.txt")]).unwrap_err().to_string();
    assert!(again.contains("pairs of clocks of L1 already"), "{again}");
}

#[test]
fn the_first_bytes_say_what_a_file_is() {
    let directory = make(&["text"]);
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        kind_of(&path).unwrap()
    };
    assert_eq!(write("a.txt", b"\x17\x08\x44tracing6"), PartKind::TraceDat);
    assert_eq!(write("b.dat", b"PERFILE2...."), PartKind::PerfData);
    assert_eq!(write("c", b""), PartKind::Text);
    let budget = "# ours\n schema = \"kvmscope.budget/1\"\nname = \"x\"\n";
    assert_eq!(write("d", budget.as_bytes()), PartKind::Budget);
    assert_eq!(write("f", br#"{"schema":"kvmscope-datapath/1","runs":[]}"#), PartKind::Datapath);
    assert_eq!(write("g", b"$ ovs-appctl x\npmd thread numa_id 0 core_id 4:\n"), PartKind::Pmd);
    assert_eq!(write("i", b"{\"at_ns\":1,\"way\":\"to-qemu\",\"message\":{}}\n"), PartKind::Qmp);
    assert_eq!(write("j", b"warning\n7@1.000001:vmstate_downtime_checkpoint src-vm-stopped\n"), PartKind::Qmp);
    assert_eq!(write("k", b"$ virsh domjobinfo x\nJob type:   Completed\n"), PartKind::Qmp);
    assert_eq!(write("h", b"  ######################## NIC statistics for port 0  ###\n"), PartKind::Pmd);
    assert_eq!(write("i", b"schema = 'kvmscope.chain/1'\n[host]\n"), PartKind::Plan);
    assert_eq!(write("e", b"# schema = \"kvmscope.budget/1\"\n"), PartKind::Text, "only a comment");
    assert!(matches!(kind_of(&directory.path().join("none")), Err(Error::Io { .. })));
}
