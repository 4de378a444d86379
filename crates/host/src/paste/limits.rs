//! What limits a VM's CPU time: `virsh schedinfo`, `cpu.max` and `cpu.stat` of groups; and how long vCPUs waited: `virsh domstats`.
//!
//! Sources: virsh(1), schedinfo and domstats, libvirt 9.0; Documentation/admin-guide/cgroup-v2.rst, Linux 6.12 (cpu.max, cpu.stat).

use super::{Pasted, Text, balloon, named};
use crate::machine::{Fact, Gauge, GaugeKind, Quota, Throttled};
use std::collections::{BTreeMap, BTreeSet};

/// `Scheduler      : posix` and the values below it.
pub(super) fn schedinfo(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let pair = |line: usize| text.at(line).split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    if pair(at).is_none_or(|(name, _)| name != "Scheduler") {
        return 0;
    }
    let (mut end, mut period, mut quota) = (at + 1, None, None);
    while let Some((name, value)) = pair(end).filter(|(name, _)| name.contains('_') && !name.contains(' ')) {
        match name {
            "vcpu_period" => period = value.parse::<f64>().ok(),
            "vcpu_quota" => quota = value.parse::<f64>().ok().map(|quota| (quota, end)),
            _ => {}
        }
        end += 1;
    }
    let cpus = quota.zip(period).filter(|((quota, _), period)| *quota > 0.0 && *period > 0.0);
    if let Some(((quota, line), period)) = cpus {
        let name = pasted.domain.clone();
        pasted.gauge(GaugeKind::VcpuQuota, &name, quota / period, text.place(line));
        if !name.is_empty() {
            pasted.vcpu_quotas.insert(name, text.fact(quota / period, line));
        }
    }
    end - at
}

/// The part of a group's path below the root of its controller: `/sys/fs/cgroup/machine.slice/x/cpu.stat`, of version 1 `/sys/fs/cgroup/cpu/x/cpu.stat`.
fn group<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    let inside = file.strip_prefix("/sys/fs/cgroup")?.strip_suffix(name)?.trim_end_matches('/');
    Some(["/cpu,cpuacct", "/cpu"].iter().find_map(|controller| inside.strip_prefix(controller)).unwrap_or(inside))
}

/// The file of that name that a line announces, without what a shell needs before its backslashes.
fn file_of(line: &str, name: &str) -> Option<String> {
    let files = named::announced(line);
    let file = files.iter().find(|file| file.ends_with(name))?;
    Some(group(file, name)?.to_owned())
}

/// `cpu.stat`: in how many of its periods a group was stopped, since it was made.
pub(super) fn cpu_stat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(path) = file_of(text.at(at), "cpu.stat") else { return 0 };
    let (mut end, mut told, mut has_periods) = (at + 1, Throttled::default(), false);
    loop {
        let mut words = text.at(end).split_whitespace();
        let (Some(name), Some(Ok(value)), None) = (words.next(), words.next().map(str::parse::<u64>), words.next())
        else {
            break;
        };
        match name {
            "nr_periods" => (told.periods, has_periods) = (value, true),
            "nr_throttled" => told.throttled = value,
            "throttled_usec" => told.ns = value.saturating_mul(1_000),
            "throttled_time" => told.ns = value,
            _ => {}
        }
        end += 1;
    }
    if has_periods {
        let place = text.place(at + 1);
        pasted.throttled.insert(path, Fact::new(told, place));
    }
    if end == at + 1 { 0 } else { end - at }
}

/// `cpu.max`: `25000 100000`, or `max 100000`.
pub(super) fn cpu_max(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(path) = file_of(text.at(at), "cpu.max") else { return 0 };
    let mut words = text.at(at + 1).split_whitespace();
    let (Some(quota), Some(Ok(period)), None) = (words.next(), words.next().map(str::parse::<f64>), words.next())
    else {
        return 0;
    };
    if let Ok(quota) = quota.parse::<f64>() {
        pasted.group_quotas.insert(path, text.fact(quota / period.max(1.0), at + 1));
    }
    2
}

/// `Domain: 'web'` and `vcpu.0.time=..` below it: how long each vCPU waited for a CPU, by what it ran and waited since it began.
pub(super) fn domstats(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(name) = text.at(at).strip_prefix("Domain:").map(|rest| rest.trim().trim_matches('\'')) else { return 0 };
    let (mut end, mut current) = (at + 1, None);
    // Ran, waited, and where it stands.
    let mut vcpus: BTreeMap<u32, (Option<f64>, Option<f64>, usize)> = BTreeMap::new();
    while let Some((key, value)) = text.at(end).split_once('=') {
        let is_key = key.contains('.') && !key.contains(char::is_whitespace);
        if !is_key {
            break;
        }
        let parts: Vec<&str> = key.split('.').collect();
        if let ["balloon", what] = parts.as_slice() {
            balloon::value(what, name, value, text.place(end), pasted);
        } else if key == "vcpu.current" {
            current = value.parse::<u32>().ok().filter(|count| *count <= base::cpus::MOST_CPUS);
        } else if let ["vcpu", vcpu, what] = parts.as_slice()
            && let (Ok(vcpu), Ok(ns)) = (vcpu.parse::<u32>(), value.parse::<f64>())
            && vcpu < base::cpus::MOST_CPUS
        {
            let told = vcpus.entry(vcpu).or_insert((None, None, end));
            match *what {
                "time" => told.0 = Some(ns),
                // Older ones have `wait`, which is the sum that schedstat calls so as well.
                "delay" => told.1 = Some(ns),
                "wait" if told.1.is_none() => told.1 = Some(ns),
                _ => {}
            }
        }
        end += 1;
    }
    if end == at + 1 {
        return 0;
    }
    pasted.domain = name.to_owned();
    let count = vcpus.keys().next_back().map(|last| last + 1);
    if let Some(domain) = pasted.named() {
        domain.vcpus = domain.vcpus.max(count).max(current);
    }
    for (vcpu, told) in vcpus {
        if let (Some(ran), Some(waited), line) = told
            && ran + waited > 0.0
        {
            let subject = format!("vCPU {vcpu} of {name}");
            pasted.gauge(GaugeKind::Waited, &subject, waited / (ran + waited), text.place(line));
        }
    }
    end - at
}

