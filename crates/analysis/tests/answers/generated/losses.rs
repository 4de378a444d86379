//! What losses may do to an answer: make it poorer, never wrong.

use super::answer::{Answer, UNKNOWN_TASK};
use super::equal::{flow, torture};
use super::limits::{self, Missing};
use super::lost;
use generate::scenario::{self, Scenario};
use generate::{Generation, Random, Story, Target, Vendor};
use kvmscope_analysis::facts::ledger::model::PartFlow;
use std::collections::BTreeMap;
use std::ops::Range;
use trace::write::{Loss, Record, Value};

/// `prev_state` of a task that sleeps (include/linux/sched.h, Linux 6.12).
const TASK_INTERRUPTIBLE: u64 = 1;

/// Where the answer says more than is true.
fn too_much(story: &Story, target: Target) -> Vec<String> {
    too_much_of(story, target, &flow(story, target))
}

/// Where `part`, made of `story` or of a part of it, says more than is true.
pub(super) fn too_much_of(story: &Story, target: Target, part: &PartFlow) -> Vec<String> {
    let missing = limits::of(story, target);
    let (mut expected, mut found) = (Answer::true_of(&story.truth), Answer::found_in(part));
    let mut wrong = Vec::new();
    for (tid, answer) in &found {
        if answer.wall_ns() != part.window.length_ns() {
            wrong.push(format!("thread {tid}: the ledger does not close"));
        }
    }
    for missing in &missing {
        expected.values_mut().chain(found.values_mut()).for_each(|answer| missing.taken_from(answer));
    }
    for vcpu in &story.truth.vcpus {
        let (expected, Some(found)) = (&expected[&vcpu.tid], found.get(&vcpu.tid)) else { continue };
        let mut more = |what: &str, found: u64, limit: u64| {
            if found > limit {
                wrong.push(format!("thread {}: {what} {found}, true {limit}", vcpu.tid));
            }
        };
        let unknown = |answer: &Answer| answer.ledger.get("unknown_ns").copied().unwrap_or(0);
        for (column, ns) in found.ledger.iter().filter(|(column, _)| !column.contains("unknown")) {
            more(column, *ns, expected.ledger.get(column).copied().unwrap_or(0));
        }
        if !missing.contains(&Missing::Nanoseconds) {
            more("known", vcpu.hidden_ns + unknown(expected), unknown(found));
        }
        for (task, (_, total_ns)) in found.preemptors.iter().filter(|(task, _)| *task != UNKNOWN_TASK) {
            more(&format!("ns of {task}"), *total_ns, expected.preemptors.get(task).copied().unwrap_or_default().1);
        }
        for (reason, (count, total_ns)) in by_reason(found) {
            let limit = by_reason(expected).get(&reason).copied().unwrap_or_default();
            more(&reason, count, limit.0);
            more(&format!("ns of {reason}"), total_ns, limit.1);
        }
        for ((level, reason), (count, _)) in found.exits.iter().filter(|((level, _), _)| level != "L?") {
            let key = (level.clone(), reason.clone());
            more(&format!("{level} {reason}"), *count, expected.exits.get(&key).copied().unwrap_or_default().0);
        }
        for (reason, chains) in &found.chains {
            let limit = expected.chains.get(reason).cloned().unwrap_or_default();
            more(&format!("chains {reason}"), chains.count, limit.count);
            for (length, count) in &chains.lengths {
                let limit = limit.lengths.get(length).copied().unwrap_or(0);
                more(&format!("chains {reason} of {length} exits"), *count, limit);
            }
        }
    }
    wrong
}

/// Exits of all levels: an exit whose level was lost is still an exit.
fn by_reason(answer: &Answer) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for ((_, reason), (count, ns)) in &answer.exits {
        let sum = sums.entry(reason.clone()).or_default();
        *sum = (sum.0 + count, sum.1 + ns);
    }
    sums
}

#[test]
fn a_marked_gap_takes_from_the_answer_and_adds_nothing() {
    let scenario = Scenario::named("losses").unwrap();
    for vendor in [Vendor::Vmx, Vendor::Svm] {
        for generation in Generation::ALL {
            for seed in 1..=2 * torture() {
                let story = scenario.run_on(vendor, generation, seed).unwrap();
                let all = seed == 1 && generation == scenario.usual;
                let targets = if all { Target::all() } else { vec![Target::TextRaw, Target::TextPrinted] };
                for target in targets {
                    let mut wrong = too_much(&story, target);
                    wrong.extend(lost::of_story(&story, target));
                    let case = format!("{vendor:?} {generation:?} {seed} as {}", target.name());
                    assert!(wrong.is_empty(), "{case}\n{}", wrong.join("\n"));
                }
            }
        }
    }
}

