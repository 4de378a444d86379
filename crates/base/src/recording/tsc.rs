//! What KVM said of its guests' time-stamp counters while a recording was made: `<machine>/tsc.json`.
//!
//! ```text
//! guest counter = (host counter x ratio >> frac_bits) + offset, modulo 2^64     per vCPU
//! ```
//! In: the files of a vCPU below `/sys/kernel/debug/kvm`, read by the recorder when recording has begun and when it ends.
//! Out: what alignment needs where no event tells it: VMs that ran before have their offset already, and no event has the
//! ratio. Source: `kvm_arch_create_vcpu_debugfs` in arch/x86/kvm/debugfs.c, Linux 6.12.

use super::note;
use super::{Error, Recording};
use serde::{Deserialize, Serialize};

/// Name of the file in a machine's directory.
pub const TSC_FILE: &str = "tsc.json";

/// Readings of all vCPUs of a machine's guests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TscReadings {
    /// When events were being recorded already.
    pub first: Vec<TscReading>,
    /// When they were still being recorded; empty if the recorder was killed.
    pub last: Vec<TscReading>,
}

/// One vCPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TscReading {
    /// The thread that made its VM: of QEMU the first one, whose number is that of the process.
    pub pid: i32,
    /// Its number.
    pub vcpu: u32,
    /// Its thread; `None` if it never ran, or if the kernel does not say it and QEMU's names do not either.
    pub tid: Option<i32>,
    /// Its offset; `None` if a guest of the guest ran at each try: then the counter has the offset of both.
    pub offset: Option<i64>,
    /// How the counter is scaled; `None` if the kernel has no file for it, because the processor cannot scale.
    pub scaling: Option<TscScaling>,
    /// The kernel said that no guest of the guest ran (file `guest_mode`, since Linux 5.14).
    pub is_own: bool,
    /// The offset was measured by comparing both counters, and is within so many ticks of the true one; `None` if KVM said
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_ticks: Option<u64>,
}

/// A ratio with a binary point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TscScaling {
    /// 2^`frac_bits` is 1.
    pub ratio: u64,
    /// 48 on Intel, 32 on AMD.
    pub frac_bits: u32,
}

// A vCPU is a few hundred bytes; a file this long is something else.
note::read_and_write!(TscReadings, TSC_FILE, "offsets of guests' counters", most_bytes: 64 << 20);

impl Recording {
    /// What was read of the counters of `machine`'s guests; `None` if the recording has nothing of it.
    pub fn tsc_readings(&self, machine: &str) -> Option<Result<TscReadings, Error>> {
        note::of_machine(self, machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_no_reading_is_said() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(TSC_FILE);
        let scaling = Some(TscScaling { ratio: 3 << 47, frac_bits: 48 });
        let reading =
            TscReading { pid: 7, vcpu: 0, tid: Some(9), offset: Some(-5), scaling, is_own: true, error_ticks: Some(9) };
        let readings = TscReadings { first: vec![reading], last: Vec::new() };
        readings.write(&path).unwrap();
        assert_eq!(TscReadings::read(&path).unwrap(), readings);
        std::fs::write(&path, "{\"first\": 3}").unwrap();
        assert!(TscReadings::read(&path).unwrap_err().to_string().contains("tsc.json"));
    }
}
