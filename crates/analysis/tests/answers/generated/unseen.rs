//! A switch that the trace does not have: what it would have told is unknown, and nothing is made up for it.

use super::equal::{flow, flow_of, torture};
use super::losses::too_much_of;
use generate::{Story, Target, scenario};
use kvmscope_analysis::facts::State;
use kvmscope_analysis::facts::ledger::model::PartFlow;
use std::path::Path;
use trace::format::Endian;
use trace::write::Value;
use trace::write::tracedat::Compression;

/// The vCPU loses CPU 0 and is seen on CPU 1 without having been switched in.
const TRACE: &str = "\
  qemu-10 [000] 1.000000: kvm_userspace_exit: reason KVM_EXIT_IO (2)
  qemu-10 [000] 1.001000: sched_switch: prev_comm=qemu prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=20 next_prio=120
  qemu-10 [001] 1.002000: kvm_userspace_exit: reason KVM_EXIT_IO (2)
  hog-20  [000] 1.010000: sched_switch: prev_comm=hog prev_pid=20 prev_prio=120 prev_state=R ==> next_comm=next next_pid=30 next_prio=120
  qemu-10 [001] 1.011000: kvm_userspace_exit: reason KVM_EXIT_IO (2)
  next-30 [000] 1.020000: sched_switch: prev_comm=next prev_pid=30 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

#[test]
fn a_thread_that_runs_elsewhere_waits_no_longer() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.txt");
    std::fs::write(&file, TRACE).unwrap();
    let part = flow_of(&file);
    assert_eq!(part.vcpus.iter().map(|vcpu| vcpu.tid).collect::<Vec<_>>(), [10]);
    assert_eq!(part.doubts.unseen_switches, 1);
    assert!(part.vcpus[0].sums.preemptors.is_empty(), "{:?}", part.vcpus[0].sums.preemptors);
}

/// What is charged to tasks is waited, and nobody waits for itself.
fn assert_waits_add_up(part: &PartFlow, case: &str) {
    for vcpu in &part.vcpus {
        let waited_ns = vcpu.sums.ns(State::Preempted);
        let charged_ns: u64 = vcpu.sums.preemptors.values().map(|by| by.total_ns).sum();
        assert!(charged_ns <= waited_ns, "{case}, thread {}: {charged_ns} of {waited_ns} ns", vcpu.tid);
        assert!(!vcpu.sums.preemptors.contains_key(&Some(vcpu.tid)), "{case}: thread {} waits for itself", vcpu.tid);
    }
}

#[test]
fn what_is_charged_was_waited_in_every_fixture() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut traces = 0;
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let directory = entry.unwrap().path();
        let parts = [directory.join("L0/trace.dat"), directory.join("L1/trace.dat"), directory.join("L0/ctf")];
        for part in parts.iter().filter(|part| part.exists()) {
            assert_waits_add_up(&flow_of(part), &part.display().to_string());
            traces += 1;
        }
    }
    assert!(traces >= 8, "{traces}");
}

/// `story` as `set_event_pid` records its vCPU threads: switches between others are not there.
fn of_vcpus_alone(mut story: Story) -> Story {
    let tids: Vec<u64> = story.truth.vcpus.iter().map(|vcpu| vcpu.tid as u64).collect();
    let schema = &story.schema.events;
    story.records.retain(|record| {
        let kind = &schema[record.event];
        let fields = kind.fields.iter().zip(&record.values).filter(|(field, _)| field.name.ends_with("_pid"));
        let is_own = |value: &Value| matches!(value, Value::Integer(tid) if tids.contains(tid));
        kind.name != "sched_switch" || fields.into_iter().any(|(_, value)| is_own(value))
    });
    story
}

#[test]
fn a_recording_of_chosen_tasks_charges_nobody_whose_switches_it_lacks() {
    let target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };
    let mut unknown = 0;
    for seed in 0..60 * torture() {
        let story = scenario::random(seed);
        assert_waits_add_up(&flow(&story, target), &format!("{seed}"));
        let chosen = of_vcpus_alone(story);
        let part = flow(&chosen, target);
        assert_waits_add_up(&part, &format!("{seed}, chosen tasks"));
        let wrong = too_much_of(&chosen, target, &part);
        assert!(wrong.is_empty(), "{seed}\n{}", wrong.join("\n"));
        unknown += part.vcpus.iter().filter(|vcpu| vcpu.sums.preemptors.contains_key(&None)).count();
    }
    assert!(unknown > 0, "no story lacks a switch");
}

#[test]
fn what_a_missing_cpu_hides_is_unknown() {
    let target = Target::Ctf1 { endian: Endian::Little, lttng: false };
    let mut hidden = 0;
    for seed in 0..60 * torture() {
        let story = scenario::random(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = story.write(target, directory.path()).unwrap();
        let Some(stream) = streams(&path).pop().filter(|_| story.cpus > 1) else { continue };
        std::fs::write(stream, "").unwrap();
        let part = flow_of(&path);
        assert_waits_add_up(&part, &format!("{seed}"));
        let mut wrong = too_much_of(&story, target, &part);
        wrong.retain(|line| !line.contains(": known"));
        assert!(wrong.is_empty(), "{seed}\n{}", wrong.join("\n"));
        hidden += part.unseen_cpus.len();
    }
    assert!(hidden > 10, "{hidden} CPUs were missed");
}

/// The stream files of a CTF trace, in the order of CPUs.
fn streams(trace: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(trace).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.is_file() && !path.ends_with("metadata")).collect();
    files.sort();
    files
}