#[test]
fn most_of_what_a_gap_left_is_told() {
    for vendor in [Vendor::Vmx, Vendor::Svm] {
        let story = Scenario::named("losses").unwrap().run_on(vendor, Generation::V6_12, 1).unwrap();
        for target in Target::all().into_iter().filter(|target| *target != Target::TextPrinted) {
            let found = &Answer::found_in(&flow(&story, target))[&170];
            let truth = &story.truth.vcpus[0];
            let left_ns = found.wall_ns() - truth.hidden_ns;
            let told_ns = found.wall_ns() - found.ledger["unknown_ns"];
            assert!(told_ns * 100 > left_ns * 95, "{vendor:?} as {}: {told_ns} of {left_ns} ns", target.name());
        }
    }
}

/// True where all CPUs share one stream: a loss is heard of when it is over, and what other CPUs told meanwhile has been
/// believed. Then only exits are bounded by the truth.
fn tells_losses_late(target: Target) -> bool {
    matches!(target, Target::PerfData { .. } | Target::TextRaw | Target::TextPrinted)
}

/// `story` without what some CPU recorded in some stretch.
fn with_gap(story: Story, random: &mut Random) -> Story {
    let (from, to) = (story.truth.from_ns, story.truth.to_ns);
    let begin = random.between(from, to);
    let end = begin + random.between(1_000, (to - from) / 5);
    let cpu = random.between(0, u64::from(story.cpus)) as u32;
    without(story, cpu, begin..end)
}

/// `story` without what `cpu` recorded in `stretch`.
fn without(mut story: Story, cpu: u32, stretch: Range<u64>) -> Story {
    let inside = |record: &Record| record.cpu == cpu && stretch.contains(&record.ticks);
    let gone = story.records.iter().filter(|record| inside(record)).count() as u64;
    let next = story.records.iter().find(|record| record.cpu == cpu && record.ticks >= stretch.end);
    // A loss is marked by the next event of its CPU: without one nothing tells of it.
    if let Some(ticks) = next.map(|record| record.ticks).filter(|_| gone > 0) {
        story.records.retain(|record| !inside(record));
        story.losses.push(Loss { ticks, cpu, events: Some(gone) });
        story.losses.sort_by_key(|loss| loss.ticks);
    }
    story
}

#[test]
fn a_sleep_whose_exit_is_lost_has_no_cause_even_before_the_first_exit_of_the_trace() {
    let mut sleeps = 0;
    for seed in 0..30 {
        let story = scenario::random(seed);
        let name = |record: &Record| story.schema.events[record.event].name.as_str();
        let vcpu = |record: &&Record| story.truth.vcpus.iter().any(|vcpu| vcpu.tid == record.tid);
        let goes_to_sleep = |record: &&Record| {
            name(record) == "sched_switch" && record.values.get(3) == Some(&Value::Integer(TASK_INTERRUPTIBLE))
        };
        let Some(switch) = story.records.iter().filter(vcpu).find(goes_to_sleep).map(|record| record.ticks) else {
            continue;
        };
        sleeps += 1;
        let begin = story.truth.from_ns + 1;
        let story = (0..story.cpus).fold(story, |story, cpu| without(story, cpu, begin..switch));
        for target in Target::all().into_iter().filter(|target| !tells_losses_late(*target)) {
            let wrong = too_much(&story, target);
            assert!(wrong.is_empty(), "{seed} as {}\n{}", target.name(), wrong.join("\n"));
        }
    }
    assert!(sleeps > 10, "{sleeps} stories have a sleep");
}

#[test]
fn gaps_anywhere_in_any_story_add_nothing() {
    let mut random = Random::new(7);
    for seed in 0..120 * torture() {
        let story = (0..random.between(1, 4)).fold(scenario::random(seed), |story, _| with_gap(story, &mut random));
        let target = random.pick(&Target::all());
        let mut wrong = too_much(&story, target);
        if tells_losses_late(target) {
            wrong.retain(|line| line.contains("close") || line.contains(": L"));
        }
        wrong.extend(lost::of_story(&story, target));
        let case = format!("{seed}, {:?} {:?} as {}", story.vendor, story.generation, target.name());
        assert!(wrong.is_empty(), "{case}\n{}", wrong.join("\n"));
    }
}
