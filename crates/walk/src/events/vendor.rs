//! Whose exit reasons are these, where no event says `isa`?
//!
//! The kernel's text prints names without `isa`, and CentOS 6 had no such field. Many names and numbers belong to both
//! vendors: HLT, CPUID, MSR. So the vendor is decided once for the whole trace, before it is read, by the first reason
//! that only one of them has.

use super::reasons::Isa;
use super::roles::{ROWS, Role, exit};
use trace::{Batch, Reading, Request, Trace, Wanted};

/// The field that arm64's `kvm_exit` has instead of a reason (arch/arm64/kvm/trace_arm.h, Linux 6.12).
const ARM64_CLASS: &str = "esr_ec";

/// The instruction set of a trace's exits. VMX where nothing tells, or where the events say it themselves.
pub fn of(trace: &dyn Trace) -> Isa {
    let Some(row) = ROWS.iter().find(|row| row.role == Role::Exit) else { return Isa::Vmx };
    let wanted = |field: usize| row.fields[field].iter().map(|name| (*name).to_owned()).collect();
    let fields = [exit::REASON, exit::REASON_NAME, exit::ISA].map(wanted).to_vec();
    let exits = Wanted { names: row.names.iter().map(|name| (*name).to_owned()).collect(), fields };
    let facts = trace.facts();
    let mut described = facts.event_types.iter().filter(|event| exits.matches(event)).peekable();
    if described.clone().any(|event| event.fields.iter().any(|field| field.name == ARM64_CLASS)) {
        return Isa::Arm64;
    }
    if described.peek().is_none() || described.any(|event| exits.positions(event)[2].is_some()) {
        return Isa::Vmx;
    }
    let request = Request { events: vec![exits] };
    let reading = Reading { request: &request, fitted: None };
    let mut batches = trace.lanes(&reading).into_iter().flat_map(|lane| lane.source.batches(facts.event_types.len()));
    batches.find_map(|batch| in_batch(&batch)).unwrap_or(Isa::Vmx)
}

/// The instruction set that the first telling exit of a batch betrays. Its fields are values, or still in the record.
fn in_batch(batch: &Batch) -> Option<Isa> {
    let exits = batch.rows.iter().filter(|row| row.kind != trace::batch::LOST);
    exits.map(|row| batch.fields(row)).find_map(|fields| {
        let by_number = fields.get(0).and_then(Isa::betrayed_by_number);
        by_number.or_else(|| Isa::betrayed_by(&String::from_utf8_lossy(fields.content(1)?)))
    })
}
