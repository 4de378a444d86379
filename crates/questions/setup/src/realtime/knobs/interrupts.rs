//! Who sends device interrupts to the CPUs of real time: queues of cards, and the program that spreads them.

use super::super::checks::Told;
use super::super::host::{Host, set_apart};
use super::{Group, Place, Rule, knob};
use base::CpuSet;
use base::number::list;
use host::machine::{Nic, NicKind};

pub(super) const KNOBS: &[Rule] = &[
    Rule {
        id: "LAT-CHANNELS",
        looks_at: "Whether cards have more combined channels than there are CPUs that are not for real time (ethtool -l).",
        why: "Each channel has an interrupt, and more of them than there are other CPUs are spread over those of real time too. \
              Caveat: a card with fewer channels may carry less; its links go down for a moment when they change.",
        source: "tuned 2.28, plugin net (channels=combined N), and its profiles for real time; ethtool(8), -L",
        ..knob("channels of network cards", Group::Noise, Place::Told(channels))
    },
    Rule {
        id: "LAT-IRQBALANCE",
        looks_at: "Whether irqbalance, if it runs, is configured to avoid these CPUs.",
        why: "It moves interrupts to whichever CPU is idle every ten seconds, overriding any affinity that was set. Caveat: without a list it \
              avoids isolated and tickless CPUs, and with one only those of the list; a list in its unit's environment is not read.",
        source: "irqbalance(1) 1.9, IRQBALANCE_BANNED_CPUS and IRQBALANCE_BANNED_CPULIST; tuned 2.28, profile cpu-partitioning",
        ..knob("banned CPUs of irqbalance", Group::Noise, Place::Told(balanced))
    },
];

fn channels(host: &Host<'_>) -> Option<Told> {
    const COMBINED: &str = "combined";
    let most = host.rest().len() as u32;
    let cards = host.machine.nics.iter().filter(|nic| nic.kind == NicKind::Physical);
    let cards: Vec<(&Nic, u32, &str)> = cards
        .filter_map(|nic| nic.channels.get(COMBINED).map(|(now, _)| (nic, now.value, now.place.as_str())))
        .collect();
    let (_, _, place) = cards.first()?;
    if host.cpus.is_empty() || most == 0 {
        return None;
    }
    let others: Vec<&(&Nic, u32, &str)> = cards.iter().filter(|(_, now, _)| *now > most).collect();
    let named: Vec<String> = others.iter().map(|(nic, now, _)| format!("{now} of {}", nic.name)).collect();
    let value = if named.is_empty() { "no more than that".to_owned() } else { list(&named) };
    let place = others.first().map_or(place, |(_, _, place)| place);
    let mut told = Told::new(value, *place, others.is_empty(), format!("at most {most}"));
    for (nic, now, _) in others {
        let name = base::shell::quoted(&nic.name);
        told.fix.push(format!("ethtool -L {name} combined {most}"));
        told.undo.push(format!("ethtool -L {name} combined {now}"));
    }
    Some(told)
}

/// Where distributions keep its configuration: Debian's, and that of Red Hat and SUSE.
const CONFIGURATIONS: [&str; 2] = ["etc/default/irqbalance", "etc/sysconfig/irqbalance"];

fn balanced(host: &Host<'_>) -> Option<Told> {
    let pids = host.last.names("proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let mut comms = pids.filter_map(|pid| host.last.line(&format!("proc/{pid}/task/{pid}/comm"))).peekable();
    if host.cpus.is_empty() || comms.peek().is_none() {
        return None;
    }
    let wanted = format!("CPUs {}", host.cpus);
    if !comms.any(|comm| comm.trim() == "irqbalance") {
        return Some(Told::new("irqbalance does not run", "proc/*/task/*/comm", true, wanted));
    }
    let found = CONFIGURATIONS.into_iter().find_map(|file| Some((file, host.last.read(file)?)));
    let (file, text) = found.unwrap_or((CONFIGURATIONS[0], String::new()));
    let listed = banned(&text);
    let set = listed.clone().unwrap_or_else(|| set_apart(host.machine));
    let fits = host.cpus.is_within(&set);
    let by = if listed.is_some() { "" } else { ", because they are isolated or tickless" };
    let value = if set.is_empty() { "none".to_owned() } else { format!("CPUs {set}{by}") };
    let mut told = Told::new(value, file, fits, wanted);
    if !fits {
        let list = set.or(&host.cpus);
        told.fix.push(format!("echo IRQBALANCE_BANNED_CPULIST={list} >> /{file}; systemctl restart irqbalance"));
        told.undo.push(format!("sed -i '/^IRQBALANCE_BANNED_CPULIST={list}$/d' /{file}; systemctl restart irqbalance"));
    }
    Some(told)
}

/// The CPUs that a configuration bans, the list before the mask, of each the last line; `None`: it leaves the default.
fn banned(text: &str) -> Option<CpuSet> {
    let value = |name: &str| {
        let mut lines = text.lines().rev().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
        lines.next().map(|value| value.trim().trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
    };
    let listed = value("IRQBALANCE_BANNED_CPULIST").and_then(|list| CpuSet::parse(&list));
    listed.or_else(|| CpuSet::parse_mask(&value("IRQBALANCE_BANNED_CPUS")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_are_read_and_comments_are_not() {
        let of = |text: &str| banned(text).map(|set| set.to_string());
        assert_eq!(of("# IRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_ARGS=\n"), None);
        assert_eq!(of("IRQBALANCE_BANNED_CPULIST=\"2-3\"\n"), Some("2-3".to_owned()));
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=0000000c\n"), Some("2-3".to_owned()));
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=\nIRQBALANCE_BANNED_CPULIST=\n"), None, "set to nothing");
    }
}
