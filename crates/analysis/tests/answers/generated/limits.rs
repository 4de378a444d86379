//! What a format cannot tell, declared once. Nothing else may differ from the truth.

use super::answer::{Answer, Chains};
use generate::{Story, Target};
use std::collections::BTreeMap;

/// Something that some traces cannot tell.
pub(super) struct Limit {
    pub missing: Missing,
    pub why: &'static str,
    pub applies: fn(&Story, Target) -> bool,
}

/// What is taken out of both answers before they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Times in ns; counts stay.
    Nanoseconds,
    /// Polling apart from handling.
    HaltPolling,
    /// Which vCPU's APIC accepted an interrupt, and all stages that begin there or need it.
    Accepts,
    /// How the trace's times relate to those that its events carry.
    Reference,
    /// Levels, and with them lengths of chains; exits by reason and injections stay.
    Levels,
}

pub(super) const LIMITS: &[Limit] = &[
    Limit {
        missing: Missing::Nanoseconds,
        why: "the kernel prints times in microseconds",
        applies: |_, target| target == Target::TextPrinted,
    },
    Limit {
        missing: Missing::HaltPolling,
        why: "LTTng has no probe for kvm_vcpu_wakeup",
        applies: |_, target| is_lttng(target),
    },
    Limit {
        missing: Missing::Accepts,
        why: "LTTng's kvm_x86_apic_accept_irq is stale since 5.10, and the event names a vCPU by its number alone, which several \
              VMs may have",
        applies: |story, target| {
            let mut numbers: Vec<u32> = story.truth.vcpus.iter().map(|vcpu| vcpu.vcpu).collect();
            numbers.sort_unstable();
            is_lttng(target) || numbers.windows(2).any(|two| two[0] == two[1])
        },
    },
    Limit {
        missing: Missing::Reference,
        why: "a text does not say by which clock its times are, and the deadlines of a story are no ticks",
        applies: |story, target| {
            matches!(target, Target::TextRaw | Target::TextPrinted) || story.clock.name == "x86-tsc"
        },
    },
    Limit {
        missing: Missing::Levels,
        why: "without kvm_nested_vmenter and the entry's rip a refused entry looks like one that was made, and guests of \
              guests like guests",
        applies: |story, target| {
            let deep = |key: &generate::truth::ExitKey| key.level > 2;
            let unclear = story.truth.vcpus.iter().any(|vcpu| vcpu.refused > 0 || vcpu.exits.keys().any(deep));
            is_lttng(target) && unclear
        },
    },
];

fn is_lttng(target: Target) -> bool {
    matches!(target, Target::Ctf1 { lttng: true, .. })
}

/// The limits of `story` as `target`.
pub(super) fn of(story: &Story, target: Target) -> Vec<Missing> {
    LIMITS.iter().filter(|limit| (limit.applies)(story, target)).map(|limit| limit.missing).collect()
}

impl Missing {
    /// The answer without it.
    pub(super) fn taken_from(self, answer: &mut Answer) {
        match self {
            Missing::Nanoseconds => {
                answer.ledger.clear();
                let sums = answer.exits.values_mut().chain(answer.preemptors.values_mut());
                sums.chain(answer.host_interrupts.values_mut()).for_each(|sum| sum.1 = 0);
                answer.stages.values_mut().for_each(|sum| sum.1 = 0);
                answer.chains.values_mut().for_each(|chains| chains.total_ns = 0);
            }
            Missing::Accepts => answer.stages.retain(|(_, stage), _| stage == "enter" || stage == "eoi"),
            Missing::Reference => answer.stages.retain(|(_, stage), _| stage != "timer residual"),
            Missing::HaltPolling => {
                merge(
                    &mut answer.ledger,
                    |column| {
                        if column == "halt_poll_ns" { "handling_l1_ns".into() } else { column }
                    },
                )
            }
            Missing::Levels => {
                merge(&mut answer.ledger, |column| {
                    let levelled = column.starts_with("guest_") || column.starts_with("handling_");
                    if levelled { "guest_and_handling_ns".into() } else { column }
                });
                let mut exits = BTreeMap::new();
                for ((_, reason), (count, _)) in std::mem::take(&mut answer.exits) {
                    exits.entry((String::new(), reason)).or_insert((0, 0)).0 += count;
                }
                answer.exits = exits;
                for chains in answer.chains.values_mut() {
                    *chains = Chains { count: chains.count, ..Chains::default() };
                }
            }
        }
    }
}

fn merge(ledger: &mut BTreeMap<String, u64>, name: impl Fn(String) -> String) {
    for (column, ns) in std::mem::take(ledger) {
        *ledger.entry(name(column)).or_default() += ns;
    }
}
