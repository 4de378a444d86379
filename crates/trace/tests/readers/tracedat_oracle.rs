//! Does every event decode as `trace-cmd report -R -t` prints it?
//!
//! `-R` prints each field by its description in the file, `-t` whole time stamps. Compared for every event, in order:
//! thread, CPU, time, name, and all fields: integers, characters, byte arrays. trace-cmd takes the base of an integer
//! from the print format and leaves the `0x` out of `%lx`, so a field may be decimal or hexadecimal, but the same in
//! the whole file. Marks of lost events are compared too. Not compared: [`COMPUTED`].

use base::ClockSource;
use kvmscope_trace::{self as trace, Event, EventType, FieldKind, FieldType, Listener, Reading, Request, Trace};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

/// Fields in whose place trace-cmd 3.1.6 prints what the print format computes from them: `(u8)(REC->e >> 56)`, `(u8)REC->icr_low`.
const COMPUTED: &[(&str, &str)] = &[("kvm_ioapic_set_irq", "e"), ("kvm_apic_ipi", "icr_low")];

#[derive(Debug, Default, PartialEq, Eq)]
struct Compared {
    events: u64,
    losses: u64,
    integers: u64,
    texts: u64,
    arrays: u64,
    computed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Decimal,
    Hexadecimal,
}

/// Reads trace-cmd's lines in step with the events of a replay.
struct Oracle<'a> {
    lines: Lines<BufReader<ChildStdout>>,
    types: &'a [EventType],
    /// Nanoseconds are printed as seconds and a fraction, ticks as they are.
    in_ns: bool,
    /// By event and field: the bases in which all values so far make sense.
    bases: BTreeMap<(usize, usize), Vec<Base>>,
    compared: Compared,
}

impl Oracle<'_> {
    fn line(&mut self) -> String {
        loop {
            let line = self.lines.next().expect("as many lines as events").expect("trace-cmd's output");
            if is_of_an_event(&line) {
                return line;
            }
        }
    }

    fn compare(&mut self, event: &Event<'_>, line: &str) -> Result<(), String> {
        let kind = usize::from(event.kind);
        let types = self.types;
        let printed = Printed::parse(line).ok_or("not a line of an event")?;
        let (seconds, fraction) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000);
        let time = if self.in_ns { format!("{seconds}.{fraction:09}") } else { event.time_ns.to_string() };
        let ours = (event.tid, event.cpu, time.as_str(), types[kind].name.as_str());
        if ours != (printed.tid, printed.cpu, printed.time, printed.name) {
            return Err(format!("{ours:?}"));
        }
        let mut rest = printed.fields;
        for (index, field) in types[kind].fields.iter().enumerate() {
            let start = format!("{}=", field.name);
            rest = rest.trim_start().strip_prefix(&start).ok_or_else(|| format!("{start} expected at {rest:?}"))?;
            let next = types[kind].fields.get(index + 1).map(|next| format!(" {}=", next.name));
            let end = next.and_then(|next| rest.find(&next)).unwrap_or(rest.len());
            let told = self.field((kind, index), field, event, &rest[..end]);
            told.map_err(|ours| format!("{}: {ours}, printed {:?}", field.name, &rest[..end]))?;
            rest = &rest[end..];
        }
        if rest.trim().is_empty() { Ok(()) } else { Err(format!("{rest:?} is left of the line")) }
    }

    fn field(
        &mut self,
        key: (usize, usize),
        field: &FieldType,
        event: &Event<'_>,
        printed: &str,
    ) -> Result<(), String> {
        let value = event.get(key.1).ok_or("it is absent")?;
        if COMPUTED.contains(&(self.types[key.0].name.as_str(), field.name.as_str())) {
            self.compared.computed += 1;
            return Ok(());
        }
        let content = || event.content(key.1).unwrap_or_default();
        let same = match field.kind {
            FieldKind::Unsigned | FieldKind::Signed => {
                self.compared.integers += 1;
                let bases = self.bases.entry(key).or_insert_with(|| vec![Base::Decimal, Base::Hexadecimal]);
                bases.retain(|base| is_printed_as(value, field.kind, printed.trim_end(), *base));
                !bases.is_empty()
            }
            FieldKind::Text => {
                self.compared.texts += 1;
                String::from_utf8_lossy(content()) == printed
            }
            FieldKind::Bytes => {
                self.compared.arrays += 1;
                array(printed).as_deref() == Some(content())
            }
            FieldKind::Float => return Err("no such field is in trace.dat".into()),
        };
        if same { Ok(()) } else { Err(format!("value {value:#x}, content {:02x?}", content())) }
    }
}

impl Listener for Oracle<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let line = self.line();
        if event.is_loss() {
            let dropped = match event.or_zero(0) {
                0 => "[EVENTS DROPPED]".to_owned(),
                events => format!("[{events} EVENTS DROPPED]"),
            };
            assert_eq!(line.trim(), format!("CPU:{} {dropped}", event.cpu));
            self.compared.losses += 1;
            return;
        }
        if let Err(ours) = self.compare(event, &line) {
            panic!("event {}: {ours}; trace-cmd prints:\n{line}", self.compared.events);
        }
        self.compared.events += 1;
    }
}

