//! Recordings without a manifest: bare files, and directories whose parts go by their default names.

use super::clocks_file;
use super::manifest::{MOST_MACHINES, MOST_PARTS};
use super::result_file::LOOKED_AT;
use super::{
    BUDGET_FILE, ClockPair, Emulator, Error, Identity, Machine, PLAN_FILE, Part, PartKind, PartState, Recording,
    ResultFile,
};
use crate::Problem;
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

/// Directories of results below a machine's directory.
const OF_RESULTS: [&str; 5] = ["bench", "datapath", "samples", "pmd", "qmp"];

/// Whether a directory has a machine's directory with a part of a default name, or is a CTF trace itself. No file is opened.
pub(super) fn is_by_names(root: &Path) -> bool {
    let names = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut machines = names.filter(|name| name.to_str().and_then(level_of_name).is_some());
    let parts = || DEFAULTS.iter().map(|(name, ..)| *name).chain(OF_RESULTS);
    machines.any(|machine| parts().any(|part| root.join(&machine).join(part).exists()))
        || root.join("metadata").is_file()
}

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
            if let Some(first) = no_event(&file.path, kind)? {
                return Err(Error::Named(format!(
                    "{path}: neither a trace nor a result that is read (docs/formats/formats.md, docs/read/latency.md); it begins with {first:?}"
                )));
            }
            return Err(Error::Named(format!(
                "{path}: machine {machine} occurs twice; name the machines of one level, as in L{}:web={path}",
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
    crate::files::open(path).map_err(io)?.take(LOOKED_AT).read_to_end(&mut first).map_err(io)?;
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

/// The first line of a text in which no line has the CPU of an event in brackets, as traces of all tracers print it.
fn no_event(path: &Path, kind: PartKind) -> Result<Option<String>, Error> {
    if kind != PartKind::Text {
        return Ok(None);
    }
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut first = Vec::new();
    crate::files::open(path).map_err(io)?.take(LOOKED_AT).read_to_end(&mut first).map_err(io)?;
    let text = String::from_utf8_lossy(&first);
    let names_cpu = |line: &str| {
        let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        inside.is_some_and(|(cpu, _)| !cpu.is_empty() && cpu.bytes().all(|digit| digit.is_ascii_digit()))
    };
    if text.lines().any(names_cpu) {
        return Ok(None);
    }
    Ok(crate::plain::first_line(&first).map(str::to_owned))
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
    "Total-Tx ",
    "###### NIC extended statistics for port ",
    "Port statistics ====",
    "Vrouter Interface Table",
    "vif0/",
    "Flags:Port ",
    "Port:Flags ",
];

/// What NFVbench prints in each interval, behind the time.
const OF_GENERATOR: &str = "(Est.) Dropped:";

/// True if one of these lines is there.
pub fn is_of_switch(bytes: &[u8]) -> bool {
    let begins = |line: &[u8]| {
        OF_SWITCH.iter().any(|sign| line.starts_with(sign.as_bytes()))
            || line.windows(OF_GENERATOR.len()).any(|words| words == OF_GENERATOR.as_bytes())
    };
    bytes.split(|byte| *byte == b'\n').any(|line| begins(line.trim_ascii_start()))
}

/// KubeVirt's metrics of a migration, and what Prometheus prints above them.
const KUBEVIRT: [&str; 3] =
    ["kubevirt_vmi_migration_", "# HELP kubevirt_vmi_migration_", "# TYPE kubevirt_vmi_migration_"];

/// True for a session of QEMU's machine protocol as it is recorded, and for what QEMU and libvirt print of a migration.
pub fn is_of_migration(bytes: &[u8]) -> bool {
    let is_sign = |line: &[u8]| {
        let has = |words: &[u8]| line.windows(words.len()).any(|word| word == words);
        line.starts_with(b"Migration status:")
            || line.starts_with(b"Job type:")
            || has(b":vmstate_downtime")
            || has(b"Migration info for ")
            || has(b"Live migration abort detected with reason: ")
            || has(b"\"Initiating live migration")
            || has(b" Precopy: iter=")
            || has(b" Precopy: Pausing VM")
            || has(b" Precopy complete: iter=")
            || has(b"Migration completed after ")
            || has(b" Downtime breakdown: ")
            || has(b" -- Dirty memory migration ")
            || KUBEVIRT.iter().any(|begin| line.starts_with(begin.as_bytes()))
            || line.starts_with(b"Time (ms):") && has(b"total=")
            || has(b" starting migration of VM ")
            || has(b" migration downtime limit: ")
            || has(b" auto-increased downtime to continue migration: ")
            || has(b" average migration speed: ")
            || has(b" migration status: ")
            || has(b" migration finished successfully (duration ")
            || has(b" migration active, transferred ")
            || has(b" start migrate command to ")
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
mod tests;
