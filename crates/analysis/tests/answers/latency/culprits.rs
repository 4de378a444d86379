//! Who took the time.

use super::{Ftrace, case, fixture, golden, number, only, section, text, us};
use base::Cell;
use kvmscope_analysis::Given;
use kvmscope_analysis::facts::State;
use kvmscope_analysis::facts::losses::{Definition, LostIn};

#[test]
fn every_loss_of_the_golden_vector_has_its_culprit() {
    let section = section(&golden().case(Given::default()));
    let culprits = section.table("culprits").unwrap();
    let rows: Vec<_> = culprits
        .rows()
        .map(|row| {
            let tid = row.cell("by_tid").cloned().unwrap();
            (text(&row, "state"), text(&row, "by"), tid, number(&row, "count"), number(&row, "total_ns") / 1_000)
        })
        .collect();
    let of =
        |state: &str, by: &str, tid: Cell, count, total_us| (state.to_owned(), by.to_owned(), tid, count, total_us);
    assert_eq!(
        rows,
        [
            of("preempted", "stress", Cell::I64(700), 1, 7_000),
            of("wake_delay", "idle", Cell::I64(0), 1, 2_000),
            of("handling", "EXTERNAL_INTERRUPT", Cell::Missing, 2, 1_000),
            of("irq", "nvme0q1", Cell::Missing, 1, 500),
        ]
    );
    let moments = section.table("moments").unwrap();
    assert!(moments.rows().all(|row| number(&row, "length_ns") == 1_000_000));
    assert!(moments.rows().count() >= 10, "ten moments: {}", moments.rows().count());
}

/// A guest without KVM has no exits: the scheduler alone tells who took its time, and whom it was that nobody took it for.
#[test]
fn a_guest_that_qemu_translates_loses_to_tasks_limits_and_signals() {
    let (vcpu, idle, hog) = ("CPU 0/TCG", "swapper/0", ("hog", 700));
    let mut trace = Ftrace::default();
    trace.switch(0, (idle, 0, "R"), (vcpu, 98));
    trace.line("CPU 0/TCG-98", 1_000, "local_timer_entry: vector=236").line(
        "CPU 0/TCG-98",
        1_010,
        "local_timer_exit: vector=236",
    );
    trace.switch(2_000, (vcpu, 98, "R"), hog).switch(5_000, ("hog", 700, "R"), (vcpu, 98));
    // Of its CPU a quota leaves it nothing.
    trace.switch(6_000, (vcpu, 98, "R"), (idle, 0)).switch(46_000, (idle, 0, "R"), (vcpu, 98));
    // It halts, and then it is stopped.
    trace.switch(50_000, (vcpu, 98, "S"), (idle, 0));
    trace.line("<idle>-0", 60_000, "sched_waking: comm=CPU 0/TCG pid=98 prio=120 target_cpu=000");
    trace.switch(60_020, (idle, 0, "R"), (vcpu, 98)).switch(61_000, (vcpu, 98, "T"), (idle, 0));
    trace.line("<idle>-0", 91_000, "sched_waking: comm=CPU 0/TCG pid=98 prio=120 target_cpu=000");
    trace.switch(91_005, (idle, 0, "R"), (vcpu, 98)).switch(100_000, (vcpu, 98, "S"), (idle, 0));
    let case = trace.case(Given::default());
    let flow = kvmscope_analysis::flow::answer(&case).unwrap().unwrap().section;
    assert!(flow.summary.contains("translates the guest's code"), "{}", flow.summary);
    let section = section(&case);
    let missing = |section: &base::Section| section.unknown.iter().any(|unknown| unknown.text.contains("kvm_exit"));
    assert!(!missing(&flow) && !missing(&section), "there is no KVM whose events could be missing");
    let said = "mostly to throttling (by a CPU quota, or by the limit of real-time threads)";
    assert!(section.summary.contains(said), "nothing tells which limit it was: {}", section.summary);
    let rows = section.table("culprits").unwrap().rows().map(|row| {
        let named = format!("{} {} {:?}", text(&row, "state"), text(&row, "by"), row.cell("by_tid").cloned().unwrap());
        (named, number(&row, "count"), number(&row, "total_ns") / 1_000)
    });
    let of = |named: &str, count, total_us| (named.to_owned(), count, total_us);
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            of("preempted throttled Missing", 1, 40_000),
            of("blocked stopped Missing", 1, 30_000),
            of("preempted hog I64(700)", 1, 3_000),
            of("wake_delay idle I64(0)", 2, 25),
            of("irq local_timer Missing", 1, 10),
        ]
    );
}

