//! `kvmscope lab rt`, small: who took the guest's time on purpose is found, and nothing is left behind. No latency is
//! asserted.

use super::guests::Place;
use base::recording::{Emulator, PartKind, Recording};
use labs::machine::packages::Flavour;
use labs::rt::{Disturbance, Truth};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testing::{cannot_record, missing, processes_with, send, wait_for, wait_for_output};
use trace::request::Wanted;
use trace::{Event, Listener, Reading, Request};

/// True if on each CPU every task leaves that came last.
fn switches_are_whole(path: &Path) -> bool {
    struct Cpus(BTreeMap<u32, u64>, bool);
    impl Listener for Cpus {
        fn event(&mut self, event: &Event<'_>) {
            let came = event.get(1).and_then(|next| self.0.insert(event.cpu, next));
            self.1 &= event.is_loss() || came.is_none_or(|came| event.get(0) == Some(came));
        }
    }
    let fields = [["prev_pid"], ["next_pid"]].map(|names| names.map(String::from).to_vec()).to_vec();
    let request = Request { events: vec![Wanted { names: vec!["sched_switch".into()], fields }] };
    let mut cpus = Cpus(BTreeMap::new(), true);
    trace::replay(trace::open(path).unwrap().as_ref(), &Reading { request: &request, fitted: None }, &mut cpus);
    cpus.1
}

/// A place to run labs in, with a journal.
struct Bench(Place);

impl Bench {
    /// Nothing, and a reason on stdout, where the lab cannot run.
    fn new() -> Option<Self> {
        Place::new("lab rt", lacking(), Flavour::Realtime).map(Self)
    }

