//! Who woke each thread, and when: numbered while the trace is read, named and put on lanes when it is drawn.

use super::source::Source;
use super::{Part, passing};
use crate::ledger::line::TimeLine;
use base::timeline::{self, Drawn, LaneId, WakeUp, WakeUps};
use rustc_hash::FxHashMap;
use walk::Waker;
use walk::events::host_interrupts::{Handlers, HostInterrupt};

/// What a walk told of wake-ups.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// By number of the thread.
    wakes: WakeUps,
    /// Who woke them, each once.
    by: Vec<Waker>,
    numbers: FxHashMap<Waker, u32>,
}

impl Woken {
    /// Thread number `thread` was woken at `woken_ns` and got `cpu` at `ran_ns`.
    pub(super) fn add(&mut self, thread: usize, by: Waker, cpu: Option<usize>, (woken_ns, ran_ns): (u64, u64)) {
        let by = *self.numbers.entry(by).or_insert_with(|| {
            self.by.push(by);
            self.by.len() as u32 - 1
        });
        let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok());
        self.wakes.push(thread, WakeUp { woken_ns, ran_ns, by, cpu });
    }

    /// The wake-ups of a thread by its number.
    pub(super) fn of(&self, thread: usize) -> impl Iterator<Item = WakeUp> {
        self.wakes.of(thread)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.wakes.count()
    }
}

