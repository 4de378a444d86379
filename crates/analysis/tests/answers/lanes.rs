//! Do the lanes of CPUs and threads say what the ledger and the events say?

use base::Span;
use base::recording::{Named, Recording};
use base::timeline::{Drawn, LaneId, LaneKind, Timeline};
use generate::scenario::{self, ALL};
use generate::{Story, Target};
use kvmscope_analysis::Given;
use kvmscope_analysis::facts::State;
use kvmscope_analysis::facts::ledger::{build, model::Flow};
use kvmscope_analysis::facts::timeline::draw;
use std::collections::BTreeMap;
use std::path::Path;
use trace::format::Endian;
use trace::write::Record;
use trace::write::tracedat::Compression;

const FIXTURES: [&str; 8] = [
    "nested-svm-toy",
    "nested-vmx-shadow-on",
    "nested-vmx-shadow-off-hog",
    "svm-linux",
    "vmx-linux-shadow-on",
    "vmx-linux-shadow-off",
    "lttng-svm-l0",
    "two-tracers",
];

const PLAIN: Target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };

fn drawn_of(recording: Recording) -> (Flow, Drawn) {
    let (input, given) = (kvmscope_analysis::open(recording).unwrap(), Given::default());
    let flow = build::build(&input, &given, &mut |_, _| {});
    let drawn = draw(&input, &given, &flow, &mut |_, _| {});
    (flow, drawn)
}

fn fixture(name: &str) -> (Flow, Drawn) {
    drawn_of(Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)).unwrap())
}

fn story_drawn(story: &Story, target: Target) -> (Flow, Drawn) {
    let directory = tempfile::tempdir().unwrap();
    let path = story.write(target, directory.path()).unwrap();
    drawn_of(Recording::of_files(&[Named::at_l0(&path)], None).unwrap())
}

fn of_kind(drawn: &Drawn, kind: LaneKind) -> Vec<LaneId> {
    let lanes = drawn.timeline.lanes().iter().enumerate();
    lanes.filter(|(_, lane)| lane.kind == kind).map(|(place, _)| LaneId(place as u32)).collect()
}

/// Time by state and detail, by walking through every slice; they must touch and fill `span`.
fn times(drawn: &Drawn, lane: LaneId, span: Span, case: &str) -> BTreeMap<(String, String), u64> {
    let timeline = &drawn.timeline;
    let mut times = BTreeMap::new();
    let mut at_ns = span.from_ns;
    for slice in timeline.slices(lane, timeline.span(), usize::MAX).slices {
        assert_eq!(slice.span.from_ns, at_ns, "{case}: {lane:?} has a gap");
        at_ns = slice.span.to_ns;
        let state = timeline.states()[usize::from(slice.state.0)].name.clone();
        let detail = timeline.detail(slice.id).unwrap().1.to_owned();
        *times.entry((state, detail)).or_default() += slice.span.length_ns();
    }
    assert_eq!(at_ns, span.to_ns, "{case}: {lane:?} ends early");
    let covered: u64 = timeline.coverage(lane, timeline.span(), 1).time_ns.iter().sum();
    assert_eq!(covered, span.length_ns(), "{case}: {lane:?} counts time twice or never");
    times
}

/// Each vCPU's states in which it needs a CPU, summed over the lanes of all CPUs, are those of its ledger.
fn cpus_agree_with_ledgers(flow: &Flow, drawn: &Drawn, case: &str) -> usize {
    let part = flow.parts.iter().find(|part| part.aligned.is_none() && part.twin_of.is_none()).unwrap();
    let span = Span { from_ns: 0, to_ns: part.span.length_ns() };
    let cpus: Vec<_> = of_kind(drawn, LaneKind::Cpu).into_iter().map(|lane| times(drawn, lane, span, case)).collect();
    assert!(!cpus.is_empty(), "{case}");
    let mut compared = 0;
    for vcpu in &part.vcpus {
        let lane = drawn.vcpus.iter().position(|drawn| drawn.tid == vcpu.tid).unwrap();
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        for ((state, _), ns) in times(drawn, LaneId(lane as u32), span, case) {
            *own.entry(state).or_default() += ns;
        }
        let of_thread = format!("{} ({})", vcpu.comm, vcpu.tid);
        for (state, ns) in own {
            let needs_cpu =
                ["guest_", "handling_", "userspace", "halt_poll"].iter().any(|begin| state.starts_with(begin));
            if needs_cpu {
                let on_cpus: u64 = cpus.iter().filter_map(|cpu| cpu.get(&(state.clone(), of_thread.clone()))).sum();
                assert_eq!(on_cpus, ns, "{case}: {of_thread} in {state}");
                compared += 1;
            }
        }
    }
    let interrupts = |state: State| part.vcpus.iter().map(|vcpu| vcpu.sums.ns(state)).sum::<u64>();
    for (name, state) in [("irq", State::Irq), ("softirq", State::Softirq), ("nmi", State::Nmi)] {
        let on_cpus: u64 = cpus.iter().flatten().filter(|((state, _), _)| state == name).map(|(_, ns)| *ns).sum();
        assert!(on_cpus >= interrupts(state), "{case}: {name}");
    }
    compared
}

