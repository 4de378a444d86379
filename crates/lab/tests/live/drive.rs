//! perf for real, LTTng against a stand-in that writes down what it is asked.

use base::recording::{Part, PartKind, PartState};
use kvmscope_lab::drive::{LttngOptions, LttngRecorder, PerfOptions, PerfRecorder, Samples};
use kvmscope_lab::guest::{self, Ended, Exit, Guest, programs};
use kvmscope_lab::journal::{Journal, Step};
use kvmscope_lab::program::Program;
use kvmscope_lab::tracefs::Selection;
use kvmscope_lab::{Error, Recorder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testing::Workspace;
use trace::replay::Listener;
use trace::{Event, Reading, Request, Wanted};

fn journal(directory: &Path) -> Journal {
    Journal::new(directory.join("journal"), "/proc")
}

fn entries(journal: &Journal) -> usize {
    journal.entries().unwrap().len()
}

/// perf at work in `root`, or nothing and the reason printed.
fn perf(options: &PerfOptions, root: &Path) -> Option<PerfRecorder> {
    match PerfRecorder::start(Path::new("/"), &journal(root), options, root, "L0") {
        Ok(perf) => Some(perf),
        Err(error) => {
            println!("skipped: perf: {error}");
            None
        }
    }
}

/// What `perf script` counts of an event of this process in a file: other guests may run on this machine as well.
fn counted(data: &Path, event: &str) -> u64 {
    let output = Command::new("perf").args(["script", "-F", "pid,event", "-i"]).arg(data).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let ours = std::process::id().to_string();
    let is_ours = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first() == Some(&ours.as_str()) && words.last().is_some_and(|word| word.trim_end_matches(':') == event)
    };
    text.lines().filter(|line| is_ours(line)).count() as u64
}

#[test]
fn perf_records_every_port_write_of_a_guest() {
    let Ok(kvm) = guest::open(Path::new("/dev/kvm")) else { return println!("skipped: kvm: no /dev/kvm") };
    let directory = Workspace::alone();
    let root = directory.path();
    let Some(perf) = perf(&PerfOptions::default(), root) else { return };
    assert_eq!(perf.partial().state, PartState::Partial);
    assert_eq!(entries(&journal(root)), 1, "noted while it runs");
    let limit = Duration::from_secs(20);
    let outcome = Guest::new(&kvm).unwrap().run(programs::named("port-out").unwrap(), 500, limit).unwrap();
    assert_eq!((outcome.ended.clone(), outcome.count(Exit::PortWrite)), (Ended::Whole, 500));
    let parts = Box::new(perf).stop().unwrap();
    let expected = Part {
        path: "L0/perf.data".into(),
        machine: "L0".into(),
        kind: PartKind::PerfData,
        clock: Some("mono".into()),
        state: PartState::Complete,
    };
    assert_eq!(parts, [expected]);
    assert_eq!(entries(&journal(root)), 0, "and forgotten when it has ended");
    let data = root.join("L0/perf.data");
    assert_eq!(counted(&data, "kvm:kvm_pio"), 501, "each round writes, and so does the end");
    assert!(counted(&data, "sched:sched_switch") > 0);
    let opened = trace::open(&data).unwrap();
    assert!(opened.facts().event_types.iter().any(|event| event.name.ends_with("kvm_pio")));
    assert_eq!(fs::read_dir(root.join("L0")).unwrap().count(), 1, "the pipes are gone");
}

#[test]
fn perf_samples_beside_the_tracepoints_and_keeps_them_all() {
    let directory = Workspace::alone();
    let symbols = Some((PathBuf::from("/proc/kallsyms"), PathBuf::from("/proc/modules")));
    let options = PerfOptions {
        events: vec![Selection::parse("sched:sched_switch").unwrap()],
        samples: Some(Samples { frequency_hz: 200, guest_symbols: symbols }),
        ..PerfOptions::default()
    };
    let Some(perf) = perf(&options, directory.path()) else { return };
    let (mut naps, mut sum) = (0, 0_u64);
    while naps < 200 {
        std::thread::sleep(Duration::from_micros(500));
        sum = (0..20_000_u64).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        naps += 1;
    }
    Box::new(perf).stop().unwrap();
    let data = directory.path().join("L0/perf.data");
    assert!(
        counted(&data, "sched:sched_switch") >= naps,
        "each nap is a switch: {}",
        counted(&data, "sched:sched_switch")
    );
    let sampled = ["cycles/freq=200/", "cpu-clock/freq=200/"].map(|event| counted(&data, event));
    assert!(sampled.iter().any(|count| *count > 0), "{sampled:?}");
}

