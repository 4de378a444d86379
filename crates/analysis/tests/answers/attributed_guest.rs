//! Samples of a guest that has no trace of its own, beside generated traces of its host: who had the vCPU's CPU is known, and so is
//! what the guest's clocks showed.

use base::recording::{ClockPair, Machine, Moment, Named, Recording};
use generate::scenario::Scenario;
use generate::{Story, Target};
use kvmscope_analysis::facts::align::Map;
use kvmscope_analysis::facts::attribution::{Attributed, FoundBy, Lacking};
use kvmscope_analysis::{Answers, Case, Given};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use trace::format::Endian;
use trace::write::tracedat::Compression;
use trace::write::{Record, Value};

const TARGET: Target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };

/// Ticks of the host's counter in a second, the offset of the guest's, and what the guest's CLOCK_MONOTONIC began with.
const HZ: u64 = 2_250_000_000;
const OFFSET: i64 = -60_123_456_789;
const BOOTED_NS: u64 = 7_000_000_000;
const PAIR_NS: u64 = 40;

/// The guest's counter and CLOCK_MONOTONIC when it was `ns` in the story, whose host counts from 0.
fn guest_clocks(ns: u64) -> (u64, u64) {
    let ticks = (u128::from(ns) * u128::from(HZ) / 1_000_000_000) as u64;
    (ticks.wrapping_add_signed(OFFSET), ns - 60_000_000_000 + BOOTED_NS)
}

/// A stretch in which one task had the CPU of the preempted vCPU all the time.
#[derive(Debug)]
struct Preempted {
    from_ns: u64,
    to_ns: u64,
    by: String,
}

/// By the switches of the story: the vCPU leaves its CPU ready, and comes back there when the task that took it leaves.
fn preempted(story: &Story, tid: i32) -> Vec<Preempted> {
    let switch = story.schema.events.iter().position(|event| event.name == "sched_switch").unwrap();
    let field = |name: &str| story.schema.events[switch].fields.iter().position(|field| field.name == name).unwrap();
    let number = |record: &Record, name: &str| match &record.values[field(name)] {
        Value::Integer(value) => *value,
        Value::Text(_) | Value::Bytes(_) => panic!("{name}"),
    };
    let switches: Vec<&Record> = story.records.iter().filter(|record| record.event == switch).collect();
    let mut found = Vec::new();
    for (place, out) in switches.iter().enumerate() {
        let is_ready = number(out, "prev_state") & 0xff == 0;
        if number(out, "prev_pid") as i32 != tid || !is_ready {
            continue;
        }
        let next = switches[place + 1..].iter().find(|one| one.cpu == out.cpu).unwrap();
        if number(next, "next_pid") as i32 == tid {
            let by = match &out.values[field("next_comm")] {
                Value::Text(name) => name.clone(),
                Value::Integer(_) | Value::Bytes(_) => panic!("no name"),
            };
            found.push(Preempted { from_ns: out.ticks, to_ns: next.ticks, by });
        }
    }
    found
}

struct Guest {
    directory: tempfile::TempDir,
    story: Story,
    preempted: Vec<Preempted>,
}

