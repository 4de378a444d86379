//! Commands at prompts: what they ask for is known even where their output lost its header.

use super::{Pasted, Text};

/// Programs whose output is read here, and those that people pass it through.
const PROGRAMS: &[&str] = &[
    "cat",
    "chrt",
    "dd",
    "df",
    "dmesg",
    "ethtool",
    "free",
    "grep",
    "head",
    "ifconfig",
    "ioping",
    "iostat",
    "ip",
    "iperf3",
    "kvmtop",
    "lscpu",
    "lstopo",
    "lsvmbus",
    "lvs",
    "mpstat",
    "nproc",
    "numactl",
    "numastat",
    "ovs-appctl",
    "ovs-vsctl",
    "perf",
    "pgrep",
    "pidstat",
    "ping",
    "ps",
    "pveperf",
    "sar",
    "strace",
    "sysctl",
    "systemctl",
    "tail",
    "taskset",
    "timeout",
    "top",
    "turbostat",
    "uptime",
    "virsh",
    "vmstat",
    "watch",
];

/// The words of the command on a line, from its program on: `[root@host ~]# LC_ALL=C lscpu -e` has `lscpu` and `-e`.
/// A line without a prompt has one if it is nothing but a program and its options, with numbers as their values.
pub(super) fn command(line: &str) -> Option<Vec<&str>> {
    let is_program = |word: &str| PROGRAMS.binary_search(&word.rsplit('/').next().unwrap_or(word)).is_ok();
    // Nearly every line ends here: where no program begins it, a prompt, a variable or a word that asks for one stands before.
    let is_first = line.split_whitespace().next().is_some_and(is_program);
    let has_mark =
        || line.bytes().any(|byte| b"#$%>=".contains(&byte)) || line.contains("sudo") || line.contains("time");
    if !is_first && !has_mark() {
        return None;
    }
    let at = line.split_whitespace().position(is_program)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let comes_before =
        |word: &str| word.ends_with(['#', '$', '%', '>']) || word.contains('=') || matches!(word, "sudo" | "time");
    let is_option = |word: &str| word.len() > 1 && word.starts_with('-');
    let is_number = |word: &str| word == "ALL" || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let is_asked = match at {
        0 => words
            .windows(2)
            .all(|pair| is_option(pair[1]) || is_number(pair[1]) && (is_option(pair[0]) || is_number(pair[0]))),
        _ => comes_before(words[at - 1]),
    };
    is_asked.then(|| words[at..].to_vec())
}

/// What the command on the line above names first behind that word: `virsh domstats web --vcpu | grep delay` has `web` behind `domstats`.
pub(super) fn first_behind<'t>(text: &Text<'t>, at: usize, word: &str) -> Option<&'t str> {
    let words = command(text.at(at.checked_sub(1)?))?;
    let behind = words.iter().position(|known| *known == word)? + 1;
    words[behind..].iter().take_while(|word| **word != "|").find(|word| !word.starts_with('-')).copied()
}

/// The VM whose process the command just above asks for: `numastat -p $(pgrep -f guest=web)`.
pub(super) fn asked_guest<'t>(text: &Text<'t>, at: usize) -> Option<&'t str> {
    const ABOVE: usize = 3;
    let above = (at.saturating_sub(ABOVE)..at).rev().map(|line| text.at(line)).find(|line| !line.is_empty())?;
    let (_, name) = above.split_once("guest=").filter(|_| above.contains("pgrep "))?;
    let end = name.find(|letter: char| !(letter.is_alphanumeric() || "-_.".contains(letter))).unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

/// A prompt says what comes, and nothing else.
pub(super) fn line(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(words) = command(text.at(at)) else { return 0 };
    pasted.asked.note(text.at(at), at);
    pasted.groups.note(text.at(at));
    pasted.asks_for_workers = words.iter().any(|word| word.contains("vhost"));
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_halving() {
        assert!(PROGRAMS.is_sorted());
    }

    #[test]
    fn commands_stand_behind_prompts_or_alone() {
        for (line, words) in [
            ("[root@host ~]# LC_ALL=C lscpu -e", vec!["lscpu", "-e"]),
            ("# lscpu --parse=node,core,cpu", vec!["lscpu", "--parse=node,core,cpu"]),
            ("user@host:~$ sudo /usr/bin/top -H -b", vec!["/usr/bin/top", "-H", "-b"]),
            ("lscpu", vec!["lscpu"]),
            ("top -Hp 41190", vec!["top", "-Hp", "41190"]),
            ("mpstat -P ALL 1 5", vec!["mpstat", "-P", "ALL", "1", "5"]),
            ("$ pidstat -t 1 | grep vhost", vec!["pidstat", "-t", "1", "|", "grep", "vhost"]),
        ] {
            assert_eq!(command(line), Some(words), "{line}");
        }
        for line in [
            "top - 10:22:31 up 41 days",
            "the top of the list",
            "lscpu says that",
            "top 10 threads",
            "top -H 5 shows",
            "# Node,Core,CPU",
            "",
        ] {
            assert_eq!(command(line), None, "{line}");
        }
    }
}
