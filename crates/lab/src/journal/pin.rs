//! Pins of libvirt domains: read, set, verified, and put back exactly, through `virsh`.
//!
//! ```text
//! --live    the list in force          undo: the list that was in force
//! --config  the element of the XML     undo: the list it had; where there was no element, the element is taken out again
//! ```
//! Without an element `virsh vcpupin` shows every CPU. Setting every CPU would leave an element that says so, so for
//! `--config` the inactive XML is asked whether there was one. No `virsh` command removes an element: the line that
//! libvirt wrote is taken out of its own XML, which is defined again (`virsh define`), secrets included.
//! Sources: virsh(1) of libvirt 9.0; `virDomainCputuneDefFormat`, src/conf/domain_conf.c.

use super::revert::Reverted;
use crate::{Error, program::Program};
use base::CpuSet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// libvirt answers in milliseconds; a daemon that is stuck is not waited for longer.
const LIMIT: Duration = Duration::from_secs(20);

/// Which threads of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pinned {
    /// A vCPU.
    Vcpu(u32),
    /// The emulator's threads.
    Emulator,
    /// An iothread.
    Iothread(u32),
}

/// Now, or from the domain's next start on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The running domain.
    Live,
    /// Its next start.
    Config,
}

/// A pin of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The domain's name.
    pub domain: String,
    /// Which threads.
    pub pinned: Pinned,
    /// When it holds.
    pub scope: Scope,
}

impl Pin {
    /// The list that holds, and whether the domain's XML says so by an element of its own.
    ///
    /// # Errors
    /// If libvirt is not there, does not know the domain, or answers something else.
    pub fn read(&self) -> Result<(CpuSet, bool), Error> {
        // `iothreadpin` only sets; `iothreadinfo` lists all of them.
        let (command, which) = match self.pinned {
            Pinned::Iothread(_) => ("iothreadinfo", None),
            _ => self.command(),
        };
        let words = [command.to_owned(), self.domain()?].into_iter().chain(which);
        let words: Vec<String> = words.chain([self.flag().to_owned()]).collect();
        let said = virsh(&words)?;
        let listed = said.lines().filter_map(|line| self.cpus_in(line)).next();
        let cpus = listed.ok_or_else(|| {
            Error::Unable(format!("virsh {command} {}: no CPU list in its output: {}", self.domain, said.trim()))
        })?;
        Ok((cpus, self.xml()?.lines().any(|line| self.is_element(line))))
    }

    /// Sets the list, and reads it back.
    ///
    /// # Errors
    /// If libvirt refuses, or shows another list afterwards.
    pub fn set(&self, cpus: &CpuSet) -> Result<(), Error> {
        let (command, which) = self.command();
        let words = [command.to_owned(), self.domain()?].into_iter().chain(which);
        virsh(&words.chain([format!("--cpulist={cpus}"), self.flag().to_owned()]).collect::<Vec<_>>())?;
        let (got, _) = self.read()?;
        if got == *cpus { Ok(()) } else { Err(Error::Unable(format!("{self}: libvirt shows {got}, not {cpus}"))) }
    }

    /// Puts back the list `old`, and takes out the element if there was none.
    pub(super) fn put_back(&self, old: &CpuSet, new: &CpuSet, had_element: bool) -> Reverted {
        match (is_running(&self.domain), self.scope) {
            (Err(error), _) if error.to_string().contains("failed to get domain") => {
                return Reverted::LeftAlone("libvirt no longer has this domain".to_owned());
            }
            (Ok(false), Scope::Live) => return Reverted::LeftAlone("the domain is no longer running".to_owned()),
            _ => {}
        }
        match self.read() {
            Ok((now, has_element)) if now == *old && (has_element == had_element || self.scope == Scope::Live) => {
                Reverted::Done
            }
            Ok((now, _)) if now != *new => Reverted::LeftAlone(format!("it is {now} now, and kvmscope had set {new}")),
            Ok(_) => {
                let back = match self.scope == Scope::Config && !had_element {
                    true => self.remove_element(),
                    false => self.set(old),
                };
                back.map_or_else(|error| Reverted::Failed(error.to_string()), |()| Reverted::Done)
            }
            Err(error) => Reverted::Failed(error.to_string()),
        }
    }

