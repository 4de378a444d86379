//! Samples of counters, by vCPU, state and function.
//!
//! In: what [`walk::samples`] counted. Out: rows, with functions named by the symbols of the machine whose code
//! ran: the recorded machine's own, or the guest's where the guest's trace carries them. Addresses without a symbol stay
//! addresses; those of programs are one row, because nothing here knows where a program's functions lie.

use super::model::{PartFlow, Sampled};
use crate::names;
use crate::{Given, Input};
use align::symbols::Symbols;
use base::Problem;
use std::collections::BTreeMap;
use walk::samples::{Mode, Place, profile};
use walk::state::State;

/// Adds the samples of every part that has some.
pub(super) fn add(input: &Input, given: &Given, flows: &mut [PartFlow]) {
    for place in 0..flows.len() {
        let counted = profile(&input.parts[place], &given.traces.ignore_events);
        if counted.is_empty() {
            continue;
        }
        let own = names::symbols(input, given, &input.parts[place], &[]).unwrap_or_else(|sentence| {
            // Of a guest this was said when it was aligned.
            if flows[place].aligned.is_none() {
                let path = flows[place].path.clone();
                flows[place].problems.push(Problem::at(path, None, "the kernel's KASLR offset", "none", 0, sentence));
            }
            None
        });
        let guest = guest_symbols(flows, place).cloned();
        let mut rows: BTreeMap<(usize, usize, Mode, String), (u64, u64)> = BTreeMap::new();
        for (sampled, (samples, period)) in counted {
            let Some(vcpu) = flows[place].vcpus.iter().position(|vcpu| vcpu.tid == sampled.tid) else { continue };
            let symbol = symbol(&sampled, own.as_ref(), guest.as_ref());
            let sums = rows.entry((vcpu, sampled.state.index(), sampled.mode, symbol)).or_default();
            *sums = (sums.0 + samples, sums.1.saturating_add(period));
        }
        let flow = &flows[place];
        let row =
            |((vcpu, state, mode, symbol), (samples, period)): ((usize, usize, Mode, String), (u64, u64))| Sampled {
                vm: flow.vcpus[vcpu].vm.clone(),
                vcpu: flow.vcpus[vcpu].vcpu,
                state: State::of_index(state),
                mode,
                symbol,
                samples,
                period,
            };
        let mut sampled: Vec<Sampled> = rows.into_iter().map(row).collect();
        sampled.sort_by_key(|row| std::cmp::Reverse(row.samples));
        flows[place].profile = sampled;
    }
}

/// Symbols of the only guest of this machine whose trace carries some: a host's samples do not say which VM it was.
fn guest_symbols(flows: &[PartFlow], place: usize) -> Option<&Symbols> {
    let machine = &flows[place].machine;
    let mut guests = flows.iter().filter_map(|flow| flow.aligned.as_ref());
    let mut guests = guests.by_ref().filter(|aligned| aligned.alignment.below == *machine);
    let (only, None) = (guests.next()?, guests.next()) else { return None };
    only.symbols.as_ref()
}

fn symbol(sampled: &Place, own: Option<&Symbols>, guest: Option<&Symbols>) -> String {
    let symbols = match (sampled.mode, sampled.state) {
        (Mode::User | Mode::GuestUser, _) => return "user code".to_owned(),
        // Deeper guests are other machines.
        (Mode::GuestKernel, State::Guest(level)) if level.is_nested() => None,
        (Mode::GuestKernel, _) => guest,
        _ => own,
    };
    symbols.and_then(|symbols| symbols.name(sampled.ip)).unwrap_or_else(|| format!("{:#x}", sampled.ip))
}
