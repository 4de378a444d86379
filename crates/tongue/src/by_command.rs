//! VMs that somebody starts by a command: options of QEMU, properties of a unit, files of a group that a program made by its own.

use super::Speaker;
use base::shell::quoted;
use host::machine::{Container, QUOTA_PERIOD_US, own_unit, quota_line, unit_of};

/// CPUs of a quota in a period of that length, as `vcpu_quota=200000` has it; none: -1, no limit.
pub(super) fn quota_cpus(value: &str) -> Option<f64> {
    Some(value.trim().parse::<f64>().ok()? / QUOTA_PERIOD_US).filter(|cpus| *cpus > 0.0)
}

/// What monitors other than QEMU have for a word of libvirt (docs/cpu.md and docs/memory.md, Cloud Hypervisor 40; src/firecracker/swagger,
/// machine-config, Firecracker 1.7).
const OPTIONS: [(&str, &str, &str); 5] = [
    ("setvcpus", "cloud-hypervisor", "--cpus boot=N"),
    ("setvcpus", "firecracker", "vcpu_count of its machine-config"),
    ("hugepages", "cloud-hypervisor", "hugepages=on of --memory"),
    ("hugepages", "firecracker", "huge_pages of its machine-config"),
    ("numatune", "cloud-hypervisor", "--memory-zone with host_numa_node=N"),
];

impl Speaker<'_> {
    /// A line of libvirt where no manager has one: `qemu` is what QEMU has for it, `comment` what the line says of itself.
    pub(super) fn by_command(&self, line: &str, qemu: &str, comment: &str) -> String {
        let own = quoted(&self.domain.name);
        let threads = || self.machine.threads_of(&self.domain.name);
        if let Some(said) = self.of_group(line) {
            return said;
        }
        let in_container = || threads().find_map(|thread| Container::of_group(thread.time_group.as_deref()?));
        if let Some(container) = in_container().filter(|_| line.contains("schedinfo")) {
            return container.shown();
        }
        let pid = threads().find_map(|thread| thread.pid).map_or("PID".to_owned(), |pid| pid.to_string());
        let said = qemu.replace("PID", &pid);
        let unit = threads().find_map(|thread| unit_of(thread.time_group.as_deref()?));
        let said = unit.map_or_else(|| said.clone(), |unit| said.replace("UNIT", &quoted(unit)));
        let is_option = said.starts_with('-');
        if let Some(program) = self.domain.monitor.filter(|_| is_option || said.starts_with('{')) {
            let what = if comment.contains('<') { super::elements(comment) } else { comment.to_owned() };
            let what = if what.is_empty() { "as it was".to_owned() } else { what };
            let option = OPTIONS.iter().find(|(word, monitor, _)| line.contains(word) && *monitor == program);
            let option = option.map_or("options of its own for this", |(.., option)| option);
            return format!(
                "tr '\\0' ' ' </proc/{pid}/cmdline   # {program} takes {option}, where {own} is started: {what}"
            );
        }
        match said.split_once("   # ") {
            Some((options, comment)) if is_option => {
                format!("qemu-system-x86_64 {options} ...   # where {own} is started: {comment}")
            }
            None if is_option => format!("qemu-system-x86_64 {said} ...   # where {own} is started"),
            _ => said,
        }
    }

    /// A quota or a weight where it is set: at the lowest of its groups that has one, by its unit, or by its file where it is none. Version 1
    /// has other weights than systemd, so there the file has it as well.
    fn of_group(&self, line: &str) -> Option<String> {
        let (name, value) = line.split("   #").next()?.rsplit_once('=')?;
        let (is_quota, is_weight) = (name.ends_with("_quota"), name.ends_with("cpu_shares"));
        let group = self.machine.threads_of(&self.domain.name).find_map(|thread| thread.time_group.as_deref())?;
        let groups = group.match_indices('/').map(|(at, _)| &group[..at]).chain([group]).rev();
        let place = |path: &str| match (is_quota, is_weight) {
            (true, _) => Some(self.machine.quotas.get(path)?.cpus.place.clone()),
            (_, true) => Some(self.machine.weights.get(path)?.place.clone()),
            _ => None,
        };
        let (path, place) = groups.collect::<Vec<_>>().into_iter().find_map(|path| Some((path, place(path)?)))?;
        let cpus = quota_cpus(value);
        let is_first = place.ends_with("cpu.shares") || place.ends_with("cpu.cfs_quota_us");
        if let Some(container) = Container::of_group(path) {
            return Some(match is_quota {
                true => self.container_quota(&container, cpus),
                false => container.weighing(value.trim().parse().ok()?, is_first),
            });
        }
        if let Some(unit) = own_unit(path).filter(|_| is_quota || !is_first).map(quoted) {
            return Some(match is_quota {
                true => {
                    let share = cpus.map_or(String::new(), |cpus| format!("{:.0}%", cpus * 100.0));
                    format!("systemctl set-property --runtime {unit} CPUQuota={share}")
                }
                false => format!("systemctl set-property --runtime {unit} CPUWeight={value}"),
            });
        }
        if !place.starts_with("sys/fs/cgroup/") {
            return None;
        }
        Some(match is_quota {
            true => quota_line(&place, cpus),
            false => format!("echo {value} > {}", quoted(&format!("/{place}"))),
        })
    }

    /// So many CPUs for a container. Docker has no word for no limit, where one was set as CPUs: all of the host's are none.
    fn container_quota(&self, container: &Container, cpus: Option<f64>) -> String {
        let all = || self.machine.topology.online.len() as f64;
        let of_pod = format!("limits=cpu={}", cpus.unwrap_or(0.0));
        let said = container.set(&format!("--cpus {}", cpus.unwrap_or_else(all)), &of_pod);
        match (container, cpus) {
            (Container::Pod { .. }, None) => {
                format!("{said}   # deployment/NAME or the like that made the pod; 0: no limit")
            }
            (Container::Pod { .. }, Some(_)) => format!("{said}   # as it was"),
            (Container::Engine { .. }, None) => format!("{said}   # all CPUs of the host: no limit"),
            (Container::Engine { .. }, Some(_)) => said,
        }
    }
}
