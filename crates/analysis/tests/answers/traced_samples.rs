//! Samples among the events of a trace: those of osnoise and timerlat, and the one after which cyclictest broke off, on a generated
//! host where a hog had the CPU.

use base::recording::{Named, Recording};
use generate::scenario::Scenario;
use generate::{Story, Target};
use kvmscope_analysis::facts::budget::{Verdict, built_in};
use kvmscope_analysis::facts::samples::{Samples, Source};
use kvmscope_analysis::{Case, Given};
use std::path::Path;
use trace::format::Endian;
use trace::write::tracedat::Compression;
use trace::write::{EventSchema, FieldSchema, Record, Shape, Value};

const CPU: u32 = 3;
const HOG: i32 = 5_000;
const CYCLICTEST: i32 = 5_001;
/// The vCPU's own work and ours do not share a CPU.
const FROM_NS: u64 = 100_000;

fn add_event(story: &mut Story, system: &str, name: &str, fields: &[(&str, &str, Shape)]) -> usize {
    let field = |(name, c_type, shape): &(&str, &str, Shape)| FieldSchema {
        name: (*name).into(),
        c_type: (*c_type).into(),
        shape: *shape,
        bare_hex: false,
    };
    let fields = fields.iter().map(field).collect();
    story.schema.events.push(EventSchema { system: system.into(), name: name.into(), fields, print_fmt: None });
    story.schema.events.len() - 1
}

/// Values by their names, in the order of the schema.
fn record(story: &Story, (at_ns, tid, name): (u64, i32, &str), given: &[(&str, Value)]) -> Record {
    let event = story.schema.events.iter().position(|event| event.name == name).unwrap();
    let value =
        |field: &FieldSchema| given.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value.clone());
    let values = story.schema.events[event].fields.iter().map(|field| value(field).unwrap_or(Value::Integer(0)));
    let values = values.zip(&story.schema.events[event].fields).map(|(value, field)| match (&value, field.shape) {
        (Value::Integer(_), Shape::Chars { .. } | Shape::Dynamic) => Value::Text(String::new()),
        _ => value,
    });
    Record { ticks: story.truth.from_ns + FROM_NS + at_ns, cpu: CPU, tid, event, values: values.collect() }
}

fn switch(story: &Story, at_ns: u64, (from, state): ((&str, i32), u64), to: (&str, i32)) -> Record {
    let (text, number) = (|text: &str| Value::Text(text.into()), |number: i32| Value::Integer(number as u64));
    let given = [
        ("prev_comm", text(from.0)),
        ("prev_pid", number(from.1)),
        ("prev_state", Value::Integer(state)),
        ("next_comm", text(to.0)),
        ("next_pid", number(to.1)),
    ];
    record(story, (at_ns, from.1, "sched_switch"), &given)
}

/// A hog has the CPU from 0 to 50 us; cyclictest, woken at 10 us, marks the breach at 55 us. Then tracers tell of noise.
fn story() -> Story {
    let mut story = Scenario::named("hogs").unwrap().run(1);
    let long = Shape::Integer { bytes: 8, signed: false };
    let int = Shape::Integer { bytes: 4, signed: true };
    add_event(&mut story, "ftrace", "print", &[("ip", "unsigned long", long)]);
    add_event(
        &mut story,
        "osnoise",
        "irq_noise",
        &[("start", "u64", long), ("duration", "u64", long), ("desc", "char", Shape::Dynamic), ("vector", "int", int)],
    );
    add_event(&mut story, "osnoise", "nmi_noise", &[("start", "u64", long), ("duration", "u64", long)]);
    add_event(
        &mut story,
        "osnoise",
        "sample_threshold",
        &[("start", "u64", long), ("duration", "u64", long), ("interference", "u64", long)],
    );
    add_event(
        &mut story,
        "ftrace",
        "timerlat",
        &[("seqnum", "unsigned int", int), ("context", "int", int), ("timer_latency", "u64", long)],
    );
    let (idle, hog, own) = (("swapper/3", 0), ("hog", HOG), ("cyclictest", CYCLICTEST));
    let number = Value::Integer;
    let waking =
        [("comm", Value::Text("cyclictest".into())), ("pid", number(CYCLICTEST as u64)), ("target_cpu", number(3))];
    let noise = |ns| [("duration", number(ns))];
    let timer = |context, ns| [("context", number(context)), ("timer_latency", number(ns))];
    let irq = [("duration", number(1_500)), ("desc", Value::Text("local_timer".into())), ("vector", number(236))];
    let threshold = [("duration", number(9_000)), ("interference", number(1))];
    let own_records = vec![
        switch(&story, 0, (idle, 0), hog),
        record(&story, (10_000, HOG, "sched_waking"), &waking),
        switch(&story, 50_000, (hog, 1), own),
        record(&story, (55_000, CYCLICTEST, "print"), &[]),
        switch(&story, 60_000, (own, 1), idle),
        record(&story, (70_000, 0, "irq_noise"), &irq),
        record(&story, (71_000, 0, "nmi_noise"), &noise(700)),
        record(&story, (72_000, 0, "sample_threshold"), &threshold),
        record(&story, (73_000, 0, "timerlat"), &timer(0, 2_000)),
        record(&story, (74_000, 0, "timerlat"), &timer(1, 12_000)),
        record(&story, (75_000, 0, "irq_noise"), &irq),
    ];
    story.records.extend(own_records);
    story.records.sort_by_key(|record| (record.ticks, record.cpu));
    story.comms.extend([(HOG, "hog".to_owned()), (CYCLICTEST, "cyclictest".to_owned())]);
    story
}