/// Samples of this process whose code was a guest's kernel, by `perf report -D`, with their addresses.
fn in_guest(data: &Path) -> Vec<u64> {
    let output = Command::new("perf").args(["report", "-D", "-i"]).arg(data).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let ours = format!("PERF_RECORD_SAMPLE(IP, 0x4): {}/", std::process::id());
    let address = |line: &str| {
        let ip = line.split_once(&ours)?.1.split_once(": 0x")?.1;
        u64::from_str_radix(ip.split(' ').next()?, 16).ok()
    };
    text.lines().filter_map(address).collect()
}

#[test]
fn samples_taken_while_a_guest_ran_are_the_guests() {
    let Ok(kvm) = guest::open(Path::new("/dev/kvm")) else { return println!("skipped: kvm: no /dev/kvm") };
    let directory = Workspace::alone();
    let file = |name: &str, text: &str| {
        fs::write(directory.path().join(name), text).unwrap();
        directory.path().join(name)
    };
    let symbols = (file("kallsyms", "0000000000001000 T in_the_guest\n"), file("modules", ""));
    let samples = Some(Samples { frequency_hz: 10_000, guest_symbols: Some(symbols) });
    let options = PerfOptions { events: Vec::new(), samples, ..PerfOptions::default() };
    let Some(perf) = perf(&options, directory.path()) else { return };
    // One that computes, and one that leaves all the time: kvm_pvm interprets most of the first, and runs the other.
    for program in ["empty", "hlt"] {
        let run = Guest::new(&kvm).unwrap().run(programs::named(program).unwrap(), u32::MAX, Duration::from_secs(1));
        assert_eq!(run.unwrap().ended, Ended::Stuck, "{program} would take minutes");
    }
    Box::new(perf).stop().unwrap();
    let data = directory.path().join("L0/perf.data");
    let theirs = in_guest(&data);
    assert!(!theirs.is_empty(), "no sample hit the guest");
    let code = programs::CODE..programs::CODE + 0x100;
    assert!(theirs.iter().all(|ip| code.contains(ip)), "{theirs:x?}");
    struct Count(u64);
    impl Listener for Count {
        fn event(&mut self, event: &Event<'_>) {
            let ours = event.get(2) == Some(std::process::id().into());
            self.0 += u64::from(ours && event.get(1) == Some(4) && (0x1000..0x1100).contains(&event.or_zero(0)));
        }
    }
    let trace = trace::open(&data).unwrap();
    let sampled = trace.facts().event_types.iter().filter(|event| event.system == "perf");
    let names = sampled.map(|event| format!("perf:{}", event.name)).collect();
    let fields = ["ip", "cpumode", "pid"].map(|field| vec![field.to_owned()]).to_vec();
    let request = Request { events: vec![Wanted { names, fields }] };
    let mut count = Count(0);
    trace::replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut count);
    assert_eq!(count.0, theirs.len() as u64, "we read what perf reads");
}

#[test]
fn a_perf_that_cannot_be_run_says_why_and_leaves_nothing() {
    let directory = Workspace::alone();
    let root = directory.path();
    let tree = root.join("host/sys/kernel/tracing");
    fs::create_dir_all(tree.join("instances")).unwrap();
    fs::create_dir_all(tree.join("events/kvm/kvm_exit")).unwrap();
    fs::write(tree.join("events/kvm/kvm_exit/format"), "").unwrap();
    let start = |program: &str, events: Vec<Selection>| -> Result<PerfRecorder, Error> {
        let program = Program::new(program, "linux-perf");
        let options = PerfOptions { program, events, ..PerfOptions::default() };
        PerfRecorder::start(&root.join("host"), &journal(root), &options, root, "L0")
    };
    let said = |outcome: Result<PerfRecorder, Error>| outcome.err().unwrap().to_string();
    let kvm = || vec![Selection::parse("kvm").unwrap()];
    assert!(said(start("/nonexistent/perf", kvm())).contains("it is in the Debian package linux-perf"));
    assert!(said(start("false", kvm())).contains("false failed"));
    assert!(said(start("false", Vec::new())).contains("none of the events"));
    assert_eq!(entries(&journal(root)), 0);
    assert_eq!(fs::read_dir(root.join("L0")).unwrap().count(), 0);
}

