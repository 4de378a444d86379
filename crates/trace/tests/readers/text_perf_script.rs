//! What `perf script` prints of a fresh recording is what its perf.data holds: both are read and compared.
//!
//! Skipped, with the reason, where perf cannot record tracepoints.

use kvmscope_trace::{Batch, FieldKind, Reading, Request, Trace, perfdata, text};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Name, time, CPU, tid, numbers.
type Event = (String, u64, u32, i32, BTreeMap<String, u64>);

fn events(trace: &dyn Trace) -> Vec<Event> {
    let request = Request::everything(trace.facts());
    let reading = Reading { request: &request, fitted: None };
    let mut events = Vec::new();
    for lane in trace.lanes(&reading) {
        let batches = lane.source.batches(trace.facts().event_types.len());
        batches.for_each(|batch| take_in(&mut events, trace, &batch));
    }
    events.sort_by_key(|(name, time, cpu, ..)| (*time, *cpu, name.clone()));
    events
}

fn take_in(events: &mut Vec<Event>, trace: &dyn Trace, batch: &Batch) {
    assert!(batch.problems.is_empty(), "{:?}", batch.problems);
    for at in 0..batch.len() {
        let kind = &trace.facts().event_types[usize::from(batch.rows[at].kind)];
        let values = &batch.values[batch.rows[at].start as usize..];
        let fields = kind.fields.iter().enumerate().filter(|(index, field)| {
            values[0] >> index & 1 == 1 && matches!(field.kind, FieldKind::Unsigned | FieldKind::Signed)
        });
        let numbers = fields.map(|(index, field)| (field.name.clone(), values[1 + index])).collect();
        let name = format!("{}:{}", kind.system, kind.name);
        events.push((name, batch.rows[at].time_ns, batch.rows[at].cpu, batch.rows[at].tid, numbers));
    }
}

/// Records and prints; the text and the recording.
fn record(dir: &Path) -> Result<(std::path::PathBuf, std::path::PathBuf), String> {
    let run = |args: &[&str]| -> Result<Vec<u8>, String> {
        let output = Command::new("perf").args(args).current_dir(dir).output().map_err(|error| error.to_string())?;
        if output.status.success() { Ok(output.stdout) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
    };
    let events = "sched:sched_switch,sched:sched_waking,sched:sched_migrate_task,irq:softirq_entry,irq:softirq_exit";
    run(&["record", "-a", "-e", events, "-o", "perf.data", "--", "sh", "-c", "for i in 1 2 3 4; do sleep 0.02; done"])?;
    let printed = run(&["script", "-i", "perf.data", "--ns", "-F", "comm,pid,tid,cpu,time,event,trace"])?;
    let text = dir.join("script.txt");
    std::fs::write(&text, printed).map_err(|error| error.to_string())?;
    Ok((dir.join("perf.data"), text))
}

#[test]
fn printed_and_recorded_events_are_the_same() {
    let dir = tempfile::TempDir::new().unwrap();
    let (data, printed) = match record(dir.path()) {
        Ok(files) => files,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let printed = text::open(&printed).unwrap();
    assert_eq!(printed.facts().env["time_digits"], "9");
    let printed = events(&*printed);
    let mut recorded = events(&*perfdata::open(&data).unwrap());
    recorded.retain(|(name, ..)| name != "perf:comm");
    assert_eq!(printed.len(), recorded.len());
    for (printed, recorded) in printed.iter().zip(&recorded) {
        // perf prints -1 for a thread that has left its process.
        let tid = if printed.3 == -1 { -1 } else { recorded.3 };
        assert_eq!((&printed.0, printed.1, printed.2, printed.3), (&recorded.0, recorded.1, recorded.2, tid));
        for (name, value) in &printed.4 {
            assert_eq!(Some(value), recorded.4.get(name), "{name} of {printed:?} {recorded:?}");
        }
        assert!(!printed.4.is_empty(), "{printed:?}");
    }
    println!("{} events equal", printed.len());
}