impl Guest {
    /// The scenario with preemptions, and a result of the guest with one sample for each of them.
    fn new(seed: u64) -> Self {
        let story = Scenario::named("hogs").unwrap().run(seed);
        let preempted = preempted(&story, story.truth.vcpus[0].tid);
        let directory = tempfile::tempdir().unwrap();
        let mut samples = String::new();
        for one in &preempted {
            let (_, end_ns) = guest_clocks(one.to_ns);
            let us = (one.to_ns - one.from_ns) / 1_000;
            writeln!(samples, "0;{}.{:09};{us}", end_ns / 1_000_000_000, end_ns % 1_000_000_000).unwrap();
        }
        std::fs::write(directory.path().join("samples.csv"), samples).unwrap();
        let pairs = [story.truth.from_ns - 5_000_000, story.truth.to_ns + 5_000_000].map(|ns| {
            let (tsc, monotonic_ns) = guest_clocks(ns);
            let (machine, at, tsc) = (String::new(), Moment::Begin, Some(tsc));
            ClockPair {
                machine,
                at,
                realtime_ns: monotonic_ns,
                monotonic_ns,
                tsc,
                error_ns: PAIR_NS,
                utc_error_ns: None,
            }
            .as_file()
        });
        std::fs::write(directory.path().join("clocks.txt"), pairs.concat()).unwrap();
        Self { directory, story, preempted }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// What debugfs says of the counter of vCPU 0, in a snapshot of the host.
    fn snapshot(&self, host: &Path, samples: &[i64]) {
        for (sample, offset) in samples.iter().enumerate() {
            let place = host.join(format!("L0/host/{sample}/sys/kernel/debug/kvm/170-12/vcpu0"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("tsc-offset"), format!("{offset}\n")).unwrap();
            std::fs::write(place.join("pid"), "170\n").unwrap();
        }
    }

    /// The recording of the host, with the guest's files that are named.
    fn recording(&self, story: &Story, offsets: &[i64], files: &[&str]) -> Recording {
        let host = self.path("host");
        std::fs::remove_dir_all(&host).ok();
        std::fs::create_dir_all(host.join("L0")).unwrap();
        let written = story.write(TARGET, self.directory.path()).unwrap();
        std::fs::rename(written, host.join("L0/trace.dat")).unwrap();
        self.snapshot(&host, offsets);
        let named = |name: &&str| Named { level: 1, name: None, path: self.path(name) };
        let files: Vec<Named> = files.iter().map(named).collect();
        Recording::open(&host).unwrap().with_files(&files).unwrap()
    }

    fn case(&self, story: &Story, offsets: &[i64], files: &[&str]) -> Case {
        Case::new(kvmscope_analysis::open(self.recording(story, offsets, files)).unwrap(), Given::default())
    }

    /// The lengths of samples by the task that had the CPU.
    fn truth(&self) -> BTreeMap<&str, u64> {
        let mut sums = BTreeMap::new();
        for one in &self.preempted {
            *sums.entry(one.by.as_str()).or_default() += (one.to_ns - one.from_ns) / 1_000 * 1_000;
        }
        sums
    }

    fn holds(&self, one: &Attributed, most_ns: u64) {
        let FoundBy::Time(error) = one.by else { panic!("{:?}", one.by) };
        assert!((PAIR_NS..=most_ns).contains(&error.most_ns()), "{error:?}");
        let found: BTreeMap<&str, u64> = one.sums.causes.iter().map(|(name, part)| (&**name, part.total_ns)).collect();
        let truth = self.truth();
        assert!(truth.len() > 1, "{truth:?}");
        // At its ends a sample may lie beside the stretch by as much as clocks round.
        for (name, ns) in &truth {
            let samples = self.preempted.iter().filter(|one| one.by == *name).count() as u64;
            let found = found.get(name).copied().unwrap_or(0);
            assert!(found.abs_diff(*ns) <= 2 * samples, "{name}: {found} for {ns}");
        }
        assert_eq!((one.sums.samples, one.sums.outside), (self.preempted.len() as u64, 0));
        let all: u64 = found.values().sum::<u64>() + one.sums.unexplained.total_ns;
        assert_eq!(all, truth.values().sum::<u64>());
    }
}

const BOTH: [&str; 2] = ["samples.csv", "clocks.txt"];

fn lacking(case: &Case) -> Lacking {
    assert!(case.attributed().is_empty(), "{:?}", case.attributed());
    let [one] = case.unattributed() else { panic!("{:?}", case.unattributed()) };
    one.lacking.clone()
}

#[test]
fn a_guests_counter_leads_its_samples_to_a_trace_with_clock_x86_tsc() {
    for seed in 1..4 {
        let guest = Guest::new(seed);
        let case = guest.case(&guest.story.on_tsc(HZ, true), &[OFFSET, OFFSET], &BOTH);
        let [one] = case.attributed() else { panic!("{:?}", case.unattributed()) };
        guest.holds(one, PAIR_NS + 4);
    }
}

#[test]
fn pairs_of_the_host_lead_on_to_a_trace_with_clock_mono() {
    let guest = Guest::new(1);
    let mut recording = guest.recording(&guest.story, &[OFFSET, OFFSET], &BOTH);
    let case = |recording: &Recording| Case::new(kvmscope_analysis::open(recording.clone()).unwrap(), Given::default());
    assert_eq!(lacking(&case(&recording)), Lacking::HostClock("mono".into()));
    let pair = |at, ns: u64| ClockPair {
        machine: Machine::RECORDED.into(),
        at,
        realtime_ns: ns,
        monotonic_ns: ns,
        tsc: Some((u128::from(ns) * u128::from(HZ) / 1_000_000_000) as u64),
        error_ns: 25,
        utc_error_ns: None,
    };
    recording.clock_pairs.push(pair(Moment::Begin, guest.story.truth.from_ns - 1_000_000));
    recording.clock_pairs.push(pair(Moment::End, guest.story.truth.to_ns + 1_000_000));
    let case = case(&recording);
    let [one] = case.attributed() else { panic!("{:?}", case.unattributed()) };
    guest.holds(one, PAIR_NS + 25 + 4);
}

#[test]
fn what_is_missing_is_named_with_the_commands_that_record_it() {
    let guest = Guest::new(2);
    let on_tsc = guest.story.on_tsc(HZ, true);
    let said = |case: &Case| {
        let answers = Answers::of(case);
        let section = answers.sections.iter().find(|section| section.id == "latency").unwrap();
        let missing = section.unknown.iter().find(|unknown| unknown.what == "samples_not_attributed").unwrap();
        (missing.text.clone(), section.next.join("\n"))
    };
    let no_pairs = guest.case(&on_tsc, &[OFFSET, OFFSET], &["samples.csv"]);
    assert_eq!(lacking(&no_pairs), Lacking::Pairs);
    let (text, next) = said(&no_pairs);
    assert!(text.contains("CLOCK_MONOTONIC of L1"), "{text}");
    assert!(next.contains("kvmscope clocks >> clocks.txt") && next.contains("--part L1=clocks.txt"), "{next}");
    for offsets in [&[][..], &[OFFSET, OFFSET + 7]] {
        let no_offset = guest.case(&on_tsc, offsets, &BOTH);
        assert_eq!(lacking(&no_offset), Lacking::Offset, "{offsets:?}");
        assert!(said(&no_offset).1.contains("kvmscope record -o HOST"), "{:?}", said(&no_offset));
    }
    std::fs::write(guest.path("cyclictest.txt"), "# Histogram\n000007 000003\n").unwrap();
    let no_times = guest.case(&on_tsc, &[OFFSET, OFFSET], &["cyclictest.txt", "clocks.txt"]);
    assert_eq!(lacking(&no_times), Lacking::Times);
    assert!(said(&no_times).1.contains("jitterdebugger -s"), "{:?}", said(&no_times));
}

/// A snapshot has the offset of a guest whose own trace has clock x86-tsc too.
#[test]
fn debugfs_in_a_snapshot_aligns_the_trace_of_a_guest() {
    let clock = generate::GuestClock { offset: OFFSET, ..generate::GuestClock::default() };
    let pair = generate::guest::pair(&Scenario::named("interrupts").unwrap().run(1), &clock, 1);
    let directory = tempfile::tempdir().unwrap();
    let host = directory.path().join("host");
    let guest_file = pair.above.on_tsc(1_000_000_000, true).write(TARGET, directory.path()).unwrap();
    let trace = directory.path().join("guest.dat");
    std::fs::rename(guest_file, &trace).unwrap();
    let below = pair.below.on_tsc(1_000_000_000, true).write(TARGET, directory.path()).unwrap();
    std::fs::create_dir_all(host.join("L0")).unwrap();
    std::fs::rename(below, host.join("L0/trace.dat")).unwrap();
    for vcpu in &pair.below.truth.vcpus {
        for sample in ["0", "1"] {
            let place = host.join(format!("L0/host/{sample}/sys/kernel/debug/kvm/9-3/vcpu{}", vcpu.vcpu));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("tsc-offset"), OFFSET.to_string()).unwrap();
            std::fs::write(place.join("pid"), vcpu.tid.to_string()).unwrap();
        }
    }
    let recording = Recording::open(&host).unwrap().with_files(&[Named { level: 1, name: None, path: trace }]).unwrap();
    let case = Case::new(kvmscope_analysis::open(recording).unwrap(), Given::default());
    let aligned = &case.ledger().parts[1].aligned.as_ref().unwrap().alignment;
    assert!(!aligned.cpus.is_empty());
    for cpu in &aligned.cpus {
        assert_eq!(cpu.map.as_ref().map(Map::in_words), Some("the TSC offsets from KVM's debugfs"));
    }
}
