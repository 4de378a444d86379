//! Does `record` leave what it promises, and the host as it was? Live, on this machine's tracefs.
//!
//! Truth comes from others: `trace-cmd report` and `perf script` count the same events, the shell knows its status, and
//! the kernel lists its instances.

mod ends;
mod flight;
mod live;
mod mounted;
mod packed;

use assert_cmd::cargo::cargo_bin;
use base::recording::Recording;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use testing::{Running, Workspace, cannot_record};
use trace::lane::Reading;
use trace::replay::{Event, Listener, replay};
use trace::request::{Request, Wanted};

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// A directory for one test, with a journal of its own. `None`, and the reason printed, where nothing can be recorded.
fn place(test: &str) -> Option<Workspace> {
    if let Some(why) = cannot_record() {
        println!("skipped: {test}: {why}");
        return None;
    }
    Some(Workspace::alone())
}

fn kvmscope(place: &Path) -> Command {
    let mut command = Command::new(cargo_bin("kvmscope"));
    command.current_dir(place).env("KVMSCOPE_JOURNAL", place.join("journal"));
    command
}

fn record(place: &Path, arguments: &[&str]) -> Output {
    kvmscope(place).arg("record").args(arguments).output().unwrap()
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output of a program that others made; `None`, and the reason printed, if it is not installed.
fn oracle(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("skipped: {program}: {error}");
            None
        }
    }
}

/// Events by name, of those `tids` if any are named.
fn counts(path: &Path, tids: &[i32]) -> BTreeMap<String, u64> {
    struct Count<'a>(&'a [String], &'a [i32], BTreeMap<String, u64>);
    impl Listener for Count<'_> {
        fn event(&mut self, event: &Event<'_>) {
            if !event.is_loss() && (self.1.is_empty() || self.1.contains(&event.tid)) {
                *self.2.entry(self.0[usize::from(event.kind)].clone()).or_default() += 1;
            }
        }
    }
    let trace = trace::open(path).unwrap();
    let types: Vec<String> = trace.facts().event_types.iter().map(|event| event.name.clone()).collect();
    let request = Request::everything(trace.facts());
    let mut count = Count(&types, tids, BTreeMap::new());
    let totals = replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut count);
    assert_eq!(totals.unknown, 0, "every event is described");
    count.2
}

fn instance_of(pid: u32) -> PathBuf {
    Path::new(INSTANCES).join(format!("kvmscope-{pid}"))
}

#[test]
fn trace_cmd_reads_the_same_events_and_the_command_decides_the_status() {
    let Some(place) = place("record") else { return };
    let place = place.path();
    let work = "i=0; while [ $i -lt 30 ]; do sleep 0.01; i=$((i+1)); done; exit 7";
    let output = record(place, &["--no-self-check", "-o", "new", "--", "sh", "-c", work]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("kvmscope report new"), "{}", text(&output.stdout));
    let dat = place.join("new/L0/trace.dat");
    let ours = counts(&dat, &[]);
    assert!(ours["sched_switch"] > 60, "30 sleeps are 60 switches at least: {ours:?}");
    let Some(theirs) = oracle("trace-cmd", &["report", "-R", dat.to_str().unwrap()]) else { return };
    assert_eq!(text(&theirs.stderr), "", "trace-cmd complains");
    let mut counted = BTreeMap::new();
    for line in text(&theirs.stdout).lines().filter(|line| line.contains('[')) {
        let name = line.split_once(']').unwrap().1.split_whitespace().nth(1).unwrap().trim_end_matches(':').to_owned();
        *counted.entry(name).or_insert(0) += 1;
    }
    assert_eq!(ours, counted);
    assert!(!place.join("new/L0/trace.partial").exists());
    assert_eq!(std::fs::read_dir(place.join("journal")).unwrap().count(), 0, "nothing is left to undo");
}

#[test]
fn our_own_system_calls_do_not_fill_the_recording_with_empty_pages() {
    let Some(place) = place("full pages") else { return };
    // Longer than a second, so that pages are taken that are not full.
    let busy = "dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null; sleep 1.5";
    let arguments =
        ["--no-self-check", "--no-snapshot", "--events", "raw_syscalls", "-o", "new", "--", "sh", "-c", busy];
    let output = record(place.path(), &arguments);
    let said = text(&output.stdout);
    let mib = said.split_whitespace().zip(said.split_whitespace().skip(1)).find(|(_, unit)| *unit == "MiB");
    let bytes = mib.unwrap().0.parse::<f64>().unwrap() * f64::from(1 << 20);
    let events: u64 = counts(&place.path().join("new/L0/trace.dat"), &[]).values().sum();
    // `sys_enter` takes 68 bytes; a page holds 60 of them, and held 8 when each read caused the next page.
    assert!(bytes / (events as f64) < 150.0, "{bytes} bytes for {events} events: {said}");
}

