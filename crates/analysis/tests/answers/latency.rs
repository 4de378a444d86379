//! What the host took from vCPUs, held against recordings whose losses are known.

mod culprits;
mod laws;

use crate::fixtures::{case, fixture, number};
use base::recording::{Named, Recording};
use base::table::Row;
use base::{Section, Span};
use kvmscope_analysis::facts::budget::built_in;
use kvmscope_analysis::facts::losses::{Definition, VcpuLosses};
use kvmscope_analysis::{Case, Given, flow, latency};
use std::fmt::Write as _;

const V1: &[(u64, u64)] = &[(200, 212), (990, 1_004), (1_500, 1_509), (1_985, 1_993), (2_600, 2_605)];
const V2: &[(u64, u64)] = &[(100, 110), (500, 8_498), (9_000, 9_005)];
const V3: &[(u64, u64)] = &[(10, 20), (950, 965), (1_015, 1_030), (1_990, 2_000), (3_005, 3_006)];

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
        let case = Case::new(kvmscope_analysis::open(recording).unwrap(), given);
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

/// What was not recorded was not seen to take nothing.
#[test]
fn where_switches_were_not_recorded_no_time_lost_says_little() {
    let mut trace = Ftrace::default();
    trace.entry(0).exit(100, "CPUID").entry(110).exit(200, "CPUID");
    let summary = section(&trace.case(Given::default())).summary;
    assert!(summary.starts_with("No vCPU is seen to lose time, but without sched_switch most"), "{summary}");
    trace.entry(220).switch(300, ("CPU 0/KVM", 98, "S"), ("swapper/0", 0));
    let summary = section(&trace.case(Given::default())).summary;
    assert!(summary.starts_with("No vCPU lost any time, as far as the recorded events show."), "{summary}");
}

#[test]
fn tables_have_the_exact_answers() {
    for (stretches, end_us, exact_us) in [(V1, 4_000, 28), (V2, 10_000, 1_000), (V3, 4_000, 30)] {
        let section = section(&Ftrace::losing(stretches, end_us).case(Given::default()));
        let windows = section.table("windows").unwrap();
        let of = |window_ns: u64| windows.rows().find(|row| number(row, "window_ns") == window_ns);
        assert_eq!(number(&of(1_000_000).unwrap(), "max_loss_ns"), exact_us * 1_000);
        assert!(of(2_000_000).is_some() && of(20_000_000).is_none(), "none is longer than the recording");
    }
}

/// What a VMM does before its guest runs and after it ended is no time of the guest's, in this answer as in that of question `flow`.
#[test]
fn all_shares_of_a_page_are_of_the_same_life_of_the_guest() {
    let hog = |given| case(&fixture("nested-vmx-shadow-off-hog"), given);
    let (plain, judged) = (hog(Given::default()), hog(Given { budget: built_in("kvm4nfv-2015"), ..Given::default() }));
    let flow = flow::answer(&plain).unwrap().unwrap().section;
    assert!(flow.summary.contains("waited 50.0 % of its guest's life (490.0 ms)"), "{}", flow.summary);
    let (plain, judged) = (section(&plain), section(&judged));
    let all = "the vCPU lost 246.5 ms, 50.3 % of its guest's life (490.0 ms), mostly to busybox.";
    assert!(plain.summary.contains(all) && judged.summary.contains(all), "{}", judged.summary);
    let unknown = &plain.unknown[0].text;
    assert!(unknown.contains("148.0 ms of it before a guest ran or after it ended"), "{unknown}");
    let pauses = plain.figures.iter().find(|figure| figure.id == "pauses").unwrap();
    let apart = "Not counted: 148.0 ms before a guest ran or after it ended";
    assert!(pauses.caption.contains(apart), "{}", pauses.caption);
    // The table of culprits has 60 of busybox and 12 of EPT_VIOLATION that are longer than 10 us.
    let period = "72 losses are over it, 50.3 % of the time";
    assert!(judged.summary.contains(period) && !judged.summary.contains("episode"), "{}", judged.summary);
}

/// Single losses are counted, and lie in episodes; of those that nothing shows for certain only the episodes are told.
#[test]
fn losses_over_a_limit_are_counted_and_rare_ones_have_their_episodes() {
    let said = |stretches: &[(u64, u64)], end_us| {
        let given = Given { budget: built_in("kvm4nfv-2015"), ..Given::default() };
        let section = section(&Ftrace::losing(stretches, end_us).case(given));
        section.summary.split("\n\n").find(|goal| goal.starts_with("preempt-period")).unwrap().to_owned()
    };
    let rare = said(&[(0, 1), (200, 212), (990, 1_004), (500_000, 500_020)], 1_000_000);
    assert!(rare.contains("3 losses are over it, in 2 episodes"), "{rare}");
    let often = said(&[(0, 1), (200, 712), (1_990, 2_404), (3_000, 3_002)], 4_000);
    assert!(often.contains("2 losses are over it, 23.2 % of the time"), "{often}");
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
