//! Constructed results with known answers: who handled an operation, and which clocks are slow for which cause.

use super::{clocks, exits};
use base::bench::{Bench, Measured, Params};
use base::figure::Mark;
use base::{Level, Section};
use facts::benches::{BenchRun, Benches};
use std::collections::BTreeMap;

fn benches(bench: Bench) -> Benches {
    Benches { runs: vec![BenchRun { machine: "L0".into(), level: Level::At(0), bench }], ..Benches::default() }
}

/// A test of `exits` exits an operation, some of which went where `more` says, in samples of 8 operations.
fn test(name: &str, launch: u32, cycles: u64, exits: u64, more: &[&str]) -> Measured {
    let counted = 8 * 100;
    let counters = [&["exits"][..], more].concat().into_iter().map(|name| (name.to_owned(), exits * counted));
    Measured {
        name: name.into(),
        params: Params {
            place: "guest".into(),
            ring: Some(3),
            launch,
            operations: Some(8),
            control: Some(80.0),
            counted: Some(counted),
            expected_exits: Some(if name == "rdtsc" || name == "empty" { (0, 0) } else { (1, 1) }),
            ..Params::default()
        },
        unit: "cycles".into(),
        hdr: vec![(80 + 8 * cycles, 100)],
        counters: counters.collect(),
        ..Measured::default()
    }
}

fn exits_of(results: Vec<Measured>) -> Vec<exits::Row> {
    let environment = BTreeMap::from([("hypervisor below".to_owned(), "yes".to_owned())]);
    exits::rows(&benches(Bench { results, ..Bench::new("exits", environment) }))
}

#[test]
fn exits_say_who_handled_an_operation() {
    let here = Measured {
        params: Params { place: "here".into(), counted: None, ..test("cpuid", 0, 2_400, 0, &[]).params },
        counters: BTreeMap::new(),
        ..test("cpuid", 0, 2_400, 0, &[])
    };
    let rows = exits_of(vec![
        here,
        test("rdtsc", 0, 30, 0, &[]),
        test("cpuid", 0, 2_600, 0, &[]),
        test("inl_from_kernel", 0, 15_000, 1, &["io_exits"]),
        test("inl_from_qemu", 0, 46_000, 1, &["userspace"]),
        test("touch_4k", 0, 21_000, 1, &["pf_fixed"]),
        test("ud2", 0, 25_000, 2, &[]),
    ]);
    let handled: Vec<_> = rows.iter().map(|row| row.handled_by.unwrap()).collect();
    assert_eq!(handled, ["outer level", "native", "outer level", "kernel", "VMM", "MMU", "kernel"]);
    assert_eq!(rows[3].p50(), Some(15_000.0));
    assert!(rows[2].note.contains("a hypervisor below handles it"), "{}", rows[2].note);
    assert!(rows[6].note.contains("more exits than the 1"), "{}", rows[6].note);
}

#[test]
fn a_vmread_without_an_exit_means_that_the_vmcs_is_shadowed() {
    for (exits, said) in [(0, "needs no exit: the processor executes it"), (1, "exits (1 each): this KVM")] {
        let vmread = test("vmread", 0, 40, exits, &[]);
        let params = Params { ring: Some(0), expected_exits: Some((0, 1)), ..vmread.params.clone() };
        let all =
            benches(Bench { results: vec![Measured { params, ..vmread }], ..Bench::new("exits", BTreeMap::new()) });
        let mut section = Section::new("nesting", "?");
        super::add(&all, &mut section);
        assert!(section.summary.contains(said), "{}", section.summary);
    }
}

#[test]
fn launches_give_the_interval_and_interrupts_are_no_exits_of_the_test() {
    let cycles = [15_000, 15_400, 15_200, 15_100, 16_000];
    let mut results: Vec<_> =
        (0..).zip(cycles).map(|(launch, cycles)| test("inl_from_kernel", launch, cycles, 1, &["irq_exits"])).collect();
    results.iter_mut().for_each(|one| *one.counters.get_mut("exits").unwrap() *= 2);
    let rows = exits_of(results);
    assert_eq!((rows.len(), rows[0].launches, rows[0].exits_per_op), (1, 5, Some(1.0)));
    let (low, high) = rows[0].interval().unwrap();
    assert!(low < 15_200.0 && high > 15_200.0 && (15_000.0..=16_000.0).contains(&low), "{low} {high}");
}

