//! Files of the kernel: values below `/sys` and `/proc/sys`, and lists of CPUs. Does what is read mean what was written?
//!
//! ```text
//! always [madvise] never    a choice: the word in brackets holds, and that word alone can be written back
//! Y                         a flag, whatever word set it: 1, y, on (kstrtobool in lib/kstrtox.c, Linux 6.12)
//! Y                         kvm's nx_huge_pages after `force`, and after `auto` where the processor needs it
//! ```
//! Source of the last: `set_nx_huge_pages` and `get_nx_huge_pages`, arch/x86/kvm/mmu/mmu.c, Linux 6.12.

use super::{Concern, Held, Live, list, read, same_cpus, set};
use crate::Error;
use base::CpuSet;
use base::shell::printable;
use std::path::{Component, Path, PathBuf};

/// How a file spells its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// A word or a number.
    Value,
    /// The CPUs of a control group; none: those of the group above
    /// (Documentation/admin-guide/cgroup-v1/cpusets.rst, cgroup-v2.rst).
    Group,
    Interrupt,
}

pub(super) struct File {
    /// Or why the path that was named is none.
    path: Result<PathBuf, String>,
    spelling: Spelling,
}

impl File {
    /// The file `path` below `root`; it must not lead out of it.
    pub(super) fn of_value(root: &Path, path: &str) -> Self {
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let group = Path::new(path).file_name().is_some_and(|name| name == "cpuset.cpus");
        Self {
            path: if plain {
                Ok(root.join(path))
            } else {
                Err(format!("`{path}` is no path below {}", root.display()))
            },
            spelling: if group { Spelling::Group } else { Spelling::Value },
        }
    }

    pub(super) fn of_interrupt(proc: &Path, irq: u32) -> Self {
        let path = proc.join("irq").join(irq.to_string()).join("smp_affinity_list");
        Self { path: Ok(path), spelling: Spelling::Interrupt }
    }

    fn path(&self) -> Result<&Path, Error> {
        self.path.as_deref().map_err(|why| Error::Malformed(why.clone()))
    }

    /// The threads of the control group: `cgroup.threads` in version 2, `tasks` in version 1.
    fn threads(&self) -> Result<Vec<u32>, Error> {
        let path = self.path()?;
        let text = read(&path.with_file_name("cgroup.threads")).or_else(|_| read(&path.with_file_name("tasks")))?;
        Ok(text.split_whitespace().filter_map(|tid| tid.parse().ok()).collect())
    }
}

impl Live for File {
    fn read(&self) -> Result<Held, Error> {
        let text = read(self.path()?)?;
        let value = match self.spelling {
            Spelling::Value => holding(&text).to_owned(),
            Spelling::Group => CpuSet::parse(&text).map_or(text, |cpus| cpus.to_string()),
            Spelling::Interrupt => list(&text)?.to_string(),
        };
        Ok(value.into())
    }

    fn spelled(&self, value: &str) -> Result<String, Error> {
        match self.spelling {
            Spelling::Value => Ok(value.to_owned()),
            Spelling::Group | Spelling::Interrupt => list(value).map(|cpus| cpus.to_string()),
        }
    }

    fn same(&self, value: &str, now: &str) -> bool {
        match self.spelling {
            Spelling::Value => self.path.as_ref().is_ok_and(|path| is_taken(path, value, now)),
            Spelling::Group | Spelling::Interrupt => same_cpus(value, now),
        }
    }

    fn holds_already(&self, wanted: &str, now: &str) -> bool {
        match self.spelling {
            // `auto` says of no value whether it came by itself.
            Spelling::Value => wanted == now || wanted != "auto" && self.same(wanted, now),
            Spelling::Group | Spelling::Interrupt => self.same(wanted, now),
        }
    }

    fn write(&self, value: &str) -> Result<(), Error> {
        let path = self.path()?;
        // To write nothing is no write: an empty value is set by an empty line.
        let text = if value.is_empty() { "\n" } else { value };
        std::fs::write(path, text).map_err(|error| Error::io(path, error))?;
        let now = self.read()?.value;
        let refused = || {
            let path = printable(&path.to_string_lossy()).into_owned();
            Error::refused(path, format_args!("{value} was written and it is {now}"))
        };
        self.same(value, &now).then_some(()).ok_or_else(refused)
    }

    fn concerns(&self, old: &str, new: &str) -> Result<Concern, Error> {
        match self.spelling {
            Spelling::Value => Ok(Concern::Unknown),
            Spelling::Group => Ok(Concern::Threads(self.threads()?, Some(set(new)?))),
            Spelling::Interrupt => {
                // The CPU that has it, where the kernel says it, and not all that might.
                let effective = read(&self.path()?.with_file_name("effective_affinity_list")).ok();
                let effective = effective.and_then(|text| CpuSet::parse(&text)).filter(|cpus| !cpus.is_empty());
                Ok(Concern::Interrupt(effective.map_or_else(|| set(old), Ok)?, set(new)?))
            }
        }
    }

    fn outlives_boot(&self) -> bool {
        false
    }
}

/// What holds by the text of a file.
fn holding(text: &str) -> &str {
    let text = text.trim_end();
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(chosen, _)| chosen)
}

/// True if a file of the kernel in which `written` was put may read `now`.
fn is_taken(path: &Path, written: &str, now: &str) -> bool {
    let is_nx = path.ends_with("nx_huge_pages");
    written == now
        || match now {
            "Y" => matches!(written, "1" | "y" | "Y" | "on") || is_nx && matches!(written, "force" | "auto"),
            "N" => matches!(written, "0" | "n" | "N" | "off") || is_nx && written == "auto",
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_again_in_the_kernels_own_words() {
        assert_eq!(holding("always [madvise] never\n"), "madvise");
        assert_eq!((holding("200000\n"), holding("\n")), ("200000", ""));
        let nx = Path::new("/sys/module/kvm/parameters/nx_huge_pages");
        let flag = Path::new("/sys/module/kvm/parameters/tdp_mmu");
        assert!(is_taken(nx, "auto", "N") && is_taken(nx, "auto", "Y") && is_taken(nx, "force", "Y"));
        assert!(!is_taken(nx, "force", "N") && !is_taken(flag, "auto", "N"));
        assert!(is_taken(flag, "1", "Y") && is_taken(flag, "off", "N") && !is_taken(flag, "1", "N"));
        let file = |path: &str| File::of_value(Path::new("/sys/module/kvm/parameters"), path);
        assert!(file("tdp_mmu").holds_already("1", "Y") && !file("nx_huge_pages").holds_already("auto", "Y"));
    }
}
