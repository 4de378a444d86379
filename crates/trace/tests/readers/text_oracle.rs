//! Printed traces of the bundled recordings and of larger ones, against an independent reading of `trace-cmd report -R`.
//!
//! Truth: `report -R` prints every field as key=value, which a few lines of splitting here read without any pattern.
//! Then the same events must come out of the pretty printed text (`report`, `-N`, `-t`, `-l`) as far as it tells them,
//! and the counts must be those known of the recordings. Skipped, with the reason, where file or trace-cmd are missing.

use kvmscope_trace::batch::LOST;
use kvmscope_trace::{Batch, FieldKind, Reading, Request, Trace, text};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A bundled recording.
fn fixture(name: &str) -> Result<PathBuf, String> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name).join("L0/trace.dat"))
}

/// A larger recording, which is not bundled, or the reason why there is none.
fn recording(name: &str) -> Result<PathBuf, String> {
    let shared = std::env::var_os("KVMSCOPE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let file = shared.join("traces").join(name);
    if file.exists() { Ok(file) } else { Err(format!("{} is not there", file.display())) }
}

/// The first lines of `trace-cmd report`.
fn report(recording: &Path, options: &[&str], dir: &Path, most_lines: usize) -> Result<PathBuf, String> {
    let text = dir.join(format!("report{}.txt", options[..options.len().min(1)].concat()));
    let mut out = BufWriter::new(std::fs::File::create(&text).map_err(|error| error.to_string())?);
    let mut child = Command::new("trace-cmd")
        .arg("report")
        .args(options)
        .arg("-i")
        .arg(recording)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("trace-cmd: {error}"))?;
    let printed = BufReader::new(child.stdout.take().unwrap());
    for line in printed.split(b'\n').take(most_lines) {
        out.write_all(&line.unwrap()).and_then(|()| out.write_all(b"\n")).unwrap();
    }
    out.flush().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    Ok(text)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    name: String,
    time_ns: u64,
    cpu: u32,
    tid: i32,
    numbers: BTreeMap<String, u64>,
    texts: BTreeMap<String, String>,
}

/// All events that our reader gives.
fn ours(file: &Path) -> Vec<Event> {
    let trace = text::open(file).unwrap();
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted: None };
    let mut events = Vec::new();
    for lane in trace.lanes(&reading) {
        for batch in lane.source.batches(trace.facts().event_types.len()) {
            assert!(batch.problems.is_empty(), "{:?}", batch.problems);
            events
                .extend((0..batch.len()).filter(|at| batch.rows[*at].kind != LOST).map(|at| one(&*trace, &batch, at)));
        }
    }
    events
}

fn one(trace: &dyn Trace, batch: &Batch, at: usize) -> Event {
    let types = &trace.facts().event_types[usize::from(batch.rows[at].kind)];
    let values = &batch.values[batch.rows[at].start as usize..];
    let mut event = Event {
        name: types.name.clone(),
        time_ns: batch.rows[at].time_ns,
        cpu: batch.rows[at].cpu,
        tid: batch.rows[at].tid,
        numbers: BTreeMap::new(),
        texts: BTreeMap::new(),
    };
    for (index, field) in types.fields.iter().enumerate().filter(|(index, _)| values[0] >> index & 1 == 1) {
        let value = values[1 + index];
        if field.kind == FieldKind::Text {
            let content = String::from_utf8_lossy(batch.content(value)).into_owned();
            event.texts.insert(field.name.clone(), content);
        } else {
            event.numbers.insert(field.name.clone(), value);
        }
    }
    event
}

/// Fields whose `print fmt` in the recordings says `%x` and not `0x%x`; `report -R` prints them likewise.
const BARE_HEX: [(&str, &str); 7] = [
    ("kvm_msr", "ecx"),
    ("kvm_cpuid", "function index rax rbx rcx rdx"),
    ("kvm_nested_intercepts", "cr_read cr_write exceptions intercept1 intercept2 intercept3"),
    ("kvm_apic_accept_irq", "apicid"),
    ("kvm_eoi", "apicid"),
    ("kvm_pv_eoi", "apicid"),
    ("kvm_emulate_insn", "rip csbase"),
];

/// An independent reading of `report -R`, in which numbers stand among the texts as well: fixed columns, then words with `=`.
fn theirs(file: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().filter(|line| line.contains("[0")).map(their_line).collect()
}