#[test]
fn an_interpreted_guest_is_emulated_and_a_skipped_test_has_its_reason() {
    let why = "it did not end within 10 s, the watchdog stopped it";
    let spin = Measured { skipped: Some(why.into()), hdr: Vec::new(), ..test("ud2", 0, 0, 0, &[]) };
    let rows = exits_of(vec![test("empty", 0, 7_500, 0, &[]), test("rdtsc", 0, 9_000, 0, &[]), spin]);
    assert_eq!(rows[1].handled_by, Some("emulated"));
    assert_eq!((rows[2].launches, rows[2].p50(), rows[2].note.as_str()), (0, None, why));
    let said = "1 test of ring 3 was not run, it did not end within 10 s, the watchdog stopped it: ud2.";
    assert_eq!(exits::unknown(&rows)[0].text, said);
}

#[test]
fn a_slow_clock_has_its_cause_and_a_fast_one_none() {
    let read = |way: &str, clock: &str, source: &str, cycles: u64| Measured {
        name: way.into(),
        params: Params {
            clock: Some(clock.into()),
            source: Some(source.into()),
            operations: Some(1),
            ..Params::default()
        },
        unit: "cycles".into(),
        hdr: vec![(cycles, 50)],
        ..Measured::default()
    };
    for (source, cycles, served, cause) in [
        ("tsc", 70, true, None),
        ("kvm-clock", 1_500, false, Some("bit 24")),
        ("hpet", 40_000, false, Some("device")),
        ("hyperv_clocksource_msr", 9_000, false, Some("Hyper-V")),
    ] {
        let results =
            vec![read("clock_gettime", "REALTIME", source, cycles), read("syscall", "REALTIME", source, cycles + 300)];
        let environment = BTreeMap::from([("tsc ns per tick".to_owned(), "0.5".to_owned())]);
        let all = benches(Bench { results, ..Bench::new("clock", environment) });
        let rows = clocks::rows(&all);
        assert_eq!((rows[0].vdso, rows[0].p50_ns()), (Some(served), Some(cycles as f64 / 2.0)), "{source}");
        assert_eq!(rows[0].cause.is_some(), cause.is_some(), "{source}");
        assert!(cause.is_none_or(|word| rows[0].cause.unwrap().contains(word)), "{:?}", rows[0].cause);
        let mut section = Section::new("nesting", "?");
        super::add(&all, &mut section);
        assert!(section.table("clocks").is_some() && section.summary.contains(source), "{}", section.summary);
    }
}

#[test]
fn programs_keep_their_times_apart_and_two_runs_give_no_verdict() {
    let quantity = |name: &str, launch: u32, value: f64| Measured {
        name: name.into(),
        params: Params { command: Some("make".into()), launch, ..Params::default() },
        samples: vec![value],
        ..Measured::default()
    };
    let of_runs = |runs: &[f64]| {
        let results = (0..).zip(runs).flat_map(|(launch, real)| {
            [quantity("real", launch, real * 1e9), quantity("user", launch, 4e9), quantity("sys", launch, 1e9)]
        });
        let all = benches(Bench { results: results.collect(), ..Bench::new("macro", BTreeMap::new()) });
        let mut section = Section::new("nesting", "?");
        super::add(&all, &mut section);
        section
    };
    let section = of_runs(&[2.0, 2.5, 3.0]);
    let table = section.table("programs").unwrap();
    assert_eq!(table.cell(0, "real_ns"), Some(&2.5e9.into()));
    assert_eq!((table.cell(0, "cpus"), table.cell(0, "kvm_exits")), (Some(&2.0.into()), Some(&base::Cell::Missing)));
    assert_eq!(section.table("program_runs").unwrap().rows.len(), 3);
    assert!(section.summary.contains("over 3 runs"), "{}", section.summary);
    assert!(of_runs(&[2.0, 2.5]).summary.contains("no verdict"));
}

