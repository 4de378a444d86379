//! How much time did a guest see stolen from its CPUs, and how much did the host take from its vCPUs?
//!
//! In:  two snapshots of the guest, whose `/proc/stat` counts steal, and the ledger of the host. Out: both amounts for each CPU.
//! What KVM reports to a guest as stolen is the time that the vCPU's thread was runnable and did not run (`record_steal_time` in
//! arch/x86/kvm/x86.c, Linux 6.12, from `run_delay`): the ledger's preempted and wake-up delay. The two were not taken over exactly
//! the same time, so each carries its own.

use crate::Input;
use crate::ledger::model::{Flow, PartFlow, Vcpu};
use base::Span;
use host::usage;
use walk::state::State;

/// One CPU of a guest.
#[derive(Debug)]
pub struct Steal<'f> {
    pub machine: &'f str,
    pub vcpu: &'f Vcpu,
    /// Its CPU.
    pub cpu: u32,
    /// What the guest saw stolen.
    pub guest_ns: f64,
    /// Between its two snapshots.
    pub guest_span_ns: u64,
    pub host_ns: u64,
    pub host_span_ns: u64,
}

impl Steal<'_> {
    /// What the guest saw more than the host took, if the host took as much all the time.
    pub fn difference_ns(&self) -> f64 {
        self.guest_ns - self.host_ns as f64 * self.guest_span_ns as f64 / (self.host_span_ns as f64).max(1.0)
    }
}

/// The CPUs of all guests of which both is known.
pub fn of<'f>(input: &'f Input, flow: &'f Flow) -> Vec<Steal<'f>> {
    const STAT: &str = "proc/stat";
    let mut steals = Vec::new();
    for guest in &input.machines.list {
        let (Some(first), Some(last)) = (guest.snapshots.first(), guest.snapshots.last()) else { continue };
        let span_ns =
            last.read_at_ns(STAT).zip(first.read_at_ns(STAT)).and_then(|(last, first)| last.checked_sub(first));
        let (Some(span_ns @ 1..), Some(before), Some(after)) = (span_ns, first.read(STAT), last.read(STAT)) else {
            continue;
        };
        let Some(below) = below(input, flow, &guest.machine) else { continue };
        for (cpu, used) in usage::between(&before, &after) {
            let Some(vcpu) = vcpu_of(input, flow, below, &guest.machine, cpu) else { continue };
            let taken = [State::Preempted, State::WakeDelay].map(|state| vcpu.sums.ns(state));
            steals.push(Steal {
                machine: &guest.machine,
                vcpu,
                cpu,
                guest_ns: used.steal * span_ns as f64,
                guest_span_ns: span_ns,
                host_ns: taken.iter().sum(),
                host_span_ns: Span::length_ns(&below.window),
            });
        }
    }
    steals
}

/// The trace of the machine that `machine` is a guest of, if it shows who waited.
fn below<'f>(input: &Input, flow: &'f Flow, machine: &str) -> Option<&'f PartFlow> {
    let machines = &input.recording.machines;
    let guest = machines.iter().find(|known| known.id == machine)?;
    let mut under = machines.iter().filter(|known| known.level + 1 == guest.level).map(|known| &known.id);
    let parent = match &guest.parent {
        Some(parent) => parent,
        None => under.next().filter(|_| under.next().is_none())?,
    };
    flow.parts.iter().find(|part| part.machine == *parent && part.twin_of.is_none() && part.has_switches)
}

/// The vCPU that CPU `cpu` of `machine` is: by the alignment of the guest's own trace, else by its number in the VM that is called
/// as the guest is, or in the only one.
fn vcpu_of<'f>(input: &Input, flow: &'f Flow, below: &'f PartFlow, machine: &str, cpu: u32) -> Option<&'f Vcpu> {
    let own = flow.parts.iter().filter(|part| part.machine == machine);
    let cpus = own.filter_map(|part| part.aligned.as_ref()).flat_map(|aligned| &aligned.alignment.cpus);
    if let Some(paired) = cpus.into_iter().find(|paired| paired.cpu == cpu) {
        return below.vcpus.iter().find(|vcpu| vcpu.tid == paired.vcpu.tid);
    }
    let name = input.recording.machines.iter().find(|known| known.id == machine)?.name.as_deref();
    let is_only = below.vcpus.windows(2).all(|two| two[0].vm == two[1].vm);
    below.vcpus.iter().find(|vcpu| vcpu.vcpu == cpu && (is_only || Some(vcpu.vm.as_str()) == name))
}
