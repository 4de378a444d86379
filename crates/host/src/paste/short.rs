//! Programs that answer in a line or a small table: `uptime`, `nproc`, `chrt -p`, `systemctl is-active`, `kubectl get pvc`,
//! `show config fwd` of testpmd, stress-ng's cyclic, and what ovs-vswitchd's main thread says of itself.
//!
//! Sources: uptime(1) of procps-ng 4.0, nproc(1), chrt(1) of util-linux 2.38, systemctl(1), kubectl 1.29;
//! app/test-pmd/config.c (`rxtx_config_display`, `pkt_fwd_config_display`), DPDK 23.11;
//! core-cyclic of stress-ng 0.15 (stress-cyclic.c); lib/poll-loop.c (`log_wakeup`) and lib/vlog.c, Open vSwitch 3.1.

use super::{Pasted, Text, prompt};

/// A line of one of them.
pub(super) fn line(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const READERS: [fn(&Text<'_>, usize, &mut Pasted) -> usize; 8] =
        [uptime, nproc, chrt, active, claims, columns, cyclic, poll_loop];
    READERS.iter().map(|read| read(text, at, pasted)).find(|taken| *taken > 0).unwrap_or(0)
}

/// The words of the command on the line above, or of the nearest one before other answers of its kind.
fn asked<'t>(text: &Text<'t>, at: usize, program: &str) -> Option<Vec<&'t str>> {
    let words: Vec<&str> = text.at(at.checked_sub(1)?).split_whitespace().collect();
    let place = words.iter().position(|word| *word == program)?;
    Some(words[place..].to_vec())
}

/// ` 10:22:31 up 41 days,  3:11,  2 users,  load average: 5.92, 5.81, 5.66`.
fn uptime(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    let Some((head, load)) = line.split_once("load average: ") else { return 0 };
    let is_it = head.contains(" up ") && head.starts_with(|first: char| first.is_ascii_digit());
    if !is_it {
        return 0;
    }
    pasted.quote("load average", "", load.trim(), text.place(at));
    1
}

/// `16` below `nproc`.
fn nproc(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let count = text.at(at).parse::<u32>().ok().filter(|_| asked(text, at, "nproc").is_some());
    let Some(count) = count else { return 0 };
    pasted.count_cpus(count, text.place(at));
    1
}

/// `CPU 2/KVM pid 41220's current scheduling policy: SCHED_FIFO pid 41220's current scheduling priority: 1`, on one line or two, whatever stands
/// before.
fn chrt(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const POLICY: &str = "'s current scheduling policy: ";
    const PRIORITY: &str = "'s current scheduling priority: ";
    let line = text.at(at);
    let Some((who, rest)) = line.split_once(POLICY) else { return 0 };
    let Some((name, tid)) = who.rsplit_once("pid ") else { return 0 };
    let (policy, same) = match rest.split_once(" pid ") {
        Some((policy, same)) => (policy, Some(same)),
        None => (rest, None),
    };
    let next = text.at(at + 1);
    let below = || (same.is_none() && next.starts_with("pid ") && next.contains(PRIORITY)).then_some(next);
    let priority = same.or_else(below).and_then(|told| told.split_once(PRIORITY)).map(|(_, priority)| priority.trim());
    let subject = match name.trim() {
        "" => format!("thread {tid}"),
        name => format!("{name} ({tid})"),
    };
    let priority = priority.map_or(String::new(), |priority| format!(", priority {priority}"));
    pasted.quote("scheduling policy", &subject, &format!("{}{priority}", policy.trim()), text.place(at));
    1 + usize::from(below().is_some())
}

/// `inactive` below `systemctl is-active irqbalance`.
fn active(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const STATES: [&str; 5] = ["active", "inactive", "failed", "activating", "unknown"];
    if !STATES.contains(&text.at(at)) {
        return 0;
    }
    let unit = asked(text, at, "systemctl").filter(|words| words.get(1) == Some(&"is-active"));
    let Some(unit) = unit.and_then(|words| words.get(2).copied()) else { return 0 };
    pasted.quote("service", unit, text.at(at), text.place(at));
    1
}

/// `NAME STATUS VOLUME CAPACITY ACCESS MODES STORAGECLASS AGE` of `kubectl get pvc`, and a row for each.
fn claims(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let head = text.at(at);
    if !(head.starts_with("NAME") && head.contains("ACCESS MODES") && head.contains("STORAGECLASS")) {
        return 0;
    }
    let mut end = at + 1;
    loop {
        let cells: Vec<&str> = text.at(end).split_whitespace().collect();
        let [name, status, volume, size, modes, class, ..] = cells[..] else { break };
        let is_mode = modes.split(',').all(|mode| matches!(mode, "RWO" | "RWX" | "ROX" | "RWOP"));
        if !is_mode {
            break;
        }
        let told = format!("{status}, {size}, access modes {modes}, storage class {class}, volume {volume}");
        pasted.quote("volume claim", name, &told, text.place(end));
        end += 1;
    }
    if end == at + 1 { 0 } else { end - at }
}

/// `ovs-vsctl get Interface dpdk0 statistics:rx_dropped statistics:tx_dropped`: a line for each, in their order.
fn columns(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_count = |line: usize| text.at(line).parse::<u64>().is_ok();
    if !is_count(at) {
        return 0;
    }
    let Some(words) = asked(text, at, "ovs-vsctl") else { return 0 };
    let Some(get) = words.iter().position(|word| *word == "get") else { return 0 };
    let ["Interface", port, names @ ..] = &words[get + 1..] else { return 0 };
    let names: Option<Vec<&str>> = names.iter().map(|name| name.strip_prefix("statistics:")).collect();
    let Some(names) = names.filter(|names| !names.is_empty()) else { return 0 };
    if !(at..at + names.len()).all(is_count) {
        return 0;
    }
    for (name, line) in names.iter().zip(at..) {
        pasted.quote(name, port, text.at(line), text.place(line));
    }
    names.len()
}