const RESULT: &str = "# Histogram\n000007 000003\n# Total: 000000003\n# Min Latencies: 00007\n# Avg Latencies: 00007\n\
    # Max Latencies: 00045\n# Histogram Overflows: 00001\n# Thread Ids: 05001\n# Break thread: 5001\n# Break value: 45\n";

fn case(story: &Story, target: Target, directory: &Path, given: Given) -> Case {
    let result = directory.join("cyclictest.txt");
    std::fs::write(&result, RESULT).unwrap();
    let files = [story.write(target, directory).unwrap(), result].map(Named::at_l0);
    Case::new(kvmscope_analysis::open(Recording::of_files(&files, None).unwrap()).unwrap(), given)
}

fn targets() -> [Target; 3] {
    let tracedat = |endian| Target::TraceDat7 { endian, long_bytes: 8, compression: Compression::None };
    [tracedat(Endian::Little), tracedat(Endian::Big), Target::TextRaw]
}

#[test]
fn tracers_events_are_samples_that_their_events_end() {
    let story = story();
    for target in targets() {
        let directory = tempfile::tempdir().unwrap();
        let case = case(&story, target, directory.path(), Given::default());
        let traced: Vec<&Samples> = case.results().list[1..].iter().flat_map(|file| &file.samples).collect();
        let told: Vec<_> =
            traced.iter().map(|one| (one.source, one.thread.as_str(), one.count, one.timed[0].length_ns)).collect();
        assert_eq!(
            told,
            [
                (Source::Tracemark, "5001", 1, 45_000),
                (Source::Timerlat, "IRQ-003", 1, 2_000),
                (Source::Timerlat, "Thr-003", 1, 12_000),
                (Source::Osnoise, "irq_noise-003", 2, 1_500),
                (Source::Osnoise, "nmi_noise-003", 1, 700),
                (Source::Osnoise, "sample_threshold-003", 1, 9_000),
            ],
            "{}",
            target.name()
        );
        let at = |samples: &Samples, place: usize| samples.timed[place].end_ns - story.truth.from_ns - FROM_NS;
        assert_eq!((at(traced[3], 0), at(traced[3], 1)), (70_000, 75_000));
        assert!(traced.iter().all(|samples| samples.cpu == Some(CPU)));
    }
}

#[test]
fn the_sample_after_which_cyclictest_broke_off_is_the_hogs() {
    let story = story();
    for target in targets() {
        let directory = tempfile::tempdir().unwrap();
        let case =
            case(&story, target, directory.path(), Given { budget: built_in("kvm4nfv-2015"), ..Given::default() });
        let one = case.attributed().iter().find(|one| one.source == Source::Tracemark);
        let one = one.unwrap_or_else(|| panic!("{}: {:?}", target.name(), case.unattributed()));
        let causes: Vec<_> = one.sums.causes.iter().map(|(name, part)| (&**name, part.total_ns)).collect();
        assert_eq!(
            (causes.as_slice(), one.sums.unexplained.total_ns),
            (&[("hog", 40_000)][..], 5_000),
            "it ran for 5 us"
        );
        assert_eq!(one.by.clock_error().map(|error| error.most_ns()), Some(0), "the trace's own clock");
        let judged: Vec<_> = case
            .judged()
            .iter()
            .filter(|judged| judged.whose.thread.as_deref() == Some("5001"))
            .map(|judged| (judged.goal, judged.judgement.verdict))
            .collect();
        assert_eq!(judged, [(1, Verdict::Fail)], "its maximum is one, its mean is none");
    }
}

#[test]
fn marks_of_work_add_up_and_other_lines_are_somebody_elses() {
    let mut story = Scenario::named("hogs").unwrap().run(1);
    add_event(&mut story, "ftrace", "print", &[("buf", "char", Shape::Chars { bytes: 40 })]);
    let lines = [
        "kvmscope work: 12000 requests",
        "kvmscope work: 500 requests",
        "kvmscope work: 1 request",
        "hello",
        "work: 7 requests",
    ];
    for (place, line) in (0..).zip(lines) {
        let mark = record(&story, (place * 1_000, HOG, "print"), &[("buf", Value::Text(line.into()))]);
        story.records.push(mark);
    }
    story.records.sort_by_key(|record| (record.ticks, record.cpu));
    for target in targets() {
        let directory = tempfile::tempdir().unwrap();
        let case = case(&story, target, directory.path(), Given::default());
        let work: Vec<(&str, f64)> =
            case.ledger().parts[0].work.iter().map(|(unit, count)| (unit.as_str(), *count)).collect();
        assert_eq!(work, [("request", 12_501.0)], "{}", target.name());
    }
}

#[test]
fn a_breach_without_its_mark_is_found_by_rank_alone() {
    let mut story = story();
    let print = story.schema.events.iter().position(|event| event.name == "print").unwrap();
    story.records.iter_mut().filter(|record| record.event == print).for_each(|record| record.tid = HOG);
    let directory = tempfile::tempdir().unwrap();
    let case = case(&story, targets()[0], directory.path(), Given::default());
    assert!(case.attributed().iter().all(|one| one.source != Source::Tracemark), "another program wrote that");
}
