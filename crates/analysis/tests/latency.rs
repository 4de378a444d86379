//! What the host took from vCPUs, held against recordings whose losses are known.

use base::recording::{Named, Recording};
use base::table::Row;
use base::{Cell, Section, Span};
use kvmscope_analysis::facts::losses::{Definition, Limit, LostIn, Stretches, VcpuLosses};
use kvmscope_analysis::{Case, Given, Input, LossOptions, latency};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn case_of(path: &Path, given: Given) -> Case {
    Case::new(Input::open(Recording::open(path).unwrap()).unwrap(), given)
}

/// Lines of ftrace's text, with times in us.
#[derive(Default)]
struct Ftrace(String);

impl Ftrace {
    fn line(&mut self, who: &str, at_us: u64, event: &str) -> &mut Self {
        let (seconds, us) = (1 + at_us / 1_000_000, at_us % 1_000_000);
        writeln!(self.0, " {who} [000] d..2. {seconds}.{us:06}: {event}").unwrap();
        self
    }

    fn vcpu(&mut self, at_us: u64, event: &str) -> &mut Self {
        self.line("CPU 0/KVM-98", at_us, event)
    }

    fn entry(&mut self, at_us: u64) -> &mut Self {
        self.vcpu(at_us, "kvm_entry: vcpu 0, rip 0x1000")
    }

    fn exit(&mut self, at_us: u64, reason: &str) -> &mut Self {
        self.exit_with(at_us, reason, 0)
    }

    fn exit_with(&mut self, at_us: u64, reason: &str, intr_info: u32) -> &mut Self {
        let fields = format!("rip 0x1000 info1 0x0 info2 0x0 intr_info {intr_info:#x} error_code 0x0");
        self.vcpu(at_us, &format!("kvm_exit: vcpu 0 reason {reason} {fields}"))
    }

    fn switch(
        &mut self,
        at_us: u64,
        (prev, prev_tid, state): (&str, u32, &str),
        (next, next_tid): (&str, u32),
    ) -> &mut Self {
        let who = if prev_tid == 0 { "<idle>-0".to_owned() } else { format!("{prev}-{prev_tid}") };
        let text = format!(
            "sched_switch: prev_comm={prev} prev_pid={prev_tid} prev_prio=120 prev_state={state} ==> next_comm={next} \
             next_pid={next_tid} next_prio=120"
        );
        self.line(&who, at_us, &text)
    }

    /// The vCPU has its CPU from 0 on and loses these stretches to interrupts of the host.
    fn losing(stretches_us: &[(u64, u64)], end_us: u64) -> Self {
        let (vcpu, idle) = ("CPU 0/KVM", "swapper/0");
        let mut trace = Self::default();
        trace.switch(0, (idle, 0, "R"), (vcpu, 98));
        for (from_us, to_us) in stretches_us {
            trace.exit(*from_us, "EXTERNAL_INTERRUPT").entry(*to_us);
        }
        trace.switch(end_us, (vcpu, 98, "S"), (idle, 0));
        trace
    }

    fn case(&self, given: Given) -> Case {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        std::fs::write(&path, format!("# tracer: nop\n#\n{}", self.0)).unwrap();
        let recording = Recording::of_files(&[Named::at_l0(&path)], None).unwrap();
        let case = Case::new(Input::open(recording).unwrap(), given);
        // Read while the file is there.
        case.ledger();
        case
    }
}

/// The golden vector of the definitions: every state once, with its length.
fn golden() -> Ftrace {
    let (vcpu, idle) = ("CPU 0/KVM", "swapper/0");
    let mut trace = Ftrace::default();
    trace.entry(0).exit(1_000, "EXTERNAL_INTERRUPT");
    trace.vcpu(1_200, "irq_handler_entry: irq=24 name=nvme0q1").vcpu(1_700, "irq_handler_exit: irq=24 ret=handled");
    trace.entry(2_000).exit(5_000, "EXTERNAL_INTERRUPT");
    trace.switch(5_300, (vcpu, 98, "R"), ("stress", 700)).switch(12_300, ("stress", 700, "S"), (vcpu, 98));
    trace.entry(12_500).exit(20_000, "HLT").switch(20_400, (vcpu, 98, "S"), (idle, 0));
    trace.line("<idle>-0", 29_000, "sched_waking: comm=CPU 0/KVM pid=98 prio=120 target_cpu=000");
    trace.switch(31_000, (idle, 0, "R"), (vcpu, 98)).entry(31_400).exit(40_000, "CPUID");
    trace
}

