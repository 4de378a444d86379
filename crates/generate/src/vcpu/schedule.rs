//! What the host's scheduler and interrupts do to a vCPU thread.

use super::{Exit, Place, Vcpu};
use crate::truth::{State, Tally};

/// Another task of the host.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    pub comm: &'static str,
    pub tid: i32,
}

/// How a thread lost its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// KVM called `schedule` itself before an entry: state `R`.
    Yielded,
    /// It was pre-empted inside the kernel: state `R+`.
    Forced,
}

/// Who wakes a sleeping thread.
#[derive(Debug, Clone, Copy)]
pub enum Waker {
    /// An interrupt on the CPU where the thread slept.
    Interrupt,
    /// A device's interrupt on another CPU, of this vector.
    Device(u32, u8),
    /// The host's timer that stands for the guest's, on the CPU where the thread slept.
    Timer(u64),
    /// A thread on a CPU of its own, which runs just for that.
    Thread {
        task: Task,
        /// Its CPU.
        cpu: u32,
    },
}

/// `TASK_INTERRUPTIBLE`.
const SLEEPING: u64 = 1;
/// `TASK_UNINTERRUPTIBLE`.
const WAITING_FOR_DISK: u64 = 2;
pub(super) const PRIORITY: u64 = 120;
pub(super) const TIMER_VECTOR: u64 = 236;
/// The vector that wakes a guest.
const GUEST_VECTOR: u8 = 0x31;

impl Vcpu {
    /// A host timer interrupt of `ns` over whatever KVM or the VMM does.
    pub(crate) fn timer_interrupt(&mut self, ns: u64) {
        self.event("local_timer_entry", &[("vector", TIMER_VECTOR.into())]);
        self.served(State::Irq, "local_timer", |thread| {
            thread.pass(ns / 2);
            let now = thread.now;
            thread.event("hrtimer_expire_entry", &[("now", now.into())]);
            thread.pass(ns - ns / 2);
            thread.event("local_timer_exit", &[("vector", TIMER_VECTOR.into())]);
        });
    }

    /// A host device interrupt of `ns`.
    pub(crate) fn device_interrupt(&mut self, ns: u64) {
        self.event("irq_handler_entry", &[("irq", 27.into()), ("name", "virtio0-input.0".into())]);
        self.served(State::Irq, "irq 27 virtio0-input.0", |thread| {
            thread.pass(ns);
            thread.event("irq_handler_exit", &[("irq", 27.into()), ("ret", 1.into())]);
        });
    }

    /// A host softirq of `ns`.
    pub fn softirq(&mut self, ns: u64) {
        self.event("softirq_entry", &[("vec", 3.into())]);
        self.served(State::Softirq, "NET_RX", |thread| {
            thread.pass(ns);
            thread.event("softirq_exit", &[("vec", 3.into())]);
        });
    }

    /// The interrupt called `name`, which has begun, until it has ended.
    pub(super) fn served(&mut self, state: State, name: &str, until_end: impl FnOnce(&mut Self)) {
        let (before, since) = (self.state, self.now);
        self.state = state;
        until_end(self);
        self.state = before;
        let tally = self.truth.host_interrupts.entry(name.to_owned()).or_default();
        *tally = Tally { count: tally.count + 1, total_ns: tally.total_ns + (self.now - since) };
    }

    /// A host interrupt stops the guest. Where `kvm_exit` is late the interrupt is seen first, else behind it.
    pub fn interrupted(&mut self, ns: u64) {
        self.interrupted_and(ns, |_| {});
    }

    /// The same, and `then` happens behind the interrupt: where `kvm_exit` is late, before that event.
    pub(crate) fn interrupted_and(&mut self, ns: u64, then: impl FnOnce(&mut Self)) {
        let exit = Exit::info(self.vendor().interrupt(), 0);
        if self.kernel.generation.exit_is_late(self.kernel.vendor) {
            // The handler's first event and the end of the guest are one moment; `event` must not move between them.
            if self.last_event == Some(self.now) {
                self.pass(1);
            }
            self.state = State::Handling(self.level);
            self.device_interrupt(ns);
            self.pass(120);
            then(self);
            self.pass(40);
            self.exit(exit);
        } else {
            self.exit(exit);
            self.pass(80);
            self.device_interrupt(ns);
            self.pass(40);
            then(self);
        }
    }

