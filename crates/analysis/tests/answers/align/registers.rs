//! MSRs that a guest reads and writes, and what the machine below did for it: clocks by equal values alone.

use super::generated::{TARGET, aligned_but, input, methods, score};
use base::Clock;
use generate::guest::pair;
use generate::scenario::Scenario;
use generate::{Generation, GuestClock, Pair, Vendor};
use kvmscope_analysis::facts::align::pairing::By;
use kvmscope_analysis::facts::align::{self, Alignment, Map};
use kvmscope_analysis::{Case, Given};
use trace::write::Value;

/// A guest that accesses MSRs, and has no guest and no interrupt.
const REGISTERS: &str = "registers";
const ACCESSES: [&str; 2] = ["write_msr", "read_msr"];

fn told(name: &str, vendor: Vendor, seed: u64, clock: GuestClock) -> Pair {
    let story = Scenario::named(name).unwrap().run_on(vendor, Generation::V6_12, seed).unwrap();
    pair(&story, &clock, seed)
}

fn aligned(pair: &Pair, hidden: &[&str]) -> Alignment {
    aligned_but(&pair.below, &pair.above, None, hidden)
}

fn vendors() -> impl Iterator<Item = (Vendor, u64)> {
    [Vendor::Vmx, Vendor::Svm].into_iter().flat_map(|vendor| (1..8).map(move |seed| (vendor, seed)))
}

#[test]
fn a_guest_without_guests_and_interrupts_is_placed_by_its_msrs() {
    for (vendor, seed) in vendors() {
        let drift_ppb = (seed as i64 - 4) * 90_000;
        let pair =
            told(REGISTERS, vendor, seed, GuestClock { offset: -31_000_000_000, drift_ppb, ..GuestClock::default() });
        let alignment = aligned(&pair, &[]);
        assert_eq!(methods(&alignment), ["causal_lines"]);
        let (wrong, placed, worst_ns) = score(&pair, &alignment);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{vendor:?} {seed}");
        assert!(worst_ns < 3_000.0, "{vendor:?} {seed}: {worst_ns} ns");
        let cpu = &alignment.cpus[0];
        let Some(Map::Lines(lines)) = &cpu.map else { panic!("{vendor:?}") };
        let (flat, steep) = lines.slopes();
        let slope = 1.0 / (1.0 + drift_ppb as f64 * 1e-9);
        assert!((flat..=steep).contains(&slope), "{slope} not in {flat} to {steep}");
        assert_eq!((cpu.outside.violations, cpu.common.len(), cpu.interrupts), (0, 0, 0));
        assert_eq!(methods(&aligned(&pair, &ACCESSES)), ["none"], "nothing else tells");
    }
}

#[test]
fn every_access_that_exits_and_is_told_is_matched_and_no_other() {
    for (vendor, seed) in vendors() {
        let pair = told(REGISTERS, vendor, seed, GuestClock::default());
        let cpu = &aligned(&pair, &[]).cpus[0];
        let unseen = cpu.own.accesses.iter().filter(|access| access.msr == 0xc000_0100).count();
        assert_eq!(cpu.accesses.len() + unseen, cpu.own.accesses.len(), "{vendor:?} {seed}");
        assert!(cpu.accesses.iter().all(|(low, _)| cpu.vcpu.accesses[*low].msr != 0x80b), "ends of interrupts");
        assert!(unseen > 0 && cpu.accesses.len() > 40);
        // The clock is the host's own: an access was told behind what KVM did for it.
        let later = |(low, high): &(usize, usize)| cpu.own.accesses[*high].at > cpu.vcpu.accesses[*low].at;
        assert!(cpu.accesses.iter().all(later));
    }
}

#[test]
fn a_guest_that_was_recorded_for_a_shorter_time_is_placed_by_its_msrs() {
    for (vendor, seed) in vendors() {
        let mut pair = told(REGISTERS, vendor, seed, GuestClock { offset: 5_000, ..GuestClock::default() });
        let kept = pair.true_ns.len() / 4..pair.true_ns.len() * 3 / 4;
        pair.above.records = pair.above.records[kept.clone()].to_vec();
        pair.true_ns = pair.true_ns[kept].to_vec();
        let (wrong, placed, _) = score(&pair, &aligned(&pair, &[]));
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()), "{vendor:?} {seed}");
    }
}

#[test]
fn values_of_another_run_or_changed_ones_give_no_pair() {
    for (vendor, seed) in vendors() {
        let (one, other) = (
            told(REGISTERS, vendor, seed, GuestClock::default()),
            told(REGISTERS, vendor, seed + 100, GuestClock::default()),
        );
        let strange = aligned_but(&one.below, &other.above, None, &[]);
        assert_eq!((methods(&strange), strange.cpus[0].accesses.len()), (vec!["none"], 0), "{vendor:?} {seed}");
        let mut changed = one.clone();
        let val = |name: &str| changed.above.schema.events.iter().position(|event| event.name == name).unwrap();
        let kinds = ACCESSES.map(val);
        for record in changed.above.records.iter_mut().filter(|record| kinds.contains(&record.event)) {
            let Value::Integer(value) = &mut record.values[1] else { panic!("a value is a number") };
            *value ^= 1 << 40;
        }
        let alignment = aligned(&changed, &[]);
        assert_eq!((methods(&alignment), alignment.cpus[0].accesses.len()), (vec!["none"], 0), "{vendor:?} {seed}");
    }
}

