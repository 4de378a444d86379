//! Which kernel runs there?
//!
//! In: `6.12.117-amd64`, as `/proc/sys/kernel/osrelease` or the third word of `/proc/version` has it. Out: numbers that can
//! be compared. Distributions carry fixes that their numbers do not show; who compares must say so.

use crate::Snapshot;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Major, minor and stable number.
    pub numbers: (u32, u32, u32),
    pub text: String,
}

impl Release {
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        let own = snapshot.line("proc/sys/kernel/osrelease");
        let third = |file: &str| Some(snapshot.line(file)?.split_whitespace().nth(2)?.to_owned());
        let told = || third("proc/version").or_else(|| third("sos_commands/kernel/uname_-a"));
        // GRUB tells the kernel which file it was: `BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.14.0-427.el9.x86_64`.
        let booted = || {
            let line = snapshot.line("proc/cmdline")?;
            let image = line.split_whitespace().find_map(|word| word.strip_prefix("BOOT_IMAGE="))?;
            Some(image.rsplit_once("vmlinuz-")?.1.to_owned())
        };
        Self::from_text(&own.or_else(told).or_else(booted)?)
    }

    /// Reads a release; `None` if it does not begin with two numbers.
    pub fn from_text(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(str::parse);
        let major = numbers.next()?.ok()?;
        let minor = numbers.next()?.ok()?;
        let stable = numbers.next().and_then(Result::ok).unwrap_or(0);
        Some(Self { numbers: (major, minor, stable), text: text.to_owned() })
    }

    /// Whether it is of this series, such as 6.12.
    pub fn is_of(&self, series: (u32, u32)) -> bool {
        (self.numbers.0, self.numbers.1) == series
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_what_distributions_add() {
        let numbers = |text| Release::from_text(text).map(|release| release.numbers);
        assert_eq!(numbers("6.12.117-amd64"), Some((6, 12, 117)));
        assert_eq!(numbers("3.10.0-1160.el7.x86_64"), Some((3, 10, 0)));
        assert_eq!(numbers("6.18-rc1"), Some((6, 18, 0)));
        assert_eq!(numbers("6"), None);
        assert_eq!(numbers("custom"), None);
        assert!(Release::from_text("6.12.117").unwrap().is_of((6, 12)));
    }

    #[test]
    fn what_the_kernel_says_itself_comes_before_what_others_say_of_it() {
        let tree = tempfile::tempdir().unwrap();
        let told = |file: &str, text: &str| {
            let path = tree.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            Release::of(&Snapshot::open(tree.path()).unwrap()).map(|release| release.text)
        };
        assert_eq!(told("proc/uptime", "1 1\n"), None);
        let boot = "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.14.0-427.el9.x86_64 root=/dev/sda1 ro\n";
        assert_eq!(told("proc/cmdline", boot).as_deref(), Some("5.14.0-427.el9.x86_64"));
        let uname = "Linux host 5.14.1 #1 SMP x86_64 GNU/Linux\n";
        assert_eq!(told("sos_commands/kernel/uname_-a", uname).as_deref(), Some("5.14.1"));
        assert_eq!(told("proc/version", "Linux version 5.14.2 (gcc) #1\n").as_deref(), Some("5.14.2"));
        assert_eq!(told("proc/sys/kernel/osrelease", "5.14.3\n").as_deref(), Some("5.14.3"));
    }
}
