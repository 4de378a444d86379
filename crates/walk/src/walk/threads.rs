//! Which thread does an event belong to, and which vCPU does that thread run?

use super::{NO_VCPU, Owner, Role, Walk, roles};
use crate::thread::{MOST_THREADS, Thread};
use crate::walk::Sink;
use base::recording::{CutTrace, VcpuThread};
use trace::Event;

impl<S: Sink> Walk<S> {
    /// The thread an event belongs to, where its CPU does not know it. Only KVM events make a new one, and scheduler events in [`Walk::switch`].
    pub(super) fn thread_of(&mut self, cpu: usize, event: Event<'_>, role: Role, before_ns: u64) -> Option<usize> {
        let tid = if event.tid == trace::batch::NO_TID { self.cpus[cpu].current } else { Some(event.tid) };
        let tid = tid.or_else(|| self.tid_by_pointer(&event, role));
        let me = match tid {
            // The idle task is no thread.
            Some(0) | None => None,
            Some(tid) => match self.by_tid.get(&tid) {
                Some(me) if !role.is_positional() || self.threads[*me].is_vcpu => Some(*me),
                _ if role.is_positional() && self.is_crowded() => {
                    self.doubts.crowded += 1;
                    return None;
                }
                Some(me) => Some(*me),
                None => role.is_positional().then(|| self.meet_vcpu(tid, self.plausible(event.time_ns))),
            },
        };
        let Some(me) = me else {
            self.without_thread(event, role, tid, before_ns);
            return None;
        };
        self.arrives_on(me, cpu, self.plausible(event.time_ns));
        Some(me)
    }

    /// KVM says how a halt ended, and nothing else was told of that thread.
    fn halted(&mut self, event: &Event<'_>, tid: Option<i32>) {
        let Some(tid) = tid.filter(|tid| self.halts.len() < MOST_THREADS || self.halts.contains_key(tid)) else {
            return;
        };
        let (times, ns) = &mut self.halts.entry(tid).or_default()[usize::from(event.get(1) == Some(1))];
        (*times, *ns) = (*times + 1, ns.saturating_add(event.or_zero(0)));
    }

    /// An event in the time of a task that is no thread of ours: what it does to others still counts.
    fn without_thread(&mut self, event: Event<'_>, role: Role, tid: Option<i32>, before_ns: u64) {
        let now_ns = self.plausible(event.time_ns);
        self.serves_irq(&event, role, now_ns);
        match role {
            Role::Waking => self.waken_by(None, &event, now_ns, before_ns),
            Role::AcceptIrq => self.accept_irq(None, &event, now_ns, before_ns),
            Role::PostIrq => self.post_irq(&event, now_ns),
            Role::SetIrq => self.set_irq(&event, now_ns),
            Role::HrtimerExpire => self.hrtimer_expire(&event, now_ns),
            Role::VcpuWakeup => self.halted(&event, tid),
            // Where switches are not recorded, another one has the CPU for all that is known.
            Role::IrqEntry | Role::VectorEntry | Role::SoftirqEntry | Role::IrqExit | Role::SoftirqExit
                if self.cpus[event.cpu as usize].current == tid =>
            {
                self.host_interrupt(None, event, role);
            }
            _ if tid.is_none() && role.is_positional() => self.unattributed += 1,
            _ => {}
        }
    }

    /// The thread that a stale `kvm_x86_entry` names by its vCPU's address: behind a loss nothing else tells.
    fn tid_by_pointer(&self, event: &Event<'_>, role: Role) -> Option<i32> {
        let pointer = event.get(roles::entry::VCPU).filter(|vcpu| role == Role::Entry && *vcpu >= NO_VCPU)?;
        self.by_pointer.get(&pointer).map(|me| self.threads[*me].tid)
    }

    /// Takes in which threads run vCPUs and which have the CPUs, before an event says so; to be called before
    /// [`Walk::start`].
    pub fn know(&mut self, known: &CutTrace) {
        let number = |thread: &VcpuThread| thread.vcpu.filter(|vcpu| u64::from(*vcpu) < NO_VCPU);
        self.expected = known.vcpus.iter().map(|thread| (thread.tid, number(thread))).collect();
        self.running.clone_from(&known.running);
    }

    /// Whether threads that run vCPUs are as many as are told apart.
    pub(super) fn is_crowded(&self) -> bool {
        self.vcpus_met >= MOST_THREADS
    }

    fn meet_vcpu(&mut self, tid: i32, now_ns: u64) -> usize {
        let me = self.meet(tid, now_ns);
        self.count_vcpu(me);
        me
    }

    /// A thread is known to run a vCPU.
    pub(super) fn count_vcpu(&mut self, me: usize) {
        if !std::mem::replace(&mut self.threads[me].is_counted, true) {
            self.vcpus_met += 1;
        }
    }

    pub(super) fn meet(&mut self, tid: i32, now_ns: u64) -> usize {
        let me = self.threads.len();
        self.threads.push(Thread::new(tid, self.origin_ns, now_ns));
        // Its first events may be among those that were lost.
        self.threads[me].lossy = !self.losses.is_empty();
        self.by_tid.insert(tid, me);
        if let Some(vcpu) = self.expected.remove(&tid) {
            self.threads[me].is_vcpu = true;
            if let Some(vcpu) = vcpu {
                self.number(me, vcpu);
            }
        }
        me
    }

    /// A `kvm_entry` of thread `me` says which vCPU it runs, if its field is not stale.
    #[inline(never)]
    pub(super) fn number_by_entry(&mut self, me: usize, vcpu: Option<u64>) {
        let Some(vcpu) = vcpu else { return };
        if vcpu < NO_VCPU {
            return self.number(me, vcpu as u32);
        }
        self.stale_entries += 1;
        if self.threads[me].vcpu_pointer.replace(vcpu) != Some(vcpu) {
            self.by_pointer.entry(vcpu).or_insert(me);
        }
    }

    /// An event says the number of the vCPU that thread `me` runs.
    #[inline(never)]
    pub(super) fn number(&mut self, me: usize, vcpu: u32) {
        if self.threads[me].vcpu_id.replace(vcpu) == Some(vcpu) {
            return;
        }
        let place = vcpu as usize;
        if place >= self.by_vcpu.len() {
            self.by_vcpu.resize(place + 1, Owner::Nobody);
        }
        self.by_vcpu[place] = match self.by_vcpu[place] {
            Owner::Several => Owner::Several,
            Owner::Thread(other) if other != me && self.threads[other].vcpu_id == Some(vcpu) => Owner::Several,
            Owner::Thread(_) | Owner::Nobody => Owner::Thread(me),
        };
    }
}