#[test]
fn cpus_of_a_guest_without_a_name_are_paired_by_their_msrs() {
    for (vendor, seed) in vendors() {
        let story = Scenario::named("registers-of-two").unwrap().run_on(vendor, Generation::V6_12, seed).unwrap();
        let vm_of = |tid: i32| Some(if tid < 3_000 { "web" } else { "db" }.to_owned());
        for vm in ["web", "db"] {
            let mut of_one = story.clone();
            of_one.truth.vcpus.retain(|vcpu| vcpu.vm == vm);
            let tids: Vec<i32> = of_one.truth.vcpus.iter().map(|vcpu| vcpu.tid).collect();
            let pair =
                pair(&of_one, &GuestClock { offset: 3_000_000, drift_ppb: 200_000, ..GuestClock::default() }, seed);
            let directory = tempfile::tempdir().unwrap();
            let input = input(directory.path(), &[&pair.below, &pair.above]);
            let clocks: Vec<Clock> = input.parts.iter().map(|part| part.trace.facts().clock.clone()).collect();
            let aligned = |hidden: &[&str]| {
                let [below, above] = [0, 1].map(|place| (&input.parts[place], &clocks[place]));
                let ignored: Vec<String> = hidden.iter().map(|name| (*name).to_owned()).collect();
                align::align(below, above, &ignored, None, &vm_of)
            };
            assert!(aligned(&ACCESSES).cpus.is_empty(), "two VMs have such CPUs");
            let alignment = aligned(&[]);
            let found: Vec<(i32, By)> = alignment.cpus.iter().map(|cpu| (cpu.vcpu.tid, cpu.paired_by)).collect();
            assert_eq!(found, [(tids[0], By::Registers), (tids[1], By::Registers)], "{vendor:?} {seed} {vm}");
            let (wrong, placed, _) = score(&pair, &alignment);
            assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()));
        }
    }
}

#[test]
fn a_clock_that_is_no_line_is_never_placed_wrong_by_msrs() {
    for (vendor, seed) in vendors() {
        for (jump, step_every) in [(5_000_000, 0), (-3_000, 0), (0, 1), (0, 7)] {
            let pair = told(
                REGISTERS,
                vendor,
                seed,
                GuestClock { offset: 7_000_000, jump, step_every, ..GuestClock::default() },
            );
            if pair.above.records.windows(2).any(|two| two[0].ticks > two[1].ticks) {
                continue;
            }
            let alignment = aligned(&pair, &[]);
            let (wrong, placed, _) = score(&pair, &alignment);
            assert!(wrong.is_empty(), "{seed} {jump} {step_every}: {:?} {wrong:?}", methods(&alignment));
            assert!(placed * 2 > pair.true_ns.len(), "{seed} {jump} {step_every}: {placed} placed");
        }
    }
}

#[test]
fn msrs_of_a_guest_of_the_guest_are_not_the_guests() {
    for (vendor, own) in [(Vendor::Vmx, 0), (Vendor::Svm, 160)] {
        let pair = told("hypercalls", vendor, 3, GuestClock { offset: 1_000_000, ..GuestClock::default() });
        let served =
            pair.below.records.iter().filter(|one| pair.below.schema.events[one.event].name == "kvm_msr").count();
        let with = aligned(&pair, &[]);
        let cpu = &with.cpus[0];
        assert_eq!((served - own, cpu.vcpu.accesses.len(), cpu.accesses.len()), (22, own, own), "{vendor:?}");
        let (wrong, placed, with_ns) = score(&pair, &with);
        assert_eq!((wrong.as_slice(), placed), (&[][..], pair.true_ns.len()));
        let (.., without_ns) = score(&pair, &aligned(&pair, &ACCESSES));
        assert!(with_ns <= without_ns, "{with_ns} ns, without MSRs {without_ns} ns");
    }
}

#[test]
fn the_report_counts_what_the_alignment_is_made_of() {
    let pair = told(REGISTERS, Vendor::Vmx, 2, GuestClock { offset: 9_000_000, ..GuestClock::default() });
    let directory = tempfile::tempdir().unwrap();
    let input = input(directory.path(), &[&pair.below, &pair.above]);
    let case = Case::new(input, Given::default());
    let section = kvmscope_analysis::flow::answer(&case).unwrap().unwrap().section;
    let found = aligned(&pair, &[]).cpus[0].accesses.len();
    assert!(section.summary.contains(&format!("({found} MSR accesses)")), "{}", section.summary);
    let table = section.tables.iter().find(|table| table.spec.name == "alignment").unwrap();
    let cell = |name: &str| {
        let place = table.column(name).unwrap();
        table.rows[0][place].clone()
    };
    let counts = ["exit_pairs", "interrupt_pairs", "msr_pairs"].map(cell);
    assert_eq!(counts, [0, 0, found as u64].map(base::Cell::from), "{TARGET:?}");
}