#[test]
fn cpus_of_the_fixtures_agree_with_the_ledgers() {
    for name in FIXTURES {
        let (flow, drawn) = fixture(name);
        assert!(cpus_agree_with_ledgers(&flow, &drawn, name) >= 3, "{name}");
        let first: Vec<LaneKind> =
            drawn.timeline.lanes().iter().map(|lane| lane.kind).take(drawn.vcpus.len()).collect();
        assert!(first.iter().all(|kind| *kind == LaneKind::Vcpu), "{name}: vCPUs stand first");
        assert!(drawn.timeline.lanes()[first.len()..].iter().all(|lane| lane.kind != LaneKind::Vcpu), "{name}");
    }
}

/// What the records themselves say of CPUs and of a task: which one had the CPU, and what it did.
struct Recount<'s> {
    story: &'s Story,
}

impl Recount<'_> {
    fn field(&self, record: &Record, field: &str) -> Option<u64> {
        let fields = &self.story.schema.events[record.event].fields;
        Some(record.value(fields.iter().position(|known| known.name == field)?).integer())
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Record> {
        self.story.records.iter().filter(move |record| self.story.schema.events[record.event].name == name)
    }

    /// Time in which the idle task had `cpu`, from the first event that says so.
    fn idle_ns(&self, cpu: u32) -> u64 {
        let on_cpu = || self.story.records.iter().filter(move |record| record.cpu == cpu);
        let Some(first) = on_cpu().next() else { return 0 };
        let mut idle_since = (first.tid == 0).then_some(first.ticks);
        let mut idle_ns = 0;
        for record in self.named("sched_switch").filter(|record| record.cpu == cpu) {
            idle_ns += idle_since.take().map_or(0, |since| record.ticks - since);
            idle_since = (self.field(record, "next_pid") == Some(0)).then_some(record.ticks);
        }
        idle_ns + idle_since.map_or(0, |since| self.story.truth.to_ns - since)
    }

    /// Time in which `tid` ran, was runnable, slept.
    fn of_task(&self, tid: i32) -> [u64; 3] {
        let tid = Some(tid as u64);
        let (mut sums, mut doing): ([u64; 3], Option<(u64, usize)>) = ([0; 3], None);
        for record in &self.story.records {
            let name = self.story.schema.events[record.event].name.as_str();
            let now = match name {
                "sched_switch" if self.field(record, "next_pid") == tid => Some(0),
                "sched_switch" if self.field(record, "prev_pid") == tid => {
                    Some(if self.field(record, "prev_state") == Some(0) { 1 } else { 2 })
                }
                "sched_waking" if self.field(record, "pid") == tid && doing.is_none_or(|(_, doing)| doing == 2) => {
                    Some(1)
                }
                _ => None,
            };
            let ended = now.and_then(|now| doing.replace((record.ticks, now)));
            if let Some((since, doing)) = ended {
                sums[doing] += record.ticks - since;
            }
        }
        if let Some((since, doing)) = doing {
            sums[doing] += self.story.truth.to_ns - since;
        }
        sums
    }
}

