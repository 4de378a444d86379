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

use super::{Concern, Held, Host, Live, Located, list, same_cpus, set};
use crate::{Error, program::Program};
use base::setting::Scope;
use base::{CpuSet, Setting};
use host::machine::{Role, role_of};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// libvirt answers in milliseconds, but for the XML of the next start it waits until the disk has it (`g_fsync` in
/// `virFileRewrite`, src/util/virfile.c, libvirt 9.0), which took a busy disk more than 20 s; a daemon that is stuck is not
/// waited for longer.
const LIMIT: Duration = Duration::from_secs(120);

/// Which threads of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pinned {
    Vcpu(u32),
    Emulator,
    Iothread(u32),
}

pub(super) struct Pin<'a> {
    pub(super) domain: &'a str,
    pub(super) pinned: Pinned,
    pub(super) scope: Scope,
    pub(super) host: &'a Host,
}

impl Live for Pin<'_> {
    /// A pin of the running domain, and one of its next start.
    fn located(&self, _setting: &Setting) -> Result<Located, Error> {
        let scopes: &[Scope] = match (self.scope, self.is_running()?) {
            (Scope::Both, true) => &[Scope::Live, Scope::Config],
            (Scope::Both, false) => &[Scope::Config],
            (Scope::Live, _) => &[Scope::Live],
            (Scope::Config, _) => &[Scope::Config],
        };
        Ok(Located::Here(scopes.iter().map(|scope| self.at(*scope)).collect()))
    }

    /// The list that holds, and whether the domain's XML says so by an element of its own.
    fn read(&self) -> Result<Held, Error> {
        // `iothreadpin` only sets; `iothreadinfo` lists all of them.
        let (command, which) = match self.pinned {
            Pinned::Iothread(_) => ("iothreadinfo", None),
            Pinned::Vcpu(_) | Pinned::Emulator => self.command(),
        };
        let said = self.virsh(command, which)?;
        let listed = said.lines().filter_map(|line| self.cpus_in(line)).next();
        let cpus = listed.ok_or_else(|| {
            Error::Malformed(format!("virsh {command} {}: no CPU list in its output: {}", self.domain, said.trim()))
        })?;
        // What is in force in a running domain is, whoever chose it.
        let is_set = self.scope == Scope::Live || self.xml()?.lines().any(|line| self.is_element(line));
        Ok(Held { value: cpus.to_string(), is_set })
    }

    fn spelled(&self, value: &str) -> Result<String, Error> {
        list(value).map(|cpus| cpus.to_string())
    }

    fn same(&self, value: &str, now: &str) -> bool {
        same_cpus(value, now)
    }

    fn write(&self, value: &str) -> Result<(), Error> {
        let (command, which) = self.command();
        let cpus = self.spelled(value)?;
        self.virsh(command, which.into_iter().chain([format!("--cpulist={cpus}")]))?;
        let got = self.read()?.value;
        let pin = self.at(self.scope);
        let refused = || Error::refused(&pin, format_args!("libvirt shows {got}, not {cpus}"));
        self.same(&cpus, &got).then_some(()).ok_or_else(refused)
    }

    /// Takes the element out again that libvirt wrote.
    fn unset(&self, _value: &str) -> Result<(), Error> {
        let xml = self.xml()?;
        let kept: String = xml.lines().filter(|line| !self.is_element(line)).flat_map(|line| [line, "\n"]).collect();
        let mut file = tempfile::NamedTempFile::new().map_err(|error| Error::io(std::env::temp_dir(), error))?;
        file.write_all(kept.as_bytes()).map_err(|error| Error::io(file.path(), error))?;
        virsh(&["define".to_owned(), file.path().display().to_string()]).map(|_| ())
    }

    fn gone(&self) -> Option<String> {
        match self.is_running() {
            Err(error) if error.is_failure_saying("failed to get domain") => {
                Some("libvirt no longer has this domain".to_owned())
            }
            Ok(false) if self.scope == Scope::Live => Some("the domain is no longer running".to_owned()),
            Ok(_) | Err(_) => None,
        }
    }

    /// libvirt says what it was asked for, the kernel what holds.
    fn unmoved(&self, value: &str) -> Vec<String> {
        let (Scope::Live, Some(wanted)) = (self.scope, CpuSet::parse(value)) else { return Vec::new() };
        let threads = match self.threads() {
            Ok(threads) => threads,
            Err(error) => {
                return vec![format!("{error}, so the masks of {}'s threads were not read back", self.domain)];
            }
        };
        let told = threads.into_iter().filter_map(|(tid, name)| {
            let now = super::thread::affinity(tid).ok().filter(|now| *now != wanted)?;
            Some(format!(
                "thread {tid} ({name}) did not follow: it has CPUs {now}; `taskset -cp {wanted} {tid}` moves it"
            ))
        });
        told.collect()
    }

    fn concerns(&self, _old: &str, new: &str) -> Result<Concern, Error> {
        match self.scope {
            Scope::Config => Ok(Concern::Nobody),
            Scope::Live | Scope::Both => {
                let mut tids: Vec<u32> = self.threads()?.into_iter().map(|(tid, _)| tid).collect();
                tids.extend(self.workers()?);
                Ok(Concern::Threads(tids, Some(set(new)?)))
            }
        }
    }

    fn outlives_boot(&self) -> bool {
        self.scope != Scope::Live
    }
}

