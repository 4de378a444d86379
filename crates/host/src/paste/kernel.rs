//! Lines of the kernel's log, as `dmesg` and `journalctl -k` print them.

use super::{Pasted, Text};
use crate::machine::Complaint;

/// `[    2.345678] clocksource: ..`, `[Sat Nov 28 10:00:01 2026] ..`, `<6>[ 2.3] ..`, or behind `kernel:` as the journal and syslog have it.
fn message(line: &str) -> Option<&str> {
    if let Some((_, rest)) = line.split_once(" kernel: ") {
        return Some(message(rest).unwrap_or(rest));
    }
    // What syslog writes to everybody's terminal.
    if let Some(rest) = line.strip_prefix("kernel:") {
        return Some(message(rest.trim_start()).unwrap_or(rest.trim_start()));
    }
    let line = match line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((level, rest)) if level.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => line,
    };
    let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
    let is_clock = time.matches(':').count() == 2 && time.split_whitespace().count() == 5;
    let is_uptime = time.trim().split_once('.').is_some_and(|(seconds, part)| {
        part.len() == 6 && seconds.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit())
    });
    (is_clock || is_uptime).then(|| rest.trim_start())
}

/// A line of the log: kept where it says that something is wrong.
pub(super) fn line(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let line = text.at(at);
    if line.starts_with("Message from syslogd@") && text.at(at + 1).starts_with("kernel:") {
        return 1;
    }
    let logged = message(line);
    // Without a stamp only a line that begins as one of the kernel's does is one.
    let begins = [
        "tsc: ",
        "clocksource: ",
        "kvm: ",
        "kvm [",
        "watchdog: ",
        "rcu: ",
        "INFO: task ",
        "Out of memory: ",
        "Memory cgroup out of memory: ",
        "oom-kill:constraint=",
        "EDAC MC",
        "mce: [",
        "x86/split lock",
        "workqueue: ",
        "nfs: server ",
    ];
    // Proxmox's own daemon tells of storages, in the journal beside the kernel.
    let stamped = logged.or_else(|| line.split_once(" pvestatd[")?.1.split_once("]: ").map(|(_, rest)| rest));
    if stamped.is_none() && !begins.iter().any(|begin| line.starts_with(begin)) {
        return 0;
    }
    let complaint = Complaint::of(logged.unwrap_or(line)).or_else(|| Complaint::of(stamped?));
    match complaint {
        Some(complaint) => pasted.complain(complaint, text.place(at)),
        None if logged.is_some() => pasted.machine.kernel_lines += 1,
        None => return 0,
    }
    1
}

#[cfg(test)]
mod tests {
    use crate::machine::COMPLAINTS;
    use crate::paste::read;

    #[test]
    fn what_is_wrong_is_kept_whatever_stands_before() {
        let text = "[    2.345678] clocksource: Switched to clocksource tsc\n[ 9001.000001] tsc: Marking TSC unstable due to clocksource watchdog\n\
                    Nov 28 10:00:01 host kernel: [ 9001.1] clocksource: Switched to clocksource hpet\n\
                    Nov 28 10:00:02 host kernel: watchdog: BUG: soft lockup - CPU#3 stuck for 22s!\n\
                    [Sat Nov 28 10:00:03 2026] INFO: task qemu-kvm:42 blocked for more than 120 seconds.\nthe tsc is unstable, I think\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let told: Vec<_> =
            machine.complaints.iter().map(|told| (COMPLAINTS[told.value.kind].words[0], told.place.as_str())).collect();
        assert_eq!(
            told,
            [
                ("tsc", "t:2"),
                ("switched to clocksource", "t:3"),
                ("soft lockup", "t:4"),
                ("blocked for more than", "t:5")
            ]
        );
        assert_eq!(machine.kernel_lines, 1);
    }
}