/// `stress-ng: info:  [2436] cyclic:   min: 2603 ns, max: 2073993 ns, std.dev. 29163.42`: what its stressor cyclic measured.
fn cyclic(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let told = text.at(at).strip_prefix("stress-ng: ").and_then(|line| line.split_once("] cyclic:"));
    let Some((_, told)) = told else { return 0 };
    pasted.quote("stress-ng, cyclic", "", told.trim(), text.place(at));
    1
}

/// `..|poll_loop|INFO|wakeup due to [POLLIN] on fd 2459 (AF_PACKET(tap1)(protocol=0x3)<->) at .. (96% CPU usage)` of ovs-vswitchd's log. Threads
/// but the main one stand behind the module: `poll_loop(handler1)`.
fn poll_loop(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some((_, told)) = text.at(at).split_once("|poll_loop|") else { return 0 };
    let Some((_, told)) = told.split_once('|') else { return 0 };
    let usage = told.rsplit_once(" (").and_then(|(why, usage)| Some((why, usage.strip_suffix(" CPU usage)")?)));
    match usage {
        Some((why, usage)) => pasted.quote(super::OVS_MAIN, why, usage, text.place(at)),
        None => pasted.quote("ovs-vswitchd says", "", told, text.place(at)),
    }
    1
}

/// `mac packet forwarding - ports=2 - cores=1 - streams=4 - ..`, and which core has which streams.
pub(super) fn forwarding(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    if !(line.contains(" packet forwarding") && line.contains(" - cores=") && line.contains(" - streams=")) {
        return 0;
    }
    pasted.quote("testpmd, forwarding", "", line, text.place(at));
    let mut end = at + 1;
    loop {
        let line = text.at(end);
        match line.split_once(" forwards packets on ") {
            Some((core, streams)) if core.starts_with("Logical Core ") => {
                pasted.quote("testpmd, forwards packets on", core, streams.trim_end_matches(':'), text.place(end));
            }
            _ if line.starts_with("RX P=") && line.contains("TX P=") => {}
            _ => break,
        }
        end += 1;
    }
    end - at
}

/// `perf stat -I` heads its columns so.
pub(super) fn head(text: &Text<'_>, at: usize, _: &mut Pasted) -> usize {
    let words: Vec<&str> = text.at(at).split_whitespace().collect();
    let is_asked = at > 0 && prompt::command(text.at(at)).is_none();
    usize::from(is_asked && words == ["#", "time", "counts", "unit", "events"])
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn short_answers_are_kept_as_they_stand() {
        let text = "$ uptime\n 10:22:31 up 41 days,  3:11,  2 users,  load average: 5.92, 5.81, 5.66\n$ nproc\n16\n\
            CPU 2/KVM pid 41220's current scheduling policy: SCHED_FIFO pid 41220's current scheduling priority: 1\n\
            pid 7's current scheduling policy: SCHED_OTHER\npid 7's current scheduling priority: 0\n\
            # systemctl is-active irqbalance\ninactive\n\
            # ovs-vsctl get Interface dpdk0 statistics:rx_dropped statistics:tx_dropped\n0\n7\n\
            NAME         STATUS   VOLUME   CAPACITY   ACCESS MODES   STORAGECLASS      AGE\nora01-root   Bound    pvc-5d   120Gi      RWO            rook-ceph-block   41d\n\
            #           time             counts unit events\n     1.001910380         3,003,681,104      cycles:H\n\
            stress-ng: info:  [2436] cyclic:   min: 2603 ns, max: 2073993 ns\n\
            2023-03-09T08:53:27.312Z|00876|poll_loop|INFO|wakeup due to [POLLIN] on fd 24 (AF_PACKET(tap1)(protocol=0x3)<->) at lib/netdev-linux.c:1542 (96% CPU usage)\n\
            mac packet forwarding - ports=2 - cores=1 - streams=4 - NUMA support enabled, MP allocation mode: native\n\
            Logical Core 3 (socket 0) forwards packets on 4 streams:\n  RX P=0/Q=0 (socket 0) -> TX P=1/Q=0 (socket 0) peer=02:00:00:00:00:01\nwe have 16\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        assert_eq!(machine.topology.cpus.len(), 16);
        let told: Vec<(&str, &str)> =
            machine.quoted.iter().map(|told| (told.subject.as_str(), told.value.as_str())).collect();
        assert_eq!(
            told[..4],
            [
                ("", "5.92, 5.81, 5.66"),
                ("CPU 2/KVM (41220)", "SCHED_FIFO, priority 1"),
                ("thread 7", "SCHED_OTHER, priority 0"),
                ("irqbalance", "inactive")
            ]
        );
        assert_eq!(told[4..6], [("dpdk0", "0"), ("dpdk0", "7")]);
        assert!(told[6].1.contains("access modes RWO"), "{told:?}");
        assert_eq!(told[7], ("cycles:H, until 1.001910380 s", "3,003,681,104"));
        assert_eq!((told[8].1, told[9].1), ("min: 2603 ns, max: 2073993 ns", "96%"));
        assert_eq!(told[11], ("Logical Core 3 (socket 0)", "4 streams"));
    }
}
