//! Every event and every field of fresh recordings, compared with `perf script`.
//!
//! `perf script -s` hands each sample to a Python function, which prints it as a line of JSON; its field values come
//! from libtraceevent. Skipped, with the reason, where perf cannot record tracepoints or has no Python.

use kvmscope_trace::{Batch, EventType, FieldKind, Reading, Request, Trace, perfdata};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const DUMP: &str = r#"
import json
def say(name, fields, sample):
    at = sample['sample']
    print(json.dumps([name, at['time'], at['cpu'], at['tid'], fields], default=str))
def trace_unhandled(name, context, fields, sample):
    say(name.replace('__', ':', 1), fields, sample)
def process_event(event):
    if 'raw_buf' in event and 'ev_name' in event and ':' not in event['ev_name']:
        say('perf:' + event['ev_name'].split(':')[0],
            {'ip': event['sample']['ip'], 'pid': event['sample']['pid'], 'period': event['sample']['period'],
             'cpumode': event['sample']['cpumode'] if 'cpumode' in event['sample'] else None,
             'callchain': [frame['ip'] for frame in event['callchain']]}, event)
"#;

/// A recording made by perf, or the reason why there is none.
pub(super) fn record(dir: &Path, args: &[&str]) -> Result<PathBuf, String> {
    let file = dir.join("perf.data");
    let to_pipe = args.contains(&"-");
    let mut command = Command::new("perf");
    command.arg("record").args(args);
    if !to_pipe {
        command.arg("-o").arg(&file);
    }
    let output = command
        .args(["--", "sh", "-c", "for i in 1 2 3 4; do sleep 0.02; done"])
        .output()
        .map_err(|error| format!("perf: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    if to_pipe {
        std::fs::write(&file, &output.stdout).map_err(|error| error.to_string())?;
    }
    Ok(file)
}

/// What perf script says of each sample: name, time, CPU, tid, fields.
fn perf_script(file: &Path) -> Result<Vec<Value>, String> {
    let script = file.with_file_name("dump.py");
    std::fs::write(&script, DUMP).map_err(|error| error.to_string())?;
    let output = Command::new("perf")
        .args(["script", "-i"])
        .arg(file)
        .arg("-s")
        .arg(&script)
        .output()
        .map_err(|error| format!("perf: {error}"))?;
    let lines: Vec<Value> =
        output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    if lines.is_empty() {
        return Err(format!("perf script prints nothing: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(lines)
}

/// One event of ours: name, time, CPU, tid, and its fields.
type Ours = (String, u64, u32, i32, Vec<(String, FieldKind, Option<u64>, Vec<u8>)>);

fn ours(trace: &dyn Trace) -> Vec<Ours> {
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted: None };
    let mut events = Vec::new();
    for lane in trace.lanes(&reading) {
        for batch in lane.source.batches(trace.facts().event_types.len()) {
            assert!(batch.problems.is_empty(), "{:?}", batch.problems);
            let wanted = (0..batch.len()).filter(|at| batch.rows[*at].kind != kvmscope_trace::batch::LOST);
            events.extend(wanted.map(|at| one(&batch, at, &trace.facts().event_types)));
        }
    }
    events
}

fn one(batch: &Batch, at: usize, types: &[EventType]) -> Ours {
    let event = &types[usize::from(batch.rows[at].kind)];
    let start = batch.rows[at].start as usize;
    let mask = batch.values[start];
    let fields = event.fields.iter().enumerate().map(|(index, field)| {
        let value = (mask >> index & 1 == 1).then(|| batch.values[start + 1 + index]);
        let content = match field.kind {
            FieldKind::Text | FieldKind::Bytes => batch.content(value.unwrap_or(0)).to_vec(),
            _ => Vec::new(),
        };
        (field.name.clone(), field.kind, value, content)
    });
    let name = format!("{}:{}", event.system, event.name);
    (name, batch.rows[at].time_ns, batch.rows[at].cpu, batch.rows[at].tid, fields.collect())
}

/// Compares all samples; returns how many events and fields were equal.
fn compare(file: &Path, theirs: &[Value]) -> (usize, usize) {
    let trace = perfdata::open(file).unwrap();
    assert!(trace.facts().problems.is_empty(), "{:?}", trace.facts().problems);
    let mut ours = ours(&*trace);
    ours.retain(|(name, ..)| name != "perf:comm");
    assert_eq!(ours.len(), theirs.len(), "events in {}", file.display());
    // perf and we may order events of the same nanosecond differently.
    ours.sort_by_key(|(name, time, cpu, ..)| (*time, *cpu, name.clone()));
    let mut theirs: Vec<&Value> = theirs.iter().collect();
    theirs.sort_by_key(|event| (event[1].as_u64(), event[2].as_u64(), event[0].as_str()));
    let mut fields_equal = 0;
    for ((name, time, cpu, tid, fields), event) in ours.iter().zip(theirs) {
        // perf prints -1 unsigned; the tracepoint's own record still knows the thread.
        let their_tid = match event[3].as_i64() {
            Some(-1 | 0xffff_ffff) => event[4]["common_pid"].as_i64().or(Some(-1)),
            tid => tid,
        };
        let head = (event[0].as_str(), event[1].as_u64(), event[2].as_u64(), their_tid);
        assert_eq!(
            (Some(name.as_str()), Some(*time), Some(u64::from(*cpu)), Some(i64::from(*tid))),
            (head.0, head.1, if name.starts_with("perf:") { Some(u64::from(*cpu)) } else { head.2 }, head.3)
        );
        for (field, kind, value, content) in fields {
            let Some(expected) = event[4].get(field.as_str()) else { continue };
            match kind {
                FieldKind::Unsigned | FieldKind::Signed => {
                    let expected = expected.as_i64().map_or_else(|| expected.as_u64(), |number| Some(number as u64));
                    if expected.is_none() {
                        continue;
                    }
                    assert_eq!(*value, expected, "{name}.{field} at {time}");
                }
                FieldKind::Text => {
                    assert_eq!(expected.as_str(), Some(&*String::from_utf8_lossy(content)), "{name}.{field} at {time}");
                }
                _ if field == "callchain" => {
                    let words = content.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
                    // perf leaves out the markers that say whose frames follow, -1 to -4095, and all frames where one of
                    // them is not the hypervisor's, the kernel's or the program's: a guest was running
                    // (add_callchain_ip in tools/perf/util/machine.c, Linux 6.1).
                    let (frames, markers): (Vec<u64>, Vec<u64>) =
                        words.partition(|word| *word < 4095u64.wrapping_neg());
                    let discards = |marker: &u64| ![32, 128, 512].contains(&marker.wrapping_neg());
                    let frames = if markers.iter().any(discards) { Vec::new() } else { frames };
                    let theirs: Vec<u64> = expected.as_array().unwrap().iter().filter_map(Value::as_u64).collect();
                    assert_eq!(frames, theirs, "{name}.{field} at {time}");
                }
                _ => continue,
            }
            fields_equal += 1;
        }
    }
    (ours.len(), fields_equal)
}

fn check(name: &str, args: &[&str]) {
    let dir = TempDir::new().unwrap();
    let outcome = record(dir.path(), args).and_then(|file| perf_script(&file).map(|theirs| (file, theirs)));
    match outcome {
        Ok((file, theirs)) => {
            let (events, fields) = compare(&file, &theirs);
            assert!(events > 20 && fields > events, "{name}: only {events} events, {fields} fields");
            println!("{name}: {events} events, {fields} fields equal");
        }
        Err(reason) => println!("skipped: {name}: {}", reason.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

const TRACEPOINTS: &str = "sched:*,irq_vectors:local_timer_entry,irq_vectors:reschedule_entry,timer:hrtimer_start";

#[test]
fn tracepoints_of_a_file_are_what_perf_script_prints() {
    check("file", &["-a", "-e", TRACEPOINTS]);
}

#[test]
fn tracepoints_of_a_compressed_file_are_what_perf_script_prints() {
    check("compressed", &["-a", "-z", "-e", TRACEPOINTS, "-e", "kvm:*"]);
}

#[test]
fn tracepoints_of_a_pipe_are_what_perf_script_prints() {
    check("pipe", &["-a", "-o", "-", "-e", TRACEPOINTS]);
}

#[test]
fn tracepoints_on_another_clock_with_stacks_are_what_perf_script_prints() {
    check("clock", &["-a", "-g", "-k", "CLOCK_MONOTONIC", "-e", "sched:sched_switch,sched:sched_waking"]);
    check("tai", &["-a", "-k", "CLOCK_TAI", "-e", "sched:sched_switch,sched:sched_waking"]);
}

#[test]
fn sampled_stacks_are_what_perf_script_prints() {
    check("stacks", &["-a", "-g", "-F", "999", "-e", "cpu-clock"]);
}

#[test]
fn facts_say_where_and_how_it_was_recorded() {
    let dir = TempDir::new().unwrap();
    let file = match record(dir.path(), &["-a", "-k", "CLOCK_MONOTONIC", "-e", "sched:sched_switch"]) {
        Ok(file) => file,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let trace = perfdata::open(&file).unwrap();
    let facts = trace.facts();
    let says = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap().trim().to_owned();
    assert_eq!(facts.clock.name, "monotonic");
    assert_eq!(facts.hostname, Some(says("hostname")));
    assert!(facts.uname.as_ref().is_some_and(|uname| uname.starts_with(&says("osrelease"))));
    assert!(facts.cpus > 0 && facts.env["cmdline"].contains("sched:sched_switch"));
    assert_eq!(facts.comms[&1], std::fs::read_to_string("/proc/1/comm").unwrap().trim());
}
