//! Does a cut hold exactly the records of its window, with the names from before, as `perf script` sees them too?

use super::made::{Bytes, Order, file_form, lost, packed, pipe_form, record, records, sample, see};
use super::oracle::record as perf_record;
use super::support;
use base::Span;
use kvmscope_trace::format::Endian;
use kvmscope_trace::write::perfdata::{PerfData, Style};
use kvmscope_trace::write::{EventSchema, Record, Schema, Sink};
use kvmscope_trace::{Error, Trace, perfdata};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A COMM record: thread 42 is called `name` from `time` on.
fn comm(order: Order, time: u64, name: &str) -> Vec<u8> {
    let mut padded = name.as_bytes().to_vec();
    padded.resize((name.len() + 1).next_multiple_of(8), 0);
    let body = Bytes::new(order).number(42, 4).number(42, 4).raw(&padded);
    let body = body.number(42, 4).number(42, 4).words(&[time, 5]).number(3, 4).number(0, 4);
    record(order, 3, &body.bytes)
}

/// The records of `made` with three names, and what perf counted over the whole recording.
fn named_records(order: Order) -> Vec<u8> {
    let early = [comm(order, 0, "sh"), comm(order, 1003, "qemu"), comm(order, 1015, "CPU 0/KVM")].concat();
    let late = comm(order, 1025, "gone");
    let stated = Bytes::new(order).words(&[9]).number(1, 4).number(1, 4).words(&[0, 5, 0]).bytes;
    [early, records(order), late, record(order, 13, &stated)].concat()
}

/// Cuts a file of these bytes to `from_ns..to_ns` since its first event; returns it with its directory.
fn cut(bytes: &[u8], from_ns: u64, to_ns: u64) -> Result<(TempDir, PathBuf), Error> {
    let directory = TempDir::new().unwrap();
    let (from, to) = (directory.path().join("whole.data"), directory.path().join("cut.data"));
    std::fs::write(&from, bytes).unwrap();
    let problems = perfdata::cut(&from, &to, Span { from_ns, to_ns }).inspect_err(|_| assert!(!to.exists()))?;
    assert!(problems.is_empty(), "{problems:?}");
    Ok((directory, to))
}