    /// Another task takes the CPU for `ns`, and `second` after it for as long; then the thread goes on, on `cpu`.
    pub fn preempt(&mut self, how: Loss, by: Task, second: Option<Task>, ns: u64, cpu: u32) {
        let saved = self.state;
        let state = if how == Loss::Forced { self.kernel.generation.preempted_bit() } else { 0 };
        self.switch_from_self(state, by);
        self.state = State::Preempted;
        self.pass(ns);
        self.preempted_by(by, ns).count += 1;
        let mut last = by;
        if let Some(next) = second {
            self.switch_event((by, 0), next);
            self.pass(ns);
            self.preempted_by(next, ns);
            last = next;
        }
        let old = self.cpu;
        self.come_back(last, cpu);
        self.state = saved;
        if cpu != old {
            // There nobody waits any more, and the pre-emptor goes to sleep.
            self.switch_on(old, (last, SLEEPING), idle(old));
        }
    }

    fn preempted_by(&mut self, task: Task, ns: u64) -> &mut Tally {
        let tally = self.truth.preemptors.entry(task.comm.to_owned()).or_default();
        tally.total_ns += ns;
        tally
    }

    /// The thread waits for something but the guest's halt; woken after `ns`, it gets its CPU `delay_ns` later.
    pub fn block(&mut self, ns: u64, delay_ns: u64, waker: Waker, cpu: u32) {
        let saved = self.state;
        self.switch_from_self(WAITING_FOR_DISK, idle(self.cpu));
        self.state = State::Blocked;
        self.sleep(ns, delay_ns, waker, cpu);
        self.state = saved;
    }

    /// KVM halts the thread on behalf of the guest: it polls for `poll_ns`, and sleeps if `sleep` says so.
    ///
    /// On kernels without `kvm_vcpu_wakeup` there is no polling.
    pub fn halt(&mut self, poll_ns: u64, sleep: Option<Sleep>) {
        let saved = self.state;
        let polls = self.kernel.generation.has_wakeup();
        if self.last_event == Some(self.now) {
            self.pass(1);
        }
        let start = self.now;
        if polls {
            self.state = State::HaltPoll;
            self.pass(poll_ns);
        }
        if let Some(Sleep { ns, delay_ns, waker, cpu }) = sleep {
            self.switch_from_self(SLEEPING, idle(self.cpu));
            self.state = State::Halted;
            self.sleep(ns, delay_ns, waker, cpu);
            self.state = saved;
            self.pass(60);
        }
        if polls {
            // The event ends the polling, so its own nanosecond belongs to what was before it.
            if self.last_event == Some(self.now) {
                self.pass(1);
            }
            let halted = self.now - start;
            let waited = u64::from(sleep.is_some());
            self.event("kvm_vcpu_wakeup", &[("ns", halted.into()), ("waited", waited.into()), ("valid", 1.into())]);
        }
        self.state = saved;
    }