impl Pin<'_> {
    /// The same pin in another scope.
    fn at(&self, scope: Scope) -> Setting {
        let domain = self.domain.to_owned();
        match self.pinned {
            Pinned::Vcpu(vcpu) => Setting::VcpuPin { domain, vcpu, scope },
            Pinned::Emulator => Setting::EmulatorPin { domain, scope },
            Pinned::Iothread(iothread) => Setting::IothreadPin { domain, iothread, scope },
        }
    }

    /// What `virsh COMMAND` prints for the domain in the pin's scope.
    fn virsh(&self, command: &str, more: impl IntoIterator<Item = String>) -> Result<String, Error> {
        let words = [command.to_owned(), self.domain()?].into_iter().chain(more);
        let scope = self.scope.options().split(' ').map(str::to_owned);
        virsh(&words.chain(scope).collect::<Vec<_>>())
    }

    /// True if libvirt knows this domain, and it runs.
    fn is_running(&self) -> Result<bool, Error> {
        Ok(virsh(&["domstate".to_owned(), self.domain()?])?.trim() != "shut off")
    }

    /// The process of the running domain, as libvirt notes it.
    fn qemu(&self) -> Result<u32, Error> {
        let file = self.host.run.join("libvirt/qemu").join(format!("{}.pid", self.domain));
        let text = super::read(&file)?;
        text.trim().parse().map_err(|_| Error::Malformed(format!("{}: it has no pid", file.display())))
    }

    /// The threads of the running domain that the pin is about, with their names.
    fn threads(&self) -> Result<Vec<(u32, String)>, Error> {
        let task = self.host.proc.join(self.qemu()?.to_string()).join("task");
        Ok(named(&task).filter(|(_, name)| self.is_about(name)).collect())
    }

    /// vhost workers that are processes of their own (before Linux 6.4): they are in the control group of their owner, QEMU.
    fn workers(&self) -> Result<Vec<u32>, Error> {
        let qemu = self.qemu()?;
        let owned = |name: &str| match role_of(name) {
            Some((Role::Vhost, Some(owner))) => u32::try_from(owner) == Ok(qemu),
            Some(_) | None => false,
        };
        Ok(match self.pinned {
            Pinned::Emulator => named(&self.host.proc).filter(|(_, name)| owned(name)).map(|(pid, _)| pid).collect(),
            Pinned::Vcpu(_) | Pinned::Iothread(_) => Vec::new(),
        })
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

    /// The option that names the domain. A name is data, never an option.
    fn domain(&self) -> Result<String, Error> {
        let plain = !self.domain.is_empty() && !self.domain.starts_with('-');
        plain
            .then(|| format!("--domain={}", self.domain))
            .ok_or_else(|| Error::Malformed(format!("`{}` is not a valid domain name", self.domain)))
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
            Pinned::Vcpu(_) | Pinned::Iothread(_) => None,
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

/// Threads or processes by their ids below `directory`, with their names, in the order of the ids.
fn named(directory: &Path) -> impl Iterator<Item = (u32, String)> {
    let mut ids: Vec<u32> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    let directory = directory.to_owned();
    ids.into_iter().filter_map(move |id| Some((id, super::read(&directory.join(id.to_string()).join("comm")).ok()?)))
}

fn virsh(words: &[String]) -> Result<String, Error> {
    let virsh = Program::new("virsh", "libvirt-clients");
    Ok(virsh.run(&[&["--quiet".to_owned()], words].concat(), LIMIT)?.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_pin_list_are_read() {
        let host = Host::at(Path::new("/"));
        let pin = |pinned| Pin { domain: "a", pinned, scope: Scope::Live, host: &host };
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
        let host = Host::at(Path::new("/"));
        let pin = Pin { domain: "--connect", pinned: Pinned::Emulator, scope: Scope::Live, host: &host };
        assert!(pin.read().unwrap_err().to_string().contains("not a valid domain name"));
    }

    #[test]
    fn the_emulators_pin_concerns_the_workers_of_its_cgroup_too() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("run/libvirt/qemu/web.pid", "50\n");
        for (path, name) in [
            ("50", "qemu-system-x86"),
            ("50/task/50", "qemu-system-x86"),
            ("50/task/51", "CPU 0/KVM"),
            ("50/task/52", "IO iothread1"),
            ("60", "vhost-50"),
            ("61", "vhost-70"),
        ] {
            put(&format!("proc/{path}/comm"), &format!("{name}\n"));
        }
        let host = Host::at(tree.path());
        let concern = |pinned, scope| Pin { domain: "web", pinned, scope, host: &host }.concerns("0-3", "1").unwrap();
        let threads = |tids: &[u32]| Concern::Threads(tids.to_vec(), Some(CpuSet::one(1)));
        assert_eq!(concern(Pinned::Emulator, Scope::Live), threads(&[50, 60]));
        assert_eq!(concern(Pinned::Vcpu(0), Scope::Live), threads(&[51]));
        assert_eq!(concern(Pinned::Iothread(1), Scope::Live), threads(&[52]));
        assert_eq!(concern(Pinned::Emulator, Scope::Config), Concern::Nobody);
    }
}