    fn remove_element(&self) -> Result<(), Error> {
        let xml = self.xml()?;
        let kept: String = xml.lines().filter(|line| !self.is_element(line)).flat_map(|line| [line, "\n"]).collect();
        let mut file = tempfile::NamedTempFile::new().map_err(|error| Error::io(std::env::temp_dir(), error))?;
        file.write_all(kept.as_bytes()).map_err(|error| Error::io(file.path(), error))?;
        virsh(&["define".to_owned(), file.path().display().to_string()]).map(|_| ())
    }

    /// The domain's XML in the pin's scope, as libvirt writes it.
    fn xml(&self) -> Result<String, Error> {
        let mut words = vec!["dumpxml".to_owned(), self.domain()?];
        if self.scope == Scope::Config {
            words.extend(["--inactive".to_owned(), "--security-info".to_owned()]);
        }
        virsh(&words)
    }

    fn command(&self) -> (&'static str, Option<String>) {
        match self.pinned {
            Pinned::Vcpu(vcpu) => ("vcpupin", Some(format!("--vcpu={vcpu}"))),
            Pinned::Emulator => ("emulatorpin", None),
            Pinned::Iothread(id) => ("iothreadpin", Some(format!("--iothread={id}"))),
        }
    }

    fn flag(&self) -> &'static str {
        match self.scope {
            Scope::Live => "--live",
            Scope::Config => "--config",
        }
    }

    /// The option that names the domain. A name is data, never an option.
    fn domain(&self) -> Result<String, Error> {
        let plain = !self.domain.is_empty() && !self.domain.starts_with('-');
        plain
            .then(|| format!("--domain={}", self.domain))
            .ok_or_else(|| Error::Unable(format!("`{}` is not a valid domain name", self.domain)))
    }

    /// The list of a line such as ` 0      0-1`, ` *: 0-1`; virsh shows the emulator's alone where it is told to be quiet.
    fn cpus_in(&self, line: &str) -> Option<CpuSet> {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let who = first.trim_end_matches(':');
        let list = match self.pinned {
            Pinned::Vcpu(id) | Pinned::Iothread(id) if who.parse() == Ok(id) => words.next(),
            Pinned::Emulator if who == "*" => words.next(),
            Pinned::Emulator => Some(first),
            _ => None,
        };
        CpuSet::parse(list?).filter(|cpus| !cpus.is_empty())
    }

    /// True if a thread of that name is one of those that the pin is about.
    fn is_about(&self, name: &str) -> bool {
        let (vcpu, iothread) = (name.starts_with("CPU "), name.starts_with("IO iothread"));
        match self.pinned {
            Pinned::Vcpu(id) => name.starts_with(&format!("CPU {id}/")),
            Pinned::Iothread(id) => name == format!("IO iothread{id}"),
            Pinned::Emulator => !vcpu && !iothread,
        }
    }

    fn is_element(&self, line: &str) -> bool {
        let start = match self.pinned {
            Pinned::Vcpu(id) => format!("<vcpupin vcpu='{id}' "),
            Pinned::Emulator => "<emulatorpin ".to_owned(),
            Pinned::Iothread(id) => format!("<iothreadpin iothread='{id}' "),
        };
        line.trim_start().starts_with(&start)
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.scope {
            Scope::Live => "running",
            Scope::Config => "next start",
        };
        match self.pinned {
            Pinned::Vcpu(vcpu) => write!(out, "{} vCPU {vcpu} ({when})", self.domain),
            Pinned::Emulator => write!(out, "{} emulator threads ({when})", self.domain),
            Pinned::Iothread(id) => write!(out, "{} iothread {id} ({when})", self.domain),
        }
    }
}

