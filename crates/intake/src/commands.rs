//! Is a line what somebody typed?

/// What stands before a command that is typed without a prompt, or behind the bare `#` of root.
pub(crate) const PROGRAMS: &str = "bpftrace cat cd chrt cyclictest date dmesg docker echo egrep ethtool for free grep head hwlatdetect iostat ip iperf3 \
    jitterdebugger kubectl kvm_stat latmus ls lscpu lspci lstopo lsvmbus modprobe mpstat netperf numactl numastat oslat ovs-appctl \
    ovs-ofctl ovs-vsctl perf pgrep pidstat ps qm rtla sar sleep ssh stress-ng sudo sysctl systemd-detect-virt tail taskset testpmd top \
    trace-cmd tuned-adm uname uptime virsh vmstat watch wc while xl zcat zgrep";

/// Prompts behind which everything is typed: of shells, of testpmd, of QEMU's monitor.
const PROMPTS: [&str; 4] = ["$ ", "testpmd> ", "(qemu) ", "virsh # "];

/// What people write before the mark of a prompt in place of a machine's name.
const PLACES: [&str; 7] = ["guest", "host", "vm", "hypervisor", "l0", "l1", "l2"];

/// The command on a line with a prompt: `[root@host ~]# lscpu -e`, `user@host:~$ top`, `$ top`, `# cyclictest -m`.
pub(crate) fn typed(line: &str) -> Option<&str> {
    let line = line.trim();
    let is_program = |word: &str| {
        let word = word.rsplit('/').next().unwrap_or(word);
        PROGRAMS.split(' ').any(|known| known == word)
    };
    let first = |text: &str| text.split_whitespace().next().is_some_and(is_program);
    if let Some(command) = PROMPTS.iter().find_map(|prompt| line.strip_prefix(prompt)) {
        return Some(command);
    }
    if let Some(command) = line.strip_prefix("# ").or_else(|| line.strip_prefix("% ")) {
        return first(command).then_some(command);
    }
    let end = line.find(['$', '#', '%']).filter(|end| *end > 0)?;
    let (prompt, command) = (&line[..end], line[end + 1..].trim_start());
    // `guest # sar -u 1 3`: a blank stands before the mark, which would begin a comment behind any other word.
    let is_place = PLACES.contains(&prompt.trim_end().to_ascii_lowercase().as_str());
    let is_prompt = prompt.starts_with('[') && prompt.trim_end().ends_with(']')
        || prompt.contains('@') && !prompt.contains(' ')
        || (!prompt.contains(' ') || is_place) && first(command);
    is_prompt.then_some(command)
}

/// Keys that people press in terminals, which echo them.
pub(crate) fn is_key(line: &str) -> bool {
    let line = line.trim();
    line.len() == 2 && line.starts_with('^')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_comments() {
        for (line, command) in [
            ("[root@host ~]# lscpu -e", "lscpu -e"),
            ("user@host:~$ sudo top -b", "sudo top -b"),
            ("$ anything at all", "anything at all"),
            ("# cyclictest -m -p95", "cyclictest -m -p95"),
            ("host# cat /proc/stat", "cat /proc/stat"),
            ("guest # sar -u 1 3", "sar -u 1 3"),
        ] {
            assert_eq!(typed(line), Some(command), "{line}");
        }
        for line in [
            "# Histogram",
            "# tracer: nop",
            "costs 5$ a day",
            "# Max Latencies: 00090",
            "cyclictest says",
            "usual # top",
            "",
        ] {
            assert_eq!(typed(line), None, "{line}");
        }
        assert!(is_key("^C") && !is_key("^ up"));
    }
}