#[test]
fn the_ladder_holds_ours_beside_published_numbers_and_marks_each() {
    let environment = BTreeMap::from([("hypervisor below".to_owned(), "yes".to_owned())]);
    let results =
        vec![test("cpuid", 0, 15_000, 1, &[]), test("rdtsc", 0, 30, 0, &[]), test("l2_cpuid", 0, 60_000, 7, &[])];
    let mut all = benches(Bench { results, ..Bench::new("exits", environment) });
    let rungs = |all: &Benches| -> Vec<String> {
        let mut section = Section::new("nesting", "?");
        super::add(all, &mut section);
        let table = section.table("ladder").unwrap();
        let text = |cell: &base::Cell| match cell {
            base::Cell::Text(text) => text.clone(),
            base::Cell::F64(value) => value.to_string(),
            other => format!("{other:?}"),
        };
        table.rows.iter().map(|row| row[1..5].iter().map(text).collect::<Vec<_>>().join(" ")).collect()
    };
    let told = rungs(&all);
    assert!(told.iter().all(|rung| rung.starts_with("cpuid ")), "nobody published rdtsc: {told:?}");
    // The machine was called L0 and is a guest itself, so its guest is an L2.
    for rung in
        ["cpuid L0 published 180", "cpuid L2? measured 15000", "cpuid L3? measured 60000", "cpuid L2 published 20700"]
    {
        assert!(told.iter().any(|one| one == rung), "{rung}: {told:?}");
    }
    let mut section = Section::new("nesting", "?");
    super::add(&all, &mut section);
    let base::figure::Drawing::Points(groups) = &section.figures[0].drawing else { panic!("{:?}", section.figures) };
    let cycles = groups.iter().find(|group| group.unit == "cycles").unwrap();
    let ours: Vec<f64> =
        cycles.points.iter().filter(|point| point.mark == Mark::Measured).map(|point| point.value).collect();
    assert_eq!(ours, [15_000.0, 60_000.0]);
    for source in ["FOSDEM 2018", "XSTATE cache, Linux 6.13, Ice Lake-SP"] {
        assert!(cycles.points.iter().any(|point| point.mark == Mark::Published && point.source == source), "{source}");
    }
    all.emulated = Some(base::recording::Emulator::Tcg);
    assert!(rungs(&all).iter().any(|rung| rung == "cpuid L2? emulated 15000"));
}

#[test]
fn a_page_shows_the_rows_with_numbers_and_data_has_all() {
    let spin = Measured { skipped: Some("it hangs".into()), hdr: Vec::new(), ..test("ud2", 0, 0, 0, &[]) };
    let table = exits::table(&exits_of(vec![spin, test("rdtsc", 0, 30, 0, &[])]));
    assert_eq!((table.rows.len(), table.shown.as_ref().unwrap().most_rows), (2, 1));
    assert_eq!([table.cell(0, "name"), table.cell(1, "name")], [Some(&"rdtsc".into()), Some(&"ud2".into())]);
}

#[test]
fn a_clock_under_two_clocksources_has_two_rows() {
    let read = |source: &str, cycles: u64| Measured {
        name: "clock_gettime".into(),
        params: Params {
            clock: Some("REALTIME".into()),
            source: Some(source.into()),
            operations: Some(1),
            ..Params::default()
        },
        hdr: vec![(cycles, 50)],
        ..Measured::default()
    };
    let results = vec![read("tsc", 60), read("hpet", 9_000), read("tsc", 62)];
    let rows = clocks::rows(&benches(Bench { results, ..Bench::new("clock", BTreeMap::new()) }));
    let told: Vec<_> = rows.iter().map(|row| (row.source.as_deref().unwrap(), row.p50().unwrap())).collect();
    assert_eq!(told, [("tsc", 61.0), ("hpet", 9_000.0)]);
}
