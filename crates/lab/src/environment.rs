//! What was the machine, in a few words by name? Costs mean nothing without it.
//!
//! In: the root directory of the machine, and how the bench runs. Out: what `/proc` and `/sys` say of processor, kernel,
//! clock and mitigations; of this machine also who runs below, by CPUID.

use std::collections::BTreeMap;
use std::path::Path;

/// Single files, by the name under which they are told.
const FILES: &[(&str, &str)] = &[
    ("kernel", "proc/sys/kernel/osrelease"),
    ("clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("smt", "sys/devices/system/cpu/smt/control"),
    ("huge pages", "sys/kernel/mm/transparent_hugepage/enabled"),
];

/// Lines of the first CPU in /proc/cpuinfo.
const CPUINFO: &[(&str, &str)] =
    &[("cpu", "model name"), ("vendor", "vendor_id"), ("microcode", "microcode"), ("MHz", "cpu MHz")];

/// Directories, each file of which is told.
const DIRECTORIES: &[&str] = &["sys/devices/system/cpu/vulnerabilities"];

/// How a bench runs, where that changes what it measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct How {
    /// By the real-time policy SCHED_FIFO.
    pub fifo: bool,
    /// With tests that the whole host may feel.
    pub disturb: bool,
}

/// The fingerprint of this machine, and of a bench that runs so.
pub fn here(how: How) -> BTreeMap<String, String> {
    let mut told = environment(Path::new("/"));
    let policy = if how.fifo { "SCHED_FIFO" } else { "SCHED_OTHER" };
    told.insert(base::bench::POLICY.to_owned(), policy.to_owned());
    told.insert(base::bench::DISTURBING.to_owned(), if how.disturb { "yes" } else { "no" }.to_owned());
    #[cfg(target_arch = "x86_64")]
    {
        let below = host::hypervisor::Hypervisor::of(Some(&crate::snapshot::cpuid::here()), None, None);
        let names = if below.named.is_empty() { "none visible".to_owned() } else { below.names().join(", ") };
        told.insert(base::bench::HYPERVISOR.to_owned(), names);
    }
    told
}

/// The fingerprint of the machine whose files lie below `root`.
pub fn environment(root: &Path) -> BTreeMap<String, String> {
    let line = |path: &Path| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let mut told: BTreeMap<String, String> =
        FILES.iter().filter_map(|(name, path)| Some(((*name).to_owned(), line(&root.join(path))?))).collect();
    let cpuinfo = std::fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    for (name, key) in CPUINFO {
        let said = cpuinfo.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == *key).then(|| value.trim().to_owned())
        });
        told.extend(said.map(|said| ((*name).to_owned(), said)));
    }
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    if !flags.is_empty() {
        let below = flags.split_whitespace().any(|flag| flag == "hypervisor");
        told.insert("hypervisor below".to_owned(), if below { "yes" } else { "no" }.to_owned());
    }
    for directory in DIRECTORIES {
        told.extend(all_of(&root.join(directory), "mitigation "));
    }
    for module in names(&root.join("sys/module")).into_iter().filter(|name| name.starts_with("kvm")) {
        let directory = root.join("sys/module").join(&module).join("parameters");
        told.extend(all_of(&directory, &format!("{module}/")));
    }
    told
}

/// Every readable file of a directory, by its name behind `prefix`.
fn all_of(directory: &Path, prefix: &str) -> Vec<(String, String)> {
    let files = names(directory).into_iter().filter_map(|name| {
        let text = std::fs::read_to_string(directory.join(&name)).ok()?;
        Some((format!("{prefix}{name}"), text.trim().to_owned()))
    });
    files.collect()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_tells_how_it_runs_and_who_is_below() {
        let told = here(How { fifo: true, disturb: false });
        assert_eq!((told["policy"].as_str(), told["disturbing tests"].as_str()), ("SCHED_FIFO", "no"));
        let Some(flag) = told.get("hypervisor below") else { return println!("skipped: no flags in /proc/cpuinfo") };
        assert!(flag == "yes" || told["hypervisor"] == "none visible", "{told:?}");
    }

    #[test]
    fn what_a_tree_says_is_told_and_an_empty_one_says_nothing() {
        let tree = tempfile::tempdir().unwrap();
        assert!(environment(tree.path()).is_empty());
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.12.1\n");
        write("proc/cpuinfo", "vendor_id\t: AuthenticAMD\nmodel name\t: EPYC\nflags\t\t: fpu hypervisor\n");
        write("sys/module/kvm_amd/parameters/nested", "1\n");
        write("sys/module/kfence/parameters/deferrable", "N\n");
        write("sys/devices/system/cpu/vulnerabilities/retbleed", "Mitigation: IBPB\n");
        let told = environment(tree.path());
        let told: Vec<_> = told.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = [
            "cpu=EPYC",
            "hypervisor below=yes",
            "kernel=6.12.1",
            "kvm_amd/nested=1",
            "mitigation retbleed=Mitigation: IBPB",
            "vendor=AuthenticAMD",
        ];
        assert_eq!(told, expected);
    }
}
