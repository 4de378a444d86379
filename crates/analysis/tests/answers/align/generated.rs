//! Pairs of traces whose clocks are known by construction: microseconds, drift, steps, parts that are missing.

use base::Clock;
use base::recording::{Named, Recording, TscReadings};
use generate::guest::pair;
use generate::scenario::Scenario;
use generate::{GuestClock, Pair, Random, Story, Target};
use kvmscope_analysis::facts::align::causes::Causes;
use kvmscope_analysis::facts::align::compose::compose;
use kvmscope_analysis::facts::align::pairing::By;
use kvmscope_analysis::facts::align::place::Scale;
use kvmscope_analysis::facts::align::{self, Alignment, Map};
use kvmscope_analysis::facts::ledger::build;
use kvmscope_analysis::{Case, Given, Input, TraceHints};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use trace::format::Endian;
use trace::write::tracedat::Compression;
use trace::write::{Record, Value};

pub(super) const TARGET: Target =
    Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };
const SCENARIOS: [&str; 3] = ["svm-no-vls-vgif", "vmx-no-shadowing", "l2-moves"];

pub(super) fn story(name: &str, seed: u64) -> Story {
    Scenario::named(name).unwrap().run(seed)
}

/// Writes stories as the traces of one recording, outermost first.
pub(super) fn input(directory: &Path, stories: &[&Story]) -> Input {
    let write = |(level, story): (u8, &&Story)| {
        let place = directory.join(format!("L{level}"));
        std::fs::create_dir(&place).unwrap();
        Named { level, name: None, path: story.write(TARGET, &place).unwrap() }
    };
    let named: Vec<Named> = (0..).zip(stories).map(write).collect();
    kvmscope_analysis::open(Recording::of_files(&named, None).unwrap()).unwrap()
}

/// Aligns the two stories as their files tell them.
fn aligned(below: &Story, above: &Story) -> Alignment {
    aligned_with(below, above, None)
}

/// The same with what the recorder read from debugfs.
pub(super) fn aligned_with(below: &Story, above: &Story, tsc: Option<TscReadings>) -> Alignment {
    aligned_but(below, above, tsc, &[])
}

/// The same without some events.
pub(super) fn aligned_but(below: &Story, above: &Story, tsc: Option<TscReadings>, hidden: &[&str]) -> Alignment {
    let ignore_events = hidden.iter().map(|name| (*name).to_owned()).collect();
    let given = Given { traces: TraceHints { ignore_events, ..TraceHints::default() }, ..Given::default() };
    let directory = tempfile::tempdir().unwrap();
    let mut input = input(directory.path(), &[below, above]);
    input.parts[0].tsc = tsc;
    let clocks: Vec<Clock> = input.parts.iter().map(|part| part.trace.facts().clock.clone()).collect();
    let vm_of = |_| Some("L1".to_owned());
    align::align(
        (&input.parts[0], &clocks[0]),
        (&input.parts[1], &clocks[1]),
        &given.traces.ignore_events,
        None,
        &vm_of,
    )
}

/// Records of the guest that are placed wrong, those that are placed at all, and the largest error in ns.
pub(super) fn score(pair: &Pair, alignment: &Alignment) -> (Vec<(u64, i64, i64)>, usize, f64) {
    let (mut wrong, mut placed, mut worst) = (Vec::new(), 0, 0);
    for (record, true_ns) in pair.above.records.iter().zip(&pair.true_ns) {
        let cpu = alignment.cpus.iter().find(|cpu| cpu.cpu == record.cpu);
        let Some(found) = cpu.and_then(|cpu| cpu.map.as_ref()?.place(record.ticks)) else { continue };
        placed += 1;
        worst = worst.max(found.error());
        if !(found.low..=found.high).contains(true_ns) {
            wrong.push((*true_ns, (found.low as i64) - *true_ns as i64, *true_ns as i64 - found.high as i64));
        }
    }
    (wrong, placed, alignment.axis.length_ns(worst as f64))
}

