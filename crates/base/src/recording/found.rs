//! Recordings without a manifest: bare files, and directories whose parts go by their default names.

use super::clocks_file;
use super::manifest::{MOST_MACHINES, MOST_PARTS};
use super::result_file::LOOKED_AT;
use super::{
    BUDGET_FILE, ClockPair, Emulator, Error, Identity, Machine, PLAN_FILE, Part, PartKind, PartState, Recording,
    ResultFile,
};
use crate::Problem;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A bare file or CTF directory, and the machine it was recorded on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Level of the machine.
    pub level: u8,
    /// Name of the machine, where several share a level or the user gave one.
    pub name: Option<String>,
    /// The file or directory.
    pub path: PathBuf,
}

impl Named {
    /// A file recorded on the outermost machine.
    pub fn at_l0(path: impl Into<PathBuf>) -> Self {
        Self { level: 0, name: None, path: path.into() }
    }

    /// The id its machine gets in the manifest: `L1`, or `L1-web`.
    fn machine(&self) -> String {
        match &self.name {
            Some(name) => format!("L{}-{name}", self.level),
            None => format!("L{}", self.level),
        }
    }
}

/// Default names below a machine's directory. `trace.partial` is what a killed recorder left.
const DEFAULTS: &[(&str, PartKind, PartState)] = &[
    ("trace.dat", PartKind::TraceDat, PartState::Complete),
    ("trace.partial", PartKind::TraceDat, PartState::Partial),
    ("ctf", PartKind::Ctf, PartState::Complete),
    ("perf.data", PartKind::PerfData, PartState::Complete),
    (BUDGET_FILE, PartKind::Budget, PartState::Complete),
    (PLAN_FILE, PartKind::Plan, PartState::Complete),
    ("host/0", PartKind::Host, PartState::Complete),
    ("host/1", PartKind::Host, PartState::Complete),
];

/// How deep a CTF trace's `metadata` may lie: LTTng's user-space sessions use `ust/uid/<uid>/64-bit/metadata`.
const CTF_DEPTH: u32 = 6;

/// How many directories are looked into before a directory is held to be no CTF trace.
const CTF_DIRECTORIES: u32 = 4_096;

/// A recording of what lies in `root` by default names, or of the CTF trace that `root` is.
pub(super) fn in_directory(root: &Path, problems: Vec<Problem>) -> Result<Recording, Error> {
    let mut recording = Recording {
        root: root.to_owned(),
        created: None,
        tool: None,
        emulated: None,
        machines: Vec::new(),
        parts: Vec::new(),
        problems,
        clock_pairs: Vec::new(),
        ended: None,
        shown: Vec::new(),
    };
    let io = |source| Error::Io { path: root.to_owned(), source };
    let mut names: Vec<String> =
        std::fs::read_dir(root).map_err(io)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    for machine in names {
        let Some(level) = level_of_name(&machine) else { continue };
        if recording.machines.len() >= MOST_MACHINES || recording.parts.len() >= MOST_PARTS {
            let sentence = format!("more than {MOST_MACHINES} machines or {MOST_PARTS} parts; the rest is not read");
            let place = root.display().to_string();
            recording.problems.push(Problem::at(place, None, "fewer machines and parts", "more", 0, sentence));
            break;
        }
        let before = recording.parts.len();
        for (name, kind, state) in DEFAULTS {
            let path = Path::new(&machine).join(name);
            if root.join(&path).exists() {
                recording.parts.push(Part { path, machine: machine.clone(), kind: *kind, clock: None, state: *state });
            }
        }
        for (kind, paths) in [
            (PartKind::Bench, json_files(root, &machine, "bench")),
            (PartKind::Datapath, json_files(root, &machine, "datapath")),
            (PartKind::Samples, files_of(PartKind::Samples, root, &machine, "samples")),
            (PartKind::Pmd, files_of(PartKind::Pmd, root, &machine, "pmd")),
            (PartKind::Qmp, files_of(PartKind::Qmp, root, &machine, "qmp")),
        ] {
            let part = |path| Part { path, machine: machine.clone(), kind, clock: None, state: PartState::Complete };
            recording.parts.extend(paths.into_iter().take(MOST_PARTS).map(part));
        }
        if recording.parts.len() > before {
            add_machine(&mut recording.machines, machine, level, None);
        }
    }
    if recording.parts.is_empty() {
        let mut directories_left = CTF_DIRECTORIES;
        if !holds_ctf(root, CTF_DEPTH, &mut directories_left) {
            return Err(Error::Empty { path: root.to_owned() });
        }
        let bare = of_files(&[Named::at_l0(root)], None)?;
        return Ok(Recording { problems: recording.problems, ..bare });
    }
    Ok(recording)
}