/// A stand-in for `lttng` that appends its arguments to `asked`, and fails at the words `fails`.
fn lttng(directory: &Path, fails: &str) -> Program {
    let (path, asked) = (directory.join("lttng"), directory.join("asked"));
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\ncase \"$*\" in\n\
         *'{fails}'*) echo 'Error: No session daemon is available' >&2; exit 1 ;;\n\
         *'list --kernel'*) printf '  kvm_x86_exit (type: tracepoint)\\n  kvm_mmio (type: tracepoint)\\n  \
         sched_switch (type: tracepoint)\\n' ;;\n*create*) touch \"$LTTNG_HOME/.lttngrc\" ;;\nesac\n",
        asked.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    Program::new(path, "lttng-tools")
}

fn asked(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("asked")).unwrap();
    text.lines().map(|line| line.replace(root.to_str().unwrap(), "ROOT")).collect()
}

#[test]
fn lttng_is_asked_in_the_right_order_and_never_for_kvm_mmio() {
    let directory = Workspace::alone();
    let root = directory.path();
    let options = LttngOptions { program: lttng(root, "nothing fails"), ..LttngOptions::default() };
    let recorder = LttngRecorder::start(&journal(root), &options, root, "L0").unwrap();
    let noted = journal(root).entries().unwrap().remove(0).unwrap();
    let [Step::LttngSession { name: session }] = noted.steps.as_slice() else { panic!("{noted:?}") };
    assert_eq!(recorder.events(), ["kvm_x86_exit", "sched_switch"]);
    let parts = Box::new(recorder).stop().unwrap();
    assert_eq!((parts[0].path.as_path(), parts[0].kind), (Path::new("L0/ctf"), PartKind::Ctf));
    let expected = [
        "list --kernel".to_owned(),
        format!("create {session} --output=ROOT/L0/ctf"),
        format!("enable-channel --kernel --session={session} --subbuf-size=4M --num-subbuf=4 kvmscope"),
        format!("enable-event --kernel --session={session} --channel=kvmscope kvm_x86_exit,sched_switch"),
        format!("add-context --kernel --session={session} --channel=kvmscope --type=tid"),
        format!("start {session}"),
        format!("stop {session}"),
        format!("destroy {session}"),
    ];
    assert_eq!(asked(root), expected.map(|line| format!("--no-sessiond {line}")));
    assert_eq!(entries(&journal(root)), 0);
    assert!(!root.join("L0/.lttngrc").exists());
}

#[test]
fn a_session_that_cannot_start_is_destroyed() {
    let directory = Workspace::alone();
    let root = directory.path();
    let options = LttngOptions { program: lttng(root, "--type=tid"), ..LttngOptions::default() };
    let error = LttngRecorder::start(&journal(root), &options, root, "L0").err().unwrap().to_string();
    assert!(error.contains("systemctl start lttng-sessiond"), "{error}");
    let asked = asked(root);
    assert!(
        asked.last().unwrap().contains("destroy") && !asked.iter().any(|line| line.contains(" start ")),
        "{asked:?}"
    );
    assert_eq!(entries(&journal(root)), 0);
}

#[test]
fn without_lttng_the_package_is_named() {
    let directory = Workspace::alone();
    let options =
        LttngOptions { program: Program::new("/nonexistent/lttng", "lttng-tools"), ..LttngOptions::default() };
    let error = LttngRecorder::start(&journal(directory.path()), &options, directory.path(), "L0").err().unwrap();
    assert!(error.to_string().contains("it is in the Debian package lttng-tools"), "{error}");
}