pub(super) fn methods(alignment: &Alignment) -> Vec<&'static str> {
    alignment.cpus.iter().map(|cpu| cpu.map.as_ref().map_or("none", Map::method)).collect()
}

/// Both stories on counters of which one tick is one ns, so that the truth stays what it is.
pub(super) fn on_tsc(pair: &Pair) -> Pair {
    Pair {
        below: pair.below.on_tsc(1_000_000_000, true),
        above: pair.above.on_tsc(1_000_000_000, true),
        ..pair.clone()
    }
}

#[test]
fn written_offsets_that_step_at_every_entry_are_exact() {
    for (seed, name) in (1..).zip(SCENARIOS) {
        let clock = GuestClock { offset: -60_000_000_000, step_every: 2, written: true, ..GuestClock::default() };
        let pair = on_tsc(&pair(&story(name, seed), &clock, seed));
        let alignment = aligned(&pair.below, &pair.above);
        assert!(methods(&alignment).iter().all(|method| *method == "tsc_offset"), "{name}: {:?}", methods(&alignment));
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{name}");
        assert!(worst_ns <= 2.0, "{name}: {worst_ns} ns by rounding");
        for cpu in &alignment.cpus {
            assert_eq!(cpu.common.len(), cpu.own.exits.len(), "{name}: every exit is found");
            assert_eq!((cpu.outside.violations, cpu.strangers()), (0, 0), "{name}");
        }
    }
}

#[test]
fn offset_and_drift_are_found_from_causes_and_effects() {
    let mut narrowed = 0;
    for (seed, name) in (1..20).flat_map(|seed| SCENARIOS.map(|name| (seed, name))) {
        let drift_ppb = (seed as i64 - 10) * 20_000;
        let clock = GuestClock { offset: -31_000_000_000, drift_ppb, ..GuestClock::default() };
        let pair = pair(&story(name, seed), &clock, seed);
        let alignment = aligned(&pair.below, &pair.above);
        assert!(
            methods(&alignment).iter().all(|method| *method == "causal_lines"),
            "{name}: {:?}",
            methods(&alignment)
        );
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{name} {seed}");
        assert!(worst_ns < 20_000.0, "{name} {seed}: {worst_ns} ns");
        for cpu in &alignment.cpus {
            let Some(Map::Lines(lines)) = &cpu.map else { panic!("{name}") };
            let (flat, steep) = lines.slopes();
            let slope = 1.0 / (1.0 + drift_ppb as f64 * 1e-9);
            assert!(lines.len() == 1 && (flat..=steep).contains(&slope), "{name}: {slope} not in {flat} to {steep}");
            assert_eq!(cpu.outside.violations, 0, "{name}");
            // What the windows and the interrupts add to what both sides list.
            let (common, accesses) = (&cpu.common, &cpu.accesses);
            let causes = Causes { vcpu: &cpu.vcpu, own: &cpu.own, common, accesses, slack: 0 };
            let alone = causes.paired(Scale::Known(1.0)).map.unwrap();
            let error = |map: &Map| cpu.own.exits.iter().filter_map(|exit| Some(map.place(exit.at)?.error())).max();
            let (all, alone) = (error(cpu.map.as_ref().unwrap()), error(&alone));
            assert!(all <= alone, "{name} {seed}: {all:?}, pairs alone {alone:?}");
            narrowed += u32::from(all < alone);
        }
    }
    assert!(narrowed > 20, "{narrowed} of 57 stories are placed closer by the windows");
}

