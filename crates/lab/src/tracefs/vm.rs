//! Which threads are one VM's?
//!
//! In: the name that QEMU was started with (`-name web`, `-name guest=web,...`: libvirt's domain name) or a pid. Out: all
//! threads of that process - vCPUs, the main loop, I/O threads, vhost workers since Linux 6.4 - and the kernel threads
//! that older kernels run for it, `vhost-PID` (drivers/vhost/vhost.c) and `kvm-pit/PID` (arch/x86/kvm/i8254.c).

use crate::Error;
use std::path::Path;

/// One VM's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vm {
    pub pid: u32,
    pub name: Option<String>,
    /// Its threads, and kernel threads that work for it.
    pub tids: Vec<u32>,
}

/// Finds the VM called `wanted`, or the process of that pid.
///
/// # Errors
/// If there is none, or if several VMs have the name.
pub fn find(proc: &Path, wanted: &str) -> Result<Vm, Error> {
    let pids = numbers(proc);
    let by_pid = wanted.parse().ok().filter(|pid| pids.contains(pid));
    let pid = match by_pid {
        Some(pid) => pid,
        None => {
            let named: Vec<u32> =
                pids.iter().copied().filter(|pid| name_of(proc, *pid).as_deref() == Some(wanted)).collect();
            match named.as_slice() {
                [pid] => *pid,
                [] => return Err(Error::WrongUse(none(proc, wanted))),
                several => {
                    let several: Vec<String> = several.iter().map(u32::to_string).collect();
                    let text =
                        format!("several VMs are called {wanted}: pids {}; name one by its pid", several.join(", "));
                    return Err(Error::WrongUse(text));
                }
            }
        }
    };
    let mut tids = numbers(&proc.join(pid.to_string()).join("task"));
    let helpers = [format!("vhost-{pid}"), format!("kvm-pit/{pid}")];
    tids.extend(pids.iter().filter(|other| {
        let comm = std::fs::read_to_string(proc.join(other.to_string()).join("comm")).unwrap_or_default();
        helpers.iter().any(|helper| helper == comm.trim_end())
    }));
    tids.sort_unstable();
    tids.dedup();
    Ok(Vm { pid, name: name_of(proc, pid), tids })
}

/// Names of the VMs that run, in order.
pub fn names(proc: &Path) -> Vec<String> {
    let mut names: Vec<String> = numbers(proc).into_iter().filter_map(|pid| name_of(proc, pid)).collect();
    names.sort_unstable();
    names
}

fn none(proc: &Path, wanted: &str) -> String {
    let names = names(proc);
    match names.is_empty() {
        true => format!("no VM is called {wanted}, and no process with a VM's name was found; give a pid"),
        false => format!("no VM is called {wanted}; running: {}", names.join(", ")),
    }
}

/// What stands behind `-name` in a process's arguments.
fn name_of(proc: &Path, pid: u32) -> Option<String> {
    let arguments = std::fs::read(proc.join(pid.to_string()).join("cmdline")).ok()?;
    let mut arguments = arguments.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    arguments.find(|argument| argument == "-name" || argument == "--name")?;
    let value = arguments.next()?;
    let guest = value.split(',').find_map(|part| part.strip_prefix("guest="));
    let name = guest.unwrap_or_else(|| value.split(',').next().unwrap_or_default());
    (!name.is_empty()).then(|| name.to_owned())
}

/// Names of a directory that are numbers, in order.
pub(super) fn numbers(path: &Path) -> Vec<u32> {
    let Ok(listing) = std::fs::read_dir(path) else { return Vec::new() };
    let mut numbers: Vec<u32> = listing.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: u32, cmdline: &str, comm: &str, tids: &[u32]) {
        let own = proc.join(pid.to_string());
        std::fs::create_dir_all(own.join("task")).unwrap();
        std::fs::write(own.join("cmdline"), cmdline).unwrap();
        std::fs::write(own.join("comm"), format!("{comm}\n")).unwrap();
        tids.iter().for_each(|tid| std::fs::create_dir_all(own.join("task").join(tid.to_string())).unwrap());
    }

    #[test]
    fn a_vm_is_found_by_either_spelling_of_its_name_or_by_pid() {
        let proc = tempfile::tempdir().unwrap();
        let proc = proc.path();
        process(proc, 10, "qemu-system-x86_64\0-name\0guest=web,debug-threads=on\0-m\x001G\0", "qemu", &[10, 11, 12]);
        process(proc, 20, "qemu-system-x86_64\0-name\0db\0", "qemu", &[20]);
        process(proc, 30, "", "vhost-10", &[30]);
        process(proc, 31, "", "vhost-20", &[31]);
        let web = find(proc, "web").unwrap();
        assert_eq!((web.pid, web.tids.as_slice()), (10, [10, 11, 12, 30].as_slice()));
        assert_eq!(find(proc, "20").unwrap().name.as_deref(), Some("db"));
        let error = find(proc, "mail").unwrap_err().to_string();
        assert!(error.contains("running: db, web"), "{error}");
        process(proc, 40, "qemu-system-x86_64\0-name\0db\0", "qemu", &[40]);
        assert!(find(proc, "db").unwrap_err().to_string().contains("20, 40"));
    }
}