/// Puts the wake-ups of the threads that have a lane on `drawn`, whose lanes are those of `sources`.
pub(super) fn add(drawn: &mut Drawn, parts: &[Part<'_>], sources: &[Source], line: &TimeLine<'_>) {
    let lanes = || (0..).map(LaneId).zip(sources);
    let of_thread = |(lane, source): (LaneId, &Source)| source.lane.tid.map(|tid| ((source.part, tid), lane));
    let by_thread: FxHashMap<(usize, i32), LaneId> = lanes().filter_map(of_thread).collect();
    for (place, part) in parts.iter().enumerate() {
        let first = drawn.wakers.len() as u32;
        let draft = &part.draft;
        let lane = |tid: i32| by_thread.get(&(place, tid)).copied();
        drawn.wakers.extend(draft.woken.by.iter().map(|by| named(*by, part, &draft.wakers, lane)));
        for (lane, source) in lanes().filter(|(_, source)| source.part == place) {
            let Some(thread) = source.lane.tid.and_then(|tid| draft.number(tid)) else { continue };
            for wake in draft.woken.of(thread) {
                // Of a guest's own trace only what lies on the line of the machine below is drawn.
                let on_line = |at_ns| part.on_line(line, at_ns);
                let (Some(woken_ns), Some(ran_ns)) = (on_line(wake.woken_ns), on_line(wake.ran_ns)) else { continue };
                drawn.wakes.push(lane.0 as usize, WakeUp { woken_ns, ran_ns, by: first + wake.by, ..wake });
            }
        }
    }
}

fn named(by: Waker, part: &Part<'_>, handlers: &Handlers, lane: impl Fn(i32) -> Option<LaneId>) -> timeline::Waker {
    match by {
        // It wakes hardly anybody itself, but not every interrupt is recorded everywhere.
        Waker::Task(0) => timeline::Waker::Task { name: "idle task or an interrupt in its time".into(), lane: None },
        Waker::Task(tid) => {
            let name = part.names.get(&tid).cloned().unwrap_or_else(|| passing::name(part.flow, tid));
            timeline::Waker::Task { name, lane: lane(tid) }
        }
        Waker::Interrupt(by) => timeline::Waker::Interrupt(interrupt(by, handlers)),
        Waker::Unknown => timeline::Waker::Unknown,
    }
}

/// What is said of an interrupt where nothing beside its name tells that it is one.
fn interrupt(by: HostInterrupt, handlers: &Handlers) -> String {
    match by {
        HostInterrupt::Softirq(_) => format!("softirq {}", handlers.title(by)),
        HostInterrupt::Vector(_) => format!("interrupt {}", handlers.title(by)),
        HostInterrupt::Irq(_) | HostInterrupt::Nmi => handlers.title(by).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw;
    use crate::chain_plan::NO_PLAN;
    use crate::ledger::build;
    use crate::{Given, Input};
    use base::recording::{Named, Recording};
    use base::timeline::{Drawn, LaneId, LaneKind, Timeline, WakeUp, Waker};

    /// CPU 0 has a vCPU that sleeps and is woken; CPU 1 has its vhost worker. `before` comes on CPU 1 before the waking.
    fn woken_once(before: &str) -> Drawn {
        let text = format!(
            "cpus=2
       CPU 0/KVM-170   [000]     1.000000000: kvm_entry:            vcpu 0
          <idle>-0     [001]     1.000001000: sched_switch:         prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=vhost-160 next_pid=180 next_prio=120
       CPU 0/KVM-170   [000]     1.000010000: kvm_exit:             reason HLT rip 0x30004 info 0 0
       CPU 0/KVM-170   [000]     1.000020000: sched_switch:         prev_comm=CPU 0/KVM prev_pid=170 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
{before}
       vhost-160-180   [001]     1.000030000: sched_waking:         comm=CPU 0/KVM pid=170 prio=120 target_cpu=000
          <idle>-0     [000]     1.000035000: sched_switch:         prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=170 next_prio=120
       CPU 0/KVM-170   [000]     1.000040000: kvm_entry:            vcpu 0
       vhost-160-180   [001]     1.000050000: sched_switch:         prev_comm=vhost-160 prev_pid=180 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
       CPU 0/KVM-170   [000]     1.000060000: kvm_exit:             reason HLT rip 0x30004 info 0 0
"
        );
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.txt");
        std::fs::write(&path, text.replace("\n\n", "\n")).unwrap();
        let input = Input::open(Recording::of_files(&[Named::at_l0(&path)], None).unwrap(), NO_PLAN).unwrap();
        let flow = build::build(&input, &Given::default(), &mut |_, _| {});
        draw(&input, &Given::default(), &flow, &mut |_, _| {})
    }

    /// The wake-up of the vCPU, which has the first lane.
    fn wake(drawn: &Drawn) -> (WakeUp, Waker) {
        let wakes: Vec<WakeUp> = drawn.wakes.of(0).collect();
        assert_eq!((wakes.len(), drawn.wakes.count()), (1, 1), "{wakes:?}");
        (wakes[0], drawn.wakers[wakes[0].by as usize].clone())
    }

    const SOFTIRQ: &str = "       vhost-160-180   [001]     1.000025000: softirq_entry:        vec=3 [action=NET_RX]";
    const LEAVES: &str = "\n       vhost-160-180   [001]     1.000028000: softirq_exit:         vec=3 [action=NET_RX]";

    #[test]
    fn a_wake_up_has_its_waker_by_its_lane() {
        let drawn = woken_once("");
        let (wake, by) = wake(&drawn);
        assert_eq!((wake.woken_ns, wake.ran_ns, wake.cpu), (30_000, 35_000, Some(0)));
        let lanes = drawn.timeline.lanes();
        let vhost = lanes.iter().position(|lane| lane.kind == LaneKind::Vhost).unwrap();
        assert_eq!(by, Waker::Task { name: "vhost-160 (180)".into(), lane: Some(LaneId(vhost as u32)) });
        let slices = drawn.timeline.slices(LaneId(0), drawn.timeline.span(), 100).slices;
        let waits = slices.iter().find(|slice| slice.span.from_ns == wake.woken_ns).unwrap();
        assert_eq!(waits.span.to_ns, wake.ran_ns, "the wait is a slice of its own");
    }

    #[test]
    fn an_interrupt_wakes_in_its_own_name() {
        let (_, by) = wake(&woken_once(SOFTIRQ));
        assert_eq!(by, Waker::Interrupt("softirq NET_RX".into()));
        let (_, by) = wake(&woken_once(&format!("{SOFTIRQ}{LEAVES}")));
        assert!(matches!(by, Waker::Task { .. }), "{by:?}");
    }

    /// The begin of an interrupt that woke may be among the events that were lost; the task that it met is then no answer.
    #[test]
    fn behind_lost_events_nobody_is_named() {
        let lost = format!("{SOFTIRQ}{LEAVES}\nCPU:1 [LOST 5 EVENTS]");
        let (wake, by) = wake(&woken_once(&lost));
        assert_eq!((wake.woken_ns, wake.ran_ns, by), (30_000, 35_000, Waker::Unknown));
    }
}
