//! Which threads on screens are of one VM, where no domain is named: what has a process is its, and `top -H` tells of nothing
//! but threads.
//!
//! A vhost worker names the process that it serves. QEMU starts its vCPUs' threads one after the other, behind its first thread,
//! so that in order of their ids the numbers of one VM's vCPUs rise:
//! ```text
//! 41190 qemu-kvm | 41203 CPU 0/KVM | 41204 CPU 1/KVM | 52003 CPU 3/KVM
//! process 41190 -------------------------------------| a VM of its own
//! ```

use super::threads::program;
use crate::budget;
use crate::machine::{Domain, Role, TopRow, role_of};
use std::collections::{BTreeMap, BTreeSet};

/// Threads that a host starts at most while QEMU starts one vCPU, which takes it less than a millisecond. Our own assumption.
pub(super) const MOST_BETWEEN: i32 = 64;

/// One VM on screens.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Group {
    /// Its process; `None`: no screen tells it.
    pub process: Option<i32>,
    /// Its vCPUs' threads by their numbers, with the CPU that each was last seen on.
    pub vcpus: BTreeMap<u32, (i32, Option<u32>)>,
}

impl Group {
    /// Ids of its vCPUs' threads.
    pub(super) fn threads(&self) -> impl Iterator<Item = i32> + '_ {
        self.vcpus.values().map(|(tid, _)| *tid)
    }

    /// Whether all of its vCPUs are such as the domain has, on CPUs that the domain gives them.
    fn fits(&self, domain: &Domain) -> bool {
        let fits = |(vcpu, (_, cpu)): (&u32, &(i32, Option<u32>))| {
            let pin = domain.vcpu_pin(*vcpu).zip(*cpu);
            *vcpu < domain.vcpu_count() && pin.is_none_or(|(pin, cpu)| pin.value.contains(cpu))
        };
        !self.vcpus.is_empty() && self.vcpus.iter().all(fits)
    }
}

/// The VMs of all rows, those without a process last.
pub(super) fn of_rows(rows: &[&TopRow]) -> Vec<Group> {
    let role = |row: &TopRow| role_of(program(&row.command));
    let process_of: BTreeMap<i32, i32> = rows.iter().filter_map(|row| Some((row.pid, row.process?))).collect();
    let mut known: BTreeMap<i32, Group> = BTreeMap::new();
    let mut loose: BTreeMap<i32, (u32, Option<u32>)> = BTreeMap::new();
    // First threads of processes that run VMs; QEMU calls other helpers otherwise.
    let mut firsts: BTreeSet<i32> = BTreeSet::new();
    for row in rows {
        match role(row) {
            Some((Role::Vcpu(vcpu), _)) => match row.process {
                Some(process) => {
                    known.entry(process).or_default().vcpus.insert(vcpu, (row.pid, row.last_cpu));
                }
                None => {
                    loose.insert(row.pid, (vcpu, row.last_cpu));
                }
            },
            // A worker may be named after any thread of QEMU.
            Some((Role::Vhost, Some(owner))) => {
                let owner = process_of.get(&owner).copied().unwrap_or(owner);
                known.entry(owner).or_default();
                firsts.insert(owner);
            }
            Some((Role::Emulator, _))
                if row.process.is_none_or(|process| process == row.pid) && is_qemu(&row.command) =>
            {
                firsts.insert(row.pid);
            }
            Some((Role::Vhost | Role::Emulator | Role::IoThread(_) | Role::Pmd | Role::Other, _)) | None => {}
        }
    }
    let mut nameless: Vec<Group> = Vec::new();
    let (mut current, mut last): (Option<Group>, Option<(i32, u32)>) = (None, None);
    let mut close = |group: Option<Group>| {
        let Some(group) = group else { return };
        match group.process {
            Some(process) => known.entry(process).or_default().vcpus.extend(group.vcpus),
            None => nameless.push(group),
        }
    };
    for (tid, (vcpu, cpu)) in loose {
        let from = last.map_or(0, |(last, _)| last + 1);
        let first = first_of(firsts.range(from..tid).rev().copied());
        let follows = last.is_some_and(|(last, number)| {
            let room = i64::from(vcpu) - i64::from(number);
            i64::from(tid) - i64::from(last) <= room * i64::from(MOST_BETWEEN)
        });
        if first.is_some() || !follows {
            close(current.replace(Group { process: first, ..Group::default() }));
        }
        if let Some(group) = &mut current {
            group.vcpus.insert(vcpu, (tid, cpu));
        }
        last = Some((tid, vcpu));
    }
    close(current);
    let known = known.into_iter().map(|(process, group)| Group { process: Some(process), ..group });
    known.chain(nameless).collect()
}

/// Whether a thread has the name of QEMU's program, as its first one does.
pub(super) fn is_qemu(command: &str) -> bool {
    let name = program(command);
    name.starts_with("qemu") || name == "kvm"
}

/// The first thread of a process, out of those before its vCPUs, the nearest first: helpers that QEMU starts before its vCPUs may
/// have its name as well.
fn first_of(before: impl Iterator<Item = i32>) -> Option<i32> {
    let mut lowest = None;
    for earlier in before {
        if lowest.is_some_and(|lowest| i64::from(lowest) - i64::from(earlier) > i64::from(MOST_BETWEEN)) {
            break;
        }
        lowest = Some(earlier);
    }
    lowest
}

