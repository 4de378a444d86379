//! `lscpu` without options, and `lscpu -J`: which CPUs there are, on which nodes, and how many threads a core has.
//!
//! It does not say which CPUs share a core, except where each has one of its own. Labels: util-linux 2.38, sys-utils/lscpu.c;
//! older versions write `On-line CPU(s) list` and `Thread(s) per core` alike.

use super::{Pasted, Text, json};
use crate::budget;
use crate::machine::{Cpu, Fact};
use crate::processor::Vendor;
use base::CpuSet;
use serde_json::Value;
use std::collections::BTreeMap;

/// Labels with which people begin a copy of it; of many they copy nothing but the nodes.
const BEGINNINGS: &[&str] = &["Architecture", "CPU op-mode(s)", "CPU(s)", "NUMA node0 CPU(s)"];

/// `Architecture: x86_64` and the lines below it, as far as they have labels.
pub(super) fn summary(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    if !text.at(at).split_once(':').is_some_and(|(label, _)| BEGINNINGS.contains(&label.trim())) {
        return 0;
    }
    let mut end = at;
    let mut labels: BTreeMap<&str, &str> = BTreeMap::new();
    // Headings of groups (`Caches (sum of all):`) have no value.
    while let Some((label, value)) = text.at(end).split_once(':') {
        if end > at && label.trim() == BEGINNINGS[0] {
            break;
        }
        labels.insert(label.trim(), value.trim());
        end += 1;
    }
    if take(&labels, &text.place(at), pasted) { end - at } else { 0 }
}

/// `/proc/cpuinfo`, or lines that grep took out of it: the vendor, and where each CPU has its paragraph, its core and package.
pub(super) fn cpuinfo(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const KNOWN: &[&str] =
        &["processor", "vendor_id", "model name", "cpu family", "physical id", "core id", "siblings", "cpu cores"];
    let pair = |line: usize| text.at(line).split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    if !pair(at).is_some_and(|(name, _)| KNOWN[..3].contains(&name)) {
        return 0;
    }
    let (mut end, mut cpu, mut package) = (at, None, None);
    let mut cores: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    // Paragraphs of CPUs have a blank line between them.
    while end < text.lines.len() && (text.at(end).is_empty() || pair(end).is_some()) {
        let Some((name, value)) = pair(end) else {
            end += 1;
            continue;
        };
        let number = value.parse::<u32>().ok().filter(|number| *number < base::cpus::MOST_CPUS);
        match name {
            "processor" => (cpu, package) = (number, None),
            "physical id" => package = number,
            "vendor_id" | "model name" => {
                pasted.machine.vendor.get_or_insert_with(|| text.fact(Vendor::named(value), end));
            }
            "core id" => {
                if let (Some(cpu), Some(package), Some(core)) = (cpu, package, number) {
                    let next = u32::try_from(cores.len()).unwrap_or(0);
                    let core = *cores.entry((package, core)).or_insert(next);
                    let about = Cpu { core, package: Some(package), ..Cpu::default() };
                    pasted.machine.topology.cpus.entry(cpu).or_insert(about);
                    pasted.machine.topology.online.insert(cpu);
                }
            }
            _ => {}
        }
        end += 1;
    }
    let topology = &mut pasted.machine.topology;
    if !cores.is_empty() && topology.place.is_empty() {
        topology.place = text.place(at);
    }
    // What stands behind the last paragraph is another block's.
    while end > at && text.at(end - 1).is_empty() {
        end -= 1;
    }
    end - at
}

/// `lscpu -J`: the same labels, since util-linux 2.37 inside each other.
pub(super) fn json(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some((value, lines)) = json::object(text, at, "lscpu", pasted) else { return 0 };
    let mut labels = BTreeMap::new();
    collect(&value["lscpu"], &mut labels);
    take(&labels, &text.place(at), pasted);
    lines
}

fn collect<'a>(fields: &'a Value, labels: &mut BTreeMap<&'a str, &'a str>) {
    for field in fields.as_array().into_iter().flatten() {
        if let (Some(label), Some(value)) = (field["field"].as_str(), field["data"].as_str()) {
            labels.insert(label.trim_end_matches(':'), value);
        }
        collect(&field["children"], labels);
    }
}