/// Quotas by their groups: what a group was told, else what libvirt was asked for, for the group of that domain.
pub(super) fn finish(pasted: &mut Pasted) {
    let groups = std::mem::take(&mut pasted.group_quotas);
    let throttled = std::mem::take(&mut pasted.throttled);
    let paths: BTreeSet<&String> = groups.keys().chain(throttled.keys()).collect();
    for path in paths {
        let asked = || pasted.vcpu_quotas.iter().find(|(name, _)| is_of(path, name)).map(|(_, told)| told);
        let Some(cpus) = groups.get(path).or_else(asked).cloned() else { continue };
        let since_start = throttled.get(path).map(|told| told.value);
        pasted.machine.quotas.insert(path.clone(), Quota { cpus, since_start, measured: None });
    }
    // Groups of nobody that is known here, as one sees them from within a pod.
    let is_known = |path: &str| pasted.machine.domains.iter().any(|domain| is_of(path, &domain.name));
    let strange = pasted.machine.quotas.iter().filter(|(path, _)| !is_known(path));
    let strange: Vec<Gauge> = strange
        .filter_map(|(path, quota)| {
            let told = quota.since_start.filter(|told| told.periods > 0)?;
            let subject = format!("{} with {:.2} CPUs", if path.is_empty() { "/" } else { path }, quota.cpus.value);
            let value = told.throttled as f64 / told.periods as f64;
            Some(Gauge { kind: GaugeKind::Throttled, subject, value, place: quota.cpus.place.clone() })
        })
        .collect();
    pasted.machine.gauges.extend(strange);
    let of_vcpu = |path: &str| path.rsplit_once("/vcpu")?.1.parse::<u32>().ok();
    for domain in &mut pasted.machine.domains {
        let seen =
            pasted.machine.quotas.keys().filter(|path| is_of(path, &domain.name)).filter_map(|path| of_vcpu(path));
        domain.vcpus = domain.vcpus.max(seen.max().filter(|last| *last < base::cpus::MOST_CPUS).map(|last| last + 1));
    }
}

/// Whether a group is a domain's: `machine-qemu\\x2d4\\x2dweb.scope`, in which systemd writes a dash within a name as `\\x2d`.
fn is_of(path: &str, domain: &str) -> bool {
    !domain.is_empty() && path.replace("\\x2d", "-").contains(&format!("-{domain}."))
}

/// The group that limits a domain's vCPU: its own, else the VM's.
pub(super) fn group_of(quotas: &BTreeMap<String, Quota>, domain: &str, vcpu: u32) -> Option<String> {
    let own = |path: &&String| is_of(path, domain);
    let of_it = quotas.keys().filter(own).find(|path| path.ends_with(&format!("/vcpu{vcpu}")));
    of_it.or_else(|| quotas.keys().filter(own).find(|path| !path.contains("/vcpu"))).cloned()
}

#[cfg(test)]
mod tests {
    use crate::machine::GaugeKind;
    use crate::paste::read;

    #[test]
    fn domstats_tell_how_long_vcpus_waited() {
        let text = "$ virsh domstats --vcpu web\nDomain: 'web'\n  vcpu.current=2\n  vcpu.0.time=900\n  vcpu.0.delay=100\n  vcpu.1.time=1000\n  vcpu.1.wait=0\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let told: Vec<_> =
            machine.gauges.iter().map(|gauge| (gauge.kind, gauge.subject.as_str(), gauge.value)).collect();
        assert_eq!(told, [(GaugeKind::Waited, "vCPU 0 of web", 0.1), (GaugeKind::Waited, "vCPU 1 of web", 0.0)]);
        assert_eq!(machine.domains[0].vcpu_count(), 2);
    }

    #[test]
    fn a_quota_is_of_the_group_whose_name_has_the_domain() {
        let text = "# virsh schedinfo batch1\nScheduler      : posix\ncpu_shares     : 100\nvcpu_period    : 100000\nvcpu_quota     : 25000\n\
                    # cat /sys/fs/cgroup/machine.slice/machine-qemu\\x2d4\\x2dbatch1.scope/libvirt/vcpu0/cpu.stat\nusage_usec 91823123\nnr_periods 41234\nnr_throttled 40912\nthrottled_usec 3012345678\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let (path, quota) = machine.quotas.first_key_value().expect("a quota");
        assert!(path.ends_with("batch1.scope/libvirt/vcpu0"), "{path}");
        assert_eq!(
            (quota.cpus.value, quota.since_start.map(|told| (told.periods, told.throttled))),
            (0.25, Some((41_234, 40_912)))
        );
    }
}