/// The domain of each group, by their positions: the only one if there is one of both, else the one that alone fits it and that
/// it alone fits.
pub(super) fn matched(groups: &[Group], domains: &[&Domain]) -> BTreeMap<usize, usize> {
    if let ([_], [_]) = (groups, domains) {
        return [(0, 0)].into();
    }
    if groups.len() > budget::DOMAINS {
        return BTreeMap::new();
    }
    let mut of_group: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut of_domain: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        for (domain, _) in domains.iter().enumerate().filter(|(_, domain)| group.fits(domain)) {
            of_group.entry(at).or_default().push(domain);
            *of_domain.entry(domain).or_default() += 1;
        }
    }
    let only = |(group, fitting): (usize, Vec<usize>)| match fitting[..] {
        [domain] if of_domain[&domain] == 1 => Some((group, domain)),
        _ => None,
    };
    of_group.into_iter().filter_map(only).collect()
}

#[cfg(test)]
mod tests {
    use crate::machine::{Machine, Role};
    use crate::paste::read;

    fn top(rows: &[(i32, &str, u32)]) -> String {
        let row = |(tid, name, cpu): &(i32, &str, u32)| {
            format!("{tid} qemu 20 0 9437184 8.0g 14236 R 90.0 6.4 8:11.00 {name} {cpu}\n")
        };
        let rows: String = rows.iter().map(row).collect();
        format!("  PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND P\n{rows}")
    }

    fn of(text: &str) -> Machine {
        read(&[("t".to_owned(), text.to_owned())])
    }

    fn threads(machine: &Machine) -> Vec<(&str, Role, Option<i32>)> {
        let threads = machine.threads.iter().filter(|thread| thread.tid.is_some());
        threads.map(|thread| (thread.vm.as_deref().unwrap_or_default(), thread.role, thread.tid)).collect()
    }

    #[test]
    fn a_screen_of_threads_alone_shows_its_vms() {
        let machine = of(&top(&[
            (41_204, "CPU 1/KVM", 1),
            (41_203, "CPU 0/KVM", 0),
            (41_210, "vhost-41190", 0),
            (52_003, "CPU 0/KVM", 4),
            (52_004, "CPU 1/KVM", 5),
            (60_000, "CPU 3/TCG", 6),
        ]));
        assert_eq!(
            threads(&machine),
            [
                ("VM 1", Role::Vcpu(0), Some(52_003)),
                ("VM 1", Role::Vcpu(1), Some(52_004)),
                ("VM 2", Role::Vcpu(3), Some(60_000)),
                ("process-41190", Role::Vcpu(0), Some(41_203)),
                ("process-41190", Role::Vcpu(1), Some(41_204)),
                ("process-41190", Role::Emulator, Some(41_190)),
                ("process-41190", Role::Vhost, Some(41_210)),
            ]
        );
        let emulated = machine.threads.iter().find(|thread| thread.tid == Some(60_000)).unwrap();
        assert_eq!((emulated.name.as_str(), emulated.last_cpu.as_ref().unwrap().value), ("CPU 3/TCG", 6));
    }

    #[test]
    fn neighbours_are_told_apart_by_numbers_and_by_processes() {
        let vms = |rows: &[(i32, &str, u32)]| of(&top(rows)).domains.len();
        assert_eq!(vms(&[(10, "CPU 0/KVM", 0), (11, "CPU 1/KVM", 1), (12, "CPU 3/KVM", 2)]), 1);
        assert_eq!(
            vms(&[(10, "CPU 0/KVM", 0), (11, "CPU 1/KVM", 1), (20, "CPU 1/KVM", 2)]),
            2,
            "no VM has two of a number"
        );
        assert_eq!(vms(&[(10, "CPU 0/KVM", 0), (11, "vhost-9", 3), (12, "qemu-kvm", 3), (13, "CPU 1/KVM", 1)]), 2);
        assert_eq!(vms(&[(10, "CPU 0/KVM", 0), (500, "CPU 1/KVM", 1)]), 2, "QEMU starts them one after the other");
    }

    #[test]
    fn a_helper_of_qemu_before_its_vcpus_is_no_process() {
        let command = "$ ps aux | grep qemu\nqemu 100 99.0 17.8 1399 1177 ? SLl Jul17 36:46 /usr/libexec/qemu-kvm -name guest=web -S\n\n";
        let rows = [(100, "qemu-kvm", 0), (102, "qemu-kvm", 1), (108, "CPU 0/KVM", 2), (109, "CPU 1/KVM", 3)];
        let machine = of(&(command.to_owned() + &top(&rows)));
        let expected = [Role::Vcpu(0), Role::Vcpu(1), Role::Emulator].into_iter().zip([108, 109, 100]);
        let expected: Vec<_> = expected.map(|(role, tid)| ("web", role, Some(tid))).collect();
        assert_eq!(threads(&machine), expected);
    }

    #[test]
    fn a_named_domain_is_the_vm_that_fits_it() {
        let pins = "$ virsh vcpupin web\n VCPU   CPU Affinity\n-----\n 0      4\n 1      5\n\n";
        let rows = [(203, "CPU 0/KVM", 0), (204, "CPU 1/KVM", 1), (5_003, "CPU 0/KVM", 4), (5_004, "CPU 1/KVM", 5)];
        let machine = of(&(pins.to_owned() + &top(&rows)));
        let of_web: Vec<_> = threads(&machine).into_iter().filter(|thread| thread.0 == "web").collect();
        assert_eq!(of_web, [("web", Role::Vcpu(0), Some(5_003)), ("web", Role::Vcpu(1), Some(5_004))]);
        assert_eq!(machine.domains.len(), 2, "the others are of a VM without a name");
        let one = of(&(pins.to_owned() + &top(&rows[..2])));
        assert_eq!(one.domains.len(), 1, "one domain and one VM are the same");
    }
}
