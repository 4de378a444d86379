//! Seeds: small inputs that are right, so that damage reaches deep.
//!
//! They come from `fuzz/seeds` (written by hand), from the generator (a few scenarios in each format), and from the bundled recordings
//! (their beginnings).

mod archives;
mod generated;
mod parts;

use std::path::{Path, PathBuf};

/// Longer inputs are mutated too slowly.
const MOST_BYTES: usize = 131_072;

/// Files of the repository that are seeds, with the targets that take them. A `*` stands for anything within a name.
const FILES: [(&str, &[&str]); 20] = [
    ("fixtures/*/recording.json", &["manifest"]),
    ("fixtures/*/*/plan.toml", &["chain"]),
    ("fixtures/*/*/trace.dat", &["tracedat", "answer"]),
    ("fixtures/seed-vhost/*/notes/*", &["paste"]),
    ("fixtures/hosts-sosreport/sos_commands/*/*", &["paste"]),
    ("fixtures/libvirt-xml/*/*.xml", &["domain_xml"]),
    ("fixtures/libvirt-xml/*.xml", &["domain_xml"]),
    ("fixtures/hosts-sosreport/run/libvirt/qemu/*.xml", &["domain_xml"]),
    ("fixtures/seed-vhost/*/notes/*.xml", &["domain_xml"]),
    ("fixtures/*/etc/openvswitch/conf.db", &["ovsdb"]),
    ("fixtures/*/*/etc/openvswitch/conf.db", &["ovsdb"]),
    ("fixtures/ovs-dummy/*conf.db", &["ovsdb"]),
    ("fixtures/*/L0/pmd/*.txt", &["polled"]),
    ("fixtures/*/*/bench/*.json", &["bench"]),
    ("fixtures/samples/*", &["samples"]),
    ("crates/facts/src/budget/builtin/*.toml", &["budget"]),
    ("fixtures/migrate-*/L0/qmp/*", &["qmp"]),
    ("fixtures/*/L0/datapath/*.json", &["answer"]),
    ("fixtures/*/L0/prediction.json", &["answer"]),
    ("fixtures/public/*/*", &["brought", "paste"]),
];

/// The files of target `sosreport`, in its order; an empty name is none.
const GATHERED: [&str; 14] = [
    "fixtures/hosts-sosreport/sos_commands/processor/lscpu_-ae",
    "fixtures/hosts-sosreport/sos_commands/process/ps_-elfL",
    "fixtures/hosts-sosreport/sos_commands/networking/ethtool_-k_eth0",
    "fixtures/hosts-sosreport/sos_commands/openvswitch/ovs-vsctl_-t_5_show",
    "fixtures/hosts-sosreport/sos_commands/openvswitch/ovs-appctl_dpif-netdev.pmd-rxq-show",
    "fixtures/hosts-sosreport/sos_commands/kernel/sysctl_-a",
    "fixtures/hosts-sosreport/sos_commands/virsh/virsh_-r_dumpxml_web",
    "fixtures/hosts-sosreport/proc/interrupts",
    "fixtures/hosts-sosreport/proc/cmdline",
    "",
    "",
    "fixtures/hosts-must-gather/*/*/nodes/worker-0/cpu_affinities.json",
    "fixtures/hosts-must-gather/*/*/nodes/worker-0/irq_affinities.json",
    "fixtures/hosts-must-gather/*/*/nodes/worker-0/podresources.json",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    pub target: String,
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Seed {
    fn new(target: &str, name: impl Into<String>, mut bytes: Vec<u8>) -> Self {
        bytes.truncate(MOST_BYTES);
        Self { target: target.to_owned(), name: name.into(), bytes }
    }
}

/// All seeds, of the repository at `root`.
///
/// # Errors
/// What could not be read, or generated.
pub fn seeds(root: &Path) -> std::io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for file in matching(root, "fuzz/seeds/*/*") {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = name(file.parent().unwrap_or(root));
        seeds.push(Seed::new(&target, name(&file), std::fs::read(&file)?));
    }
    for (pattern, targets) in FILES {
        for file in matching(root, pattern) {
            let bytes = std::fs::read(&file)?;
            seeds.extend(targets.iter().map(|target| Seed::new(target, dashed(root, &file), bytes.clone())));
        }
    }
    seeds.push(Seed::new("sosreport", "gathered", gathered(root)?));
    seeds.push(Seed::new("moved", "network", moved(root)?));
    seeds.extend(generated::seeds()?);
    seeds.extend(archives::seeds(root)?);
    seeds.extend(parts::seeds(root)?);
    Ok(seeds)
}

/// A path within the repository as one name.
fn dashed(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('/', "-")
}

/// Files that a pattern names, in order.
fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut places = vec![root.to_owned()];
    for part in pattern.split('/') {
        let (before, behind) = part.split_once('*').unwrap_or((part, ""));
        let is_meant = |name: &str| match part.contains('*') {
            true => name.len() >= part.len() - 1 && name.starts_with(before) && name.ends_with(behind),
            false => name == part,
        };
        let below = |place: PathBuf| {
            let entries = std::fs::read_dir(&place).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name()).filter(|name| is_meant(&name.to_string_lossy()));
            names.map(|name| place.join(name)).collect::<Vec<_>>()
        };
        places = places.into_iter().flat_map(below).collect();
    }
    places.retain(|place| place.is_file() && !place.ends_with("README.md"));
    places.sort();
    places
}

/// The beginning of each file, a zero byte behind it.
fn gathered(root: &Path) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    for pattern in GATHERED {
        if let Some(file) = matching(root, pattern).first() {
            let bytes = std::fs::read(file)?;
            all.extend_from_slice(&bytes[..bytes.len().min(8_192)]);
        }
        all.push(0);
    }
    Ok(all)
}

/// What a lab saw of a migration besides its sessions, a line each.
fn moved(root: &Path) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    for part in ["network", "heartbeat", "processes", "memory"] {
        let file = root.join("fixtures/migrate-network/L0").join(part).join("0.json");
        all.extend(if file.is_file() { std::fs::read(file)? } else { Vec::new() });
        if all.last() != Some(&b'\n') {
            all.push(b'\n');
        }
    }
    Ok(all)
}
