//! Does a cut hold exactly the events of its window, as `trace-cmd report` prints them too?

use base::{Clock, ClockSource, Span};
use kvmscope_trace::write::layout::Machine;
use kvmscope_trace::write::page::PageStyle;
use kvmscope_trace::write::tracedat::{Compression, FileOption, Records, TraceDat, Version};
use kvmscope_trace::write::{EventSchema, Loss, Record, Schema, Sink, Value};
use kvmscope_trace::{self as trace, Event, Facts, FieldKind, Listener, Reading, Request, Trace};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What trace-cmd stores of `/proc/kallsyms`.
const SYMBOLS: &str = "ffffffff81000000 T _stext\nffffffffc05c2780 t svm_vcpu_run\t[kvm_amd]\n";

/// Everything that can be said of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    ticks: u64,
    cpu: u32,
    tid: i32,
    /// Name, or `None` for a loss.
    name: Option<String>,
    values: Vec<(u64, Vec<u8>)>,
}

struct All<'f> {
    facts: &'f Facts,
    events: Vec<Seen>,
}

impl Listener for All<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let kind = self.facts.event_types.get(usize::from(event.kind));
        let values = match kind {
            Some(kind) => kind
                .fields
                .iter()
                .enumerate()
                .map(|(index, field)| match field.kind {
                    FieldKind::Text | FieldKind::Bytes => (0, event.content(index).unwrap_or_default().to_vec()),
                    _ => (event.or_zero(index), Vec::new()),
                })
                .collect(),
            None => vec![(event.or_zero(0), Vec::new())],
        };
        self.events.push(Seen {
            // A page says that events were lost before it, so a loss belongs to the window that its end lies in.
            ticks: event.until_ns,
            cpu: event.cpu,
            tid: event.tid,
            name: kind.map(|kind| kind.name.clone()),
            values,
        });
    }
}

/// All events in ticks, and the clock by which a window is cut.
fn everything(path: &Path) -> (Vec<Seen>, Clock) {
    let trace = trace::tracedat::open(path).unwrap();
    let request = Request::everything(trace.facts());
    let mut all = All { facts: trace.facts(), events: Vec::new() };
    let totals = trace::replay(&trace, &Reading { request: &request, fitted: None }, &mut all);
    assert!(totals.problems.is_empty() && trace.facts().problems.is_empty(), "{:?}", totals.problems);
    // A loss is told where its CPU went silent, which a cut may have left out.
    all.events.sort_by_key(|seen| (seen.ticks, seen.cpu, seen.name.is_some()));
    (all.events, trace::calibrate::fit(&trace).unwrap_or_else(|| Clock::nanoseconds("file")))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name).join("L0/trace.dat")
}

const DROPPED: &str = "EVENTS DROPPED";

/// What `trace-cmd report` prints; `None` where it is not installed.
fn report(file: &Path) -> Option<Output> {
    let printed = Command::new("trace-cmd").args(["report", "-R", "-t", "-i"]).arg(file).output();
    printed.inspect_err(|error| println!("skipped: trace-cmd: {error}")).ok()
}

fn schema() -> Schema {
    let entry = EventSchema::declared("kvm", "kvm_entry", "unsigned int vcpu_id; unsigned long rip");
    let waking = EventSchema::declared("sched", "sched_waking", "char comm[16]; pid_t pid; __data_loc char[] note");
    Schema { events: vec![entry, waking] }
}

/// Events on three CPUs with short and long pauses between them.
fn records() -> Vec<Record> {
    let mut ticks = 61_000_000_000;
    let record = |n: u64| {
        ticks += if n % 97 == 96 { 3 << 28 } else { 100 + n % 13 };
        let event = (n % 2) as usize;
        let values: Vec<Value> = match event {
            0 => vec![(n % 4).into(), (n << 33).into()],
            _ => vec!["CPU 0/KVM".into(), n.into(), Value::Text("x".repeat((n % 200) as usize))],
        };
        Record { ticks, cpu: (n % 3) as u32, tid: 170, event, values }
    };
    (0..4_000).map(record).collect()
}

/// Cuts `file` and compares; returns how many events the cut holds.
fn check(file: &Path, window: Span) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("cut.dat");
    let (all, clock) = everything(file);
    let origin_ns = clock.ns(all[0].ticks);
    trace::tracedat::cut(file, &to, window).unwrap();
    let (cut, _) = everything(&to);
    let inside = |seen: &&Seen| (window.from_ns..window.to_ns).contains(&(clock.ns(seen.ticks) - origin_ns));
    let expected: Vec<Seen> = all.iter().filter(inside).cloned().collect();
    assert_eq!(cut.len(), expected.len(), "{window:?}");
    for (cut, expected) in cut.iter().zip(&expected) {
        assert_eq!(cut, expected, "{window:?}");
    }
    let losses = cut.iter().filter(|seen| seen.name.is_none()).count();
    if let Some(output) = report(&to) {
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{window:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(printed.lines().filter(|line| line.contains(": ")).count(), cut.len() - losses, "{window:?}");
        // trace-cmd 3.1.6 tells of no loss before an absolute time stamp, in no file, and Debian's reads no zlib.
        let tells = |output: Output| String::from_utf8_lossy(&output.stdout).contains(DROPPED);
        if losses > 0 && report(file).is_some_and(tells) {
            assert_eq!(printed.matches(DROPPED).count(), losses, "{window:?}");
        }
    }
    cut.len()
}

