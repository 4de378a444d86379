//! Paths of DPDK in `bench channel`: frames arrive, what is lost is counted, and nothing is left behind, however the bench ends. No rate is
//! asserted.

use super::rows_of;
use crate::bed::{Bed, complaints};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testing::{Workspace, send, wait_for};

const PROGRAMS: [&str; 2] = ["/usr/bin/dpdk-testpmd", "/usr/bin/dpdk-test"];

fn bed() -> Option<Bed> {
    Bed::new("bench channel", &PROGRAMS)
}

impl Bed {
    fn bench(&self, options: &str) -> Command {
        let mut command = self.kvmscope();
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).args([
            "bench",
            "channel",
            "--only",
            "rates",
            "--window",
            "none",
            "--launches",
            "1",
            "--no-progress",
            "-o",
        ]);
        command.arg(self.measured()).args(options.split_whitespace());
        command
    }

    fn measured(&self) -> PathBuf {
        self.directory.path().join("channel")
    }

    /// What is left of a bench of that process, and of the huge pages of any.
    fn left_by_bench(&self, bench: u32) -> Vec<String> {
        let mut left: Vec<String> = working(bench).into_values().collect();
        left.extend(self.left_pages());
        let directory = place(bench);
        left.extend(Path::new(&directory).exists().then_some(directory));
        let noted = std::fs::read_dir(self.directory.path().join("journal")).into_iter().flatten().flatten();
        left.extend(
            noted.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.ends_with(".json")),
        );
        left
    }
}

fn place(bench: u32) -> String {
    format!("/run/kvmscope-channel-{bench}-0")
}

/// Programs of DPDK that a bench has started, by their process: each has its sockets in the bench's directory.
fn working(bench: u32) -> BTreeMap<String, String> {
    let ours = format!("RUNTIME_DIRECTORY={}/", place(bench));
    let read = |process: &Path, file: &str| {
        String::from_utf8_lossy(&std::fs::read(process.join(file)).unwrap_or_default()).into_owned()
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let own = processes.filter(|process| read(process, "environ").split('\0').any(|name| name.starts_with(&ours)));
    own.map(|process| (process.display().to_string(), read(&process, "cmdline").replace('\0', " "))).collect()
}

#[test]
#[ignore = "make channel"]
fn frames_arrive_over_each_path_and_all_is_put_back() {
    let Some(bed) = bed() else { return };
    let options = "--same-core --path ring,memif,vhost-user,rte-ring --batch 32,1024 --seconds 0.2";
    let bench = bed.bench(options).spawn().unwrap();
    let pid = bench.id();
    let output = bench.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    assert_eq!(bed.left_by_bench(pid), Vec::<String>::new());

    let report = bed.kvmscope().args(["report", "--json"]).arg(bed.measured()).output().unwrap();
    let json = String::from_utf8(report.stdout).unwrap();
    let mut rows = rows_of(&json, "channel", "rates");
    rows.retain(|row| row["window_kind"] == "measured");
    let paths: BTreeSet<&str> = rows.iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(paths, BTreeSet::from(["memif", "ring", "rte-ring", "vhost-user"]), "{json}");
    for row in &rows {
        assert!(row["raw_mpps"].as_f64().unwrap() > 0.0, "{row}");
        let is_ring = row["path"] == "ring";
        assert!(is_ring || row["batch"] == 32, "no program of DPDK has such batches: {row}");
        // Both ends count, and a ring of pointers counts nothing.
        assert_eq!(row["lost"].as_u64(), (row["path"] != "rte-ring").then_some(0), "{row}");
        assert_eq!(row["torn"].as_u64(), is_ring.then_some(0), "nobody looked at frames of others: {row}");
        assert_eq!(row["size_bytes"], if row["path"] == "rte-ring" { 8 } else { 64 }, "{row}");
    }
    for said in ["testpmd sends 512 frames at once at most", "measures batches of 8 and 32", "copies no frame"] {
        assert!(json.contains(said), "{said}");
    }

    let setups = rows_of(&json, "channel", "setups");
    for path in ["memif", "vhost-user"] {
        let own = setups.iter().filter(|row| row["path"] == path);
        let parts: Vec<&str> = own.clone().map(|row| row["part"].as_str().unwrap()).collect();
        assert_eq!(parts, ["processes", "attach", "link", "first frame", "all but processes"], "{setups:?}");
        let ns: Vec<f64> = own.map(|row| row["ns"].as_f64().unwrap()).collect();
        assert!(ns.iter().all(|ns| *ns > 0.0) && (ns[1] + ns[2] + ns[3] - ns[4]).abs() < 1e3, "{ns:?}");
    }
    assert!(setups.iter().all(|row| row["path"] != "ring"), "{setups:?}");
}

#[test]
#[ignore = "make channel"]
fn a_bench_that_is_killed_or_stopped_leaves_no_program_behind() {
    let Some(bed) = bed() else { return };
    for signal in ["-KILL", "-TERM"] {
        let options = "--same-core --path memif --batch 32 --seconds 600 --force";
        let mut bench = bed.bench(options).spawn().unwrap();
        let pid = bench.id();
        wait_for("two testpmd work", || working(pid).len() == 2 || !Path::new(&format!("/proc/{pid}")).exists());
        let begun = working(pid);
        send(&bench, signal);
        let status = bench.wait().unwrap();
        assert_eq!(begun.len(), 2, "{begun:?}");
        wait_for("programs of DPDK have ended", || working(pid).is_empty());
        if signal == "-KILL" {
            let undone = bed.kvmscope().arg("undo").output().unwrap();
            assert!(undone.status.success(), "{}", complaints(&undone));
        } else {
            assert_eq!(status.code(), Some(130));
        }
        assert_eq!(bed.left_by_bench(pid), Vec::<String>::new(), "{signal}");
    }
}

#[test]
#[ignore = "make channel"]
fn what_is_missing_is_said_and_the_ring_is_measured_all_the_same() {
    let directory = Workspace::alone();
    let output = Command::new(env!("CARGO_BIN_EXE_kvmscope"))
        .args([
            "bench",
            "channel",
            "--same-core",
            "--only",
            "rates",
            "--path",
            "ring,memif,rte-ring",
            "--window",
            "none",
            "--batch",
            "32",
        ])
        .args(["--launches", "1", "--seconds", "0.02", "--json"])
        .env("PATH", directory.path())
        .env("KVMSCOPE_JOURNAL", directory.path().join("journal"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    let json = String::from_utf8(output.stdout).unwrap();
    let rows = rows_of(&json, "channel", "rates");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["path"] == "ring"), "{rows:?}");
    let needs = if rustix::process::geteuid().is_root() { "the Debian package dpdk-dev" } else { "use sudo" };
    for path in ["memif", "rte-ring"] {
        assert!(json.contains(&format!("{path}, window none")) && json.contains(needs), "{json}");
    }
}