/// One line, such as `nest-98    [000]     9.280414620: sched_waking:          comm=rcu pid=15`.
struct Printed<'l> {
    tid: i32,
    cpu: u32,
    time: &'l str,
    name: &'l str,
    fields: &'l str,
}

impl<'l> Printed<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        // A thread may have brackets in its name; behind the CPU's ones stand a number and a colon.
        line.match_indices('[').find_map(|(at, _)| {
            let (cpu, rest) = line[at + 1..].split_once(']')?;
            let (time, rest) = rest.split_once(": ")?;
            let time = time.trim();
            if time.is_empty() || !time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
                return None;
            }
            let (name, fields) = rest.trim_start().split_once(':')?;
            let tid = line[..at].trim().rsplit_once('-')?.1.parse().ok()?;
            Some(Self { tid, cpu: cpu.parse().ok()?, time, name, fields })
        })
    }
}

fn is_of_an_event(line: &str) -> bool {
    !line.starts_with("cpus=") && !line.trim().is_empty()
}

fn is_printed_as(value: u64, kind: FieldKind, printed: &str, base: Base) -> bool {
    // trace-cmd prints a negative number of one byte as 255, and in hexadecimal any in the width of its type.
    let widths = [8, 16, 32].into_iter().filter(|bits| value as i64 >> (bits - 1) == -1);
    let mut forms = widths.map(|bits| value & ((1 << bits) - 1)).chain([value]);
    let parsed = match base {
        Base::Decimal if kind == FieldKind::Signed && printed.starts_with('-') => {
            return printed.parse() == Ok(value as i64);
        }
        Base::Decimal => printed.parse(),
        Base::Hexadecimal => u64::from_str_radix(printed.strip_prefix("0x").unwrap_or(printed), 16),
    };
    parsed.is_ok_and(|parsed| forms.any(|form| form == parsed))
}

/// The bytes of `ARRAY[0f, 20, c1]`.
fn array(printed: &str) -> Option<Vec<u8>> {
    let elements = printed.trim().strip_prefix("ARRAY[")?.strip_suffix(']')?;
    elements.split(", ").map(|element| u8::from_str_radix(element, 16).ok()).collect()
}

fn compare(path: &Path) -> Compared {
    let trace = trace::tracedat::open(path).unwrap();
    let facts = trace.facts();
    let mut child = Command::new("trace-cmd")
        .args(["report", "-R", "-t", "-i"])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request = Request::everything(facts);
    let mut oracle = Oracle {
        lines: BufReader::new(child.stdout.take().unwrap()).lines(),
        types: &facts.event_types,
        in_ns: facts.clock.source != ClockSource::None,
        bases: BTreeMap::new(),
        compared: Compared::default(),
    };
    let totals = trace::replay(&trace, &Reading { request: &request, fitted: None }, &mut oracle);
    let left = oracle.lines.map_while(Result::ok).filter(|line| is_of_an_event(line)).count();
    assert_eq!(left, 0, "{}: trace-cmd prints more lines than we have events", path.display());
    assert!(child.wait().unwrap().success());
    assert_eq!(oracle.compared.events, totals.events());
    assert!(facts.problems.is_empty() && totals.problems.is_empty(), "{:?}", totals.problems.list());
    println!("{}: {:?}", path.display(), oracle.compared);
    oracle.compared
}

/// True if the oracle is there; else says what brings it.
fn has_trace_cmd() -> bool {
    let found = Command::new("trace-cmd").arg("--version").output().is_ok();
    if !found {
        println!("skipped: trace-cmd does not start; the Debian package trace-cmd brings it");
    }
    found
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name).join("trace.dat")
}

#[test]
fn the_fixtures_decode_as_trace_cmd_prints_them() {
    if !has_trace_cmd() {
        return;
    }
    for (name, events) in [
        ("nested-svm-toy/L0", 5_939),
        ("nested-vmx-shadow-on/L0", 2_022),
        ("nested-vmx-shadow-off-hog/L0", 6_644),
        ("svm-linux/L0", 62_839),
        ("svm-linux/L1", 13_995),
        ("vmx-linux-shadow-on/L0", 19_730),
        ("vmx-linux-shadow-on/L1", 4_074),
        ("vmx-linux-shadow-off/L0", 39_717),
        ("vmx-linux-shadow-off/L1", 4_184),
    ] {
        let compared = compare(&fixture(name));
        assert_eq!(compared.events, events, "{name}");
        assert!(compared.integers > 3 * events && compared.texts > 0, "{name}: {compared:?}");
    }
}

#[test]
#[ignore = "torture"]
fn the_large_recordings_decode_as_trace_cmd_prints_them() {
    if !has_trace_cmd() {
        return;
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("KVMSCOPE_SHARED").map_or(beside, PathBuf::from).join("traces");
    for (name, events) in [("svm_linux_l1.dat", 314_649), ("svm_linux_l0.dat", 2_912_733)] {
        let path = shared.join(name);
        if !path.exists() {
            println!("skipped: {} is not there; KVMSCOPE_SHARED names the directory above `traces`", path.display());
            continue;
        }
        let compared = compare(&path);
        assert_eq!(compared.events, events, "{name}");
        assert!(compared.arrays > 0, "{name}: {compared:?}");
    }
}