fn only(case: &Case) -> &VcpuLosses {
    let [part] = case.losses() else { panic!("one trace") };
    let [vcpu] = part.vcpus.as_slice() else { panic!("one vCPU") };
    vcpu
}

fn us(spans: &[Span]) -> Vec<(u64, u64)> {
    spans.iter().map(|span| (span.from_ns / 1_000, span.to_ns / 1_000)).collect()
}

fn section(case: &Case) -> Section {
    latency::answer(case).unwrap().unwrap().section
}

fn text(row: &Row<'_>, column: &str) -> String {
    row.text(column).unwrap_or_default().to_owned()
}

fn number(row: &Row<'_>, column: &str) -> u64 {
    match row.cell(column) {
        Some(Cell::U64(value)) => *value,
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn the_golden_vector_is_lost_as_both_definitions_say() {
    let case = golden().case(Given::default());
    let losses = only(&case);
    let lost = losses.stretches(Definition::Involuntary);
    assert_eq!(us(lost.spans()), [(1_000, 2_000), (5_000, 12_500), (29_000, 31_000)]);
    let exits = losses.stretches(Definition::ExitToEntry { include_halts: false });
    assert_eq!(us(exits.spans()), [(1_000, 2_000), (5_000, 12_500)]);
    let with_halts = losses.stretches(Definition::ExitToEntry { include_halts: true });
    assert_eq!(us(with_halts.spans()), [(1_000, 2_000), (5_000, 12_500), (20_000, 31_400)]);
    for (window_us, loss_us) in [(12_000, 8_500), (10_000, 7_500), (30_000, 10_500)] {
        assert_eq!(lost.sup(losses.span, window_us * 1_000).unwrap().loss_ns, loss_us * 1_000, "{window_us}");
    }
    assert!(losses.unknown.is_empty());
}

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

const V1: &[(u64, u64)] = &[(200, 212), (990, 1_004), (1_500, 1_509), (1_985, 1_993), (2_600, 2_605)];
const V2: &[(u64, u64)] = &[(100, 110), (500, 8_498), (9_000, 9_005)];
const V3: &[(u64, u64)] = &[(10, 20), (950, 965), (1_015, 1_030), (1_990, 2_000), (3_005, 3_006)];

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
fn tables_have_the_exact_answers_and_those_of_vm_trace_beside() {
    for (stretches, end_us, exact_us, vm_trace_us) in
        [(V1, 4_000, 28, 26), (V2, 10_000, 1_000, 8_008), (V3, 4_000, 30, 25)]
    {
        let asked = Given { latency: LossOptions { vm_trace: true, ..LossOptions::default() }, ..Given::default() };
        let section = section(&Ftrace::losing(stretches, end_us).case(asked));
        let windows = section.table("windows").unwrap();
        let of = |window_ns: u64| windows.rows().find(|row| number(row, "window_ns") == window_ns);
        assert_eq!(number(&of(1_000_000).unwrap(), "max_loss_ns"), exact_us * 1_000);
        assert!(of(2_000_000).is_some() && of(20_000_000).is_none(), "none is longer than the recording");
        let vm_trace = section.table("vm_trace").unwrap();
        let rows: Vec<u64> = vm_trace.rows().map(|row| number(&row, "within_1ms_ns")).collect();
        assert_eq!(rows, [vm_trace_us * 1_000]);
    }
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
fn every_cause_in_every_fixture_sums_to_the_states_of_the_ledger() {
    let states = [
        (LostIn::Preempted, kvmscope_analysis::facts::State::Preempted),
        (LostIn::Irq, kvmscope_analysis::facts::State::Irq),
        (LostIn::Softirq, kvmscope_analysis::facts::State::Softirq),
        (LostIn::Nmi, kvmscope_analysis::facts::State::Nmi),
        (LostIn::WakeDelay, kvmscope_analysis::facts::State::WakeDelay),
        (LostIn::Blocked, kvmscope_analysis::facts::State::Blocked),
    ];
    for name in [
        "nested-svm-toy",
        "nested-vmx-shadow-off-hog",
        "nested-vmx-shadow-on",
        "svm-linux",
        "lttng-svm-l0",
        "vmx-linux-shadow-off",
        "two-tracers",
    ] {
        let case = case_of(&fixture(name), Given::default());
        // Elsewhere threads do other things before they run a guest, and behind that: the ledger has them, and no guest lost them.
        let runs_throughout = name.contains("-linux");
        for (part, losses) in case.ledger().parts.iter().zip(case.losses()) {
            assert_eq!(part.vcpus.len(), losses.vcpus.len(), "{name}");
            for (vcpu, losses) in part.vcpus.iter().zip(&losses.vcpus) {
                let culprits = losses.lost.culprits();
                for (state, of_ledger) in states {
                    let of_state = culprits.iter().filter(|(cause, _)| cause.state == state);
                    let ns: u64 = of_state.map(|(_, sums)| sums.total_ns).sum();
                    let ledger_ns = vcpu.sums.ns(of_ledger);
                    assert!(
                        ns == ledger_ns || (!runs_throughout || state == LostIn::Blocked) && ns < ledger_ns,
                        "{name}: {} {state:?}: {ns}, {ledger_ns}",
                        vcpu.tid
                    );
                }
                let total_ns: u64 = culprits.iter().map(|(_, sums)| sums.total_ns).sum();
                let lost = losses.stretches(Definition::Involuntary);
                assert_eq!(
                    (total_ns, losses.lost.total_ns()),
                    (lost.total_ns(), lost.total_ns()),
                    "{name}: pieces overlap"
                );
                laws_hold(&lost, losses);
            }
        }
    }
}

/// What no recording may break.
fn laws_hold(lost: &Stretches, losses: &VcpuLosses) {
    let mut last = (0, 0);
    for window_ns in [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000] {
        let Some(worst) = lost.sup(losses.span, window_ns) else { continue };
        let high = losses.at_most(lost).sup(losses.span, window_ns).unwrap();
        assert!(worst.loss_ns <= high.loss_ns && high.loss_ns <= window_ns && worst.loss_ns >= last.1, "{window_ns}");
        let window = Span { from_ns: worst.at_ns, to_ns: worst.at_ns + window_ns };
        let causes = losses.lost.causes_within(window);
        assert_eq!(causes.iter().map(|(_, ns)| ns).sum::<u64>(), worst.loss_ns, "causes of {window:?}");
        let over = lost.over(losses.span, window_ns, Limit::AtLeast(worst.loss_ns + 1)).unwrap();
        assert_eq!(over.total_ns, 0);
        last = (window_ns, worst.loss_ns);
    }
}

#[test]
fn the_hog_that_took_the_cpu_sixty_times_is_named() {
    let case = case_of(&fixture("nested-vmx-shadow-off-hog"), Given::default());
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

#[test]
fn a_window_narrows_what_is_lost_and_keeps_the_axis() {
    let whole = golden().case(Given::default());
    let narrow =
        base::Narrow { window: Some(Span { from_ns: 6_000_000, to_ns: 30_000_000 }), ..base::Narrow::default() };
    let part = golden().case(Given { narrow, ..Given::default() });
    let lost = only(&part).stretches(Definition::Involuntary);
    assert_eq!(us(lost.spans()), [(6_000, 12_500), (29_000, 30_000)]);
    assert_eq!(only(&part).span, Span { from_ns: 6_000_000, to_ns: 30_000_000 });
    let whole = only(&whole).stretches(Definition::Involuntary);
    assert_eq!(whole.within(only(&part).span), lost.total_ns());
    let exits = only(&part).stretches(Definition::ExitToEntry { include_halts: true });
    assert_eq!(us(exits.spans()), [(6_000, 12_500), (20_000, 30_000)]);
}

/// The losses of a trace without what comes before or after some of its events, on the axis of the whole.
fn cut(trace: &Ftrace, first: usize, last: usize) -> (Stretches, Stretches, Span) {
    let lines: Vec<&str> = trace.0.lines().collect();
    let at_ns = |line: &str| -> u64 {
        let time = line.split_once(": ").unwrap().0.rsplit(' ').next().unwrap();
        let (seconds, us) = time.split_once('.').unwrap();
        ((seconds.parse::<u64>().unwrap() - 1) * 1_000_000 + us.parse::<u64>().unwrap()) * 1_000
    };
    let origin_ns = at_ns(lines[first]);
    let mut kept = lines[first..last].join("\n");
    kept.push('\n');
    let case = Ftrace(kept).case(Given::default());
    let shifted = |stretches: &Stretches| {
        let since = |span: &Span| Span { from_ns: span.from_ns + origin_ns, to_ns: span.to_ns + origin_ns };
        Stretches::of(stretches.spans().iter().map(since))
    };
    let Some(losses) = case.losses()[0].vcpus.first() else {
        return (Stretches::of([]), Stretches::of([]), Span::default());
    };
    let lost = losses.stretches(Definition::Involuntary);
    let span = Span { from_ns: origin_ns, to_ns: origin_ns + losses.span.to_ns };
    (shifted(&lost), shifted(&losses.at_most(&lost)), span)
}

#[test]
fn a_trace_cut_anywhere_loses_nothing_that_the_whole_does_not_and_what_is_missing_is_unknown() {
    let trace = golden();
    let events = trace.0.lines().count();
    let (whole, _, _) = cut(&trace, 0, events);
    let mut known = 0;
    for first in 0..events - 1 {
        for last in first + 1..=events {
            let (lost, at_most, span) = cut(&trace, first, last);
            assert_eq!(whole.or(&lost), whole, "{first}..{last}: something else is lost");
            let missing = whole.spans().iter().map(|one| {
                let clipped = Span { from_ns: one.from_ns.max(span.from_ns), to_ns: one.to_ns.min(span.to_ns) };
                clipped.length_ns() - at_most.within(clipped)
            });
            // Exits are told when they are over: the last one's own piece may wait for an event that is not there.
            let missing: Vec<u64> = missing.filter(|ns| *ns > 0).collect();
            assert!(missing.is_empty(), "{first}..{last}: {missing:?} ns are known not to be lost");
            known += u64::from(lost.total_ns() > 0);
        }
    }
    assert!(known > 40, "{known} parts show a loss");
}

#[test]
fn the_order_of_events_of_different_cpus_at_one_time_changes_nothing() {
    // Two vCPUs of one VM on CPUs of their own, which lose time at the same moments.
    let line = |cpu: u32, at_us: u64, event: &str| {
        format!(" CPU {cpu}/KVM-{} [00{cpu}] d..2. 1.{at_us:06}: {event}", 98 + cpu)
    };
    let exit = |cpu: u32, reason: &str| {
        format!("kvm_exit: vcpu {cpu} reason {reason} rip 0x1000 info1 0x0 info2 0x0 intr_info 0x0 error_code 0x0")
    };
    let entry = |cpu: u32| format!("kvm_entry: vcpu {cpu}, rip 0x1000");
    let switch = |cpu: u32, out: bool| {
        let (vcpu, hog) = (format!("CPU {cpu}/KVM"), format!("hog/{cpu}"));
        let (vcpu, hog) = ((vcpu, 98 + cpu, "R"), (hog, 700 + cpu, "S"));
        let (from, to) = if out { (vcpu, hog) } else { (hog, vcpu) };
        format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> next_comm={} next_pid={} next_prio=120",
            from.0, from.1, from.2, to.0, to.1
        )
    };
    let moments: Vec<[String; 2]> = [
        (0, [0, 1].map(entry)),
        (100, [0, 1].map(|cpu| exit(cpu, "EXTERNAL_INTERRUPT"))),
        (110, [0, 1].map(|cpu| switch(cpu, true))),
        (190, [0, 1].map(|cpu| switch(cpu, false))),
        (200, [0, 1].map(entry)),
        (900, [0, 1].map(|cpu| exit(cpu, "CPUID"))),
    ]
    .into_iter()
    .map(|(at_us, [one, other])| [line(0, at_us, &one), line(1, at_us, &other)])
    .collect();
    let answer = |order: u32| {
        let pairs = moments.iter().enumerate().map(|(place, [one, other])| {
            if order >> place & 1 == 0 { format!("{one}\n{other}\n") } else { format!("{other}\n{one}\n") }
        });
        let case = Ftrace(pairs.collect()).case(Given::default());
        let vcpus = case.losses()[0].vcpus.iter().map(|losses| {
            let culprits = losses.lost.culprits();
            (us(losses.stretches(Definition::Involuntary).spans()), format!("{culprits:?}"))
        });
        vcpus.collect::<Vec<_>>()
    };
    let first = answer(0);
    assert_eq!(first.iter().map(|(lost, _)| lost.clone()).collect::<Vec<_>>(), [vec![(100, 200)], vec![(100, 200)]]);
    for order in 1..1 << moments.len() {
        assert_eq!(answer(order), first, "order {order:b}");
    }
}