/// Idle time and workers of the lanes against the records; how many workers there were.
fn lanes_agree_with_records(story: &Story, drawn: &Drawn, case: &str) -> usize {
    let recount = Recount { story };
    let span = Span { from_ns: 0, to_ns: story.truth.wall_ns() };
    for lane in of_kind(drawn, LaneKind::Cpu) {
        let number = drawn.timeline.lanes()[lane.0 as usize].title.strip_prefix("CPU ").unwrap().parse().unwrap();
        let times = times(drawn, lane, span, case);
        let idle: u64 = times.iter().filter(|((state, _), _)| state == "idle").map(|(_, ns)| ns).sum();
        // Interrupts that met the idle task are counted as interrupts.
        let above: u64 =
            times.iter().filter(|((state, _), _)| state == "irq" || state == "softirq").map(|(_, ns)| ns).sum();
        let truth = recount.idle_ns(number);
        assert!(idle <= truth && truth <= idle + above, "{case}: CPU {number}: {idle} of {truth}, {above} above");
    }
    let mut workers = 0;
    for lane in of_kind(drawn, LaneKind::Vhost) {
        let tid = drawn.timeline.lanes()[lane.0 as usize].tid.unwrap();
        let times = times(drawn, lane, span, case);
        let in_state = |name: &str| times.iter().filter(|((state, _), _)| state == name).map(|(_, ns)| ns).sum::<u64>();
        let found = ["running", "runnable", "sleeping"].map(in_state);
        assert_eq!(found, recount.of_task(tid), "{case}: thread {tid}");
        workers += 1;
    }
    workers
}

#[test]
fn lanes_of_stories_agree_with_their_records() {
    let mut workers = 0;
    for scenario in ALL.iter().filter(|scenario| scenario.name != "losses") {
        for seed in 1..3 {
            let story = scenario.run(seed);
            let (flow, drawn) = story_drawn(&story, PLAIN);
            cpus_agree_with_ledgers(&flow, &drawn, scenario.name);
            workers += lanes_agree_with_records(&story, &drawn, scenario.name);
        }
    }
    assert!(workers >= 4, "{workers} vhost workers");
    let losses = ALL.iter().find(|scenario| scenario.name == "losses").unwrap();
    for seed in 0..20 {
        let (flow, drawn) = story_drawn(&losses.run(seed), PLAIN);
        cpus_agree_with_ledgers(&flow, &drawn, &format!("losses {seed}"));
    }
    for seed in 0..60 {
        let story = scenario::random(seed);
        for target in [PLAIN, Target::Ctf1 { endian: Endian::Little, lttng: true }] {
            let (flow, drawn) = story_drawn(&story, target);
            cpus_agree_with_ledgers(&flow, &drawn, &format!("random {seed} as {}", target.name()));
        }
    }
}

/// While L0 ran L2, L1 was waiting for L2 to come back: its own trace, moved to L0's line, has to say so.
#[test]
fn a_guests_own_lanes_lie_where_the_machine_below_ran_its_guest() {
    let (_, drawn) = fixture("svm-linux");
    let timeline = &drawn.timeline;
    let state = timeline.states().iter().position(|state| state.name == "guest_l2").unwrap();
    let (own, cpus) = (of_kind(&drawn, LaneKind::GuestVcpu), of_kind(&drawn, LaneKind::GuestCpu));
    assert_eq!((own.len(), cpus.len()), (1, 2));
    assert!(timeline.lanes()[own[0].0 as usize].group == "L1 (own trace)");
    assert!(
        timeline.states().iter().any(|state| state.name == "handling_l2_by_l1" && state.title == "L1 working for L2")
    );
    assert!(drawn.notes.iter().any(|note| note.starts_with("The clock of L1 was aligned by")), "{:?}", drawn.notes);
    let ns = |lane: &LaneId, window: Span| timeline.coverage(*lane, window, 1).time_ns[state];
    assert_eq!(ns(&own[0], timeline.span()), cpus.iter().map(|lane| ns(lane, timeline.span())).sum::<u64>());
    let mut seen_ns = 0;
    for lane in of_kind(&drawn, LaneKind::Vcpu) {
        let slices = timeline.slices(lane, timeline.span(), usize::MAX).slices;
        for slice in slices.iter().filter(|slice| usize::from(slice.state.0) == state) {
            let inside = ns(&own[0], slice.span);
            // Ends are rounded to nanoseconds on two clocks.
            assert!(inside + 2 >= slice.span.length_ns(), "{:?}: {inside}", slice.span);
            seen_ns += inside;
        }
    }
    assert!(seen_ns > 400_000_000, "{seen_ns}");
}