fn virsh(words: &[String]) -> Result<String, Error> {
    let virsh = Program::new("virsh", "libvirt-clients");
    Ok(virsh.run(&[&["--quiet".to_owned()], words].concat(), LIMIT)?.stdout)
}

/// The threads of a running domain that the pin is about, with their names.
///
/// # Errors
/// If libvirt's note of the domain's process is not below `run`.
pub fn threads(pin: &Pin, proc: &Path, run: &Path) -> Result<Vec<(u32, String)>, Error> {
    let file = run.join("libvirt/qemu").join(format!("{}.pid", pin.domain));
    let text = std::fs::read_to_string(&file).map_err(|error| Error::io(&file, error))?;
    let pid: u32 = text.trim().parse().map_err(|_| Error::Unable(format!("{}: it has no pid", file.display())))?;
    let tasks = std::fs::read_dir(proc.join(pid.to_string()).join("task")).into_iter().flatten().flatten();
    let mut threads: Vec<(u32, String)> = tasks
        .filter_map(|task| {
            let tid = task.file_name().to_str()?.parse().ok()?;
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let name = name.trim_end();
            pin.is_about(name).then(|| (tid, name.to_owned()))
        })
        .collect();
    threads.sort();
    Ok(threads)
}

/// Those threads that do not have `cpus`, as sentences: libvirt says what it was asked for, the kernel what holds.
pub fn unmoved(pin: &Pin, cpus: &str, proc: &Path, run: &Path) -> Vec<String> {
    let (Scope::Live, Some(wanted)) = (pin.scope, CpuSet::parse(cpus)) else { return Vec::new() };
    let threads = match threads(pin, proc, run) {
        Ok(threads) => threads,
        Err(error) => return vec![format!("{error}, so the masks of {}'s threads were not read back", pin.domain)],
    };
    let told = threads.into_iter().filter_map(|(tid, name)| {
        let now = super::thread::affinity(tid).ok().filter(|now| *now != wanted)?;
        Some(format!("thread {tid} ({name}) did not follow: it has CPUs {now}; `taskset -cp {wanted} {tid}` moves it"))
    });
    told.collect()
}

/// True if libvirt knows this domain, and it runs.
///
/// # Errors
/// If libvirt is not there or does not know the domain.
pub fn is_running(domain: &str) -> Result<bool, Error> {
    let pin = Pin { domain: domain.to_owned(), pinned: Pinned::Emulator, scope: Scope::Live };
    Ok(virsh(&["domstate".to_owned(), pin.domain()?])?.trim() != "shut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_pin_list_are_read() {
        let pin = |pinned| Pin { domain: "a".into(), pinned, scope: Scope::Live };
        let shown = |pinned, line| pin(pinned).cpus_in(line).map(|cpus| cpus.to_string());
        assert_eq!(shown(Pinned::Vcpu(1), "   1: 0-1").as_deref(), Some("0-1"));
        assert_eq!(shown(Pinned::Vcpu(1), " 1      2").as_deref(), Some("2"));
        assert_eq!(shown(Pinned::Vcpu(1), " 11     2"), None);
        assert_eq!(shown(Pinned::Emulator, "       *: 0,2").as_deref(), Some("0,2"));
        assert_eq!(shown(Pinned::Emulator, "0,2").as_deref(), Some("0,2"));
        assert_eq!(shown(Pinned::Emulator, "emulator: CPU Affinity"), None);
        assert!(pin(Pinned::Vcpu(1)).is_element("    <vcpupin vcpu='1' cpuset='0'/>"));
        assert!(!pin(Pinned::Vcpu(1)).is_element("    <vcpupin vcpu='11' cpuset='0'/>"));
    }

    #[test]
    fn a_name_that_looks_like_an_option_is_refused() {
        let pin = Pin { domain: "--connect".into(), pinned: Pinned::Emulator, scope: Scope::Live };
        assert!(pin.read().unwrap_err().to_string().contains("not a valid domain name"));
    }
}
