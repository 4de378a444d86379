//! What does the kernel's log say of virtualization? From `/dev/kmsg` below the root.
//!
//! ```text
//! 6,1234,2345678,-;kvm_amd: Nested Virtualization enabled  -->  [    2.345678] kvm_amd: Nested Virtualization enabled
//! ```
//! A record per read: priority, number, microseconds, flags; then the text, whose further lines are the device's. Reading
//! takes CAP_SYSLOG where `dmesg_restrict` is set. Source: Documentation/ABI/testing/dev-kmsg, Linux 6.12.

use host::kernel_log::kept;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};
use std::path::Path;

/// A record is no longer (CONSOLE_EXT_LOG_MAX in kernel/printk/internal.h, Linux 6.12, is 8 KiB).
const MOST_BYTES: usize = 16 << 10;
/// More records are not read: the buffer holds fewer.
const MOST_RECORDS: usize = 1 << 20;

/// The lines of the log of the machine at `root` that concern virtualization, as dmesg prints them.
///
/// # Errors
/// Why it cannot be read, in words.
pub(super) fn lines(root: &Path) -> Result<String, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(root.join("dev/kmsg"), flags, Mode::empty()).map_err(|error| error.to_string())?;
    let mut record = vec![0; MOST_BYTES];
    let mut all = String::new();
    for _ in 0..MOST_RECORDS {
        match read(&file, &mut record) {
            // Whatever is new comes later.
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(bytes) => all.extend(line(&String::from_utf8_lossy(&record[..bytes]))),
            // Records were overwritten while we read: the next read goes on behind them.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(kept(&all).map(|line| format!("{line}\n")).collect())
}

fn line(record: &str) -> Option<String> {
    let (about, text) = record.split_once(';')?;
    let us: u64 = about.split(',').nth(2)?.parse().ok()?;
    let text = text.lines().next()?;
    Some(format!("[{:5}.{:06}] {text}\n", us / 1_000_000, us % 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_a_line_of_dmesg() {
        let record = "6,1234,2345678,-;kvm_amd: Nested Virtualization enabled\n SUBSYSTEM=x\n";
        assert_eq!(line(record).unwrap(), "[    2.345678] kvm_amd: Nested Virtualization enabled\n");
        assert_eq!(line("nonsense"), None);
    }

    #[test]
    fn the_log_of_this_machine_is_that_of_dmesg() {
        let ours = match lines(Path::new("/")) {
            Ok(ours) => ours,
            Err(why) => return println!("skipped: /dev/kmsg: {why}"),
        };
        let Ok(output) = std::process::Command::new("dmesg").output() else {
            return println!("skipped: dmesg is not installed");
        };
        let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
        // Both are read in turn: what came or went in between is in one of them alone, at its ends.
        let (ours, theirs): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), kept(&theirs).collect());
        let common = ours.iter().filter(|line| theirs.contains(line)).count();
        assert!(common + 5 >= ours.len().min(theirs.len()), "{common} of {} and {}", ours.len(), theirs.len());
        assert!(lines(Path::new("/nonexistent")).is_err());
    }
}
