//! Are the simulator's books right? Counted again from its records, in another way than it keeps them.

use generate::scenario::{self, ALL, CIENA_CHAIN, SVM_CHAIN};
use generate::truth::{ExitKey, State};
use generate::{Generation, Scenario, Story, Vendor, reason};
use std::collections::BTreeMap;
use trace::write::Record;

/// Every scenario with every vendor and kernel it can happen with, and many random ones.
fn stories() -> Vec<(String, Story)> {
    let mut stories = Vec::new();
    for scenario in ALL {
        for vendor in [Vendor::Vmx, Vendor::Svm] {
            for generation in Generation::ALL {
                for seed in 1..4 {
                    let name = format!("{} {vendor:?} {generation:?} {seed}", scenario.name);
                    stories.extend(scenario.run_on(vendor, generation, seed).map(|story| (name, story)));
                }
            }
        }
    }
    stories.extend((0..300).map(|seed| (format!("random {seed}"), scenario::random(seed))));
    stories.extend([9, 64].map(|vcpus| (format!("{vcpus} vCPUs"), scenario::wide(vcpus, 1))));
    stories
}

fn name<'s>(story: &'s Story, record: &Record) -> &'s str {
    &story.schema.events[record.event].name
}

fn field(story: &Story, record: &Record, field: &str) -> Option<u64> {
    let at = story.schema.events[record.event].fields.iter().position(|candidate| candidate.name == field)?;
    Some(record.value(at).integer())
}

#[test]
fn every_ledger_closes() {
    for (case, story) in stories() {
        for vcpu in &story.truth.vcpus {
            assert_eq!(vcpu.ledger.values().sum::<u64>(), story.truth.wall_ns(), "{case}: vCPU {}", vcpu.vcpu);
        }
        let times = (story.records[0].ticks, story.records.last().unwrap().ticks);
        assert_eq!(times, (story.truth.from_ns, story.truth.to_ns), "{case}");
    }
}

#[test]
fn no_two_events_of_a_cpu_have_the_same_time() {
    for (case, story) in stories() {
        let mut last = BTreeMap::new();
        for record in &story.records {
            let before = last.insert(record.cpu, record.ticks);
            assert!(
                before.is_none_or(|before| before < record.ticks),
                "{case}: CPU {} at {}",
                record.cpu,
                record.ticks
            );
            assert!(record.cpu < story.cpus, "{case}");
        }
    }
}

#[test]
fn exits_and_injections_are_those_of_the_records() {
    for (case, story) in stories().into_iter().filter(|(_, story)| story.truth.exact()) {
        let mut exits: BTreeMap<u64, u64> = BTreeMap::new();
        let mut injections: BTreeMap<u64, u64> = BTreeMap::new();
        let mut nested = 0;
        for record in &story.records {
            match name(&story, record) {
                "kvm_exit" => *exits.entry(field(&story, record, "exit_reason").unwrap()).or_default() += 1,
                "kvm_nested_vmexit" => nested += 1,
                "kvm_nested_vmexit_inject" => {
                    *injections.entry(field(&story, record, "exit_code").unwrap()).or_default() += 1;
                }
                _ => {}
            }
        }
        let mut booked: BTreeMap<u64, u64> = BTreeMap::new();
        let mut booked_nested = 0;
        for (key, tally) in story.truth.vcpus.iter().flat_map(|vcpu| &vcpu.exits) {
            *booked.entry(key.reason.into()).or_default() += tally.count;
            booked_nested += if key.level > 1 { tally.count } else { 0 };
        }
        let booked_chains: BTreeMap<u64, u64> =
            story.truth.chains().iter().map(|(reason, chains)| (u64::from(*reason), chains.count)).collect();
        assert_eq!(exits, booked, "{case}");
        assert_eq!(nested, booked_nested, "{case}");
        assert_eq!(injections, booked_chains, "{case}");
        for chains in story.truth.chains().values() {
            assert_eq!(chains.count, chains.censored + chains.closed.len() as u64, "{case}");
        }
    }
}

/// Lengths of closed chains by nothing but counting exits between an injection and the next entry that is a nested
/// guest's, which its instruction pointer shows.
fn chain_lengths(story: &Story) -> Vec<u64> {
    let mut lengths = Vec::new();
    let mut open: BTreeMap<i32, u64> = BTreeMap::new();
    for record in &story.records {
        match name(story, record) {
            "kvm_nested_vmexit_inject" => {
                open.insert(record.tid, 0);
            }
            "kvm_exit" => {
                if let Some(count) = open.get_mut(&record.tid) {
                    *count += 1;
                }
            }
            "kvm_entry" if field(story, record, "rip").unwrap() < 0xffff_ffff_c000_0000 => {
                lengths.extend(open.remove(&record.tid));
            }
            _ => {}
        }
    }
    lengths.sort_unstable();
    lengths
}

