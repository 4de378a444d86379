//! What trace-cmd writes into its files of hosts and guests: which thread is which CPU, and clock samples.

use super::generated::{TARGET, on_tsc, score, story};
use base::Clock;
use generate::GuestClock;
use generate::guest::pair;
use kvmscope_analysis::Part;
use kvmscope_analysis::facts::align::{self, Map};
use trace::facts::{Guest, TimeShift};
use trace::{Facts, Lane, Reading, Trace};

/// A trace whose file says more.
struct Says {
    inner: Box<dyn Trace>,
    facts: Facts,
}

impl Trace for Says {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn lanes<'t>(&'t self, reading: &'t Reading<'t>) -> Vec<Lane<'t>> {
        self.inner.lanes(reading)
    }
}

fn part(inner: Box<dyn Trace>, machine: &str, level: u8, say: impl Fn(&mut Facts)) -> Part {
    let mut facts = inner.facts().clone();
    say(&mut facts);
    let level = base::Level::At(level);
    Part {
        index: usize::from(level != base::Level::L0),
        level,
        machine: machine.into(),
        trace: Box::new(Says { inner, facts }),
        tsc: None,
        processes: Default::default(),
        cut_from: Default::default(),
        resumed_ns: Vec::new(),
        emulated: false,
    }
}

#[test]
fn trace_cmds_samples_place_a_guest_that_only_the_file_names() {
    let offset = -60_000_000_000;
    let pair = on_tsc(&pair(&story("two-vms", 9), &GuestClock { offset, ..GuestClock::default() }, 9));
    let tids: Vec<i32> = pair.below.truth.vcpus.iter().take(2).map(|vcpu| vcpu.tid).collect();
    // The generator took all threads for one guest's; the guest of this test has the first two.
    let directory = tempfile::tempdir().unwrap();
    let write = |story: &generate::Story, name: &str| {
        let place = directory.path().join(name);
        std::fs::create_dir(&place).unwrap();
        trace::open(&story.write(TARGET, &place).unwrap()).unwrap()
    };
    let vcpu_tids: Vec<(u32, i32)> = (0..).zip(tids.iter().copied()).collect();
    let below = part(write(&pair.below, "L0"), "L0", 0, |facts| {
        facts.trace_id = Some(7);
        facts.guests = vec![Guest { name: "web".into(), trace_id: 8, vcpu_tids: vcpu_tids.clone() }];
    });
    // Stored negated: what to add to the guest's time. Two samples that differ bound what lies between them.
    let add = -offset;
    for (samples, error) in [(vec![(0, add, 1)], 0), (vec![(0, add - 40, 1), (u64::MAX, add + 60, 1)], 50)] {
        let guest = part(write(&pair.above, &format!("L1-{error}")), "L1", 1, |facts| {
            facts.trace_id = Some(8);
            let samples = vec![samples.clone(); 2];
            facts.time_shifts = vec![TimeShift { peer: 7, flags: 1, samples, fraction_bits: vec![0, 0] }];
        });
        let clock = Clock::with_frequency("x86-tsc", 1_000_000_000);
        let vm_of = |tid: i32| Some(format!("vm{tid}"));
        let alignment = align::align((&below, &clock), (&guest, &clock), &[], None, &vm_of);
        let found: Vec<i32> = alignment.cpus.iter().map(|cpu| cpu.vcpu.tid).collect();
        assert_eq!(found, tids);
        assert!(alignment.cpus.iter().all(|cpu| matches!(cpu.map, Some(Map::Shift(..)))));
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed, worst_ns), (&[][..], pair.true_ns.len(), f64::from(error)));
    }
}