    /// Sleeps for `ns`, is woken, waits for `delay_ns` and is back on `cpu`.
    fn sleep(&mut self, ns: u64, delay_ns: u64, waker: Waker, cpu: u32) {
        let given = self.waking_fields();
        match waker {
            Waker::Interrupt => {
                self.pass(ns);
                self.accept_vector(0, self.cpu, GUEST_VECTOR);
                self.event_of(0, self.cpu, "sched_waking", &given);
            }
            Waker::Device(cpu, vector) => {
                self.pass(ns);
                self.raise(cpu, vector, 70, 45);
                self.event_of(0, cpu, "sched_waking", &given);
                self.state = State::WakeDelay;
                self.raised(cpu);
            }
            Waker::Timer(hrtimer) => {
                self.pass(ns);
                self.event_of(0, self.cpu, "local_timer_entry", &[("vector", TIMER_VECTOR.into())]);
                self.timer_expires(0, hrtimer, 35);
                self.event_of(0, self.cpu, "sched_waking", &given);
                self.state = State::WakeDelay;
                self.pass(30);
                self.event_of(0, self.cpu, "local_timer_exit", &[("vector", TIMER_VECTOR.into())]);
            }
            Waker::Thread { task, cpu: home } => {
                self.pass(ns.saturating_sub(50));
                self.switch_on(home, (idle(home), 0), task);
                self.pass(50.min(ns));
                self.accept_vector(task.tid, home, GUEST_VECTOR);
                self.event_of(task.tid, home, "sched_waking", &given);
                self.state = State::WakeDelay;
                self.pass(5);
                self.switch_on(home, (task, SLEEPING), idle(home));
            }
        }
        self.state = State::WakeDelay;
        self.pass(delay_ns);
        self.come_back(idle(cpu), cpu);
    }

    /// KVM puts an interrupt into the entry that follows.
    pub(crate) fn inject_interrupt(&mut self) {
        self.inject_vector(GUEST_VECTOR);
    }

    /// The thread gets on `cpu`, where `from` ran until now.
    fn come_back(&mut self, from: Task, cpu: u32) {
        let moved = cpu != self.cpu;
        if moved && from.tid != 0 {
            self.cpu = cpu;
            self.switch_to_self(0, &format!("swapper/{cpu}"), 0);
        } else {
            self.cpu = cpu;
            self.switch_to_self(from.tid, from.comm, 0);
        }
        self.irqs_run();
        self.places.push(Place { from_ns: self.now, cpu, on_cpu: true });
    }

    fn switch_from_self(&mut self, state: u64, next: Task) {
        let comm = self.truth.vm.clone();
        self.switch_record(self.truth.tid, self.cpu, (&comm, self.truth.tid, state), (next.comm, next.tid));
        self.places.push(Place { from_ns: self.now, cpu: self.cpu, on_cpu: false });
    }

    pub(super) fn switch_to_self(&mut self, tid: i32, comm: &str, state: u64) {
        let name = self.truth.vm.clone();
        self.switch_record(tid, self.cpu, (comm, tid, state), (&name, self.truth.tid));
    }

    /// A switch between two other tasks on this CPU.
    fn switch_event(&mut self, from: (Task, u64), next: Task) {
        self.switch_on(self.cpu, from, next);
    }

    fn switch_on(&mut self, cpu: u32, (from, state): (Task, u64), next: Task) {
        self.switch_record(from.tid, cpu, (from.comm, from.tid, state), (next.comm, next.tid));
    }

    fn switch_record(&mut self, tid: i32, cpu: u32, prev: (&str, i32, u64), next: (&str, i32)) {
        let given = [
            ("prev_comm", prev.0.into()),
            ("prev_pid", (prev.1 as u64).into()),
            ("prev_prio", PRIORITY.into()),
            ("prev_state", prev.2.into()),
            ("next_comm", next.0.into()),
            ("next_pid", (next.1 as u64).into()),
            ("next_prio", PRIORITY.into()),
        ];
        self.event_of(tid, cpu, "sched_switch", &given);
    }
}

/// How long a halted thread sleeps, and how it comes back.
#[derive(Debug, Clone, Copy)]
pub struct Sleep {
    /// Until it is woken.
    pub ns: u64,
    /// From there until it has a CPU.
    pub delay_ns: u64,
    pub waker: Waker,
    /// The CPU it comes back on.
    pub cpu: u32,
}

/// The idle task of a CPU. Its number is in its name; tid 0 is what counts.
fn idle(cpu: u32) -> Task {
    const NAMES: [&str; 8] =
        ["swapper/0", "swapper/1", "swapper/2", "swapper/3", "swapper/4", "swapper/5", "swapper/6", "swapper/7"];
    Task { comm: NAMES[cpu as usize % NAMES.len()], tid: 0 }
}