/// The first event's time, and the last one's.
fn span(trace: &dyn Trace) -> Option<(u64, u64)> {
    struct Nobody;
    impl kvmscope_trace::Listener for Nobody {
        fn event(&mut self, _: &kvmscope_trace::Event<'_>) {}
    }
    let request = kvmscope_trace::Request::everything(trace.facts());
    let reading = kvmscope_trace::Reading { request: &request, fitted: None };
    kvmscope_trace::replay(trace, &reading, &mut Nobody).span_ns
}

#[test]
fn a_window_of_every_form_holds_its_events_losses_and_names() {
    for order in [Order::Little, Order::Big] {
        let plain = named_records(order);
        let packed = packed(order, &plain);
        for (form, bytes) in [
            ("file", file_form(order, &plain)),
            ("pipe", pipe_form(order, &plain)),
            ("packed file", file_form(order, &packed)),
            ("packed pipe", pipe_form(order, &packed)),
        ] {
            let (_directory, path) = cut(&bytes, 10, 21).unwrap();
            let trace = perfdata::open(&path).unwrap();
            let seen = see(&*trace);
            assert_eq!(seen.times, (1010..=1020).collect::<Vec<_>>(), "{form}");
            assert_eq!((seen.lost, seen.problems), (7, 0), "{form}: the loss of the window, not that of the recording");
            assert_eq!(seen.rips[0], 0x1000 + 1010);
            assert_eq!(trace.facts().comms[&42], "qemu", "{form}: the name at the start of the window");
            assert_eq!(span(&*trace), Some((1010, 1020)), "{form}: names from before are no events");
            let head = std::fs::read(&path).unwrap();
            assert_eq!(head[..16], bytes[..16], "{form} and byte order stay");
        }
    }
}

#[test]
fn stretches_that_follow_one_another_hold_all_of_it() {
    let bytes = file_form(Order::Little, &named_records(Order::Little));
    let times = |from_ns, to_ns| {
        let (_directory, path) = cut(&bytes, from_ns, to_ns).unwrap();
        see(&*perfdata::open(&path).unwrap()).times
    };
    let all = [times(0, 7), times(7, 18), times(18, u64::MAX)].concat();
    assert_eq!(all, (1000..1030).collect::<Vec<_>>());
    assert!(times(500, 600).is_empty());
}

#[test]
fn a_cut_of_a_cut_is_a_cut() {
    let (_directory, once) = cut(&file_form(Order::Big, &named_records(Order::Big)), 5, 25).unwrap();
    let (_again, twice) = cut(&std::fs::read(once).unwrap(), 5, 10).unwrap();
    let trace = perfdata::open(&twice).unwrap();
    assert_eq!((see(&*trace).times, trace.facts().comms[&42].as_str()), ((1010..1015).collect(), "qemu"));
}

#[test]
fn a_hardware_trace_is_refused_and_leaves_no_file() {
    let order = Order::Little;
    let aux = record(order, 71, &Bytes::new(order).words(&[24, 0, 0, 0, 0]).bytes);
    let all = [records(order), aux, vec![0xff; 24], sample(order, 1030, 42, 0)].concat();
    for bytes in [file_form(order, &all), pipe_form(order, &all)] {
        let refused = cut(&bytes, 0, 10).map(drop).unwrap_err().to_string();
        assert!(refused.contains("hardware trace"), "{refused}");
    }
}

#[test]
fn what_is_there_already_is_never_written_over() {
    let directory = TempDir::new().unwrap();
    let whole = directory.path().join("whole.data");
    let bytes = file_form(Order::Little, &records(Order::Little));
    std::fs::write(&whole, &bytes).unwrap();
    perfdata::cut(&whole, &whole, Span { from_ns: 0, to_ns: 5 }).unwrap_err();
    assert_eq!(std::fs::read(&whole).unwrap(), bytes);
}

#[test]
fn samples_of_no_event_and_of_no_time_are_left_out_and_said() {
    let order = Order::Little;
    let late = sample(order, u64::MAX, 7, 3);
    let bytes = file_form(order, &[records(order), late, lost(order, 1030, 1)].concat());
    let directory = TempDir::new().unwrap();
    let (from, to) = (directory.path().join("whole.data"), directory.path().join("cut.data"));
    std::fs::write(&from, bytes).unwrap();
    let problems = perfdata::cut(&from, &to, Span { from_ns: 0, to_ns: u64::MAX }).unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let seen = see(&*perfdata::open(&to).unwrap());
    assert_eq!((seen.times.len(), seen.problems), (30, 0));
}

#[test]
fn damaged_files_are_cut_without_a_panic() {
    let whole = file_form(Order::Little, &packed(Order::Little, &named_records(Order::Little)));
    let directory = TempDir::new().unwrap();
    let (from, to) = (directory.path().join("whole.data"), directory.path().join("cut.data"));
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        std::fs::write(&from, &bytes).unwrap();
        if perfdata::cut(&from, &to, Span { from_ns: 5, to_ns: 25 }).is_ok() {
            perfdata::open(&to).map(|trace| see(&*trace).tally).unwrap();
            std::fs::remove_file(&to).unwrap();
        }
        std::fs::write(&from, &whole[..at]).unwrap();
        if perfdata::cut(&from, &to, Span { from_ns: 5, to_ns: 25 }).is_ok() {
            std::fs::remove_file(&to).unwrap();
        }
    }
}

/// What perf prints of each sample: thread with its name, time, CPU, event; and its fields, or its stack with the files that
/// were mapped there. Without symbols: which one perf finds where none fits depends on the address that it looks up first.
fn script(file: &Path, has_stacks: bool) -> Option<Vec<String>> {
    let mut arguments = vec!["script", "--ns", "-i", file.to_str().unwrap()];
    if has_stacks {
        arguments.extend(["-F", "comm,tid,cpu,time,event,ip,dso"]);
    }
    Some(support::oracle("perf", &arguments)?.lines().map(str::to_owned).collect())
}

/// The time of a line of [`script`], in ns.
fn time_ns(line: &str) -> Option<u64> {
    let (_, behind) = line.split_once("] ")?;
    behind.trim_start().split_once(": ")?.0.replace('.', "").parse().ok()
}

/// Holds the middle third of the samples of `file` against what perf prints of all of it.
fn same_as_perf_script(name: &str, file: &Path, has_stacks: bool) {
    let Some(all) = script(file, has_stacks) else { return };
    let times: Vec<u64> = all.iter().filter_map(|line| time_ns(line)).collect();
    assert!(times.len() > 2, "{name}: perf script printed {} lines: {:?}", all.len(), all.first());
    let (first, _) = span(&*perfdata::open(file).unwrap()).unwrap();
    let times = times[times.len() / 3]..times[times.len() * 2 / 3];
    let window = Span { from_ns: times.start - first, to_ns: times.end - first };
    let to = file.with_file_name(format!("{name}.cut"));
    assert_eq!(perfdata::cut(file, &to, window).unwrap(), []);
    let mut inside = false;
    let expected: Vec<String> = all
        .into_iter()
        .filter(|line| {
            // Lines of a stack belong to the sample before them.
            inside = time_ns(line).map_or(inside, |time| times.contains(&time));
            inside
        })
        .collect();
    assert!(!expected.is_empty(), "{name}");
    support::assert_same(name, &script(&to, has_stacks).unwrap(), &expected);
    println!("{name}: {} lines equal", expected.len());
}

