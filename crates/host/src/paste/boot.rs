//! The kernel's command line, as `/proc/cmdline` has it or a boot loader's file.

use super::{Pasted, Text};
use crate::machine::booted_cpus;
use std::collections::BTreeMap;

/// Parameters that tell such a line from other lists of `key=value`.
const PARAMETERS: &[&str] = &["BOOT_IMAGE=", "initrd=", "root=", "isolcpus=", "nohz_full=", "rcu_nocbs="];

/// A line of parameters, most of which have values; sentences about parameters have other words between them.
pub(super) fn line(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    // `uname -a`.
    if text.at(at).starts_with("Linux ") && text.at(at).ends_with("GNU/Linux") {
        let is_day = |word: &&str| ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(word);
        let told = text.at(at).split_whitespace().skip(2).take_while(|word| !is_day(word));
        pasted.quote("kernel", "", &told.collect::<Vec<_>>().join(" "), text.place(at));
        return 1;
    }
    // `GRUB_CMDLINE_LINUX="..."`, or quoted within prose by Markdown.
    let line = text.at(at).trim_matches(['`', '"']);
    let line = line.split_once("=\"").map_or(line, |(_, parameters)| parameters);
    let words: Vec<&str> = line.split_whitespace().collect();
    let with_values = words.iter().filter(|word| word.contains('=')).count();
    let is_known = |word: &&str| PARAMETERS.iter().any(|parameter| word.starts_with(parameter));
    if !words.iter().any(is_known) {
        return 0;
    }
    let words = if with_values * 2 > words.len() { words } else { stated(line) };
    if words.is_empty() {
        return 0;
    }
    let line = &words.join(" ");
    let mut parameters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for word in &words {
        let (name, value) = word.split_once('=').unwrap_or((word, "set"));
        parameters.entry(name).or_default().push(value);
    }
    for (name, values) in parameters {
        pasted.quote("kernel parameter", name, &values.join(" and "), text.place(at));
    }
    let topology = &mut pasted.machine.topology;
    for (option, cpus) in [("isolcpus", &mut topology.isolated), ("nohz_full", &mut topology.nohz_full)] {
        *cpus = booted_cpus(line, option).or_else(|| cpus.take());
    }
    1
}

/// Parameters in brackets behind words that say that they are in force: `CPU 2 and 3 are isolated (nohz_full=2,3 isolcpus=2,3)`.
fn stated(line: &str) -> Vec<&str> {
    let Some((before, inside)) = line.split_once('(') else { return Vec::new() };
    let Some((inside, _)) = inside.split_once(')') else { return Vec::new() };
    let says = |word: &str| ["is", "are", "booted", "runs"].contains(&word);
    let doubts = |word: &str| {
        ["not", "if", "should", "would", "tried", "without", "no"].contains(&word) || word.ends_with("n't")
    };
    let is_stated = before.split_whitespace().any(says) && !line.to_lowercase().split_whitespace().any(doubts);
    let words: Vec<&str> = inside.split_whitespace().collect();
    let is_parameter = |word: &&str| word.contains('=') && !word.ends_with('=');
    if is_stated && words.iter().all(is_parameter) { words } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn parameters_tell_which_cpus_are_kept_apart() {
        for line in [
            "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet isolcpus=managed_irq,domain,2-7 nohz_full=2-7 nosoftlockup",
            "`intel_iommu=on isolcpus=2-7 nohz_full=2-7 rcu_nocbs=2-7`",
            "CPU 2 to 7 are isolated (nohz_full=2-7 isolcpus=2-7), the guest is pinned to them.",
            "GRUB_CMDLINE_LINUX=\"intel_iommu=on isolcpus=2-7 nohz_full=2-7\"",
        ] {
            let topology = read(&[("t".to_owned(), format!("# cat /proc/cmdline\n{line}\n"))]).topology;
            let sets = [topology.isolated, topology.nohz_full].map(|cpus| cpus.unwrap().to_string());
            assert_eq!(sets, ["2-7", "2-7"], "{line}");
        }
    }

    #[test]
    fn a_sentence_about_parameters_is_none() {
        for line in [
            "I tried isolcpus=2-7 but it did not help",
            "isolcpus=2-7 is not set here",
            "",
            "it is better (isolcpus=2-7 nohz_full=2-7) if you ask me",
            "a=1 b=2",
        ] {
            let machine = read(&[("t".to_owned(), line.to_owned())]);
            assert!(machine.topology.isolated.is_none(), "{line}");
        }
    }
}
