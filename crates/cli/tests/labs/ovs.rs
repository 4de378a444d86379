//! `kvmscope lab ovs`, small: the books close, the counters of all programs agree, and nothing is left behind, however the lab
//! ends. No rate is asserted.

use crate::bed::{Bed, complaints};
use base::datapath::{DatapathRuns, RateSample};
use base::gauges::{Gauges, RateLook};
use serde_json::Value;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use testing::{send, wait_for_output};

const PROGRAMS: [&str; 2] = ["/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk", "/usr/bin/dpdk-testpmd"];

fn bed() -> Option<Bed> {
    Bed::new("lab ovs", &PROGRAMS)
}

impl Bed {
    fn output(&self) -> PathBuf {
        self.directory.path().join("chain")
    }

    /// A chain of two at one size; ordinary memory where the machine has no huge pages to give.
    fn lab(&self, seconds: &str) -> Command {
        let mut command = self.kvmscope();
        command.args(["lab", "ovs", "--vnfs", "2", "--size", "64", "--repeats", "1", "--seconds", seconds, "-o"]);
        command.arg(self.output()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.huge_pages.is_none() {
            command.arg("--no-huge");
        }
        command
    }

    /// What is left of a lab of that process, and of the huge pages of any.
    fn left(&self, lab: u32) -> Vec<String> {
        let mut left = self.left_by(lab);
        left.extend(self.left_pages());
        left
    }

    /// What is left of a lab of that process.
    fn left_by(&self, lab: u32) -> Vec<String> {
        let directory = format!("/run/kvmscope-ovs-{lab}-0");
        let instance = format!("/sys/kernel/tracing/instances/kvmscope-{lab}");
        let mut left = vec![directory.clone(), instance];
        left.retain(|place| Path::new(place).exists());
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            left.extend(line.contains(&directory).then_some(line));
        }
        left
    }

    /// A lab that was killed leaves the gauges of its trial, as `record` leaves what it has: the next one takes no place that is taken.
    fn take_away_the_wall(&self) {
        if self.output().exists() {
            std::fs::remove_dir_all(self.output()).unwrap();
        }
    }

    /// A lab whose VNFs are connected, and which goes on for minutes.
    fn at_work(&self) -> AtWork {
        let mut lab = self.lab("600").spawn().unwrap();
        let (said, rest) = wait_for_output(lab.stderr.take().unwrap(), "VNFs are connected");
        let rest = std::thread::spawn(move || {
            said.concat() + &rest.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n")
        });
        AtWork { lab, rest }
    }
}

/// A lab at work, and who hears what it says.
struct AtWork {
    lab: Child,
    rest: JoinHandle<String>,
}

impl AtWork {
    fn pid(&self) -> u32 {
        self.lab.id()
    }

    /// Ends with status 130 at that signal.
    fn ends_at(self, signal: &str) {
        send(&self.lab, signal);
        let status = self.lab.wait_with_output().unwrap().status;
        let said = self.rest.join().unwrap();
        assert_eq!(status.code(), Some(130), "{signal}: {status}, having said:\n{said}");
    }

    /// Ends without being able to do anything about it.
    fn dies(mut self) {
        self.lab.kill().unwrap();
        self.lab.wait().unwrap();
    }
}

