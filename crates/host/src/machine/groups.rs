//! Groups of tasks: which CPUs, how much time, and whose word counts.
//!
//! Sources: Documentation/admin-guide/cgroup-v2.rst, CPU and cpuset, Linux 6.12; version 1: Documentation/scheduler/sched-design-CFS.rst
//! and Documentation/scheduler/sched-bwc.rst.

use super::{Fact, Machine, Quota, Thread};
use base::CpuSet;
use base::shell::quoted;

/// Of two threads the groups in which they differ, the first one's first, with their weights.
pub type Parting<'a> = [(&'a str, &'a Fact<u64>); 2];

impl Machine {
    /// The CPUs that a thread's cgroup leaves it, with the groups above; `None` where no group was told.
    pub fn cgroup_cpus(&self, thread: &Thread) -> Option<&Fact<CpuSet>> {
        let mut path = thread.cgroup.as_deref()?;
        loop {
            if let Some(cpus) = self.cgroups.get(path).and_then(|group| group.effective.as_ref()) {
                return Some(cpus);
            }
            path = &path[..path.rfind('/').filter(|at| *at > 0)?];
        }
    }

    /// The group that limits the CPUs of a thread whatever its pin is, and what it leaves: of the groups above those that libvirt makes
    /// for each thread, which have the pin itself.
    pub fn limit_of<'a>(&'a self, thread: &'a Thread) -> Option<(&'a str, &'a Fact<CpuSet>)> {
        let is_own = |name: &str| {
            name == "emulator"
                || ["vcpu", "iothread"].iter().any(|kind| {
                    name.strip_prefix(kind)
                        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
                })
        };
        let mut path = thread.cgroup.as_deref()?;
        loop {
            let (above, name) = path.rsplit_once('/')?;
            let told = self.cgroups.get(path).and_then(|group| group.effective.as_ref());
            if let Some(cpus) = told.filter(|_| !is_own(name)) {
                return Some((path, cpus));
            }
            path = above;
        }
    }

    /// The quotas that a thread runs under: its group's and those of the groups above.
    pub fn quotas_of<'a>(&'a self, thread: &'a Thread) -> impl Iterator<Item = (&'a String, &'a Quota)> {
        let group = thread.time_group.as_deref();
        self.quotas.iter().filter(move |(path, _)| group.is_some_and(|group| is_within_group(group, path)))
    }

    /// The groups between which the scheduler divides a CPU that both threads want, with their weights; none where nobody told one.
    pub fn parting<'a>(&'a self, one: &'a Thread, other: &'a Thread) -> Option<Parting<'a>> {
        let [one, other] = parted(one, other)?;
        Some([(one, self.weights.get(one)?), (other, self.weights.get(other)?)])
    }
}

/// The groups in which two threads differ, next to each other; none where one is in the other one's group:
/// ```text
/// /machine.slice/web.scope/vcpu0   /machine.slice/db.scope/vcpu1   ->   /machine.slice/web.scope   /machine.slice/db.scope
/// ```
pub fn parted<'a>(one: &'a Thread, other: &'a Thread) -> Option<[&'a str; 2]> {
    let (one, other) = (one.time_group.as_deref()?, other.time_group.as_deref()?);
    let same = one.split('/').zip(other.split('/')).take_while(|(a, b)| a == b).count();
    let group = |path: &'a str| {
        path.split('/').nth(same)?;
        let end = path.match_indices('/').map(|(at, _)| at).nth(same);
        Some(&path[..end.unwrap_or(path.len())])
    };
    Some([group(one)?, group(other)?])
}

/// The unit of systemd that a group is of: the last part of its path that is one.
pub fn unit_of(path: &str) -> Option<&str> {
    let is_unit = |name: &&str| [".slice", ".scope", ".service"].iter().any(|kind| name.ends_with(kind));
    path.rsplit('/').find(is_unit)
}

/// The unit that a group itself is; none for one that a program made by its own, of which systemd knows nothing.
pub fn own_unit(path: &str) -> Option<&str> {
    unit_of(path).filter(|unit| path.ends_with(*unit))
}

/// The period of a quota of CPU time that is typed where none is told, in microseconds (cpu.max of Documentation/admin-guide/cgroup-v2.rst,
/// Linux 6.12).
pub const QUOTA_PERIOD_US: f64 = 1e5;

/// The line that gives a group a quota of so many CPUs by its file `place`, `sys/fs/cgroup/../cpu.max` or `cpu.cfs_quota_us`; `None` takes it
/// away. A period is typed with it: that which the group has may be another one.
pub fn quota_line(place: &str, cpus: Option<f64>) -> String {
    let file = quoted(&format!("/{place}")).into_owned();
    let us = cpus.map(|cpus| cpus * QUOTA_PERIOD_US);
    match (place.strip_suffix("cpu.cfs_quota_us"), us) {
        (None, None) => format!("echo max > {file}"),
        (None, Some(us)) => format!("echo {us:.0} {QUOTA_PERIOD_US:.0} > {file}"),
        (Some(_), None) => format!("echo -1 > {file}"),
        (Some(group), Some(us)) => {
            let period = quoted(&format!("/{group}cpu.cfs_period_us")).into_owned();
            format!("echo {QUOTA_PERIOD_US:.0} > {period} && echo {us:.0} > {file}")
        }
    }
}

/// Whether a group is another one or lies below it.
pub fn is_within_group(path: &str, above: &str) -> bool {
    path.strip_prefix(above.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Role;

    #[test]
    fn threads_part_where_their_paths_do() {
        let mut machine = Machine::default();
        for (path, weight) in [("/machine.slice", 100), ("/machine.slice/web.scope", 10), ("/user.slice", 500)] {
            machine.weights.insert(path.to_owned(), Fact::new(weight, path));
        }
        let of = |path: &str| Thread { time_group: Some(path.to_owned()), ..Thread::new(Role::Other, "CPU 0/KVM") };
        let parts = |one: &str, other: &str| {
            let (one, other) = (of(one), of(other));
            machine.parting(&one, &other).map(|of| of.map(|(path, weight)| (path.to_owned(), weight.value)))
        };
        let web = "/machine.slice/web.scope/libvirt/vcpu0";
        let slices = [("/machine.slice".to_owned(), 100), ("/user.slice".to_owned(), 500)];
        assert_eq!(parts(web, "/user.slice/user-0.slice"), Some(slices));
        assert_eq!(parts(web, "/machine.slice/db.scope"), None, "of db.scope nobody told a weight");
        assert_eq!(parts(web, "/machine.slice"), None, "a group has no weight beside its own parts");
        assert_eq!(parts(web, web), None);
        assert_eq!(unit_of(web), Some("web.scope"));
        assert_eq!(
            (own_unit("/machine.slice/web.scope"), own_unit(web), own_unit("/firecracker/a")),
            (Some("web.scope"), None, None)
        );
    }
}