fn their_line(line: &str) -> Event {
    let (thread, rest) = line.split_at(line.find(" [0").unwrap());
    let (_, tid) = thread.trim().rsplit_once('-').unwrap();
    let (cpu, rest) = rest[2..].split_once(']').unwrap();
    let mut words = rest.split_whitespace();
    let time = words.next().unwrap().trim_end_matches(':');
    let time_ns = match time.split_once('.') {
        Some((seconds, micros)) => {
            seconds.parse::<u64>().unwrap() * 1_000_000_000 + format!("{micros:0<9}").parse::<u64>().unwrap()
        }
        None => time.parse().unwrap(),
    };
    let name = words.next().unwrap().trim_end_matches(':').to_owned();
    let mut values: Vec<(String, String)> = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((key, value)) => values.push((key.to_owned(), value.to_owned())),
            // A word of a thread's name.
            None => values.last_mut().unwrap().1.push_str(&format!(" {word}")),
        }
    }
    let (mut numbers, mut texts) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in values {
        let number = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None if is_bare_hex(&name, &key) => u64::from_str_radix(&value, 16).ok(),
            None => value.parse().ok().or_else(|| value.parse().ok().map(|number: i64| number as u64)),
        };
        numbers.extend(number.map(|number| (key.clone(), number)));
        texts.insert(key, value);
    }
    Event { name, time_ns, cpu: cpu.parse().unwrap(), tid: tid.parse().unwrap(), numbers, texts }
}

fn is_bare_hex(event: &str, field: &str) -> bool {
    BARE_HEX.iter().any(|(name, fields)| *name == event && fields.split(' ').any(|known| known == field))
}

/// Names of fields that pretty text has beside or in place of numbers.
const NAMES_ONLY: [&str; 9] = [
    "reg_name",
    "exit_reason_name",
    "exit_code_name",
    "reason_name",
    "prev_state_text",
    "action",
    "guest_pgd_name",
    "dm_name",
    "tm_name",
];

/// Compares `recording` in all printed forms; returns how many events each kind has.
fn compare(
    recording: &Path,
    raw: &[&str],
    forms: &[&[&str]],
    most_lines: usize,
) -> Result<BTreeMap<String, usize>, String> {
    let dir = TempDir::new().unwrap();
    let raw = report(recording, raw, dir.path(), most_lines)?;
    let (raw_ours, raw_theirs) = (ours(&raw), theirs(&raw));
    assert_eq!(raw_ours.len(), raw_theirs.len(), "events of {}", recording.display());
    for (ours, theirs) in raw_ours.iter().zip(&raw_theirs) {
        assert_eq!(
            (&ours.name, ours.time_ns, ours.cpu, ours.tid),
            (&theirs.name, theirs.time_ns, theirs.cpu, theirs.tid)
        );
        assert_eq!(ours.numbers.len() + ours.texts.len(), theirs.texts.len(), "{ours:?} {theirs:?}");
        for (name, number) in &ours.numbers {
            assert_eq!(Some(number), theirs.numbers.get(name), "{name}: {ours:?} {theirs:?}");
        }
        for (name, text) in &ours.texts {
            assert_eq!(Some(text), theirs.texts.get(name), "{name}: {ours:?} {theirs:?}");
        }
    }
    for options in forms {
        let pretty = ours(&report(recording, options, dir.path(), most_lines)?);
        assert_eq!(pretty.len(), raw_ours.len(), "events of {} {options:?}", recording.display());
        for (pretty, raw) in pretty.iter().zip(&raw_ours) {
            compare_pretty(pretty, raw, options.contains(&"-t"));
        }
    }
    let mut counts = BTreeMap::new();
    for event in raw_ours {
        *counts.entry(event.name).or_default() += 1;
    }
    Ok(counts)
}