#[test]
fn windows_of_the_toys_hold_exactly_their_events() {
    for (name, length_ns) in [("nested-svm-toy", 813_969_290), ("nested-vmx-shadow-off-hog", 637_969_320)] {
        let file = fixture(name);
        let all = check(&file, Span { from_ns: 0, to_ns: u64::MAX });
        assert_eq!(check(&file, Span { from_ns: 0, to_ns: length_ns }), all - 1, "{name}: the end is not inside");
        assert_eq!(check(&file, Span { from_ns: length_ns, to_ns: length_ns + 1 }), 1);
        assert_eq!(check(&file, Span { from_ns: length_ns + 1, to_ns: u64::MAX }), 0);
        let halves = [(0, length_ns / 2), (length_ns / 2, u64::MAX)];
        let parts: usize =
            halves.iter().map(|(from_ns, to_ns)| check(&file, Span { from_ns: *from_ns, to_ns: *to_ns })).sum();
        assert_eq!(parts, all, "{name}: two windows that meet lose nothing and double nothing");
        check(&file, Span { from_ns: length_ns / 3, to_ns: length_ns / 3 + 1_000_000 });
    }
}

#[test]
fn both_versions_all_compressions_and_marks_of_lost_events_can_be_cut() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [
        (Version::V6, Compression::None, PageStyle::default()),
        (Version::V7, Compression::None, PageStyle { absolute: true, ..PageStyle::default() }),
        (Version::V7, Compression::Zlib, PageStyle { padded_tail: true, ..PageStyle::default() }),
        (Version::V7, Compression::Zstd, PageStyle::default()),
    ];
    for (number, (version, compression, style)) in cases.into_iter().enumerate() {
        let path = directory.path().join(format!("{number}.dat"));
        let mut dat = TraceDat::new(version, Machine::X86_64);
        dat.compression = compression;
        dat.kallsyms = SYMBOLS.to_owned();
        dat.comms = vec![(170, "CPU 0/KVM".into())];
        dat.options = vec![
            FileOption::TraceClock("local [mono] boot\n".into()),
            FileOption::CpuStat("CPU: 0\noverrun: 2\n".into()),
            FileOption::TraceId(77),
        ];
        let mut sink = Box::new(Records::create(&path, &schema(), dat, "mono", 3, style).unwrap());
        let records = records();
        for (index, record) in records.iter().enumerate() {
            if index % 1_000 == 999 {
                let events = (index % 2_000 == 999).then_some(index as u64);
                sink.lost(&Loss { ticks: record.ticks, cpu: record.cpu, events }).unwrap();
            }
            sink.record(record).unwrap();
        }
        sink.finish().unwrap();
        let length_ns = records[3_999].ticks - records[0].ticks;
        for (from, to) in [(0, 12), (1, 12), (5, 6), (2, 9), (0, 1)] {
            check(&path, Span { from_ns: length_ns / 12 * from, to_ns: length_ns / 12 * to });
        }
        let cut = directory.path().join(format!("{number}.cut.dat"));
        trace::tracedat::cut(&path, &cut, Span { from_ns: 0, to_ns: length_ns / 2 }).unwrap();
        let cut = trace::tracedat::open(&cut).unwrap();
        let facts = cut.facts();
        assert_eq!((facts.trace_id, facts.clock.name.as_str()), (Some(77), "mono"));
        assert_eq!(facts.comms[&170], "CPU 0/KVM");
        assert_eq!(cut.kallsyms().as_deref(), Some(SYMBOLS), "they name where a guest was left");
        assert!(facts.losses.is_empty(), "statistics of the whole recording do not hold for the cut");
    }
}

#[test]
fn a_cut_does_not_write_over_anything() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.dat");
    std::fs::copy(fixture("nested-vmx-shadow-on"), &file).unwrap();
    let before = std::fs::metadata(&file).unwrap().len();
    assert!(trace::tracedat::cut(&file, &file, Span { from_ns: 0, to_ns: 1 }).is_err());
    assert_eq!(std::fs::metadata(&file).unwrap().len(), before);
}

#[test]
#[ignore = "torture"]
fn ticks_without_a_scale_are_cut_by_the_fitted_clock() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("KVMSCOPE_SHARED").map_or(beside, PathBuf::from);
    let file = shared.join("traces/svm_linux_l0.dat");
    if !file.exists() {
        println!("skipped: {} is not there; KVMSCOPE_SHARED names the directory above `traces`", file.display());
        return;
    }
    let trace = trace::tracedat::open(&file).unwrap();
    assert_eq!(trace.facts().clock.source, ClockSource::None);
    assert!(check(&file, Span { from_ns: 30_000_000_000, to_ns: 30_100_000_000 }) > 1_000);
}