/// A guest whose vCPUs are not among those below has no place on the line, and the notes say so.
#[test]
fn a_guest_that_cannot_be_aligned_is_left_out_with_the_reason() {
    let (below, above) = (scenario::random(1), scenario::random(2));
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let path = |story: &Story, place: usize| story.write(PLAIN, directories[place].path()).unwrap();
    let named = |level, path| Named { level, name: None, path };
    let files = [named(0, path(&below, 0)), named(1, path(&above, 1))];
    let (_, drawn) = drawn_of(Recording::of_files(&files, None).unwrap());
    let kinds: Vec<LaneKind> = drawn.timeline.lanes().iter().map(|lane| lane.kind).collect();
    assert!(kinds.contains(&LaneKind::Cpu), "{kinds:?}");
    assert!(!kinds.contains(&LaneKind::GuestVcpu) && !kinds.contains(&LaneKind::GuestCpu), "{kinds:?}");
    assert!(drawn.notes.iter().any(|note| note.contains("L1")), "{:?}", drawn.notes);
}

/// A vCPU on CPU 0, which a timer interrupts; on CPU 1 a worker that is woken, loses the CPU and gets it back.
const TRACE: &str = "\
  CPU 0/KVM-4220 [000] 1.000000: kvm_entry: vcpu 0, rip 0x1000
  <idle>-0 [001] 1.000010: irq_handler_entry: irq=24 name=virtio0-input.0
  <idle>-0 [001] 1.000012: irq_handler_exit: irq=24 ret=handled
  <idle>-0 [001] 1.000013: softirq_entry: vec=3 [action=NET_RX]
  <idle>-0 [001] 1.000014: sched_waking: comm=vhost-4211 pid=4230 prio=120 target_cpu=001
  <idle>-0 [001] 1.000016: softirq_exit: vec=3 [action=NET_RX]
  <idle>-0 [001] 1.000020: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=vhost-4211 next_pid=4230 next_prio=120
  vhost-4211-4230 [001] 1.000030: sched_switch: prev_comm=vhost-4211 prev_pid=4230 prev_prio=120 prev_state=R ==> next_comm=IO iothread1 next_pid=4240 next_prio=120
  IO iothread1-4240 [001] 1.000040: sched_switch: prev_comm=IO iothread1 prev_pid=4240 prev_prio=120 prev_state=S ==> next_comm=vhost-4211 next_pid=4230 next_prio=120
  CPU 0/KVM-4220 [000] 1.000044: local_timer_entry: vector=236
  CPU 0/KVM-4220 [000] 1.000046: local_timer_exit: vector=236
  CPU 0/KVM-4220 [000] 1.000047: kvm_exit: reason EXTERNAL_INTERRUPT rip 0x1000 info 0 800000ec
  vhost-4211-4230 [001] 1.000050: sched_switch: prev_comm=vhost-4211 prev_pid=4230 prev_prio=120 prev_state=S ==> next_comm=qemu-system-x86 next_pid=4211 next_prio=120
  qemu-system-x86-4211 [001] 1.000060: sched_switch: prev_comm=qemu-system-x86 prev_pid=4211 prev_prio=120 prev_state=D ==> next_comm=swapper/1 next_pid=0 next_prio=120
  CPU 0/KVM-4220 [000] 1.000070: kvm_entry: vcpu 0, rip 0x1000
";

/// The lanes of a trace in text, each as its slices in words: when it begins in us, state, detail.
fn lanes_of(text: &str) -> BTreeMap<(LaneKind, String), Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.txt");
    std::fs::write(&file, text).unwrap();
    let (_, drawn) = drawn_of(Recording::of_files(&[Named::at_l0(&file)], None).unwrap());
    let timeline = &drawn.timeline;
    let lane = |(place, lane): (usize, &base::timeline::Lane)| {
        let slices = timeline.slices(LaneId(place as u32), timeline.span(), usize::MAX).slices;
        let words = slices.iter().map(|slice| {
            let state = &timeline.states()[usize::from(slice.state.0)].name;
            format!("{} {state} {}", slice.span.from_ns / 1_000, timeline.detail(slice.id).unwrap().1)
                .trim_end()
                .to_owned()
        });
        ((lane.kind, lane.title.clone()), words.collect())
    };
    timeline.lanes().iter().enumerate().map(lane).collect()
}

