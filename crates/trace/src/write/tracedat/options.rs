//! What a trace.dat says of itself, option by option (trace-cmd.dat.v7(5), section OPTIONS).

use crate::facts::{Guest, TimeShift};
use crate::write::layout::Machine;

/// One option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOption {
    /// The clock in use, as tracefs lists it: `local [mono] boot`.
    TraceClock(String),
    /// `uname` of the machine.
    Uname(String),
    /// Program that wrote the file.
    Program(String),
    /// How many CPUs the machine has.
    CpuCount(u32),
    /// Text of `per_cpu/cpuN/stats`.
    CpuStat(String),
    /// By this number recordings of hosts and guests name each other.
    TraceId(u64),
    /// ns = ticks x mult >> shift.
    Tsc2Nsec {
        /// See above.
        mult: u32,
        /// See above.
        shift: u32,
        /// Nanoseconds to add; trace-cmd does not.
        offset: u64,
    },
    /// Ticks to add to every time stamp.
    Offset(i64),
    /// Clock samples against another recording.
    TimeShift(TimeShift),
    /// A guest and its vCPU threads.
    Guest(Guest),
    /// An option of any number, known or not.
    Raw {
        /// Its number.
        id: u16,
        /// Its data.
        data: Vec<u8>,
    },
}

impl FileOption {
    pub(super) fn id(&self) -> u16 {
        match self {
            FileOption::CpuStat(_) => 2,
            FileOption::TraceClock(_) => 4,
            FileOption::Uname(_) => 5,
            FileOption::Offset(_) => 7,
            FileOption::CpuCount(_) => 8,
            FileOption::Program(_) => 9,
            FileOption::TraceId(_) => 11,
            FileOption::TimeShift(_) => 12,
            FileOption::Guest(_) => 13,
            FileOption::Tsc2Nsec { .. } => 14,
            FileOption::Raw { id, .. } => *id,
        }
    }

    pub(super) fn data(&self, machine: Machine) -> Vec<u8> {
        let mut data = Vec::new();
        match self {
            FileOption::TraceClock(text)
            | FileOption::Uname(text)
            | FileOption::Program(text)
            | FileOption::CpuStat(text) => text_with_nul(&mut data, text),
            FileOption::Offset(ticks) => text_with_nul(&mut data, &ticks.to_string()),
            FileOption::CpuCount(count) => machine.put(&mut data, u64::from(*count), 4),
            FileOption::TraceId(id) => machine.put(&mut data, *id, 8),
            FileOption::Tsc2Nsec { mult, shift, offset } => {
                machine.put(&mut data, u64::from(*mult), 4);
                machine.put(&mut data, u64::from(*shift), 4);
                machine.put(&mut data, *offset, 8);
            }
            FileOption::Guest(guest) => {
                text_with_nul(&mut data, &guest.name);
                machine.put(&mut data, guest.trace_id, 8);
                machine.put(&mut data, guest.vcpu_tids.len() as u64, 4);
                for (vcpu, tid) in &guest.vcpu_tids {
                    machine.put(&mut data, u64::from(*vcpu), 4);
                    machine.put(&mut data, *tid as u64, 4);
                }
            }
            FileOption::TimeShift(shift) => time_shift(&mut data, shift, machine),
            FileOption::Raw { data: raw, .. } => data.clone_from(raw),
        }
        data
    }
}

/// Per CPU all times, then all offsets, then all scalings; the fraction bits of all CPUs come last and are not in the
/// manual page.
fn time_shift(data: &mut Vec<u8>, shift: &TimeShift, machine: Machine) {
    machine.put(data, shift.peer, 8);
    machine.put(data, u64::from(shift.flags), 4);
    machine.put(data, shift.samples.len() as u64, 4);
    for samples in &shift.samples {
        machine.put(data, samples.len() as u64, 4);
        samples.iter().for_each(|(time, _, _)| machine.put(data, *time, 8));
        samples.iter().for_each(|(_, offset, _)| machine.put(data, *offset as u64, 8));
        samples.iter().for_each(|(_, _, scaling)| machine.put(data, *scaling, 8));
    }
    for (cpu, samples) in shift.samples.iter().enumerate() {
        let bits = shift.fraction_bits.get(cpu).copied().unwrap_or(0);
        samples.iter().for_each(|_| machine.put(data, bits, 8));
    }
}

pub(super) fn text_with_nul(data: &mut Vec<u8>, text: &str) {
    data.extend_from_slice(text.as_bytes());
    data.push(0);
}