#[test]
fn every_packet_is_somewhere_and_all_is_put_back() {
    let Some(bed) = bed() else { return };
    let lab = bed.lab("2").arg("--json").spawn().unwrap();
    let pid = lab.id();
    let output = lab.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    assert_eq!(bed.left(pid), Vec::<String>::new());
    let runs = DatapathRuns::read(&bed.output().join("L0/datapath/ovs.json")).unwrap();
    let [run] = &runs.runs[..] else { panic!("{} trials", runs.runs.len()) };
    let books = &run.books;
    assert_eq!(books.faults(), Vec::<String>::new());
    // Two rings for each VNF; the flow of the generator, and before, in and behind each VNF.
    assert_eq!((books.dropped.len(), books.held.len(), books.agreements.len()), (4, 4, 7));
    assert!(books.sent > 0 && books.received > 0 && run.window_received <= books.received, "{books:?}");
    assert_eq!(run.pollers.len(), 2, "{:?}", run.pollers);
    // The wall showed what the recording holds, and what it holds adds up to the window.
    let sum = |of: fn(&RateSample) -> u64| run.samples.iter().map(of).sum::<u64>();
    assert_eq!((sum(|it| it.sent), sum(|it| it.received)), (run.window_sent, run.window_received));
    assert_eq!(sum(|it| it.vnfs[1]), run.window_received, "the last VNF sends what is received");
    let (last, wall) = (run.samples.last().unwrap(), Gauges::<RateLook>::read(&bed.output()).unwrap());
    assert_eq!(last.to_ns, run.begin_ns + run.window_ns);
    assert!(wall.ended && wall.samples.len() == run.samples.len(), "{wall:?}");
    let (from_ns, shown) = (run.sampled().last().unwrap().0, wall.samples.back().unwrap());
    let again = RateLook::of(shown.trial.clone(), from_ns, last, run.begin_ns);
    let held = (shown.number, shown.ceiling.clone(), shown.published.clone());
    let again = RateLook { number: held.0, ceiling: held.1, published: held.2, ..again };
    // Through the same file: the last digit of a number may change there.
    assert_eq!(*shown, serde_json::from_str(&serde_json::to_string(&again).unwrap()).unwrap());
    // What a refused packet costs is told, and is less than twice the mean of all, most of which were refused.
    let account = run.pollers.iter().find_map(|poller| poller.cycles.as_ref()).unwrap();
    let refused = account.refused_cycles.unwrap();
    assert!(refused > 0.0 && refused < 2.0 * account.busy as f64 / account.packets as f64, "{account:?}");
    let answered: Value = serde_json::from_slice(&output.stdout).unwrap();
    let section = answered["sections"].as_array().unwrap().iter().find(|section| section["id"] == "datapath").unwrap();
    let rows = |table: &str| section["tables"][table]["rows"].as_array().unwrap().len();
    assert_eq!(rows("samples"), run.samples.len() * 5, "sent, received, all VNFs, VNF 1, VNF 2");
    assert_eq!((rows("rates"), rows("trials"), rows("cycles"), rows("pmds")), (1, 1, 1, 1));
    // The programs' own text says the same as the books.
    let flows = section["tables"]["flows"]["rows"].as_array().unwrap();
    let arrived = flows.iter().filter(|row| row[3] == "drop").map(|row| row[4].as_u64().unwrap()).sum::<u64>();
    assert!(arrived >= books.received, "{arrived} in the flows, {} in the books", books.received);
}