/// Our own results, which have names of their own: `<machine>/bench/<name>.json`.
fn json_files(root: &Path, machine: &str, directory: &str) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    files_in(root, &Path::new(machine).join(directory)).into_iter().filter(is_one).collect()
}

/// Results of other programs, under the names that their files have: `<machine>/samples/<file>`.
fn files_of(kind: PartKind, root: &Path, machine: &str, directory: &str) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| kind_of(&root.join(path)).is_ok_and(|found| found == kind);
    files_in(root, &Path::new(machine).join(directory)).into_iter().filter(is_one).collect()
}

/// The paths of what lies in `directory` of `root`, in order.
fn files_in(root: &Path, directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join(directory)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| directory.join(entry.file_name())).collect();
    paths.sort_unstable();
    paths
}

/// A recording of bare files.
pub(super) fn of_files(files: &[Named], emulated: Option<Emulator>) -> Result<Recording, Error> {
    let recording = Recording {
        root: PathBuf::new(),
        created: None,
        tool: None,
        emulated,
        machines: Vec::new(),
        parts: Vec::new(),
        problems: Vec::new(),
        clock_pairs: Vec::new(),
        ended: None,
        shown: Vec::new(),
    };
    add_files(recording, files)
}

/// Adds bare files to a recording. A machine has one trace, and as many results as were measured on it.
pub(super) fn add_files(mut recording: Recording, files: &[Named]) -> Result<Recording, Error> {
    let mut files: Vec<&Named> = files.iter().collect();
    files.sort_by_key(|file| file.level);
    for file in files {
        let machine = file.machine();
        let is_known = recording.machines.iter().any(|known| known.id == machine);
        if let Some(pairs) = clocks_of(&file.path, &machine)? {
            if recording.wall_clock(&machine).is_some() {
                let path = file.path.display();
                return Err(Error::Named(format!("{path}: the recording has pairs of clocks of {machine} already")));
            }
            recording.clock_pairs.extend(pairs);
            if !is_known {
                add_machine(&mut recording.machines, machine, file.level, file.name.clone());
            }
            continue;
        }
        let kind = kind_of(&file.path)?;
        let has_trace = recording.parts.iter().any(|part| part.machine == machine && part.kind.is_trace());
        if has_trace && kind.is_trace() {
            let path = file.path.display();
            return Err(Error::Named(format!(
                "{path}: machine {machine} is given twice; name the machines of one level, as in L{}:web={path}",
                file.level
            )));
        }
        let path = if recording.root.as_os_str().is_empty() {
            file.path.clone()
        } else {
            // Paths of a recording's parts count from its directory.
            std::path::absolute(&file.path).map_err(|source| Error::Io { path: file.path.clone(), source })?
        };
        let (clock, state) = (None, PartState::Complete);
        recording.parts.push(Part { path, machine: machine.clone(), kind, clock, state });
        if !is_known {
            add_machine(&mut recording.machines, machine, file.level, file.name.clone());
        }
    }
    Ok(recording)
}

/// Adds a machine below the first one of the next outer level.
fn add_machine(machines: &mut Vec<Machine>, id: String, level: u8, name: Option<String>) {
    // Of equal levels `max_by_key` takes the last it sees, hence the reversal.
    let parent = machines.iter().rev().filter(|machine| machine.level < level).max_by_key(|machine| machine.level);
    let parent = parent.map(|machine| machine.id.clone());
    machines.push(Machine { id, level, parent, name, identity: Identity::default() });
}

