//! Checks of what went wrong with guests: they come before all that costs time.

use base::number::{counted, many, percent, thousands};
use base::{Evidence, Severity};
use facts::ledger::measure::Measures;
use facts::ledger::model::Vcpu;
use facts::rule::Hit;
use walk::faults::{Fault, Seen, exception};

/// Share of a vCPU's exits from which on injected exceptions are more than a probe: guests read MSRs that are not there, and
/// take the #GP.
pub(in crate::flow) const STORM: f64 = 0.1;

/// Invalid opcode.
const UNDEFINED: u8 = 6;

/// Double fault: the guest could not even deliver an exception (Intel SDM vol. 3, 6.15).
const DOUBLE_FAULT: u8 = 8;

/// Exceptions that a healthy guest gets from KVM all the time: debugger's, FPU, and page faults of shadow paging.
const USUAL: [u8; 4] = [1, 3, 7, 14];

/// What went wrong with the vCPUs that are looked at, by kind of fault.
fn of<'m>(
    measure: &'m Measures<'_>,
    wanted: impl Fn(Fault) -> bool + 'm,
) -> impl Iterator<Item = (&'m Vcpu, Fault, &'m Seen)> {
    let of_vcpu = |tid: i32| measure.vcpus.iter().find(|vcpu| vcpu.tid == tid).copied();
    let all = measure.part.faults.iter().filter(move |(_, fault, _)| wanted(*fault));
    all.filter_map(move |(tid, fault, seen)| Some((of_vcpu(*tid)?, *fault, seen)))
}

fn hit(vcpu: &Vcpu, severity: Severity, title: String, fault: Fault, seen: &Seen) -> Hit {
    let what = format!("vCPU {}: {}, {}", vcpu.vcpu, fault.name(), counted(seen.count, "time", "times"));
    let evidence = Evidence::in_table(what, "flow.faults").key("vm", &*vcpu.vm);
    Hit { nothing_to_change: true, ..Hit::new(&*vcpu.vm, severity, title).with(evidence) }
}

/// Of several vCPUs of a VM with one trouble one finding, with the evidence of all.
fn by_vm(hits: impl Iterator<Item = Hit>) -> Vec<Hit> {
    let mut all: Vec<Hit> = Vec::new();
    for hit in hits {
        match all.iter_mut().find(|known| known.subject == hit.subject) {
            Some(known) => known.evidence.extend(hit.evidence),
            None => all.push(hit),
        }
    }
    all
}

/// `at 0x1000`, where the trace tells.
fn at(seen: &Seen) -> String {
    seen.rip.map_or(String::new(), |rip| format!(" at {rip:#x}"))
}

/// The error of a page of the VMM that is not there, or that it may not touch (include/uapi/asm-generic/errno-base.h).
const EFAULT: u32 = 14;

/// KVM_RUN ended for good.
pub(crate) fn ended(measure: &Measures<'_>) -> Vec<Hit> {
    by_vm(of(measure, |fault| matches!(fault, Fault::Ended(_) | Fault::Failed(_) | Fault::TripleFault)).map(
        |(vcpu, fault, seen)| {
            let title = match fault {
                Fault::Failed(EFAULT) => {
                    let why = "KVM could not use the memory of the VMM that backs the guest's";
                    format!("KVM_RUN of vCPU {} failed with {}: {why}", vcpu.vcpu, fault.name())
                }
                Fault::Failed(_) => format!("KVM_RUN of vCPU {} failed with {}", vcpu.vcpu, fault.name()),
                Fault::TripleFault => {
                    let before = of(measure, |fault| matches!(fault, Fault::Injected(_)))
                        .filter(|(other, _, injected)| other.tid == vcpu.tid && injected.first_ns <= seen.first_ns);
                    let injected: Vec<String> = before.map(|(_, fault, _)| fault.name()).collect();
                    let after = match injected.is_empty() {
                        true => String::new(),
                        false => format!(", after {}", base::number::list(&injected)),
                    };
                    format!(
                        "vCPU {} took a triple fault{}{after}: its guest stopped, or reset itself so",
                        vcpu.vcpu,
                        at(seen)
                    )
                }
                _ => format!("{} stopped: KVM_RUN of vCPU {} returned {}", vcpu.vm, vcpu.vcpu, fault.name()),
            };
            hit(vcpu, Severity::High, title, fault, seen)
        },
    ))
}

/// Instructions that could not be emulated, and what the guest got instead.
pub(crate) fn emulation(measure: &Measures<'_>) -> Vec<Hit> {
    by_vm(of(measure, |fault| fault == Fault::Emulation).map(|(vcpu, fault, seen)| {
        let injected =
            of(measure, |fault| fault == Fault::Injected(UNDEFINED)).any(|(other, ..)| other.tid == vcpu.tid);
        let got = if injected { ", and #UD was injected" } else { "" };
        let bytes = if seen.bytes.is_empty() { String::new() } else { format!(" ({}{})", seen.bytes, at(seen)) };
        let count = counted(seen.count, "instruction", "instructions");
        let title = format!("KVM could not emulate {count} of vCPU {}{bytes}{got}", vcpu.vcpu);
        hit(vcpu, Severity::High, title, fault, seen)
    }))
}

/// Exceptions that KVM injects more often than guests provoke.
pub(crate) fn exceptions(measure: &Measures<'_>) -> Vec<Hit> {
    by_vm(of(measure, |fault| matches!(fault, Fault::Injected(_))).filter_map(|(vcpu, fault, seen)| {
        let Fault::Injected(vector) = fault else { return None };
        let exits = measure.exit_count_of(vcpu);
        let share = seen.count as f64 / exits.max(1) as f64;
        let is_storm = !USUAL.contains(&vector) && exits > 0 && share >= STORM;
        // What a failed emulation gave has been said with it.
        let is_said = vector == UNDEFINED
            && of(measure, |fault| fault == Fault::Emulation)
                .any(|(other, _, failed)| other.tid == vcpu.tid && failed.count >= seen.count);
        if vector != DOUBLE_FAULT && !is_storm || is_said {
            return None;
        }
        let name = exception(vector);
        let title = match vector {
            DOUBLE_FAULT => {
                format!("vCPU {} took {} (double fault): it could not deliver an exception", vcpu.vcpu, name)
            }
            _ => format!(
                "KVM injected {} {name} into vCPU {}, in {}",
                thousands(seen.count),
                vcpu.vcpu,
                many(exits, "exit")
            ),
        };
        Some(hit(vcpu, Severity::Medium, title, fault, seen))
    }))
}

/// An instruction that stops again and again at the same address.
pub(crate) fn stuck(measure: &Measures<'_>) -> Vec<Hit> {
    by_vm(of(measure, |fault| fault == Fault::Repeated).filter_map(|(vcpu, fault, seen)| {
        let reason = seen.reason?;
        let of_reason: u64 =
            measure.exits_of(vcpu).filter(|(_, other, _)| *other == reason).map(|(.., sums)| sums.count).sum();
        let share = seen.count as f64 / of_reason.max(1) as f64;
        let address = seen.address.map_or(String::new(), |address| format!(" about address {address:#x}"));
        let title = format!(
            "vCPU {} makes no progress: {} of {} {} exits in a row ({}) came from one instruction{}{address}",
            vcpu.vcpu,
            thousands(seen.count),
            thousands(of_reason),
            reason.name(),
            percent(share),
            at(seen),
        );
        Some(hit(vcpu, Severity::High, title, fault, seen))
    }))
}
