//! A switch that the trace does not have: what it would have told is unknown, and nothing is made up for it.

use super::equal::flow_of;

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
