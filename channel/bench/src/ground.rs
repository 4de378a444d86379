//! What is known of the machine that the rules of a channel stand on: how large the caches are, whether processes have protection keys,
//! which CPUs there are.
//!
//! Three facts go into the bench's environment. A snapshot would have them too, with some thousand files that say nothing of a channel.
//! Source: Documentation/ABI/testing/sysfs-devices-system-cpu, `cache/index*/`, `online`; flags `pku` and `ospke` of /proc/cpuinfo (Linux 6.12).

use base::channel::{L2_CACHE, ONLINE, PROTECTION_KEYS};
use std::collections::BTreeMap;
use std::path::Path;

/// Of the machine whose files lie below `root`, and the CPU that receives; what it does not tell is left out.
pub fn ground(root: &Path, cpu: u32) -> BTreeMap<String, String> {
    let line = |path: &str| Some(std::fs::read_to_string(root.join(path)).ok()?.trim().to_owned());
    let mut known = BTreeMap::new();
    let caches = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let second_level = (0..10).map(|index| format!("{caches}/index{index}")).find(|index| {
        let is = |file: &str, wanted: &str| line(&format!("{index}/{file}")).is_some_and(|text| text == wanted);
        is("level", "2") && !is("type", "Instruction")
    });
    known.extend(second_level.and_then(|index| Some((L2_CACHE.to_owned(), line(&format!("{index}/size"))?))));
    let cpuinfo = line("proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == "flags"));
    known.extend(flags.map(|(_, flags)| {
        let has = ["pku", "ospke"].iter().all(|wanted| flags.split_whitespace().any(|flag| flag == *wanted));
        (PROTECTION_KEYS.to_owned(), if has { "yes" } else { "no" }.to_owned())
    }));
    known.extend(line("sys/devices/system/cpu/online").map(|cpus| (ONLINE.to_owned(), cpus)));
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_files_say_is_told_and_no_more() {
        let root = tempfile::tempdir().unwrap();
        assert!(ground(root.path(), 3).is_empty());
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (index, level, kind, size) in
            [(0, "1", "Data", "32K"), (1, "2", "Instruction", "64K"), (2, "2", "Unified", "1024K")]
        {
            for (file, text) in [("level", level), ("type", kind), ("size", size)] {
                write(&format!("sys/devices/system/cpu/cpu3/cache/index{index}/{file}"), text);
            }
        }
        write("proc/cpuinfo", "processor : 0\nflags : fpu pku ospke\n");
        write("sys/devices/system/cpu/online", "0-3\n");
        let known: Vec<_> = ground(root.path(), 3).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(known, ["L2 cache=1024K", "online CPUs=0-3", "protection keys=yes"]);
        assert_eq!(ground(root.path(), 4).get(L2_CACHE), None);
    }
}