fn compare_pretty(pretty: &Event, raw: &Event, whole_time: bool) {
    let context = || format!("{pretty:#?}\n{raw:#?}");
    assert_eq!((&pretty.name, pretty.cpu, pretty.tid), (&raw.name, raw.cpu, raw.tid), "{}", context());
    let micros = |time_ns: u64| if whole_time { (time_ns + 500) / 1000 } else { time_ns / 1000 };
    assert!(micros(pretty.time_ns).abs_diff(raw.time_ns / 1000) <= u64::from(whole_time), "{}", context());
    // What an answer needs must be there. Events without patterns print what they like.
    let needed: &[&str] = match &*raw.name {
        "kvm_exit" => &["guest_rip", "info1", "info2"],
        "kvm_entry" => &["vcpu_id", "rip"],
        "kvm_nested_vmexit" => &["guest_rip", "info1", "info2", "vcpu_id", "intr_info", "error_code"],
        "kvm_nested_vmexit_inject" => &["exit_info1", "exit_info2", "exit_int_info"],
        "kvm_nested_vmenter" => &["rip", "vmcb", "nested_rip", "guest_pgd", "tdp_enabled"],
        "kvm_pio" => &["rw", "port", "size", "count", "val"],
        "kvm_msr" => &["write", "ecx", "data"],
        "kvm_cpuid" => &["function", "rax", "rbx", "rcx", "rdx", "found"],
        "kvm_page_fault" => &["vcpu_id", "guest_rip", "fault_address", "error_code"],
        "kvm_userspace_exit" if raw.numbers["errno"] as i64 >= 0 => &["reason"],
        "sched_switch" => &["prev_pid", "prev_prio", "next_pid", "next_prio"],
        "sched_waking" => &["pid", "prio", "target_cpu"],
        "irq_handler_entry" | "irq_handler_exit" => &["irq"],
        "kvm_apic" => &["rw", "val"],
        "kvm_eoi" | "kvm_pv_eoi" => &["apicid", "vector"],
        "kvm_apic_accept_irq" => &["apicid", "vec"],
        "kvm_inj_virq" => &["vector", "soft"],
        "kvm_set_irq" => &["gsi", "level", "irq_source_id"],
        "kvm_mmio" => &["type", "len", "gpa", "val"],
        "kvm_nested_intercepts" => &["cr_read", "exceptions", "intercept1", "intercept3"],
        "kvm_nested_intr_vmexit" => &["rip"],
        "kvm_vcpu_wakeup" => &["ns", "waited", "valid"],
        "kvm_halt_poll_ns" => &["grow", "vcpu_id", "new", "old"],
        "kvm_write_tsc_offset" => &["vcpu_id", "previous_tsc_offset", "next_tsc_offset"],
        "kvm_hypercall" => &["nr", "a0", "a3"],
        "softirq_entry" | "softirq_exit" | "softirq_raise" => &["vec"],
        "hrtimer_expire_entry" => &["now"],
        _ => return,
    };
    for (name, value) in &pretty.numbers {
        assert_eq!(Some(value), raw.numbers.get(name), "{name}: {}", context());
    }
    for (name, value) in &pretty.texts {
        if !NAMES_ONLY.contains(&&**name) && name != "function" {
            assert_eq!(Some(value), raw.texts.get(name), "{name}: {}", context());
        }
    }
    for name in needed {
        assert!(pretty.numbers.contains_key(*name), "{name}: {}", context());
    }
}

fn check(file: Result<PathBuf, String>, forms: &[&[&str]], known: &[(&str, usize)]) {
    match file.and_then(|file| compare(&file, &["-R"], forms, usize::MAX)) {
        Ok(counts) => {
            for (event, count) in known {
                assert_eq!(counts.get(*event), Some(count), "{event}");
            }
        }
        Err(reason) => println!("skipped: {reason}"),
    }
}

/// What the toys do not have: interrupts and halts, and SVM's nested details.
const RARE: [&str; 2] = [
    "kvm_inj_virq,kvm_apic_accept_irq,kvm_apic,kvm_eoi,kvm_pv_eoi,kvm_vcpu_wakeup,kvm_halt_poll_ns,kvm_hypercall,kvm_mmio",
    "kvm_nested_vmenter,kvm_nested_intercepts,kvm_nested_intr_vmexit",
];

const MOST_LINES: usize = 60_000;

const ALL_FORMS: &[&[&str]] = &[&[], &["-N"], &["-t"], &["-l"]];

#[test]
fn the_svm_toy() {
    let known = [
        ("kvm_entry", 1828),
        ("kvm_exit", 1828),
        ("kvm_nested_vmenter", 300),
        ("kvm_nested_vmexit", 607),
        ("kvm_nested_vmexit_inject", 300),
        ("kvm_pio", 299),
        ("sched_switch", 105),
    ];
    check(fixture("nested-svm-toy"), ALL_FORMS, &known);
}

#[test]
fn the_vmx_toy_with_shadowing() {
    let known = [("kvm_entry", 588), ("kvm_exit", 588), ("kvm_nested_vmenter", 100), ("kvm_nested_vmexit", 202)];
    check(fixture("nested-vmx-shadow-on"), ALL_FORMS, &known);
}

#[test]
fn the_vmx_toy_without_shadowing() {
    let known = [("kvm_entry", 2644), ("kvm_exit", 2644), ("kvm_nested_vmexit_inject", 149), ("sched_switch", 225)];
    check(fixture("nested-vmx-shadow-off-hog"), ALL_FORMS, &known);
}

#[test]
#[ignore = "torture"]
fn linux_under_linux_as_its_first_level_saw_it() {
    check(recording("svm_linux_l1.dat"), &[&[]], &[("kvm_exit", 43_249)]);
}

#[test]
#[ignore = "torture"]
fn what_only_a_linux_under_linux_does() {
    for rare in RARE {
        let (raw, pretty, names) = (["-R", "-F", rare], ["-F", rare], ["-N", "-F", rare]);
        match recording("svm_linux_l0.dat").and_then(|file| compare(&file, &raw, &[&pretty, &names], MOST_LINES)) {
            Ok(counts) => {
                for event in rare.split(',').filter(|event| *event != "kvm_eoi") {
                    assert!(counts.contains_key(event), "{event} in {counts:?}");
                }
                println!("{rare}: {} events equal", counts.values().sum::<usize>());
            }
            Err(reason) => println!("skipped: {reason}"),
        }
    }
}