/// Connects to the first VNF's port before the switch does, and hangs up: what a peer does that gives up.
fn hang_up_on_the_first_port_of(lab: u32) {
    let socket = format!("/run/kvmscope-ovs-{lab}-0/v0");
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn vnfs_whose_port_is_hung_up_on_are_started_again() {
    let Some(bed) = bed() else { return };
    let lab = bed.lab("1").spawn().unwrap();
    hang_up_on_the_first_port_of(lab.id());
    let output = lab.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    let said = complaints(&output);
    if !said.contains("; starting it again") {
        println!("skipped: a port that is hung up on: the switch connected first");
    }
    let runs = DatapathRuns::read(&bed.output().join("L0/datapath/ovs.json")).unwrap();
    assert!(runs.runs[0].books.received > 0 && runs.runs[0].books.faults().is_empty(), "{:?}", runs.runs[0].books);
}

#[test]
fn ordinary_memory_carries_packets_too() {
    let Some(mut bed) = bed() else { return };
    bed.huge_pages = None;
    let output = bed.lab("1").spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    let runs = DatapathRuns::read(&bed.output().join("L0/datapath/ovs.json")).unwrap();
    assert_eq!(runs.environment.get("memory").map(String::as_str), Some("ordinary pages (--no-huge)"));
    let books = &runs.runs[0].books;
    assert!(books.received > 0 && books.faults().is_empty(), "{books:?}");
}

#[test]
#[ignore = "torture"]
fn bounds_are_those_of_rates_that_were_held() {
    let Some(bed) = bed() else { return };
    let lab = bed.lab("1").args(["--search", "pdr", "--method", "rfc2544", "--json"]).spawn().unwrap();
    let pid = lab.id();
    let output = lab.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    assert_eq!(bed.left(pid), Vec::<String>::new());
    let runs = DatapathRuns::read(&bed.output().join("L0/datapath/ovs.json")).unwrap();
    let [found] = &runs.bounds[..] else { panic!("{:?}", runs.bounds) };
    assert_eq!((found.design.as_str(), found.goal.as_str(), found.method.as_str()), ("ovs-dpdk", "pdr", "rfc2544"));
    assert_eq!((runs.runs.len(), found.vnfs, found.size_bytes), (1, 2, 64), "trials of a search are none of the rates");
    assert!(found.trials > 0 && found.discarded <= found.trials && !found.ended.is_empty(), "{found:?}");
    // Where others keep the polling thread waiting no rate is held, and no bound is made up.
    match (found.lower_pps, found.upper_pps) {
        (Some(lower), Some(upper)) => assert!(lower < upper, "{found:?}"),
        (None, _) | (_, None) => assert!(found.discarded > 0 || found.ended.contains("sender"), "{found:?}"),
    }
    // What policers refused stands in the books of each trial.
    assert!(!runs.notes.iter().any(|note| note.contains("do not close")), "{:?}", runs.notes);
    let answered: Value = serde_json::from_slice(&output.stdout).unwrap();
    let section = answered["sections"].as_array().unwrap().iter().find(|section| section["id"] == "datapath").unwrap();
    assert_eq!(section["tables"]["bounds"]["rows"].as_array().unwrap().len(), 1);
    assert_eq!(section["tables"]["rates"]["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn bounds_are_of_chains_alone() {
    let Some(bed) = bed() else { return };
    let output = bed.lab("1").args(["--pattern", "north-south", "--search", "ndr"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", complaints(&output));
    assert!(complaints(&output).contains("bounds are those of a chain"), "{}", complaints(&output));
}

/// A thread of this test that wants a CPU, by its id.
struct Intruder {
    tid: i32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Intruder {
    fn on(cpu: usize) -> Self {
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let work = move || {
            let mut own = rustix::thread::CpuSet::new();
            own.set(cpu);
            rustix::thread::sched_setaffinity(None, &own).unwrap();
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let thread = std::thread::Builder::new().name("intruder".to_owned()).spawn(work).unwrap();
        Self { tid: told.recv().unwrap(), stop, thread: Some(thread) }
    }
}

impl Drop for Intruder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn who_takes_a_pollers_cpu_is_named_by_the_trace() {
    let Some(bed) = bed() else { return };
    // The polling thread of the switch has the first CPU.
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..1_024).find(|cpu| allowed.is_set(*cpu)).unwrap();
    let intruder = Intruder::on(cpu);
    let output = bed.lab("1").arg("--json").spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    let runs = DatapathRuns::read(&bed.output().join("L0/datapath/ovs.json")).unwrap();
    if let Some(why) = runs.notes.iter().find(|note| note.contains("nothing of this computer was recorded")) {
        println!("skipped: the trace beside lab ovs: {why}");
        return;
    }
    assert!(bed.output().join("L0/trace.dat").is_file());
    let answered: Value = serde_json::from_slice(&output.stdout).unwrap();
    let section = answered["sections"].as_array().unwrap().iter().find(|section| section["id"] == "datapath").unwrap();
    let table = &section["tables"]["gaps"];
    let column =
        |name: &str| table["columns"].as_array().unwrap().iter().position(|column| column["name"] == name).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let of = |row: &Value, name: &str| row[column(name)].clone();
    let named = rows.iter().find(|row| of(row, "by_tid") == intruder.tid).unwrap_or_else(|| panic!("{table}"));
    assert_eq!(
        (of(named, "by"), of(named, "cpu"), of(named, "kind")),
        ("intruder".into(), cpu.into(), "thread".into())
    );
    assert!(of(named, "thread").as_str().unwrap().starts_with("pmd-c00"), "{named}");
    // Nobody takes more than there is, and the trace tells of most of the window, also where others keep the poller off its CPU when it
    // begins.
    for poller in &runs.runs[0].pollers {
        let own = rows.iter().filter(|row| of(row, "tid") == poller.tid);
        let (all, unknown) = own.fold((0, 0), |(all, unknown), row| {
            let ns = of(row, "total_ns").as_u64().unwrap();
            (all + ns, unknown + if of(row, "kind") == "unknown" { ns } else { 0 })
        });
        assert!(all <= runs.runs[0].window_ns && unknown < runs.runs[0].window_ns / 10, "{all} {unknown} {table}");
    }
}

#[test]
#[ignore = "torture"]
fn nothing_is_left_after_any_signal() {
    let Some(bed) = bed() else { return };
    for signal in ["-TERM", "-HUP"] {
        let lab = bed.at_work();
        let pid = lab.pid();
        lab.ends_at(signal);
        assert_eq!(bed.left(pid), Vec::<String>::new(), "{signal}");
        assert!(!bed.output().exists(), "{signal}");
    }
}

#[test]
fn nothing_is_left_however_the_lab_is_ended() {
    let Some(bed) = bed() else { return };
    let lab = bed.at_work();
    let pid = lab.pid();
    lab.dies();
    let undone = bed.kvmscope().args(["undo"]).output().unwrap();
    assert!(undone.status.success(), "{}", complaints(&undone));
    assert_eq!(bed.left(pid), Vec::<String>::new(), "killed, and undone");
    bed.take_away_the_wall();
    let lab = bed.at_work();
    let killed = lab.pid();
    lab.dies();
    bed.take_away_the_wall();
    let next = bed.at_work();
    let pid = next.pid();
    assert_eq!(bed.left_by(killed), Vec::<String>::new(), "killed, and cleared by the next one");
    next.ends_at("-INT");
    assert_eq!(bed.left(pid), Vec::<String>::new(), "all huge pages are given back, also the first one's");
}

/// The bundled recording; needs nothing of this machine.
#[test]
fn the_bundled_trace_tells_of_every_window_to_the_nanosecond() {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/ovs-dpdk-chain");
    let output = Command::new(env!("CARGO_BIN_EXE_kvmscope")).args(["report", fixture, "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", complaints(&output));
    let answered: Value = serde_json::from_slice(&output.stdout).unwrap();
    let section = answered["sections"].as_array().unwrap().iter().find(|section| section["id"] == "datapath").unwrap();
    let table = &section["tables"]["gaps"];
    let column =
        |name: &str| table["columns"].as_array().unwrap().iter().position(|column| column["name"] == name).unwrap();
    let of = |row: &Value, name: &str| row[column(name)].clone();
    let runs = DatapathRuns::read(&Path::new(fixture).join("L0/datapath/ovs.json")).unwrap();
    let rows = table["rows"].as_array().unwrap();
    for (run, poller) in runs.runs.iter().flat_map(|run| run.pollers.iter().map(move |poller| (run, poller))) {
        let is_own = |row: &&Value| {
            of(row, "tid") == poller.tid && of(row, "vnfs") == run.vnfs && of(row, "size_bytes") == run.size_bytes
        };
        let own: Vec<&Value> = rows.iter().filter(is_own).collect();
        let sum = |kind: Option<&str>| {
            let of_kind = own.iter().filter(|row| kind.is_none_or(|kind| of(row, "kind") == kind));
            of_kind.map(|row| of(row, "total_ns").as_u64().unwrap()).sum::<u64>() as f64 / run.window_ns as f64
        };
        // The scheduler's own account agrees, which counts the time of interrupts with that of whom they interrupt.
        assert!((sum(Some("thread")) - poller.wait_share).abs() < 0.05, "{} {poller:?}", sum(Some("thread")));
        // Some switches of this kernel are not in its trace: what they leave open is unknown, and nobody's.
        assert!(sum(None) <= 1.0 && sum(Some("unknown")) < 0.05, "{poller:?}");
    }
}

#[test]
fn a_missing_program_names_its_package() {
    let Some(bed) = bed() else { return };
    let output = bed.lab("1").env("PATH", bed.directory.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = complaints(&output);
    assert!(said.contains("ovs-vsctl") && said.contains("apt-get install") && said.contains("dpdk-dev"), "{said}");
}
