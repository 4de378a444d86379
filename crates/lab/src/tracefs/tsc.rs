//! What does KVM say now of its guests' time-stamp counters?
//!
//! In:  the files of each vCPU below `sys/kernel/debug/kvm` of a host. Out: [`TscReading`]s, for the recording.
//!
//! ```text
//! kvm/<pid>-<fd>/vcpuN/ pid  guest_mode  tsc-offset  guest_mode  tsc-scaling-ratio  tsc-scaling-ratio-frac-bits
//!                             0 before    value       0 behind: the offset is the guest's own
//! ```
//! `tsc-offset` is the offset in force: while a guest of the guest runs, that of both together. So it is read between two
//! looks at `guest_mode`, and again if they do not say that the guest itself ran. The files of the ratio are there where
//! the processor can scale. Sources: arch/x86/kvm/debugfs.c and `kvm_create_vcpu_debugfs` in virt/kvm/kvm_main.c, Linux
//! 6.12; `guest_mode` came with 5.14, `pid` with 5.18.

use base::recording::{TscReading, TscScaling};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// Tries to find a vCPU outside a guest of its guest. One that runs it most of the time is out of it many times a
/// millisecond.
const TRIES: usize = 200;

/// Between two tries, so that they do not all meet the same stretch.
const PAUSE: Duration = Duration::from_micros(50);

/// Reads all vCPUs of the machine at `host`; `proc` names its threads. Empty where debugfs is not mounted, or hidden.
pub(super) fn read(host: &Path, proc: &Path) -> Vec<TscReading> {
    let mut readings = Vec::new();
    for vm in names(&host.join("sys/kernel/debug/kvm")) {
        let Some(pid) = vm.split_once('-').and_then(|(pid, _)| pid.parse().ok()) else { continue };
        let directory = host.join("sys/kernel/debug/kvm").join(&vm);
        for name in names(&directory) {
            if let Some(vcpu) = name.strip_prefix("vcpu").and_then(|number| number.parse().ok()) {
                readings.extend(read_vcpu(&directory.join(&name), proc, pid, vcpu));
            }
        }
    }
    readings.sort_unstable_by_key(|reading| (reading.pid, reading.vcpu));
    readings
}

fn read_vcpu(directory: &Path, proc: &Path, pid: i32, vcpu: u32) -> Option<TscReading> {
    let (offset, is_own) = offset(directory)?;
    let scaling = number(directory, "tsc-scaling-ratio").zip(number(directory, "tsc-scaling-ratio-frac-bits"));
    let scaling = scaling.map(|(ratio, frac_bits)| TscScaling { ratio, frac_bits });
    let tid = number(directory, "pid").filter(|tid| *tid > 0).or_else(|| named(proc, pid, vcpu));
    Some(TscReading { pid, vcpu, tid, offset, scaling, is_own, error_ticks: None })
}

/// The offset, and whether the kernel said that it is the guest's own. The VM may end meanwhile: then nothing.
fn offset(directory: &Path) -> Option<(Option<i64>, bool)> {
    for tries in 0..TRIES {
        let before: Option<u64> = number(directory, "guest_mode");
        let offset: i64 = number(directory, "tsc-offset")?;
        match (before, number::<u64>(directory, "guest_mode")) {
            (None, None) => return Some((Some(offset), false)),
            (Some(0), Some(0)) => return Some((Some(offset), true)),
            _ if tries + 1 < TRIES => std::thread::sleep(PAUSE),
            _ => {}
        }
    }
    Some((None, true))
}

/// The thread that QEMU calls after the vCPU, where it was asked to (`-name web,debug-threads=on`, as libvirt does).
fn named(proc: &Path, pid: i32, vcpu: u32) -> Option<i32> {
    let tasks = proc.join(pid.to_string()).join("task");
    let wanted = format!("CPU {vcpu}/KVM");
    let is_it = |tid: &String| {
        std::fs::read_to_string(tasks.join(tid).join("comm")).is_ok_and(|comm| comm.trim_end() == wanted)
    };
    names(&tasks).into_iter().find(is_it)?.parse().ok()
}

fn number<T: FromStr>(directory: &Path, name: &str) -> Option<T> {
    std::fs::read_to_string(directory.join(name)).ok()?.trim().parse().ok()
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(listing) = std::fs::read_dir(directory) else { return Vec::new() };
    listing.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcpu(host: &Path, vm: &str, number: u32, files: &[(&str, &str)]) {
        let directory = host.join(format!("sys/kernel/debug/kvm/{vm}/vcpu{number}"));
        std::fs::create_dir_all(&directory).unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(directory.join(name), format!("{text}\n")).unwrap());
    }

    #[test]
    fn every_vcpu_tells_its_offset_and_what_it_can_of_the_rest() {
        let host = tempfile::tempdir().unwrap();
        let (host, proc) = (host.path(), host.path().join("proc"));
        let ratio = [("tsc-scaling-ratio", "4294967296"), ("tsc-scaling-ratio-frac-bits", "32")];
        vcpu(host, "90-11", 0, &[&[("pid", "93"), ("guest_mode", "0"), ("tsc-offset", "-700")], &ratio[..]].concat());
        vcpu(host, "90-11", 1, &[("pid", "94"), ("guest_mode", "1"), ("tsc-offset", "-900")]);
        vcpu(host, "17-9", 0, &[("tsc-offset", "5")]);
        std::fs::create_dir_all(proc.join("17/task/19")).unwrap();
        std::fs::write(proc.join("17/task/19/comm"), "CPU 0/KVM\n").unwrap();
        std::fs::write(host.join("sys/kernel/debug/kvm/exits"), "5\n").unwrap();
        let scaling = Some(TscScaling { ratio: 1 << 32, frac_bits: 32 });
        let expected = [
            TscReading {
                pid: 17,
                vcpu: 0,
                tid: Some(19),
                offset: Some(5),
                scaling: None,
                is_own: false,
                error_ticks: None,
            },
            TscReading {
                pid: 90,
                vcpu: 0,
                tid: Some(93),
                offset: Some(-700),
                scaling,
                is_own: true,
                error_ticks: None,
            },
            TscReading {
                pid: 90,
                vcpu: 1,
                tid: Some(94),
                offset: None,
                scaling: None,
                is_own: true,
                error_ticks: None,
            },
        ];
        assert_eq!(read(host, &proc), expected, "the offset of a guest of the guest is not taken");
        assert!(read(&proc, &proc).is_empty());
    }
}