#[test]
fn a_clock_that_is_set_is_never_placed_wrong() {
    for (seed, name) in (1..20).flat_map(|seed| SCENARIOS.map(|name| (seed, name))) {
        for jump in [5_000_000, -3_000] {
            let clock = GuestClock { offset: 7_000_000, jump, ..GuestClock::default() };
            let pair = pair(&story(name, seed), &clock, seed);
            // A counter set back writes its events in another order than they happened: nothing says so below.
            if pair.above.records.windows(2).any(|two| two[0].cpu == two[1].cpu && two[0].ticks > two[1].ticks) {
                continue;
            }
            let alignment = aligned(&pair.below, &pair.above);
            let (wrong, placed, _) = score(&pair, &alignment);
            assert!(wrong.is_empty(), "{name} {seed} {jump}: {:?} {:?}", methods(&alignment), wrong);
            assert!(placed * 2 > pair.true_ns.len(), "{name} {seed}: {placed} placed");
        }
    }
}

#[test]
fn a_clock_that_wanders_is_placed_by_order() {
    for (seed, name) in (1..20).flat_map(|seed| SCENARIOS.map(|name| (seed, name))) {
        let clock = GuestClock { offset: 7_000_000, step_every: 1, ..GuestClock::default() };
        let pair = pair(&story(name, seed), &clock, seed);
        let alignment = aligned(&pair.below, &pair.above);
        let (wrong, ..) = score(&pair, &alignment);
        assert!(wrong.is_empty(), "{name} {seed}: {:?} {:?}", methods(&alignment), wrong);
    }
}

#[test]
fn exits_that_one_side_lacks_do_not_shift_the_others() {
    for (seed, name) in (1..20).flat_map(|seed| SCENARIOS.map(|name| (seed, name))) {
        let clock = GuestClock { offset: 1_000, ..GuestClock::default() };
        let mut pair = pair(&story(name, seed), &clock, seed);
        // The guest's recorder starts late and stops early.
        let third = pair.true_ns.len() / 5;
        let kept = third..pair.true_ns.len() - third;
        pair.above.records = pair.above.records[kept.clone()].to_vec();
        pair.true_ns = pair.true_ns[kept].to_vec();
        let alignment = aligned(&pair.below, &pair.above);
        let (wrong, placed, _) = score(&pair, &alignment);
        assert!(wrong.is_empty(), "{name} {seed}: {wrong:?}");
        // A dozen exits of four kinds may hold no stretch that occurs once.
        let none = name == "l2-moves" && placed == 0;
        assert!(none || placed == pair.true_ns.len(), "{name} {seed}: {placed} of {} placed", pair.true_ns.len());
    }
}

#[test]
fn offsets_of_another_run_are_noticed() {
    let clock = GuestClock { offset: -60_000_000_000, written: true, ..GuestClock::default() };
    let one = on_tsc(&pair(&story("vmx-no-shadowing", 1), &clock, 1));
    let other = on_tsc(&pair(&story("vmx-no-shadowing", 2), &clock, 2));
    let alignment = aligned(&one.below, &other.above);
    let violations: u64 = alignment.cpus.iter().map(|cpu| cpu.outside.violations).sum();
    let strangers: u64 = alignment.cpus.iter().map(|cpu| cpu.strangers()).sum();
    assert!(violations > 0 || strangers > 0 || alignment.unpaired > 0);
}