/// Exits of every closed chain, as the books have them.
fn closed_lengths(story: &Story) -> Vec<u64> {
    let chains = story.truth.chains();
    chains.values().flat_map(|chains| &chains.closed).map(|chain| chain.exits).collect()
}

#[test]
fn chain_lengths_are_those_of_the_records() {
    let told = |story: &Story| story.truth.exact() && story.generation.entry_has_rip();
    for (case, story) in stories().into_iter().filter(|(_, story)| told(story)) {
        // A VMX entry that the hardware refused looks like one here.
        if case.contains("vmx-refused") {
            continue;
        }
        let mut booked = closed_lengths(&story);
        booked.sort_unstable();
        assert_eq!(chain_lengths(&story), booked, "{case}");
    }
}

#[test]
fn the_recipes_have_their_known_lengths() {
    for (scenario, length) in [
        ("vmx-no-shadowing", CIENA_CHAIN),
        ("vmx-shadowing", 3),
        ("svm-no-vls-vgif", SVM_CHAIN),
        ("vmx-apic-timer", 43),
    ] {
        let story = Scenario::named(scenario).unwrap().run(7);
        let lengths = closed_lengths(&story);
        assert_eq!(lengths.len(), 40, "{scenario}");
        assert!(lengths.iter().all(|found| *found == length), "{scenario}: {lengths:?}");
    }
    let story = Scenario::named("vmx-no-shadowing").unwrap().run(7);
    let exits = &story.truth.vcpus[0].exits;
    assert_eq!(exits[&ExitKey { level: 1, reason: reason::vmx::VMREAD }].count, 40 * 28);
    assert_eq!(exits[&ExitKey { level: 1, reason: reason::vmx::VMWRITE }].count, 40 * 13);
}

#[test]
fn time_in_the_guest_is_from_entry_to_exit() {
    // `plain` has nothing else between them; with `interrupts` on a kernel whose exit is late there is.
    for generation in Generation::ALL {
        let story = Scenario::named("plain").unwrap().run_on(Vendor::Vmx, generation, 3).unwrap();
        let (mut guest, mut entered) = (0, None);
        for record in &story.records {
            match name(&story, record) {
                "kvm_entry" => entered = Some(record.ticks),
                "kvm_exit" => guest += record.ticks - entered.take().unwrap(),
                _ => {}
            }
        }
        guest += story.truth.to_ns - entered.unwrap();
        assert_eq!(guest, story.truth.vcpus[0].ns(State::Guest(1)), "{generation:?}");
    }
}

#[test]
fn off_cpu_states_sum_to_the_time_between_task_switches() {
    for (case, story) in stories().into_iter().filter(|(_, story)| story.truth.exact()) {
        for vcpu in &story.truth.vcpus {
            let (mut off, mut left) = (0, None);
            for record in story.records.iter().filter(|record| name(&story, record) == "sched_switch") {
                if field(&story, record, "prev_pid") == Some(vcpu.tid as u64) {
                    left = Some(record.ticks);
                } else if field(&story, record, "next_pid") == Some(vcpu.tid as u64) {
                    off += left.take().map_or(0, |left| record.ticks - left);
                }
            }
            let booked: u64 = vcpu.ledger.iter().filter(|(state, _)| state.is_off_cpu()).map(|(_, ns)| ns).sum();
            assert_eq!(off, booked, "{case}: vCPU {}", vcpu.vcpu);
        }
    }
}

#[test]
fn the_scenarios_show_what_they_are_named_for() {
    let states = |name: &str| {
        let story = Scenario::named(name).unwrap().run(5);
        story.truth.vcpus.iter().flat_map(|vcpu| vcpu.ledger.clone()).collect::<BTreeMap<_, _>>()
    };
    assert!(states("interrupts").contains_key(&State::Softirq));
    assert!(states("halts").contains_key(&State::HaltPoll));
    assert!(states("hogs").contains_key(&State::Blocked));
    assert!(states("l3").contains_key(&State::Guest(3)));
    let moved = Scenario::named("l2-moves").unwrap().run(5).truth.chains();
    assert!(moved.values().any(|chains| {
        chains.closed.iter().any(|chain| chain.moved) && chains.closed.iter().any(|chain| chain.halted)
    }));
    let lossy = Scenario::named("losses").unwrap().run(5).truth;
    assert_eq!(lossy.gaps.len(), 4);
    assert!(lossy.vcpus[0].hidden_ns > 0 && !lossy.exact());
    for seed in 0..20 {
        assert_eq!(scenario::random(seed).records, scenario::random(seed).records);
    }
}
