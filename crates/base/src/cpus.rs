//! A set of CPUs, read and written as the kernel does: `0-3,8`.
//!
//! Two lists that are spelled differently may be the same set; what the kernel gives back is its own spelling of what was
//! asked for. Source of the form: Documentation/admin-guide/cputopology.rst and `bitmap_parselist`, lib/bitmap-str.c
//! (Linux 6.12); libvirt adds `^2`, a CPU that is taken out again (formatdomain, attribute `cpuset`).

use std::collections::BTreeSet;
use std::fmt;

/// The largest CPU number that is believed: far above any kernel's NR_CPUS, so that `0-4000000000` fills no memory.
const LARGEST: usize = 65_535;

/// A set of CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpus(BTreeSet<usize>);

impl Cpus {
    /// Reads a list; `None` if it is none. An empty text is the empty set.
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = BTreeSet::new();
        for item in text.trim().split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (taken_out, range) = item.strip_prefix('^').map_or((false, item), |range| (true, range));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
            if first > last || last > LARGEST {
                return None;
            }
            if taken_out {
                set.retain(|cpu| !(first..=last).contains(cpu));
            } else {
                set.extend(first..=last);
            }
        }
        Some(Self(set))
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// True if `cpu` is one of them.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if they have a CPU in common.
    pub fn overlap(&self, other: &Self) -> bool {
        self.0.intersection(&other.0).next().is_some()
    }
}

impl FromIterator<usize> for Cpus {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for Cpus {
    /// Ranges, as the kernel writes them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last == first {
                true => write!(out, "{comma}{first}")?,
                false => write!(out, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        let shown = |text: &str| Cpus::parse(text).map(|cpus| cpus.to_string());
        assert_eq!(shown("0,1,2,3,8\n").as_deref(), Some("0-3,8"));
        assert_eq!(shown("0-7,^2").as_deref(), Some("0-1,3-7"));
        assert_eq!(shown("").as_deref(), Some(""));
        assert_eq!([shown("3-1"), shown("x"), shown("0-4000000000"), shown("-1")], [const { None }; 4]);
        assert!(Cpus::parse("0-1").unwrap().overlap(&Cpus::parse("1-2").unwrap()));
        assert!(!Cpus::parse("0").unwrap().overlap(&Cpus::parse("1-2").unwrap()));
    }
}
