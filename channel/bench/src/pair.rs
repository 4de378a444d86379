//! How far apart are two CPUs? A ring's lines travel that way for each batch.
//!
//! Source: `topology/thread_siblings_list`, `cache/index*/shared_cpu_list` and `node*` below `/sys/devices/system/cpu/cpu*`
//! (Documentation/admin-guide/cputopology.rst, Documentation/ABI/testing/sysfs-devices-system-cpu, Linux 6.12).

use base::CpuSet;
use base::channel::PAIRS;
use std::path::Path;

/// One of [`PAIRS`]; `None` where the machine whose files lie below `root` does not tell.
pub fn relation(root: &Path, a: u32, b: u32) -> Option<&'static str> {
    let [same, core, cache, node, other] = PAIRS;
    if a == b {
        return Some(same);
    }
    let cpu = root.join(format!("sys/devices/system/cpu/cpu{a}"));
    let list = |path: &Path| CpuSet::parse(std::fs::read_to_string(path).ok()?.trim());
    let siblings = list(&cpu.join("topology/thread_siblings_list"))?;
    if siblings.contains(b) {
        return Some(core);
    }
    // The last level is the one with the highest number that is there.
    let last = (0..10).rev().find_map(|index| list(&cpu.join(format!("cache/index{index}/shared_cpu_list"))));
    if last.is_some_and(|cpus| cpus.contains(b)) {
        return Some(cache);
    }
    let nodes = |cpu: u32| -> Vec<String> {
        let directory = root.join(format!("sys/devices/system/cpu/cpu{cpu}"));
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok()))
            .collect();
        names.sort();
        names
    };
    Some(if nodes(a) == nodes(b) { node } else { other })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn two_cpus_are_as_far_apart_as_the_files_say() {
        let root = tempfile::tempdir().unwrap();
        for (cpu, siblings, cache, node) in
            [(0, "0-1", "0-3", 0), (1, "0-1", "0-3", 0), (2, "2-3", "0-3", 0), (4, "4", "4", 0), (8, "8", "8", 1)]
        {
            let cpu = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}"));
            create_dir_all(cpu.join("topology")).unwrap();
            create_dir_all(cpu.join("cache/index3")).unwrap();
            create_dir_all(cpu.join(format!("node{node}"))).unwrap();
            write(cpu.join("topology/thread_siblings_list"), format!("{siblings}\n")).unwrap();
            write(cpu.join("cache/index3/shared_cpu_list"), format!("{cache}\n")).unwrap();
        }
        let of = |a, b| relation(root.path(), a, b);
        assert_eq!([of(0, 0), of(0, 1), of(0, 2), of(0, 4), of(0, 8)], PAIRS.map(Some));
        assert_eq!(of(7, 0), None);
    }
}