#[test]
fn a_trace_made_by_hand_has_the_lanes_that_it_tells() {
    let lanes = lanes_of(TRACE);
    let of = |kind, title: &str| lanes[&(kind, title.to_owned())].join(", ");
    assert_eq!(
        of(LaneKind::Cpu, "CPU 0"),
        "0 guest_l1 CPU 0/KVM (4220), 44 irq local_timer, 46 handling_l1 CPU 0/KVM (4220)"
    );
    assert_eq!(
        of(LaneKind::Cpu, "CPU 1"),
        "0 unknown, 10 irq irq 24 virtio0-input.0, 12 idle, 13 softirq NET_RX, 16 idle, 20 task vhost-4211 (4230), \
         30 task IO iothread1 (4240), 40 task vhost-4211 (4230), 50 task qemu-system-x86 (4211), 60 idle"
    );
    assert_eq!(
        of(LaneKind::Vhost, "vhost-4211 (4230)"),
        "0 unknown, 14 runnable, 20 running CPU 1, 30 runnable, 40 running CPU 1, 50 sleeping"
    );
    assert_eq!(of(LaneKind::Iothread, "IO iothread1 (4240)"), "0 unknown, 30 running CPU 1, 40 sleeping");
    assert_eq!(of(LaneKind::Emulator, "qemu-system-x86 (4211)"), "0 unknown, 50 running CPU 1, 60 sleeping");
    assert_eq!(lanes.len(), 6);
}

/// What CPU 1 lost hides whether the worker ran there; a waking proves that it slept at least then.
#[test]
fn lost_events_leave_cpus_and_workers_unknown() {
    let before = TRACE.lines().take(8).collect::<Vec<_>>().join("\n");
    let lost = "\nCPU:1 [LOST 3 EVENTS]\n";
    let found = "  IO iothread1-4240 [001] 1.000055: sched_waking: comm=vhost-4211 pid=4230 prio=120 target_cpu=001\n";
    let after = "  CPU 0/KVM-4220 [000] 1.000070: kvm_exit: reason EXTERNAL_INTERRUPT rip 0x1000 info 0 800000ec\n";
    let lanes = lanes_of(&format!("{before}{lost}{found}{after}"));
    let of = |kind, title: &str| lanes[&(kind, title.to_owned())].join(", ");
    assert_eq!(of(LaneKind::Cpu, "CPU 0"), "0 guest_l1 CPU 0/KVM (4220)");
    assert!(of(LaneKind::Cpu, "CPU 1").ends_with("30 unknown, 55 task IO iothread1 (4240)"), "{lanes:?}");
    assert!(
        of(LaneKind::Vhost, "vhost-4211 (4230)").ends_with("20 running CPU 1, 30 unknown, 55 runnable"),
        "{lanes:?}"
    );
    assert_eq!(of(LaneKind::Iothread, "IO iothread1 (4240)"), "0 unknown, 55 running CPU 1");
}

#[test]
fn of_very_many_workers_those_that_ran_longest_are_drawn() {
    let mut text = String::from("  CPU 0/KVM-4220 [000] 1.000000: kvm_entry: vcpu 0, rip 0x1000\n");
    let mut at_us = 10;
    for worker in 0..140u64 {
        // The later ones run longer.
        let (idle, own) = ((0, "idle"), (9_000 + worker, "vhost-7"));
        for (from, to, us) in [(idle, own, worker), (own, idle, 1)] {
            text += &format!(
                "  {}-{} [001] 1.{at_us:06}: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S ==> \
                 next_comm={} next_pid={} next_prio=120\n",
                from.1, from.0, from.1, from.0, to.1, to.0
            );
            at_us += us + 1;
        }
    }
    let lanes = lanes_of(&text);
    let workers: Vec<&String> =
        lanes.keys().filter(|(kind, _)| *kind == LaneKind::Vhost).map(|(_, title)| title).collect();
    assert_eq!((workers.len(), workers[0].as_str()), (128, "vhost-7 (9012)"));
}
