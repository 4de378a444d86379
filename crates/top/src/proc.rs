//! What /proc alone tells: how long threads waited, and how long they were in guests.

use super::head::Head;
use super::observe::{Frame, HERE, own_ns};
use super::processes::{distinct_names, fields, number, number_of, vms};
use analysis::flow::live::Vcpu;
use base::number::duration;
use base::recording::VmProcess;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What /proc has of a thread at one moment: how long it waited for a CPU, and how long it was in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    waited_ns: Option<u64>,
    guest_ns: Option<u64>,
    at_ns: u64,
}

/// /proc alone.
pub(crate) struct Proc {
    host: PathBuf,
    why: String,
    before: BTreeMap<i32, Sample>,
    own_ns: u64,
}

/// One tick of `stat`: USER_HZ is 100 on all architectures of KVM (include/asm-generic/param.h, Linux 6.12).
const TICK_NS: u64 = 10_000_000;

/// Field 43 of proc_pid_stat(5), the time in guests, counted from the state, which is the third.
const GUEST_TIME: usize = 40;

impl Proc {
    pub(crate) fn new(host: &Path, why: String) -> Self {
        let mut proc = Self { host: host.to_owned(), why, before: BTreeMap::new(), own_ns: own_ns() };
        proc.before = proc.samples().into_iter().map(|(_, tid, _, sample)| (tid, sample)).collect();
        proc
    }

    /// Process, thread, number of its vCPU, and its sample.
    fn samples(&self) -> Vec<(VmProcess, i32, u32, Sample)> {
        let mut all = Vec::new();
        for process in vms(&self.host) {
            for tid in &process.tids {
                let task = self.host.join(format!("proc/{}/task/{tid}", process.pid));
                let Some(number) = number_of(&task) else { continue };
                all.push((process.clone(), *tid, number, sample(&task)));
            }
        }
        all
    }

    pub(crate) fn frame(&mut self, pid: Option<u32>) -> Frame {
        let samples = self.samples();
        let names = distinct_names(samples.iter().map(|(process, ..)| (process.pid as u32, process.name())).collect());
        let mut vcpus = Vec::new();
        for (process, tid, number, now) in &samples {
            let Some(before) = self.before.get(tid).filter(|_| pid.is_none_or(|pid| process.pid == pid as i32)) else {
                continue;
            };
            let since = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before?);
            vcpus.push(Vcpu {
                vm: names.get(&(process.pid as u32)).cloned().unwrap_or_default(),
                vcpu: *number,
                tid: *tid,
                wall_ns: now.at_ns - before.at_ns,
                guest_ns: since(now.guest_ns, before.guest_ns),
                // Pre-empted and woken are one number there.
                ready_ns: since(now.waited_ns, before.waited_ns),
                ..Vcpu::default()
            });
        }
        self.before = samples.into_iter().map(|(_, tid, _, sample)| (tid, sample)).collect();
        number(&mut vcpus);
        let own_ns = own_ns();
        let own = own_ns.saturating_sub(std::mem::replace(&mut self.own_ns, own_ns));
        let floor = vec![
            format!(
                "/proc only ({}): ready is from schedstat, guest from stat in steps of 10 ms, the rest is unknown",
                self.why
            ),
            format!("own cost: {} of this process", duration(own as f64)),
        ];
        Frame { machine: HERE.to_owned(), head: Head::of(&self.host, &vcpus, None), floor, vcpus }
    }
}

fn sample(task: &Path) -> Sample {
    let read = |name: &str| std::fs::read_to_string(task.join(name)).unwrap_or_default();
    let waited_ns = read("schedstat").split_whitespace().nth(1).and_then(|ns| ns.parse().ok());
    let guest = fields(&read("stat")).get(GUEST_TIME).and_then(|ticks| ticks.parse::<u64>().ok());
    Sample { waited_ns, guest_ns: guest.map(|ticks| ticks * TICK_NS), at_ns: fold::now_ns() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_tells_waiting_and_guest_time() {
        let place = tempfile::tempdir().unwrap();
        let rest: Vec<String> =
            (4..=52).map(|number| if number == 43 { "250".to_owned() } else { "0".to_owned() }).collect();
        std::fs::write(place.path().join("stat"), format!("42 (CPU 0/KVM) S {}", rest.join(" "))).unwrap();
        std::fs::write(place.path().join("schedstat"), "100 7000 3\n").unwrap();
        let now = sample(place.path());
        assert_eq!((now.waited_ns, now.guest_ns), (Some(7_000), Some(2_500_000_000)));
        assert_eq!(sample(&place.path().join("none")).waited_ns, None);
    }
}
