//! The processors' counts of system management interrupts, where the kernel shows the register: `/dev/cpu/N/msr`, which needs root
//! and the module msr. Reading it changes nothing.

use host::Snapshot;
use host::smi::MSR_SMI_COUNT;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// More CPUs are not read.
const MOST_CPUS: u32 = 4_096;

/// The count of each CPU that can be read; none on processors that do not count them.
pub(super) fn counts(machine: &Snapshot) -> BTreeMap<u32, u32> {
    let is_intel = machine.read("proc/cpuinfo").is_some_and(|text| text.contains("GenuineIntel"));
    let cpus = machine.entries("dev/cpu").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let count = |cpu: u32| {
        let mut value = [0_u8; 8];
        let register = File::open(machine.root().join(format!("dev/cpu/{cpu}/msr"))).ok()?;
        register.read_exact_at(&mut value, MSR_SMI_COUNT).ok()?;
        Some((cpu, u64::from_le_bytes(value) as u32))
    };
    cpus.filter(|cpu| is_intel && *cpu < MOST_CPUS).filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_register_is_read_of_each_cpu_where_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, bytes).unwrap();
        };
        // The offset in the file is the number of the register (Documentation for msr(4)).
        let register = |count: u64| [vec![0xff; 0x34], count.to_le_bytes().to_vec()].concat();
        write("dev/cpu/0/msr", &register(7));
        write("dev/cpu/1/msr", &register(0x1_0000_0009));
        write("dev/cpu/2/msr", b"short");
        write("dev/cpu/microcode", b"");
        write("proc/stat", b"cpu 0\n");
        write("sys/x", b"");
        write("proc/cpuinfo", b"vendor_id\t: GenuineIntel\n");
        assert_eq!(counts(&Snapshot::open(root.path()).unwrap()), [(0, 7), (1, 9)].into());
        write("proc/cpuinfo", b"vendor_id\t: AuthenticAMD\n");
        assert_eq!(counts(&Snapshot::open(root.path()).unwrap()), [].into());
    }
}
