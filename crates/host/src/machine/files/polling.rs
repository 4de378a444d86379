//! Where Open vSwitch's polling threads run, if no file of theirs tells: each is bound to the CPU that its name has.
//!
//! Name and binding: `pmd_thread_main` and `dp_netdev_configure_pmd` of lib/dpif-netdev.c, Open vSwitch 3.1
//! (`pmd-c%02d/id:%d`, core_id is the kernel's CPU).

use crate::machine::{Fact, Machine, Role, Thread};
use base::CpuSet;

/// Completes threads that are known, and adds those that only the switch lists.
pub(super) fn threads(machine: &mut Machine) {
    for thread in machine.threads.iter_mut().filter(|thread| thread.role == Role::Pmd && thread.affinity.is_none()) {
        thread.affinity =
            cpu_of(&thread.name).map(|cpu| Fact::new(CpuSet::one(cpu), format!("the name {}", thread.name)));
    }
    let known: Vec<u32> =
        machine.threads.iter().filter(|thread| thread.role == Role::Pmd).filter_map(only_cpu).collect();
    for pmd in machine.switch.pmds.iter().filter(|pmd| !known.contains(&pmd.cpu)) {
        let mut thread = Thread::new(Role::Pmd, format!("pmd-c{:02}", pmd.cpu));
        thread.affinity = Some(Fact::new(CpuSet::one(pmd.cpu), pmd.place.clone()));
        machine.threads.push(thread);
    }
}

fn only_cpu(thread: &Thread) -> Option<u32> {
    thread.affinity.as_ref().filter(|set| set.value.len() == 1)?.value.first()
}

/// `pmd-c05/id:9` is on CPU 5.
fn cpu_of(name: &str) -> Option<u32> {
    name.strip_prefix("pmd-c")?.split('/').next()?.parse().ok().filter(|cpu| *cpu < base::cpus::MOST_CPUS)
}