/// Where neither entries nor exits fire, as with kvm_pvm, KVM's other work shows whose time is lost; why a guest sleeps it does not.
#[test]
fn a_guest_whose_exits_are_silent_loses_to_tasks_and_sleeps_for_unknown_reasons() {
    let (vcpu, idle, hog, leaves) = ("CPU 0/KVM", "swapper/0", ("hog", 700), ("hog", 700, "S"));
    let mut trace = Ftrace::default();
    trace.switch(0, (idle, 0, "R"), (vcpu, 98)).switch(500, (vcpu, 98, "R"), hog).switch(900, leaves, (vcpu, 98));
    trace.vcpu(1_000, "kvm_cpuid: func 0 idx 0 rax d rbx 1 rcx 2 rdx 3, cpuid entry found");
    trace.switch(2_000, (vcpu, 98, "R"), hog).switch(5_000, leaves, (vcpu, 98));
    trace.switch(6_000, (vcpu, 98, "S"), (idle, 0));
    trace.line("<idle>-0", 8_000, "sched_waking: comm=CPU 0/KVM pid=98 prio=120 target_cpu=000");
    trace.switch(8_100, (idle, 0, "R"), (vcpu, 98)).vcpu(9_000, "kvm_cpuid: func 0 idx 0 rax d rbx 1 rcx 2 rdx 3");
    let case = trace.case(Given::default());
    let losses = only(&case);
    assert_eq!(us(losses.stretches(Definition::Involuntary).spans()), [(2_000, 5_000), (8_000, 8_100)]);
    assert_eq!(
        us(&losses.unknown),
        [(0, 2_000), (5_000, 8_000), (8_100, 9_000)],
        "before anything shows that it is a vCPU, in KVM_RUN, and asleep, for its guest may have halted"
    );
}

#[test]
fn an_nmi_of_the_host_is_lost_and_an_exception_of_the_guest_is_not() {
    for (intr_info, lost_us) in [(0x8000_0202, 7), (0x8000_0b0e, 0)] {
        let mut trace = Ftrace::default();
        trace.entry(0).exit_with(10, "EXCEPTION_NMI", intr_info).entry(17).exit(2_000, "HLT");
        let case = trace.case(Given::default());
        assert_eq!(only(&case).lost.total_ns(), lost_us * 1_000, "{intr_info:#x}");
    }
}

#[test]
fn a_page_fault_is_the_hosts_unless_a_device_answered() {
    let of = |mmio: bool| {
        let mut trace = Ftrace::default();
        trace.entry(0).exit(10, "EPT_VIOLATION");
        if mmio {
            trace.vcpu(12, "kvm_mmio: mmio write len 4 gpa 0xfed000f0 val 0x0");
        }
        trace.entry(19).exit(2_000, "HLT");
        only(&trace.case(Given::default())).lost.total_ns()
    };
    assert_eq!([of(false), of(true)], [9_000, 0]);
}

#[test]
fn the_hog_that_took_the_cpu_sixty_times_is_named() {
    let case = case(&fixture("nested-vmx-shadow-off-hog"), Given::default());
    let part = &case.ledger().parts[0];
    let culprits = only(&case).lost.culprits();
    let preempted = culprits.iter().filter(|(cause, _)| cause.state == LostIn::Preempted);
    let rows: Vec<_> = preempted.map(|(cause, sums)| (cause.by.name(part), cause.by.tid(), *sums)).collect();
    let flow = &part.vcpus[0].sums.preemptors;
    assert!(rows.iter().all(|(_, tid, sums)| flow[tid].count >= sums.count && flow[tid].total_ns >= sums.total_ns));
    let (hog, _, most) = rows.iter().max_by_key(|(_, _, sums)| sums.total_ns).unwrap();
    let all: u64 = rows.iter().map(|(_, _, sums)| sums.count).sum();
    assert_eq!((hog.as_str(), most.count, all), ("busybox", 58, 60), "{rows:?}");
}

#[test]
fn a_vmm_that_sleeps_because_its_guest_halted_takes_nothing_from_it() {
    let (vcpu, idle) = ("CPU 0/KVM", "swapper/0");
    let slept = |reason: &str| {
        let mut trace = Ftrace::default();
        trace.entry(0).exit(100, reason).vcpu(110, "kvm_userspace_exit: reason KVM_EXIT_HLT (5)");
        trace.switch(120, (vcpu, 98, "S"), (idle, 0));
        trace.line("<idle>-0", 900, "sched_waking: comm=CPU 0/KVM pid=98 prio=120 target_cpu=000");
        trace.switch(910, (idle, 0, "R"), (vcpu, 98)).entry(920).exit(2_000, "CPUID");
        us(only(&trace.case(Given::default())).stretches(Definition::Involuntary).spans())
    };
    assert_eq!(slept("HLT"), [(900, 910)], "the wake-up delay alone");
    assert_eq!(slept("IO_INSTRUCTION"), [(120, 910)]);
}

/// A VM that was shut down: its vCPU is not blocked until the recording ends.
#[test]
fn a_thread_that_has_ended_waits_for_nothing() {
    let vcpu = "CPU 0/KVM";
    let mut trace = Ftrace::default();
    trace
        .entry(0)
        .exit(1_000, "CPUID")
        .entry(1_010)
        .exit(2_000, "IO_INSTRUCTION")
        .vcpu(2_100, "kvm_userspace_exit: reason KVM_EXIT_IO (2)");
    trace.switch(3_000, (vcpu, 98, "X"), ("swapper/0", 0));
    trace.line("<idle>-0", 10_000, "local_timer_entry: vector=236");
    let case = trace.case(Given::default());
    assert!(only(&case).lost.total_ns() == 0, "{:?}", only(&case).lost.iter().collect::<Vec<_>>());
    let [part] = case.ledger().parts.as_slice() else { panic!("one trace") };
    let sums = &part.vcpus[0].sums;
    assert_eq!((sums.ns(State::Blocked), sums.ns(State::Unknown)), (0, 7_000_000));
}