/// The pairs of clocks that a bare file holds, if it is one of those.
fn clocks_of(path: &Path, machine: &str) -> Result<Option<Vec<ClockPair>>, Error> {
    let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
    if is_file { clocks_file::read(path, machine) } else { Ok(None) }
}

/// The level that a machine's directory is named after: `L1`, `L1-web`.
fn level_of_name(name: &str) -> Option<u8> {
    let digits = name.strip_prefix('L')?.split('-').next()?;
    digits.parse().ok()
}

/// What a bare file seems to be; its reader decides by itself when it opens it.
fn kind_of(path: &Path) -> Result<PartKind, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(io)?.is_dir() {
        return Ok(PartKind::Ctf);
    }
    let mut first = Vec::new();
    File::open(path).map_err(io)?.take(LOOKED_AT).read_to_end(&mut first).map_err(io)?;
    // trace-cmd's magic: Documentation/trace-cmd/trace-cmd.dat.v7.5.txt; perf's: tools/perf/util/header.c.
    Ok(match first.as_slice() {
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g', ..] => PartKind::TraceDat,
        bytes if bytes.starts_with(b"PERFILE2") || bytes.starts_with(b"2ELIFREP") => PartKind::PerfData,
        bytes if ResultFile::of(bytes).is_some() => PartKind::Samples,
        bytes if names_schema(bytes, "kvmscope.budget/") => PartKind::Budget,
        bytes if names_schema(bytes, "kvmscope.chain/") => PartKind::Plan,
        bytes if is_datapath(bytes) => PartKind::Datapath,
        bytes if is_of_switch(bytes) => PartKind::Pmd,
        bytes if is_of_migration(bytes) => PartKind::Qmp,
        _ => PartKind::Text,
    })
}

/// True for the beginning of TOML that names this schema: `schema = "kvmscope.budget/1"`.
fn names_schema(bytes: &[u8], schema: &str) -> bool {
    let names =
        |line: &[u8]| line.starts_with(b"schema") && line.windows(schema.len()).any(|word| word == schema.as_bytes());
    bytes.split(|byte| *byte == b'\n').any(|line| names(line.trim_ascii_start()))
}

/// True for the beginning of a file of measured rates, whose schema stands first.
fn is_datapath(bytes: &[u8]) -> bool {
    bytes.starts_with(br#"{"schema":"kvmscope-datapath/"#)
}

/// Lines that Open vSwitch (3.1) and testpmd (DPDK 22.11) print of the packets they forward, by their beginnings.
const OF_SWITCH: &[&str] = &[
    "pmd thread numa_id ",
    "flow-dump from ",
    "{ovs_rx_qos_drops=",
    "######################## NIC statistics for port ",
    "---------------------- Forward statistics for port ",
];

/// True if one of these lines is there.
fn is_of_switch(bytes: &[u8]) -> bool {
    let begins = |line: &[u8]| OF_SWITCH.iter().any(|sign| line.starts_with(sign.as_bytes()));
    bytes.split(|byte| *byte == b'\n').any(|line| begins(line.trim_ascii_start()))
}

/// True for a session of QEMU's machine protocol as it is recorded, and for what QEMU and libvirt print of a migration.
fn is_of_migration(bytes: &[u8]) -> bool {
    let is_sign = |line: &[u8]| {
        line.starts_with(b"Migration status:")
            || line.starts_with(b"Job type:")
            || line.windows(17).any(|word| word == b":vmstate_downtime")
    };
    bytes.starts_with(br#"{"at_ns":"#)
        || bytes.split(|byte| *byte == b'\n').any(|line| is_sign(line.trim_ascii_start()))
}

/// True if a file called `metadata` lies in `directory` or below it. Links are not followed, so there is no circle.
fn holds_ctf(directory: &Path, depth: u32, left: &mut u32) -> bool {
    let Some(fewer) = left.checked_sub(1) else { return false };
    *left = fewer;
    if directory.join("metadata").is_file() {
        return true;
    }
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    depth > 0
        && entries
            .flatten()
            .any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && holds_ctf(&entry.path(), depth - 1, left))
}

#[cfg(test)]
mod tests {
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
}