#[test]
fn exits_belong_to_the_task_of_the_guest_that_ran() {
    for (seed, name) in (1..6).flat_map(|seed| SCENARIOS.map(|name| (seed, name))) {
        let clock = GuestClock { offset: -60_000_000_000, step_every: 2, written: true, ..GuestClock::default() };
        let mut pair = on_tsc(&pair(&story(name, seed), &clock, seed));
        let switch = pair.above.schema.events.iter().position(|event| event.name == "sched_switch").unwrap();
        // Every third event of a CPU becomes a switch from one of two tasks to the other.
        let mut switches: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (place, (record, true_ns)) in pair.above.records.iter_mut().zip(&pair.true_ns).enumerate() {
            if pair.above.schema.events[record.event].name == "softirq_entry" && place % 3 == 0 {
                let known = switches.entry(record.cpu).or_default();
                let tids = if known.len().is_multiple_of(2) { [11, 12] } else { [12, 11] };
                let comm = |tid: u64| Value::Text(format!("task{tid}"));
                let number = Value::Integer;
                let [prev, next] = tids;
                let zero = || number(0);
                record.event = switch;
                record.values = vec![comm(prev), number(prev), zero(), zero(), comm(next), number(next), zero()];
                known.push(*true_ns);
            }
        }
        let alignment = aligned(&pair.below, &pair.above);
        let mut expected: BTreeMap<(u32, Option<i32>), u64> = BTreeMap::new();
        for cpu in &alignment.cpus {
            let [first, last] = cpu.outside.ends.unwrap();
            for (at, _) in cpu.vcpu.exits.iter().filter(|(at, _)| (first.1..last.1).contains(at)) {
                let before = switches[&cpu.cpu].iter().filter(|switch| *switch <= at).count();
                *expected.entry((cpu.cpu, Some(11 + (before % 2) as i32))).or_default() += 1;
            }
        }
        let found = alignment.tasks.iter().map(|(key, sums)| (*key, sums.exits)).collect();
        assert_eq!(expected, found, "{name} {seed}");
        assert!(alignment.tasks.iter().all(|((_, tid), sums)| sums.comm == format!("task{}", tid.unwrap())));
    }
}

/// The trace of L2, whose events are the moments at which it ran, and L1's, in which KVM writes L2's offset.
pub(super) fn nested(pair: &Pair, offset: u64) -> (Story, Story) {
    let mut above = pair.above.clone();
    let write = above.schema.events.len();
    above.schema.events.extend(pair.below.schema.events.last().cloned());
    let first = above.records.iter().find(|record| above.schema.events[record.event].name == "kvm_entry").unwrap();
    let values = [0, 0, offset].map(Value::Integer).to_vec();
    let written = Record { event: write, values, ..first.clone() };
    above.records.insert(0, Record { ticks: above.records[0].ticks, ..written });
    let softirq = above.schema.events.iter().position(|event| event.name == "softirq_entry").unwrap();
    let record = |(_, at): &(u64, u64)| Record {
        ticks: at.wrapping_add(offset),
        cpu: 0,
        tid: 7,
        event: softirq,
        values: vec![Value::Integer(1)],
    };
    let records = pair.nested.iter().map(record).collect();
    (Story { records, cpus: 1, ..above.clone() }, above)
}

#[test]
fn a_guest_of_a_guest_lies_on_the_outermost_line_within_the_errors_of_both() {
    for written in [true, false] {
        let offset = -40_000_000_000;
        let clock = GuestClock { offset, step_every: if written { 3 } else { 0 }, written, ..GuestClock::default() };
        let pair = pair(&story("vmx-no-shadowing", 5), &clock, 5);
        let (deep, above) = nested(&pair, (-15_000_000_000i64) as u64);
        let stories = [&pair.below, &above, &deep].map(|story| story.on_tsc(1_000_000_000, true));
        let directory = tempfile::tempdir().unwrap();
        let input = input(directory.path(), &stories.each_ref());
        let flow = build::build(&input, &Given::default(), &mut |_, _| {});
        let [lower, upper] = [1, 2].map(|place| flow.parts[place].aligned.as_ref().unwrap());
        assert_eq!(lower.joined, None, "nothing lies below L0");
        let (below, error_ns) = upper.joined.as_ref().unwrap();
        assert_eq!((below.as_str(), methods(&upper.alignment)), ("L0", vec!["tsc_offset"]));
        assert_eq!(upper.alignment.cpus[0].outside.violations, 0);
        let expected = if written { "tsc_offset" } else { "causal_lines" };
        assert_eq!(methods(&lower.alignment), [expected]);
        assert!(if written { *error_ns <= 5.0 } else { *error_ns > 5.0 }, "{error_ns} ns");
        let mut worst = 0;
        for (record, (true_ns, _)) in deep.records.iter().zip(&pair.nested) {
            let placed = compose(&lower.alignment, &upper.alignment, 0, record.ticks).unwrap();
            assert!((placed.low..=placed.high).contains(true_ns), "{placed:?}, true {true_ns}");
            worst = worst.max(placed.error());
        }
        assert!(worst as f64 <= *error_ns + 1.0 || !written, "{worst}");
    }
}