#[test]
fn perf_prints_the_same_of_a_cut_as_of_the_window() {
    let events = "sched:sched_switch,sched:sched_waking,sched:sched_process_exec,timer:hrtimer_start";
    let kinds: [(&str, &[&str]); 5] = [
        ("file", &["-a", "-e", events]),
        ("packed", &["-a", "-z", "-e", events]),
        ("pipe", &["-a", "-o", "-", "-e", events]),
        ("stacks", &["-a", "-g", "-k", "CLOCK_MONOTONIC", "-e", "sched:sched_switch"]),
        ("sampled", &["-a", "-g", "-F", "999", "-e", "cpu-clock"]),
    ];
    for (name, arguments) in kinds {
        let directory = TempDir::new().unwrap();
        match perf_record(directory.path(), arguments) {
            Ok(file) => same_as_perf_script(name, &file, arguments.contains(&"-g")),
            Err(reason) => println!("skipped: {name}: {}", reason.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
}

#[test]
fn perf_reads_cuts_of_both_byte_orders() {
    let directory = TempDir::new().unwrap();
    for endian in [Endian::Little, Endian::Big] {
        let file = directory.path().join(format!("{endian:?}.data"));
        let comms = vec![(170, "CPU 0/KVM".into()), (171, "CPU 1/KVM".into())];
        let style = Style { endian, comms, release: "6.1.0".into(), cpus: 3 };
        let mut sink = Box::new(PerfData::create(&file, &support::schema(), style).unwrap());
        support::records(2_000).iter().for_each(|record| sink.record(record).unwrap());
        sink.finish().unwrap();
        same_as_perf_script(&format!("{endian:?}"), &file, false);
    }
}

/// Ten exits of one vCPU; the first and the last lie outside. `perf kvm stat` reads the reasons of a file that names no
/// processor as those of the processor it runs on.
#[test]
fn perf_kvm_stat_counts_the_exits_of_a_cut() {
    let vendors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_amd = ["AuthenticAMD", "HygonGenuine"].iter().any(|vendor| vendors.contains(vendor));
    // What HLT is called, its number, and the isa that kvm_exit says (1 is VMX, 2 is SVM).
    let (name, reason, isa) = if is_amd { ("hlt", 0x78, 2) } else { ("HLT", 12, 1) };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("kvm.data");
    let entry = EventSchema::declared("kvm", "kvm_entry", "unsigned int vcpu_id; unsigned long rip");
    let exit = EventSchema::declared(
        "kvm",
        "kvm_exit",
        "unsigned int exit_reason; unsigned long guest_rip; u32 isa; u64 info1; u64 info2",
    );
    let comms = vec![(170, "CPU 0/KVM".into())];
    let style = Style { endian: Endian::Little, comms, release: "6.1.0".into(), cpus: 1 };
    let schema = Schema { events: vec![entry, exit] };
    let mut sink = Box::new(PerfData::create(&file, &schema, style).unwrap());
    for round in 0..10u64 {
        let ticks = 1_000_000 * (1 + round);
        let exit = vec![reason.into(), 0x10.into(), isa.into(), 0.into(), 0.into()];
        let entry = vec![0.into(), 0x10.into()];
        for (ticks, event, values) in [(ticks, 1, exit), (ticks + 1_000, 0, entry)] {
            sink.record(&Record { ticks, cpu: 0, tid: 170, event, values }).unwrap();
        }
    }
    sink.finish().unwrap();
    let cut = directory.path().join("cut.data");
    perfdata::cut(&file, &cut, Span { from_ns: 500_000, to_ns: 8_500_000 }).unwrap();
    let mut perf = Command::new("perf");
    let output = match perf.args(["kvm", "-i", cut.to_str().unwrap(), "stat", "report"]).output() {
        Ok(output) => output,
        Err(error) => return println!("skipped: perf: {error}"),
    };
    // It is shown by perf's pager, or on stderr without one.
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    // perf counts an exit from its kvm_exit to the next kvm_entry, and passes over a thread's first one.
    assert!(text.contains(name) && text.contains("Total Samples:7"), "{text}");
}
