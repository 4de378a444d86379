//! Do samples land in the state that their vCPU was in?
//!
//! A generated trace gets samples at moments of which it is known whose code ran: the generator drew them inside L1's and
//! L2's stretches.

use base::recording::{Named, Recording};
use base::{Level, Narrow};
use generate::guest::pair;
use generate::scenario::Scenario;
use generate::{GuestClock, Story, Target};
use kvmscope_analysis::facts::walk::samples::{Mode, profile};
use kvmscope_analysis::facts::{State, TracedLevel};
use kvmscope_analysis::flow::answer;
use kvmscope_analysis::flow::tables::sampled_stacks;
use kvmscope_analysis::{Case, Given};
use std::collections::BTreeMap;
use trace::format::Endian;
use trace::write::Record;
use trace::write::tracedat::Compression;
use trace::{Batch, EventType, Facts, FieldKind, FieldType, Lane, Reading, Source, Trace};

/// A trace with samples beside its events.
struct Sampled {
    inner: Box<dyn Trace>,
    facts: Facts,
    /// Time, thread, mode, address.
    samples: Vec<(u64, i32, u64, u64)>,
    kallsyms: String,
}

impl Trace for Sampled {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn lanes<'t>(&'t self, reading: &'t Reading<'t>) -> Vec<Lane<'t>> {
        let mut lanes = self.inner.lanes(reading);
        let Some(kind) = reading.request.kind_of(self.facts.event_types.last().unwrap()) else { return lanes };
        let mut batch = Batch::default();
        batch.clear(self.facts.event_types.len());
        for (at_ns, tid, mode, ip) in &self.samples {
            batch.begin(*at_ns, kind as u16, 0, *tid, 0b111);
            [*ip, *mode, 1_000].into_iter().for_each(|value| batch.value(value));
        }
        let source = Source::Sequence(Box::new(std::iter::once(batch)));
        lanes.push(Lane { name: "samples".into(), cpu: Some(0), bytes: 0, source });
        lanes
    }

    fn kallsyms(&self) -> Option<String> {
        Some(self.kallsyms.clone())
    }
}

fn counter() -> EventType {
    let field = |name: &str| FieldType { name: name.into(), kind: FieldKind::Unsigned, labels: Vec::new() };
    EventType { system: "perf".into(), name: "cycles".into(), fields: ["ip", "cpumode", "period"].map(field).to_vec() }
}

#[test]
fn samples_land_in_the_guest_that_ran() {
    for (name, seed) in [("vmx-no-shadowing", 1), ("svm-no-vls-vgif", 2)] {
        let story = Scenario::named(name).unwrap().run(seed);
        let pair = pair(&story, &GuestClock::default(), seed);
        let directory = tempfile::tempdir().unwrap();
        let target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };
        let path = story.write(target, directory.path()).unwrap();
        let mut input = kvmscope_analysis::open(Recording::of_files(&[Named::at_l0(path)], None).unwrap()).unwrap();
        let tid = story.truth.vcpus[0].tid;
        let kernel = 0xffff_ffff_8100_0010u64;
        let own = pair.true_ns.iter().map(|at| (*at, tid, 4, 0x10));
        let nested = pair.nested.iter().map(|(at, _)| (*at, tid, 5, 0x20));
        let mut samples: Vec<(u64, i32, u64, u64)> = own.chain(nested).collect();
        samples.push((story.truth.to_ns - 1, 1, 1, kernel));
        // A timer's sample is taken when the exit has been written already.
        let late = behind_exits(&story, tid);
        samples.extend(late.iter().map(|at| (*at, tid, 4, 0x10)));
        assert!(!late.is_empty());
        samples.push((samples[0].0, tid, 1, kernel));
        // The last event of all is a sample.
        samples.push((story.truth.to_ns, tid, 4, 0x10));
        samples.sort_unstable();
        let part = &mut input.parts[0];
        let open = std::mem::replace(&mut part.trace, trace::open(&input.recording.parts[0].path).unwrap());
        let mut facts = open.facts().clone();
        facts.event_types.push(counter());
        let kallsyms = "ffffffff81000000 T vcpu_enter_guest\n".to_owned();
        part.trace = Box::new(Sampled { inner: open, facts, samples, kallsyms });

        let mut found: BTreeMap<(String, Mode), u64> = BTreeMap::new();
        for (place, (samples, period)) in profile(part, &[]) {
            assert!(place.tid == tid, "the other thread is no vCPU");
            assert_eq!(period, 1_000 * samples);
            *found.entry((format!("{:?}", place.state), place.mode)).or_default() += samples;
        }
        let guest = |level: TracedLevel, mode| (format!("{:?}", State::Guest(level)), mode);
        let expected = BTreeMap::from([
            (guest(TracedLevel::L1, Mode::GuestKernel), (pair.true_ns.len() + late.len() + 1) as u64),
            (guest(TracedLevel::L2, Mode::GuestUser), pair.nested.len() as u64),
            (guest(TracedLevel::L1, Mode::Kernel), 1),
        ]);
        assert_eq!(found, expected, "{name}");

        let case = Case::new(input, Given::default());
        assert_eq!(case.ledger().parts[0].profile.len(), 3);
        let section = answer(&case).unwrap().unwrap().section;
        let table = section.tables.iter().find(|table| table.spec.name == "profile").unwrap();
        let stacks: Vec<String> = (0..3).map(|row| format!("{:?}", table.cell(row, "stack").unwrap())).collect();
        assert!(stacks.iter().any(|stack| stack.ends_with("L1;guest;kernel;vcpu_enter_guest\")")), "{stacks:?}");
        assert!(stacks.iter().any(|stack| stack.ends_with("L2;guest;guest_user;user_code\")")), "{stacks:?}");
        let of_level = |level| {
            let narrow = Narrow { level, ..Narrow::default() };
            sampled_stacks(case.ledger(), &Given { narrow, ..Given::default() })
        };
        let (all, nested) = (of_level(None), of_level(Some(Level::At(2))));
        assert_eq!(all.values().sum::<u64>(), expected.values().sum::<u64>());
        assert_eq!(nested.values().sum::<u64>(), pair.nested.len() as u64);
        assert!(nested.keys().all(|frames| frames[2..] == ["L2", "guest", "guest user", "user code"]), "{nested:?}");
    }
}

/// Moments just behind exits of L1 itself: those before its first guest.
fn behind_exits(story: &Story, tid: i32) -> Vec<u64> {
    let name = |record: &Record| story.schema.events[record.event].name.as_str();
    let own = story.records.iter().filter(|record| record.tid == tid);
    let before = own.take_while(|record| !name(record).starts_with("kvm_nested"));
    before.filter(|record| name(record) == "kvm_exit").map(|record| record.ticks + 1).collect()
}