#[test]
fn damaged_traces_are_survived() {
    let clock = GuestClock { offset: -60_000_000_000, step_every: 2, written: true, ..GuestClock::default() };
    let pair = on_tsc(&pair(&story("svm-no-vls-vgif", 3), &clock, 3));
    let directory = tempfile::tempdir().unwrap();
    let whole = input(directory.path(), &[&pair.below, &pair.above]);
    let paths: Vec<_> = whole.recording.parts.iter().map(|part| whole.recording.root.join(&part.path)).collect();
    let bytes: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut random = Random::new(11);
    let mut answered = 0;
    for round in 0..120 {
        for (level, bytes) in bytes.iter().enumerate() {
            let mut bytes = bytes.clone();
            // Descriptions stand in front; events are what alignment reads.
            for _ in 0..1 + round % 8 {
                let at = random.between(bytes.len() as u64 / 3, bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.between(0, 8);
            }
            std::fs::write(directory.path().join(format!("damaged{level}")), bytes).unwrap();
        }
        let named =
            [0, 1].map(|level| Named { level, name: None, path: directory.path().join(format!("damaged{level}")) });
        let Ok(input) = kvmscope_analysis::open(Recording::of_files(&named, None).unwrap()).map(Arc::new) else {
            continue;
        };
        for ignored in [vec![], vec!["kvm_write_tsc_offset".to_owned()]] {
            let given =
                Given { traces: TraceHints { ignore_events: ignored, ..TraceHints::default() }, ..Given::default() };
            answered += u32::from(kvmscope_analysis::flow::answer(&Case::new(Arc::clone(&input), given)).is_ok());
        }
    }
    assert!(answered > 100, "{answered} of 240 could be answered");
}

#[test]
fn a_guest_without_guests_is_paired_by_its_name_or_not_at_all() {
    let story = story("two-vms", 4);
    let clock = GuestClock { offset: -60_000_000_000, written: true, ..GuestClock::default() };
    let first: Vec<_> = story.truth.vcpus.iter().filter(|vcpu| vcpu.vm == story.truth.vcpus[0].vm).cloned().collect();
    let tids: Vec<i32> = first.iter().map(|vcpu| vcpu.tid).collect();
    assert!(tids.len() == 2 && story.truth.vcpus.len() == 4);
    let mut of_first = story.clone();
    of_first.truth.vcpus = first;
    let pair = on_tsc(&pair(&of_first, &clock, 4));
    let directory = tempfile::tempdir().unwrap();
    let input = input(directory.path(), &[&pair.below, &pair.above]);
    let clocks: Vec<Clock> = input.parts.iter().map(|part| part.trace.facts().clock.clone()).collect();
    let vm_of = |tid: i32| Some(if tids.contains(&tid) { "web" } else { "db" }.to_owned());
    let given = Given {
        traces: TraceHints { ignore_events: vec!["write_msr".into(), "read_msr".into()], ..TraceHints::default() },
        ..Given::default()
    };
    let align = |name| {
        let [below, above] = [0, 1].map(|place| (&input.parts[place], &clocks[place]));
        align::align(below, above, &given.traces.ignore_events, name, &vm_of)
    };
    assert!(align(None).cpus.is_empty() && align(Some("mail")).cpus.is_empty());
    let alignment = align(Some("web"));
    assert_eq!(alignment.cpus.iter().map(|cpu| cpu.vcpu.tid).collect::<Vec<_>>(), tids);
    let (wrong, placed, _) = score(&pair, &alignment);
    assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()));
    assert!(alignment.cpus.iter().all(|cpu| cpu.paired_by == By::Number && cpu.outside.violations == 0));
}