#[test]
fn the_scale_of_the_counter_is_that_of_the_kernel() {
    let Some(place) = place("clock") else { return };
    let output = record(place.path(), &["--no-self-check", "--no-snapshot", "--seconds", "1", "-o", "new"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let Ok(pairs) = std::fs::read(place.path().join("new/L0/clock.json")) else {
        return println!("skipped: clock: this kernel has no trace clock x86-tsc");
    };
    let pairs: serde_json::Value = serde_json::from_slice(&pairs).unwrap();
    // `now` is CLOCK_MONOTONIC, read by the interrupt handler just before it tells of the timer.
    struct Late(i64, Vec<i64>);
    impl Listener for Late {
        fn event(&mut self, event: &Event<'_>) {
            if !event.is_loss() {
                self.1.push(event.time_ns as i64 + self.0 - event.or_zero(0) as i64);
            }
        }
    }
    let trace = trace::open(&place.path().join("new/L0/trace.dat")).unwrap();
    let fields = vec![vec!["now".to_owned()]];
    let request = Request { events: vec![Wanted { names: vec!["hrtimer_expire_entry".to_owned()], fields }] };
    let mut late = Late(pairs["scale"]["offset_ns"].as_i64().unwrap(), Vec::new());
    replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut late);
    let (least, most) = (late.1.iter().min().unwrap(), late.1.iter().max().unwrap());
    println!("{} timers were told {least} to {most} ns after the time they name", late.1.len());
    assert!(*least > -2_000, "no event comes before its time: {least} ns");
    assert!(*least < 1_000_000, "the axes are the same: {least} ns");
}

#[test]
fn all_clocks_are_read_before_the_first_event_and_after_the_last() {
    use base::recording::{Moment, Recording};
    let Some(place) = place("clock pairs") else { return };
    let arguments = ["--no-self-check", "--no-snapshot", "--clock", "mono", "--seconds", "0.5", "-o", "new"];
    let output = record(place.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let recording = Recording::open(&place.path().join("new")).unwrap();
    let [first, last] = recording.clock_pairs.as_slice() else { panic!("{:?}", recording.clock_pairs) };
    assert_eq!((first.at, last.at), (Moment::Begin, Moment::End));
    let trace = trace::open(&place.path().join("new/L0/trace.dat")).unwrap();
    let request = Request::default();
    struct Nobody;
    impl Listener for Nobody {
        fn event(&mut self, _: &Event<'_>) {}
    }
    let totals = replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut Nobody);
    let (from_ns, to_ns) = totals.span_ns.unwrap();
    assert!(first.monotonic_ns <= from_ns && to_ns <= last.monotonic_ns, "{first:?} {from_ns} to {to_ns} {last:?}");
    let now = recording.wall_clock("L0").unwrap().of_monotonic(from_ns);
    let year_2020_ns = 1_577_836_800_000_000_000;
    assert!(now.realtime_ns > year_2020_ns && now.error_ns < 1_000_000, "{now:?}");
}

/// The kernel's file system for debugging, mounted by the test; gone with it.
struct Debugfs;

impl Debugfs {
    const AT: &str = "/sys/kernel/debug";

    /// Nothing if somebody else has mounted it, or it cannot be.
    fn mounted() -> Option<Self> {
        let is_empty = std::fs::read_dir(Self::AT).ok()?.next().is_none();
        let mut mount = Command::new("mount");
        mount.args(["-t", "debugfs", "nodev", Self::AT]);
        (is_empty && mount.status().is_ok_and(|status| status.success())).then_some(Self)
    }
}

impl Drop for Debugfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(Self::AT).status();
    }
}

