//! Processes that run VMs while a recording is made, with their threads: `<machine>/processes.json`.
//!
//! Events name threads, and no event says which threads are one VM's. The recorder reads `/proc` when recording has begun
//! and when it ends; a snapshot of the machine says the same.

use super::note;
use super::{Error, Recording};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the file in a machine's directory.
pub const PROCESSES_FILE: &str = "processes.json";

/// Processes that run VMs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmProcesses {
    /// One for each VM.
    pub vms: Vec<VmProcess>,
}

/// One process that runs a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmProcess {
    /// Its id, which its threads have as `tgid`.
    pub pid: i32,
    /// What the VM is called: the name that the process was started with (`-name guest=web`); `None` if it has none.
    pub vm: Option<String>,
    /// Its threads.
    pub tids: Vec<i32>,
}

impl VmProcess {
    /// What the VM is called in all sections.
    pub fn name(&self) -> String {
        self.vm.clone().unwrap_or_else(|| format!("process-{}", self.pid))
    }
}

impl VmProcesses {
    /// Adds what was seen at another time: threads come and go.
    pub fn merge(&mut self, more: VmProcesses) {
        let mut places: BTreeMap<i32, usize> = self.vms.iter().map(|process| process.pid).zip(0..).collect();
        for other in more.vms {
            match places.get(&other.pid) {
                Some(place) => {
                    let known = &mut self.vms[*place];
                    known.tids.extend(other.tids);
                    known.vm = known.vm.take().or(other.vm);
                }
                None => {
                    places.insert(other.pid, self.vms.len());
                    self.vms.push(other);
                }
            }
        }
        for process in &mut self.vms {
            process.tids.sort_unstable();
            process.tids.dedup();
        }
    }

    /// The process of each thread.
    pub fn by_thread(&self) -> BTreeMap<i32, &VmProcess> {
        self.vms.iter().flat_map(|process| process.tids.iter().map(move |tid| (*tid, process))).collect()
    }
}

// A VM with 1,024 vCPUs is some 10 KB; a file this long is something else.
note::read_and_write!(VmProcesses, PROCESSES_FILE, "processes of VMs", most_bytes: 16 << 20);

impl Recording {
    /// What the recorder saw of the VMs of `machine`; `None` if the recording has nothing of it.
    pub fn vm_processes(&self, machine: &str) -> Option<Result<VmProcesses, Error>> {
        note::of_machine(self, machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, vm: Option<&str>, tids: &[i32]) -> VmProcess {
        VmProcess { pid, vm: vm.map(str::to_owned), tids: tids.to_vec() }
    }

    #[test]
    fn what_is_written_is_read_and_two_times_add_up() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(PROCESSES_FILE);
        let mut seen = VmProcesses { vms: vec![process(7, Some("web"), &[7, 9])] };
        seen.merge(VmProcesses { vms: vec![process(7, None, &[7, 12]), process(20, None, &[20, 21])] });
        assert_eq!(seen.vms, [process(7, Some("web"), &[7, 9, 12]), process(20, None, &[20, 21])]);
        let name = |tid| seen.by_thread().get(&tid).map(|process| process.name());
        assert_eq!((name(12).as_deref(), name(21).as_deref(), name(22)), (Some("web"), Some("process-20"), None));
        seen.write(&path).unwrap();
        assert_eq!(VmProcesses::read(&path).unwrap(), seen);
        std::fs::write(&path, "[]").unwrap();
        assert!(VmProcesses::read(&path).unwrap_err().to_string().contains("processes.json"));
    }
}