/// What the labels say; false if they do not count CPUs.
fn take(labels: &BTreeMap<&str, &str>, place: &str, pasted: &mut Pasted) -> bool {
    let number = |label: &str| labels.get(label)?.parse::<u32>().ok();
    let online = labels.get("On-line CPU(s) list").and_then(|list| CpuSet::parse(list));
    let nodes: Vec<(u32, CpuSet)> = labels
        .iter()
        .filter_map(|(label, list)| {
            let node = label.strip_prefix("NUMA node")?.strip_suffix("CPU(s)")?.trim().parse().ok()?;
            Some((node, CpuSet::parse(list)?))
        })
        .filter(|(node, _)| *node < budget::NODES)
        .collect();
    // Without a list the CPUs are as many as are counted, from 0 on.
    let of_nodes = nodes.iter().fold(CpuSet::default(), |all, (_, cpus)| all.or(cpus));
    let counted = || Some((0..number("CPU(s)").filter(|count| *count <= base::cpus::MOST_CPUS)?).collect());
    let Some(online) = online.or(Some(of_nodes).filter(|cpus| !cpus.is_empty())).or_else(counted) else { return false };
    let vendor = labels.get("Vendor ID").or_else(|| labels.get("Model name")).map(|name| Vendor::named(name));
    pasted.machine.vendor = vendor.map(|vendor| Fact::new(vendor, place)).or(pasted.machine.vendor.take());
    let topology = &mut pasted.machine.topology;
    // Where there is one core, or one CPU a core, nobody has to say who shares which.
    let is_one = number("Core(s) per socket") == Some(1) && number("Socket(s)") == Some(1);
    if topology.cpus.is_empty() {
        topology.cores_unknown = !is_one && number("Thread(s) per core") != Some(1);
        topology.place = place.to_owned();
    }
    for cpu in online.iter() {
        topology.online.insert(cpu);
        let core = if is_one { 0 } else { cpu };
        let about = topology.cpus.entry(cpu).or_insert(Cpu { core, ..Cpu::default() });
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(node, _)| *node);
        about.node = about.node.or(node);
        about.package = about.package.or((number("Socket(s)") == Some(1)).then_some(0));
    }
    nodes.iter().for_each(|(node, _)| {
        pasted.machine.nodes.entry(*node).or_default();
    });
    true
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    const SUMMARY: &str = "Architecture:            x86_64\n  CPU op-mode(s):        32-bit, 64-bit\nCPU(s):                  16\n\
        \x20 On-line CPU(s) list:   0-14\n  Off-line CPU(s) list:  15\nVendor ID:               GenuineIntel\n\
        \x20   Thread(s) per core:  2\n    Core(s) per socket:  4\n    Socket(s):           2\nCaches (sum of all):\n\
        \x20 L3:                    40 MiB (2 instances)\nNUMA:\n  NUMA node(s):          2\n\
        \x20 NUMA node0 CPU(s):     0-3,8-11\n  NUMA node1 CPU(s):     4-7,12-15\n";

    #[test]
    fn counts_and_nodes_are_known_and_cores_are_not() {
        let machine = read(&[("t".to_owned(), SUMMARY.to_owned())]);
        let topology = &machine.topology;
        assert_eq!((topology.online.to_string(), topology.cpus.len()), ("0-14".to_owned(), 15));
        assert_eq!(
            (topology.cpus[&11].node, topology.cpus[&4].node, topology.cpus[&4].package),
            (Some(0), Some(1), None)
        );
        assert!(topology.cores_unknown && machine.strange.is_empty(), "{:?}", machine.strange);
        let one = SUMMARY.replace("core:  2", "core:  1");
        let one = read(&[("t".to_owned(), one)]).topology;
        assert!(!one.cores_unknown && one.cores().len() == 15, "each CPU is a core");
    }

    #[test]
    fn nodes_alone_tell_which_cpus_there_are() {
        let of = |text: &str| read(&[("t".to_owned(), text.to_owned())]);
        let machine = of("NUMA node0 CPU(s):     0-5,12-17\nNUMA node1 CPU(s):     6-11,18-23\n");
        let topology = &machine.topology;
        assert_eq!((topology.cpus.len(), topology.nodes().len(), topology.cores_unknown), (24, 2, true));
        assert!(of("Architecture: x86_64\n").topology.cpus.is_empty(), "a label alone counts nothing");
    }

    #[test]
    fn all_cpus_of_a_machine_with_one_core_share_it() {
        let text = "CPU(s):              2\nThread(s) per core:  2\nCore(s) per socket:  1\nSocket(s):           1\n";
        let topology = read(&[("t".to_owned(), text.to_owned())]).topology;
        assert_eq!((topology.of_core(0).to_string(), topology.cores_unknown), ("0-1".to_owned(), false));
    }

    #[test]
    fn a_table_of_cores_counts_in_any_order() {
        let table = "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n0 0 0 0 0:0:0:0 yes\n8 0 0 0 0:0:0:0 yes\n";
        for text in [format!("{table}\n{SUMMARY}"), format!("{SUMMARY}\n{table}")] {
            let topology = read(&[("t".to_owned(), text)]).topology;
            assert!(!topology.cores_unknown, "who shares a core was told");
            assert_eq!(topology.of_core(topology.cpus[&8].core).to_string(), "0,8");
        }
    }

    #[test]
    fn a_mail_that_quotes_it_is_the_same() {
        let quoted: String = SUMMARY.lines().map(|line| format!("> > {line}\n")).collect();
        let machine = read(&[("t".to_owned(), format!("On Monday X wrote:\n>\n{quoted}>\n> Regards\n"))]);
        assert_eq!((machine.topology.cpus.len(), machine.sources[0].2), (15, 2), "two lines of prose");
        assert_eq!(
            machine.strange,
            ["t: 2 lines not understood, the first: line 1 `On Monday X wrote:`, line 19 `Regards`"]
        );
        let tag = "<interface type='direct'\n>\n<source dev='eth0'/>\n</interface>\n";
        assert_eq!(
            read(&[("t".to_owned(), tag.to_owned())]).domains[0].interfaces.len(),
            1,
            "the end of a tag is no mark"
        );
    }
}
