//! A CPU quota of the guest, in a control group made for it, of either version.
//!
//! ```text
//! version 1   the group of controller `cpu` that the guest is in / kvmscope-ID     cpu.cfs_quota_us, cpu.cfs_period_us
//! version 2   the nearest group above it that hands `cpu` on    / kvmscope-ID     cpu.max
//! ```
//! In version 2 a group that has processes hands no controller on, so the new group lies beside the guest's. The group stands
//! in the journal before it is made; it can be removed once the guest has ended. Sources: sched-bwc.rst and cgroup-v2.rst in
//! Documentation of Linux 6.12; proc_pid_mountinfo(5), cgroups(7).

use lab::Error;
use lab::journal::{Entry, Step};
use std::path::{Path, PathBuf};

/// What the guest may have of a CPU in each period: the vCPU is kept waiting for four fifths of it.
const QUOTA_US: u32 = 10_000;
const PERIOD_US: u32 = 50_000;

/// A group with the guest in it.
#[derive(Debug)]
pub(super) struct Quota {
    group: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Quota {
    /// Makes a group without a quota and moves process `pid` into it; `entry` notes it.
    ///
    /// # Errors
    /// If no hierarchy hands controller `cpu` on, or if the kernel refuses.
    pub(super) fn of(proc: &Path, pid: u32, entry: &mut Entry) -> Result<Self, Error> {
        let process = proc.join(pid.to_string());
        let text = |name: &str| {
            let path = process.join(name);
            std::fs::read_to_string(&path).map_err(|error| Error::io(path, error))
        };
        let (above, version) = place(&text("cgroup")?, &text("mountinfo")?)?;
        let group = above.join(format!("kvmscope-{}", entry.id));
        entry.intend(Step::ControlGroup { path: group.clone() })?;
        std::fs::create_dir(&group).map_err(|error| Error::io(&group, error))?;
        let quota = Self { group, version };
        quota.write("cgroup.procs", &pid.to_string())?;
        Ok(quota)
    }

    /// The quota holds from now on.
    pub(super) fn limit(&self) -> Result<(), Error> {
        match self.version {
            Version::One => {
                self.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                self.write("cpu.cfs_quota_us", &QUOTA_US.to_string())
            }
            Version::Two => self.write("cpu.max", &format!("{QUOTA_US} {PERIOD_US}")),
        }
    }

    /// It holds no longer.
    pub(super) fn lift(&self) -> Result<(), Error> {
        match self.version {
            Version::One => self.write("cpu.cfs_quota_us", "-1"),
            Version::Two => self.write("cpu.max", "max"),
        }
    }

    fn write(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.group.join(name);
        std::fs::write(&path, value).map_err(|error| Error::io(path, error))
    }
}

/// Where a group with a quota can be made, for a process with these `groups` and `mounts`.
fn place(groups: &str, mounts: &str) -> Result<(PathBuf, Version), Error> {
    let one = directory(groups, mounts, "cgroup", |controllers, options| {
        [controllers, options].iter().all(|list| list.split(',').any(|one| one == "cpu"))
    });
    if let Some((own, _)) = one {
        return Ok((own, Version::One));
    }
    let absent =
        || Error::Absent("no control group of this host hands controller `cpu` on: no quota can be set".into());
    let (own, top) =
        directory(groups, mounts, "cgroup2", |controllers, _| controllers.is_empty()).ok_or_else(absent)?;
    let hands_on = |group: &&Path| {
        let controllers = std::fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        controllers.split_whitespace().any(|one| one == "cpu")
    };
    let above = own.ancestors().take_while(|group| group.starts_with(&top)).find(hands_on).ok_or_else(absent)?;
    Ok((above.to_owned(), Version::Two))
}

/// The directory of a process in the hierarchy of that `kind` whose controllers and mount options are `wanted`, and where
/// the hierarchy is mounted.
fn directory(
    groups: &str,
    mounts: &str,
    kind: &str,
    wanted: impl Fn(&str, &str) -> bool,
) -> Option<(PathBuf, PathBuf)> {
    let mounted = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        (after.next()? == kind).then(|| (root, point, after.nth(1).unwrap_or_default()))
    });
    let of_process = |options: &str| {
        let mut lines = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        lines.find(|(controllers, _)| wanted(controllers, options)).map(|(_, path)| path)
    };
    let mut found = mounted.filter_map(|(root, point, options)| {
        let path = Path::new(of_process(options)?).strip_prefix(root).ok()?;
        Some((Path::new(point).join(path), PathBuf::from(point)))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_version_1_it_lies_in_the_group_of_the_guest() {
        let mounts = "25 21 0:22 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                      26 21 0:23 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                      27 21 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let groups = "3:cpuset:/\n2:cpu,cpuacct:/user.slice\n0::/elsewhere\n";
        assert_eq!(place(groups, mounts).unwrap(), ("/sys/fs/cgroup/cpu/user.slice".into(), Version::One));
    }

    #[test]
    fn in_version_2_it_lies_in_the_nearest_group_that_hands_the_controller_on() {
        let tree = tempfile::tempdir().unwrap();
        let mount = |root: &str| format!("27 21 0:24 {root} {} rw - cgroup2 cgroup2 rw\n", tree.path().display());
        let own = tree.path().join("user.slice/session");
        std::fs::create_dir_all(&own).unwrap();
        let groups = "1:name=systemd:/\n0::/user.slice/session\n";
        let error = place(groups, &mount("/")).unwrap_err().to_string();
        assert!(error.contains("no quota can be set"), "{error}");
        std::fs::write(own.join("cgroup.subtree_control"), "memory pids\n").unwrap();
        std::fs::write(tree.path().join("user.slice/cgroup.subtree_control"), "cpuset cpu memory\n").unwrap();
        assert_eq!(place(groups, &mount("/")).unwrap(), (tree.path().join("user.slice"), Version::Two));
        assert!(place(groups, &mount("/other")).is_err(), "what the mount does not show is out of reach");
        assert!(place("", "").is_err());
    }
}
