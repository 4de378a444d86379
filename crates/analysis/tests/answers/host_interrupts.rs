//! Is every nanosecond that interrupts of the host took charged to the one that took it?

use base::recording::Recording;
use base::{Narrow, Span};
use kvmscope_analysis::facts::State;
use kvmscope_analysis::facts::ledger::build;
use kvmscope_analysis::facts::ledger::model::{Flow, Sums};
use kvmscope_analysis::facts::walk::Waker;
use kvmscope_analysis::{Given, Input};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trace::replay::Listener;
use trace::{Event, Reading, Request, Trace, Wanted};

/// All with interrupts of the host.
const FIXTURES: [&str; 5] = ["svm-linux", "two-tracers", "vmx-linux-shadow-on", "lttng-svm-l0", "nested-svm-toy"];

fn input(name: &str) -> Input {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap()
}

fn flow(input: &Input, window: Option<Span>) -> Flow {
    let given = Given { narrow: Narrow { window, ..Narrow::default() }, ..Given::default() };
    build::build(input, &given, &mut |_, _| {})
}

fn charged_ns(sums: &Sums, state: State) -> u64 {
    sums.host_interrupts.iter().filter(|(by, _)| by.state() == state).map(|(_, sums)| sums.total_ns).sum()
}

#[test]
fn charges_sum_to_the_states_in_every_recording_and_window() {
    let mut seen = BTreeSet::new();
    for name in FIXTURES {
        let input = input(name);
        // Some of these begin or end inside an interrupt.
        let windows = (0..12).map(|nth| Some(Span { from_ns: nth * 7_777_777, to_ns: nth * 7_777_777 + 33_333_333 }));
        for window in std::iter::once(None).chain(windows) {
            for part in flow(&input, window).parts {
                for vcpu in &part.vcpus {
                    for state in [State::Irq, State::Softirq, State::Nmi] {
                        let case = format!("{name} {window:?} {} {} {state:?}", part.machine, vcpu.tid);
                        assert_eq!(charged_ns(&vcpu.sums, state), vcpu.sums.ns(state), "{case}");
                    }
                    let all = &vcpu.sums.host_interrupts;
                    assert!(all.values().all(|sums| sums.max_ns <= sums.total_ns), "{name} {window:?}");
                    seen.extend(all.keys().filter(|by| part.handlers.name(**by).is_some()).map(|by| by.kind()));
                }
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["irq", "softirq", "vector"]);
}

/// How often, how long, and the longest.
type Sum = (u64, u64);

/// The same events once more, without a ledger: what began and has not ended in the time of each thread.
struct Recount {
    names: Vec<String>,
    open: BTreeMap<i32, Vec<(String, u64, u64)>>,
    known: BTreeSet<i32>,
    sums: BTreeMap<i32, BTreeMap<String, Sum>>,
}

impl Recount {
    fn of(trace: &dyn Trace) -> BTreeMap<i32, BTreeMap<String, Sum>> {
        let wanted = |event: &&trace::EventType| {
            let name = event.name.as_str();
            ["irq_handler_", "softirq_e", "local_timer_", "reschedule_", "irq_work_"]
                .iter()
                .any(|begin| name.starts_with(begin))
                // KVM_RUN begins with the guest's vector registers, before its first entry.
                || ["kvm_entry", "kvm_exit", "kvm_fpu"].contains(&name)
        };
        let names: Vec<String> =
            trace.facts().event_types.iter().filter(wanted).map(|event| event.name.clone()).collect();
        let fields = || ["irq", "name", "vec"].iter().map(|field| vec![(*field).to_owned()]).collect();
        let events = names.iter().map(|name| Wanted { names: vec![name.clone()], fields: fields() }).collect();
        let mut recount = Recount { names, open: BTreeMap::new(), known: BTreeSet::new(), sums: BTreeMap::new() };
        trace::replay(
            trace,
            &Reading { request: &Request { events }, fitted: trace::calibrate::fit(trace) },
            &mut recount,
        );
        recount.sums
    }
}

impl Listener for Recount {
    fn event(&mut self, event: &Event<'_>) {
        let name = &self.names[usize::from(event.kind)];
        if name.starts_with("kvm_") {
            self.known.insert(event.tid);
            return;
        }
        let open = self.open.entry(event.tid).or_default();
        if let Some(vector) = name.strip_suffix("_entry") {
            let softirqs =
                ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
            let title = match vector {
                "irq_handler" => {
                    let name = String::from_utf8_lossy(event.content(1).unwrap()).into_owned();
                    format!("irq {} {name}", event.get(0).unwrap())
                }
                "softirq" => softirqs[event.get(2).unwrap() as usize].to_owned(),
                vector => vector.to_owned(),
            };
            open.push((title, event.time_ns, 0));
        } else if let Some((title, since_ns, inside_ns)) = open.pop() {
            let length_ns = event.time_ns - since_ns;
            if let Some(below) = open.last_mut() {
                below.2 += length_ns;
            }
            if self.known.contains(&event.tid) {
                let sum = self.sums.entry(event.tid).or_default().entry(title).or_default();
                *sum = (sum.0 + 1, sum.1 + length_ns - inside_ns);
            }
        }
    }
}

#[test]
fn charges_are_those_of_a_plain_recount() {
    let mut compared = BTreeSet::new();
    for name in ["svm-linux", "two-tracers", "vmx-linux-shadow-on"] {
        let input = input(name);
        let flow = flow(&input, None);
        for (opened, part) in input.parts.iter().zip(&flow.parts).filter(|(_, part)| part.level == base::Level::L0) {
            let recounted = Recount::of(opened.trace.as_ref());
            for vcpu in &part.vcpus {
                let found: BTreeMap<String, Sum> = vcpu
                    .sums
                    .host_interrupts
                    .iter()
                    .map(|(by, sums)| (part.handlers.title(*by).into_owned(), (sums.count, sums.total_ns)))
                    .collect();
                let expected = recounted.get(&vcpu.tid).cloned().unwrap_or_default();
                assert_eq!(found, expected, "{name} {} {}", part.path, vcpu.tid);
                compared.extend(found.into_keys());
            }
        }
    }
    assert!(compared.len() >= 5, "{compared:?}");
}

/// How often what woke the vCPUs of the first trace.
fn wakers(name: &str) -> BTreeMap<String, u64> {
    let flow = flow(&input(name), None);
    let part = &flow.parts[0];
    let mut wakers: BTreeMap<String, u64> = BTreeMap::new();
    for vcpu in &part.vcpus {
        for (by, sums) in &vcpu.sums.wakers {
            let by = match by {
                Waker::Task(tid) => part.comms.get(tid).cloned().unwrap_or_else(|| format!("task {tid}")),
                Waker::Interrupt(by) => part.handlers.title(*by).into_owned(),
                Waker::Unknown => "unknown".to_owned(),
            };
            *wakers.entry(by).or_default() += sums.count;
        }
        let sums = vcpu.sums.wakers.values().fold((0, 0), |(count, ns), one| (count + one.count, ns + one.total_ns));
        assert_eq!(sums, (vcpu.sums.wake_to_run.count(), vcpu.sums.wake_to_run.sum()), "{name} {}", vcpu.tid);
    }
    wakers
}

#[test]
fn every_wake_up_has_its_waker() {
    let of =
        |pairs: &[(&str, u64)]| pairs.iter().map(|(by, count)| ((*by).to_owned(), *count)).collect::<BTreeMap<_, _>>();
    // As `trace-cmd report | grep sched_waking` shows them by the task in whose time they come; of the 84 by the threads of QEMU
    // 27 met a vCPU that did not sleep.
    let expected = of(&[("kworker/0:2", 2), ("qemu-system-x86", 57), ("task 0", 523)]);
    assert_eq!(wakers("svm-linux"), expected);
    // Interrupts wake in their own name, not in that of the task that they met.
    assert_eq!(wakers("two-tracers"), of(&[("RCU", 1), ("irq 25 virtio0-requests", 8), ("kvm-nx-lpage-re", 2)]));
}