#[test]
fn what_kvm_says_of_the_counters_of_guests_that_ran_before_goes_along() {
    let Some(place) = place("counters of guests") else { return };
    let this_thread = rustix::thread::gettid().as_raw_nonzero().get();
    let own = |reading: &&base::recording::TscReading| reading.pid == this_thread;
    let guest = match lab::guest::open(Path::new("/dev/kvm")).and_then(|kvm| lab::guest::Guest::new(&kvm)) {
        Ok(guest) => guest,
        Err(error) => return println!("skipped: counters of guests: {error}"),
    };
    let _mounted = Debugfs::mounted();
    if !Path::new(Debugfs::AT).join("kvm").is_dir() {
        return println!("skipped: counters of guests: this kernel has no debugfs");
    }
    let output = record(place.path(), &["--no-self-check", "--no-snapshot", "--seconds", "0.1", "-o", "new"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let recording = Recording::open(&place.path().join("new")).unwrap();
    let readings = recording.tsc_readings("L0").unwrap().unwrap();
    let [first, last] = [&readings.first, &readings.last].map(|readings| readings.iter().find(own).unwrap());
    assert_eq!((first.vcpu, first), (0, last), "nobody changes the offset of a guest that does not run");
    assert!(first.offset.is_some());
    drop(guest);
}

#[test]
fn threads_of_vms_are_told_apart_without_a_snapshot() {
    let Some(place) = place("threads of VMs") else { return };
    // Who has a VM's file open runs a VM: this process does.
    let guest = match lab::guest::open(Path::new("/dev/kvm")).and_then(|kvm| lab::guest::Guest::new(&kvm)) {
        Ok(guest) => guest,
        Err(error) => return println!("skipped: threads of VMs: {error}"),
    };
    let output = record(place.path(), &["--no-self-check", "--no-snapshot", "--seconds", "0.1", "-o", "new"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let recording = Recording::open(&place.path().join("new")).unwrap();
    let processes = recording.vm_processes("L0").unwrap().unwrap();
    let this_thread = rustix::thread::gettid().as_raw_nonzero().get();
    let by_thread = processes.by_thread();
    assert_eq!(by_thread[&this_thread].pid, std::process::id() as i32);
    drop(guest);
}

/// Starts to record and waits until it says that events are being recorded.
fn begun(place: &Path, arguments: &[&str]) -> Child {
    let mut command = kvmscope(place);
    command.arg("record").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = Vec::new();
    // Byte by byte: what comes later stays in the pipe.
    let mut byte = [0];
    while child.stderr.as_mut().unwrap().read(&mut byte).unwrap() > 0 {
        line.extend(byte);
        if byte == *b"\n" && text(&line).contains("recording from now on") {
            return child;
        }
    }
    child.wait().unwrap();
    panic!("it does not begin: {}", text(&line));
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn it_says_on_stderr_when_events_are_recorded_and_keeps_quiet_if_asked() {
    let Some(place) = place("recording from now on") else { return };
    let output = record(place.path(), &["--seconds", "0.1", "-o", "new"]);
    let said = text(&output.stderr);
    let order = ["self-check", "snapshot", "recording from now on"].map(|words| said.find(words));
    assert!(order.is_sorted() && order.iter().all(Option::is_some), "{said}");
    let output = record(place.path(), &["--seconds", "0.1", "--quiet", "--no-snapshot", "-o", "quiet"]);
    assert_eq!((output.status.code(), text(&output.stderr), text(&output.stdout)), (Some(0), "".into(), "".into()));
    let output = record(place.path(), &["--seconds", "0", "-o", "nothing"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

/// Switches of the CPUs between tasks that both are none of `tids`.
fn switches_between_others(path: &Path, tids: &[u64]) -> u64 {
    struct Count<'a>(&'a [u64], u64);
    impl Listener for Count<'_> {
        fn event(&mut self, event: &Event<'_>) {
            let both = [event.or_zero(0), event.or_zero(1)];
            self.1 += u64::from(!event.is_loss() && !both.iter().any(|tid| self.0.contains(tid)));
        }
    }
    let trace = trace::open(path).unwrap();
    let fields = ["prev_pid", "next_pid"].map(|name| vec![name.to_owned()]).to_vec();
    let request = Request { events: vec![Wanted { names: vec!["sched_switch".to_owned()], fields }] };
    let mut count = Count(tids, 0);
    replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut count);
    count.1
}

#[test]
fn only_the_threads_of_one_process_are_recorded_but_all_switches() {
    let Some(place) = place("--vm") else { return };
    let work = "while :; do /bin/sleep 0.01; done";
    let mut other = Command::new("sh").args(["-c", work]).spawn().unwrap();
    let mut wanted = Command::new("sh").args(["-c", work]).spawn().unwrap();
    let pid = wanted.id();
    let arguments = ["--no-self-check", "--vm", &pid.to_string(), "--events", "sched", "--seconds", "1", "-o", "new"];
    let output = record(place.path(), &arguments);
    for child in [&mut wanted, &mut other] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    let dat = place.path().join("new/L0/trace.dat");
    let forks = |pid: u32| counts(&dat, &[pid as i32]).get("sched_process_fork").copied().unwrap_or(0);
    assert!(forks(pid) > 10, "{} forks of the process that was named", forks(pid));
    assert_eq!(forks(other.id()), 0);
    // Who ran while the process waited is seen there alone: the other process sleeps and wakes a hundred times.
    let others = switches_between_others(&dat, &[u64::from(pid)]);
    assert!(others > 50, "{others} switches between others");
}

#[test]
fn a_thread_that_is_started_while_it_is_recorded_is_heard() {
    let Some(place) = place("--vm, a later thread") else { return };
    // On a line from us it starts a thread, which starts programs for ever.
    let script = "import threading,os,sys\n\
        def work():\n  while True: os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n\
        sys.stdin.readline()\nthreading.Thread(target=work).start()";
    let mut wanted = match Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).spawn() {
        Ok(wanted) => Running(wanted),
        Err(error) => return println!("skipped: --vm, a later thread: python3: {error}"),
    };
    let pid = wanted.0.id();
    let arguments = ["--no-self-check", "--no-snapshot", "--vm", &pid.to_string(), "--events", "sched"];
    let child = begun(place.path(), &[&arguments[..], &["--seconds", "3", "-o", "new"]].concat());
    wanted.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(wanted);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let all = counts(&place.path().join("new/L0/trace.dat"), &[]);
    let first = counts(&place.path().join("new/L0/trace.dat"), &[pid as i32]);
    let forks = |counts: &BTreeMap<String, u64>| counts.get("sched_process_fork").copied().unwrap_or(0);
    assert!(forks(&all) > forks(&first) + 5, "{all:?}");
}

#[test]
fn a_guest_causes_the_same_events_as_perf_counts() {
    const EVENTS: [&str; 4] = ["kvm_userspace_exit", "kvm_pio", "kvm_mmio", "kvm_fpu"];
    let Some(place) = place("perf") else { return };
    let place = place.path();
    // The self-check of another recorder is the guest; its pid tells its events from those of other guests.
    let guest = format!("echo $$ > pid; exec {} record --seconds 0.1 -o inner", cargo_bin("kvmscope").display());
    let events = EVENTS.map(|name| format!("kvm:{name}")).join(",");
    let perf = ["perf", "record", "-a", "-m", "2M", "-e", &events, "-o", "perf.data", "--", "sh", "-c", &guest];
    let arguments = [&["--no-self-check", "-o", "new", "--"], perf.as_slice()].concat();
    let output = record(place, &arguments);
    if !output.status.success() {
        return println!("skipped: perf beside a guest: {}", text(&output.stderr));
    }
    let data = place.join("perf.data");
    let Some(script) = oracle("perf", &["script", "-i", data.to_str().unwrap(), "-F", "pid,tid,event"]) else { return };
    let wanted = std::fs::read_to_string(place.join("pid")).unwrap();
    let (mut theirs, mut tids) = (BTreeMap::new(), Vec::new());
    for line in text(&script.stdout).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [process, event, ..] = words.as_slice() else { continue };
        let (Some((pid, tid)), Some(name)) = (process.split_once('/'), event.strip_prefix("kvm:")) else { continue };
        if pid == wanted.trim() {
            *theirs.entry(name.trim_end_matches(':').to_owned()).or_insert(0) += 1;
            tids.push(tid.parse().unwrap());
        }
    }
    if theirs.is_empty() {
        return println!("skipped: perf beside a guest: no guest runs here: {}", text(&output.stdout));
    }
    let mut ours = counts(&place.join("new/L0/trace.dat"), &tids);
    ours.retain(|name, _| EVENTS.contains(&name.as_str()));
    println!("perf and we counted {theirs:?}");
    assert_eq!(ours, theirs);
}

#[test]
fn without_root_nothing_is_begun() {
    let place = tempfile::tempdir().unwrap();
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(cargo_bin("kvmscope")).arg("record");
    let output =
        nobody.current_dir("/tmp").args(["--seconds", "1", "-o"]).arg(place.path().join("web")).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("run as root") && !said.contains("self-check"), "{said}");
}