    fn journal(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    fn output(&self) -> PathBuf {
        self.0.output()
    }

    fn lab(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.lab("rt");
        command.args(["--seconds", "1"]).args(arguments).env("KVMSCOPE_JOURNAL", self.journal());
        command
    }

    /// A lab whose guest measures.
    fn measuring(&self, arguments: &[&str]) -> Child {
        let mut child = self.lab(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (_, rest) = wait_for_output(child.stderr.take().unwrap(), "cyclictest runs");
        // Its complaints are read to their end, so that it never waits for us.
        std::thread::spawn(move || rest.lines().count());
        child
    }

    /// Panics if a lab of process `pid` left anything that `undo` would have to remove.
    fn assert_undone(&self, pid: u32) {
        assert_eq!(std::fs::read_dir(self.journal()).map_or(0, Iterator::count), 0, "the journal is empty");
        let instance = Path::new("/sys/kernel/tracing/instances").join(format!("kvmscope-{pid}"));
        assert!(!instance.exists(), "{}", instance.display());
        let groups = Command::new("find").args(["/sys/fs/cgroup", "-name", &format!("kvmscope-rt-{pid}-*")]).output();
        assert!(groups.unwrap().stdout.is_empty(), "a control group is left");
        assert_eq!(processes_with(&format!("scratch-{pid}")), 0, "the guest is gone");
    }

    /// Panics if it left anything at all.
    fn assert_clean(&self, pid: u32) {
        self.assert_undone(pid);
        self.0.assert_clean(pid, Some(&self.journal()));
    }
}

/// Why the lab cannot run here.
fn lacking() -> Option<String> {
    if let Some(why) = cannot_record() {
        return Some(why.to_owned());
    }
    let clocks = std::fs::read_to_string("/sys/kernel/tracing/trace_clock").unwrap_or_default();
    if !clocks.contains("x86-tsc") {
        return Some("there is no tracing file system with clock x86-tsc".to_owned());
    }
    missing(&[
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("jitterdebugger", "jitterdebugger"),
        ("jittersamples", "jitterdebugger-utils"),
        ("cyclictest", "rt-tests"),
        ("rtla", "rtla"),
    ])
}

/// A run, what it answered and what was done to the guest.
struct Ran {
    bench: Bench,
    answer: Value,
    truth: Truth,
}

impl Ran {
    /// Runs a lab to its end.
    fn of(arguments: &[&str]) -> Option<Self> {
        let bench = Bench::new()?;
        let child = bench.lab(arguments).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert!(errors.contains(&format!("the recording is {}", bench.output().display())), "{errors}");
        bench.assert_undone(pid);
        let answer = serde_json::from_slice(&output.stdout).unwrap();
        let truth = std::fs::read(bench.output().join("L0/truth.json")).unwrap();
        let truth = serde_json::from_slice(&truth).unwrap();
        Some(Self { bench, answer, truth })
    }

    /// Rows of a table, `section.table`, with these columns.
    fn rows(&self, name: &str, columns: &[&str]) -> Vec<Vec<Value>> {
        let (section, table) = name.split_once('.').unwrap();
        let mut sections = self.answer["sections"].as_array().unwrap().iter();
        let section = sections.find(|one| one["id"] == section).unwrap();
        let table = &section["tables"][table];
        let place = |name: &&str| {
            let mut all = table["columns"].as_array().unwrap().iter();
            all.position(|column| column["name"] == **name).unwrap()
        };
        let places: Vec<usize> = columns.iter().map(place).collect();
        let rows = table["rows"].as_array().unwrap().iter();
        rows.map(|row| places.iter().map(|place| row[*place].clone()).collect()).collect()
    }

    /// The time that the vCPU spent in a state.
    fn state_ns(&self, column: &str) -> u64 {
        let rows = self.rows("flow.vcpus", &["vm", "tid", column]);
        let row = rows.iter().find(|row| row[1] == self.truth.vcpu_tid).unwrap_or_else(|| panic!("{rows:?}"));
        assert_eq!(row[0], "kvmscope-rt");
        row[2].as_u64().unwrap()
    }

    /// What somebody took from the vCPU, in this state.
    fn lost_ns(&self, state: &str, by: &str) -> u64 {
        let rows = self.rows("latency.culprits", &["vm", "state", "by", "total_ns"]);
        let of = rows.iter().filter(|row| row[0] == "kvmscope-rt" && row[1] == state && (row[2] == by || by == "*"));
        of.map(|row| row[3].as_u64().unwrap()).sum()
    }

    /// The state in which the vCPU lost its time, and by whom it is to be said to be; `None` if nobody took it on purpose.
    fn culprit(&self) -> Option<(&'static str, &str)> {
        match self.truth.disturbance {
            Disturbance::None => None,
            Disturbance::Hog | Disturbance::Fifo => Some(("preempted", self.truth.by.as_deref().unwrap())),
            Disturbance::Quota => Some(("preempted", "throttled")),
            Disturbance::Stop => Some(("blocked", "stopped")),
        }
    }

    /// Whether a quota is not seen: others may have had the CPU all the time that it held, and then they took it.
    fn is_hidden(&self) -> bool {
        let is_quota = self.truth.disturbance == Disturbance::Quota;
        is_quota && self.lost_ns("preempted", "throttled") == 0 && self.lost_ns("preempted", "*") > 0
    }

    /// Panics unless the one who did it is named, and no state has more losses than time.
    fn names_who_did_it(&self) {
        let Some((state, by)) = self.culprit() else { return assert_eq!(self.truth.bursts, []) };
        assert!(self.truth.bursts.len() >= 2, "{:?}", self.truth);
        assert!(self.truth.bursts.iter().all(|burst| burst.from_tsc < burst.to_tsc), "{:?}", self.truth);
        let rows = self.rows("latency.culprits", &["state", "by", "total_ns"]);
        assert!(self.lost_ns(state, by) > 0 || self.is_hidden(), "{by}: {rows:?}");
        let sections = self.answer["sections"].as_array().unwrap();
        let latency = sections.iter().find(|section| section["id"] == "latency").unwrap();
        let said = format!("On purpose, {} disturbed vCPU 0 of kvmscope-rt", self.truth.by.as_deref().unwrap());
        assert!(latency["summary"].as_str().unwrap().contains(&said), "{}", latency["summary"]);
        for state in ["preempted", "blocked", "wake_delay", "irq", "softirq"] {
            // What came before the vCPU first ran is not known to be a loss.
            assert!(self.lost_ns(state, "*") <= self.state_ns(&format!("{state}_ns")), "{state}");
        }
    }

    /// Panics unless the samples with times are attributed whole: what took them and what nothing explains are their lengths, and
    /// the one who took the vCPU is among those who took their time.
    fn attributes_samples(&self) {
        let file = "L1/samples/jitterdebugger.csv";
        let Ok(text) = std::fs::read_to_string(self.bench.output().join(file)) else {
            return println!("skipped: causes of samples: jitterdebugger ended before it had stored any");
        };
        let us = text.lines().filter_map(|line| line.rsplit(';').next()?.trim().parse::<u64>().ok());
        let rows = self
            .rows("latency.attributed", &["file", "cause", "total_ns", "clock_error_low_ns", "clock_error_high_ns"]);
        let own: Vec<_> = rows.iter().filter(|row| row[0] == file).collect();
        let total = |row: &&Vec<Value>| row[2].as_u64().unwrap();
        assert_eq!(own.iter().map(&total).sum::<u64>(), us.sum::<u64>() * 1_000, "{own:?}");
        assert_eq!(own.iter().filter(|row| row[1] == "unexplained").count(), 1, "{own:?}");
        assert!(own.iter().all(|row| row[3].is_u64() && row[4].is_u64()), "each states its clock error: {own:?}");
        if let Some((_, by)) = self.culprit().filter(|_| !self.is_hidden()) {
            assert!(own.iter().any(|row| row[1] == by && total(row) > 0), "{by}: {own:?}");
        }
    }

    /// Panics unless the recording is whole, and the guest's events lie where its vCPU had a CPU.
    fn is_whole(&self) {
        let recording = Recording::open(&self.bench.output()).unwrap();
        assert!(recording.problems.is_empty(), "{:?}", recording.problems);
        assert_eq!(recording.emulated, Some(Emulator::Tcg));
        let of = |kind| recording.parts.iter().filter(move |part| part.kind == kind);
        let traces: Vec<_> = of(PartKind::TraceDat).map(|part| part.path.to_string_lossy().into_owned()).collect();
        assert_eq!(traces, ["L0/trace.dat", "L1/trace.dat"]);
        let mut samples: Vec<_> = of(PartKind::Samples).map(|part| part.path.to_string_lossy().into_owned()).collect();
        // Where the host is busy, jitterdebugger may end before it has stored anything.
        samples.retain(|path| !path.ends_with("jitterdebugger.csv"));
        assert_eq!(
            samples,
            ["cyclictest.json", "timerlat.txt", "osnoise.txt"].map(|name| format!("L1/samples/{name}"))
        );
        let pairs: Vec<_> = recording.clock_pairs.iter().map(|pair| pair.machine.as_str()).collect();
        assert_eq!(pairs, ["L0", "L0", "L1", "L1"]);
        let cyclictest = std::fs::read_to_string(self.bench.output().join("L1/samples/cyclictest.json")).unwrap();
        let cyclictest: Value = serde_json::from_str(&cyclictest).unwrap();
        assert!(cyclictest["thread"]["0"]["cycles"].as_u64().unwrap() > 0, "{cyclictest}");
        let columns = ["machine", "method", "offset_from", "events", "violations"];
        let aligned = self.rows("flow.alignment", &columns);
        assert_eq!(aligned.len(), 1, "{aligned:?}");
        let row = &aligned[0];
        assert_eq!((&row[0], &row[1], &row[2]), (&"L1".into(), &"tsc_offset".into(), &"measured".into()));
        let count = |place: usize| row[place].as_u64().unwrap();
        assert!(count(3) > 1_000, "{row:?}");
        if switches_are_whole(&self.bench.output().join("L0/trace.dat")) {
            assert!(count(4) * 1_000 <= count(3), "{row:?}");
        } else {
            println!(
                "skipped: alignment: this machine hides the switches of a task, and a vCPU that follows it runs unseen"
            );
        }
    }
}

#[test]
fn a_hog_beside_a_real_time_guest_is_named_and_nothing_is_left() {
    let Some(ran) = Ran::of(&["--disturb", "hog"]) else { return };
    ran.is_whole();
    ran.names_who_did_it();
    ran.attributes_samples();
    assert!(ran.state_ns("guest_l1_ns") > 0 && ran.state_ns("blocked_ns") == 0);
}

#[test]
fn a_lab_that_is_interrupted_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let mut child = bench.measuring(&["--disturb", "quota"]);
    send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    bench.assert_clean(child.id());
}

#[test]
fn what_a_killed_lab_left_is_undone_and_its_guest_dies_with_it() {
    let Some(bench) = Bench::new() else { return };
    let mut child = bench.measuring(&["--disturb", "quota"]);
    send(&child, "-KILL");
    child.wait().unwrap();
    let scratch = format!("scratch-{}", child.id());
    wait_for("the guest is gone", || processes_with(&scratch) == 0);
    let undone = Command::new(env!("CARGO_BIN_EXE_kvmscope"))
        .arg("undo")
        .env("KVMSCOPE_JOURNAL", bench.journal())
        .output()
        .unwrap();
    assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
    let told = String::from_utf8_lossy(&undone.stdout);
    assert!(told.contains("control group") && told.contains("tracing instance"), "{told}");
    bench.assert_undone(child.id());
    // The next lab removes the rest when it begins.
    let mut next = bench.lab(&[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_output(next.stderr.take().unwrap(), "booting the guest");
    send(&next, "-TERM");
    next.wait().unwrap();
    bench.assert_clean(child.id());
}

#[test]
#[ignore = "torture"]
fn every_disturbance_is_found_in_every_environment() {
    let mut failed = Vec::new();
    for environment in ["idle_idle", "cpustress_idle", "memorystress_idle", "iostress_idle"] {
        for disturbance in ["none", "hog", "fifo", "quota", "stop"] {
            let holds = std::panic::catch_unwind(|| {
                let Some(ran) = Ran::of(&["--environment", environment, "--disturb", disturbance]) else { return };
                let most = ran.rows("latency.culprits", &["vm", "state", "by", "total_ns"]);
                println!("{environment} {disturbance}: {:?}", most.iter().take(4).collect::<Vec<_>>());
                ran.is_whole();
                assert_eq!(ran.truth.environment.name(), environment);
                ran.names_who_did_it();
                ran.attributes_samples();
            });
            failed.extend(holds.err().map(|_| (environment, disturbance)));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
