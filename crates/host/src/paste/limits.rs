//! What limits a VM's CPU time: `virsh schedinfo`, `cpu.max` and `cpu.stat` of groups; and how long vCPUs waited: `virsh domstats`.
//!
//! Sources: virsh(1), schedinfo and domstats, libvirt 9.0; Documentation/admin-guide/cgroup-v2.rst, Linux 6.12 (cpu.max, cpu.stat).

use super::clock::When;
use super::{Pasted, Text, balloon, disks, named, prompt, waits};
use crate::budget;
use crate::machine::{Fact, Gauge, GaugeKind, Quota, Throttled};
use base::number::{duration, many, percent, thousands};
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
        // It limits each vCPU by itself (domain XML, `cputune`).
        let whose = if name.is_empty() { "each vCPU".to_owned() } else { format!("each vCPU of {name}") };
        pasted.gauge(GaugeKind::VcpuQuota, &whose, quota / period, text.place(line));
        if !name.is_empty() {
            pasted.vcpu_quotas.insert(name, text.fact(quota / period, line));
            if let Some(domain) = pasted.named() {
                domain.vcpu_quota = Some(text.fact(quota / period, line));
            }
        }
    }
    end - at
}

/// `virsh dominfo`, or what grep took out of it: the vCPUs and the memory of a guest, which look as `lscpu` has those of a host.
pub(super) fn dominfo(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    const OWN: &[&str] = &["OS Type", "CPU time", "Max memory", "Used memory", "Persistent", "Managed save"];
    const OTHERS: &[&str] =
        &["Id", "Name", "UUID", "State", "CPU(s)", "Autostart", "Security model", "Security DOI", "Security label"];
    let pair = |line: usize| text.at(line).split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    let known = |line: usize| pair(line).filter(|(name, _)| OWN.contains(name) || OTHERS.contains(name));
    let end = (at..text.lines.len().min(at + 24)).find(|line| known(*line).is_none());
    let end = end.unwrap_or(text.lines.len().min(at + 24));
    let is_own = |line: usize| pair(line).is_some_and(|(name, _)| OWN.contains(&name));
    let asked = at > 0 && text.at(at - 1).contains("virsh dominfo");
    if end == at || !(asked || (at..end).any(is_own)) {
        return 0;
    }
    for (line, (name, value)) in (at..end).filter_map(|line| Some((line, pair(line)?))) {
        match name {
            "Name" => pasted.domain = value.to_owned(),
            "CPU(s)" => {
                let count = value.parse::<u32>().ok().filter(|count| *count <= base::cpus::MOST_CPUS);
                if let Some(domain) = pasted.named() {
                    domain.vcpus = domain.vcpus.max(count);
                }
            }
            _ => {
                let subject = pasted.domain.clone();
                pasted.quote(name, &subject, value, text.place(line));
            }
        }
    }
    end - at
}

/// The part of a group's path below the root of its controller: `/sys/fs/cgroup/machine.slice/x/cpu.stat`, of version 1 `/sys/fs/cgroup/cpu/x/cpu.stat`.
fn group<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    let inside = file.strip_prefix("/sys/fs/cgroup")?.strip_suffix(name)?.trim_end_matches('/');
    Some(["/cpu,cpuacct", "/cpu"].iter().find_map(|controller| inside.strip_prefix(controller)).unwrap_or(inside))
}

/// Groups whose files the last command asked for, and the directory that a shell went to.
#[derive(Default)]
pub(super) struct AskedGroups {
    directory: Option<String>,
    /// By the name of the file: the groups in turn, and how many were printed since.
    files: BTreeMap<&'static str, (Vec<String>, usize)>,
}

/// The files of a group that are read here.
const FILES: [&str; 2] = ["cpu.stat", "cpu.max"];

/// A group that no text names.
const UNTOLD: &str = "a group that is not named";

impl AskedGroups {
    /// Takes what a command asks for: `cat /sys/fs/cgroup/x/cpu.stat; sleep 9; cat /sys/fs/cgroup/x/cpu.stat`, or `cpu.stat` of the directory.
    pub(super) fn note(&mut self, line: &str) {
        self.files.clear();
        let words = || line.split(|letter: char| letter.is_whitespace() || ";|'\"".contains(letter));
        for name in FILES {
            let is_it =
                |word: &&str| word.strip_suffix(name).is_some_and(|path| path.is_empty() || path.ends_with('/'));
            let groups: Vec<String> = words().filter(is_it).filter_map(|file| self.group_of(file, name)).collect();
            if !groups.is_empty() {
                self.files.insert(name, (groups, 0));
            }
        }
    }

    fn group_of(&self, file: &str, name: &str) -> Option<String> {
        let directory = || Some(self.directory.clone().unwrap_or_else(|| UNTOLD.to_owned()));
        group(file, name).map(str::to_owned).or_else(|| directory().filter(|_| file == name))
    }

    /// The group of the next file of that name.
    fn next(&mut self, name: &str) -> Option<String> {
        let (groups, printed) = self.files.get_mut(name)?;
        *printed += 1;
        groups.get((*printed - 1) % groups.len()).cloned()
    }
}

/// `cd /sys/fs/cgroup/..` at a prompt: which group the files are of that are named without one, also by commands behind it.
pub(super) fn directory(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let words: Vec<&str> = text.at(at).split_whitespace().collect();
    let typed = words.windows(3).find(|words| words[1] == "cd" && words[0].ends_with(['#', '$', '%', '>']));
    let Some([_, _, path]) = typed else { return 0 };
    match group(path.trim_end_matches([';', '&']).trim_matches(['\'', '"']), "") {
        Some(path) => pasted.groups.directory = Some(path.to_owned()),
        None => return 0,
    }
    pasted.groups.note(text.at(at));
    1
}

/// The group whose file begins at a line: announced on that line, or asked for above.
fn asked(text: &Text<'_>, at: usize, name: &'static str, pasted: &mut Pasted) -> Option<(Option<String>, usize)> {
    let announced = named::announced(text.at(at));
    if let Some(file) = announced.iter().find(|file| file.ends_with(name)) {
        pasted.groups.note(text.at(at));
        pasted.groups.next(name);
        return Some((Some(group(file, name)?.to_owned()), at + 1));
    }
    Some((pasted.groups.next(name), at))
}

/// `cpu.stat`: in how many of its periods a group was stopped, since it was made; of a second copy what came between.
pub(super) fn cpu_stat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let value = |line: usize| {
        let mut words = text.at(line).split_whitespace();
        match (words.next(), words.next().map(str::parse::<u64>), words.next()) {
            (Some(name), Some(Ok(value)), None) => Some((name, value)),
            _ => None,
        }
    };
    let is_announced = named::announced(text.at(at)).iter().any(|file| file.ends_with("cpu.stat"));
    // Every group's begins with one of these, of version 2 and 1.
    let begins = || value(at).is_some_and(|(name, _)| matches!(name, "usage_usec" | "nr_periods"));
    let is_name = || value(at + 1).is_some_and(|(name, _)| name.starts_with(|first: char| first.is_ascii_lowercase()));
    if !(if is_announced { is_name() } else { begins() }) {
        return 0;
    }
    let Some((path, first)) = asked(text, at, "cpu.stat", pasted) else { return 0 };
    let (mut end, mut told, mut has_periods) = (first, Throttled::default(), false);
    // The next copy begins with the same name.
    while let Some((name, value)) = value(end).filter(|_| end == first || !again(text, first, end)) {
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
        let path = path.unwrap_or_else(|| UNTOLD.to_owned());
        let mut when = When::of(text, first, end);
        let before = pasted.throttled.remove(&path);
        let more = before.and_then(|before| {
            let (seconds, old) = (when.since(text, &before.when), before.told.value);
            let ns = told.ns.checked_sub(old.ns)?;
            let (periods, throttled) =
                (told.periods.checked_sub(old.periods)?, told.throttled.checked_sub(old.throttled)?);
            let cpus = seconds.map_or(0.0, |seconds| ns as f64 / 1e9 / seconds);
            (periods > 0).then(|| text.fact(Throttled { periods, throttled, ns, cpus }, first))
        });
        pasted.throttled.insert(path, Counted { told: text.fact(told, first), more, when });
    }
    end - at
}

/// Whether a line has the name that a block begins with.
fn again(text: &Text<'_>, first: usize, line: usize) -> bool {
    let name = |line: usize| text.at(line).split_whitespace().next();
    name(line) == name(first)
}

/// What `cpu.stat` counted, and what since the copy before.
pub(super) struct Counted {
    told: Fact<Throttled>,
    more: Option<Fact<Throttled>>,
    when: When,
}

/// `cpu.max`: `25000 100000`, or `max 100000`, below the command that asks for it.
pub(super) fn cpu_max(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let is_announced = named::announced(text.at(at)).iter().any(|file| file.ends_with("cpu.max"));
    if !is_announced && !pasted.groups.files.contains_key("cpu.max") {
        return 0;
    }
    let line = at + usize::from(is_announced);
    let mut words = text.at(line).split_whitespace();
    let (Some(quota), Some(Ok(period)), None) = (words.next(), words.next().map(str::parse::<f64>), words.next())
    else {
        return 0;
    };
    let number = quota.parse::<f64>();
    if number.is_err() && quota != "max" {
        return 0;
    }
    let Some((Some(path), line)) = asked(text, at, "cpu.max", pasted) else { return 0 };
    if let Ok(quota) = number {
        pasted.group_quotas.insert(path, text.fact(quota / period.max(1.0), line));
    }
    line + 1 - at
}

/// `Domain: 'web'` and `vcpu.0.time=..` below it: how long each vCPU waited for a CPU, by what it ran and waited since it began.
pub(super) fn domstats(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let headed = text.at(at).strip_prefix("Domain:").map(|rest| rest.trim().trim_matches('\''));
    // `grep` leaves the name out: the command says it, or whoever was told of last.
    let bare = || {
        text.at(at)
            .starts_with("vcpu.")
            .then(|| prompt::first_behind(text, at, "domstats").unwrap_or(pasted.domain.as_str()))
    };
    let Some(name) = headed.or_else(bare).filter(|name| headed.is_some() || !name.is_empty()).map(str::to_owned) else {
        return 0;
    };
    let name = name.as_str();
    let first = at + usize::from(headed.is_some());
    let (mut end, mut current) = (first, None);
    // Ran, waited, and where it stands.
    let mut vcpus: BTreeMap<u32, (Option<f64>, Option<f64>, usize)> = BTreeMap::new();
    let mut disks: BTreeMap<u32, disks::Requests> = BTreeMap::new();
    // All exits and where they stand, and those of a kind.
    let mut exits: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    let mut of_kinds: BTreeMap<u32, Vec<(String, f64)>> = BTreeMap::new();
    let mut card_name = String::new();
    while let Some((key, value)) = text.at(end).split_once('=') {
        let is_key = key.contains('.') && !key.contains(char::is_whitespace);
        if !is_key {
            break;
        }
        let parts: Vec<&str> = key.split('.').collect();
        if let ["balloon", what] = parts.as_slice() {
            balloon::value(what, name, value, text.place(end), pasted);
        } else if let ["block", disk, what @ ..] = parts.as_slice()
            && let Ok(disk) = disk.parse::<u32>()
            && disks.len() < budget::SCREEN_ROWS
        {
            disks.entry(disk).or_insert_with(|| disks::Requests::new(text.place(end))).take(&what.join("."), value);
        } else if let ["net", card, what @ ..] = parts.as_slice() {
            let what = what.join(".");
            match what.as_str() {
                "name" => card_name = value.to_owned(),
                // Seen from the host: what it could not hand over to the guest, and what it did not take from it.
                "rx.drop" | "tx.drop" | "rx.errs" | "tx.errs" if value != "0" => {
                    let card = if card_name.is_empty() { format!("card {card}") } else { card_name.clone() };
                    pasted.quote(&what, &format!("{card} of {name}"), value, text.place(end));
                }
                _ => {}
            }
        } else if let ["vcpu", vcpu, counter, "sum"] = parts.as_slice()
            && let (Ok(vcpu), Ok(count)) = (vcpu.parse::<u32>(), value.parse::<f64>())
            && vcpu < base::cpus::MOST_CPUS
        {
            match *counter {
                "exits" => drop(exits.insert(vcpu, (count, end))),
                "io_exits" | "mmio_exits" | "halt_exits" | "irq_exits" if count > 0.0 => {
                    let kind = counter.trim_end_matches("_exits").to_owned();
                    of_kinds.entry(vcpu).or_default().push((kind, count));
                }
                _ => {}
            }
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
    if end == first {
        return 0;
    }
    pasted.domain = name.to_owned();
    let count = vcpus.keys().next_back().map(|last| last + 1);
    if let Some(domain) = pasted.named() {
        domain.vcpus = domain.vcpus.max(count).max(current);
    }
    for (number, disk) in disks {
        disk.tell(&format!("disk {number}"), &format!(" of {name}"), pasted);
    }
    for (vcpu, (all, line)) in exits {
        let mut kinds = of_kinds.remove(&vcpu).unwrap_or_default();
        kinds.sort_by(|one, other| other.1.total_cmp(&one.1));
        let told: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("{kind} {}", percent(count / all.max(1.0)))).collect();
        if !told.is_empty() {
            let told = format!("{} since the VM began: {}", thousands(all as u64), told.join(", "));
            pasted.quote("exits", &format!("vCPU {vcpu} of {name}"), &told, text.place(line));
        }
    }
    for (vcpu, told) in vcpus {
        if let (Some(ran), Some(waited), line) = told {
            waits::note(pasted, (format!("vCPU {vcpu} of {name}"), 0), (ran, waited), text.place(line));
        }
    }
    end - at
}

/// Quotas by their groups: what a group was told, else what libvirt was asked for, for the group of that domain.
pub(super) fn finish(pasted: &mut Pasted) {
    let groups = std::mem::take(&mut pasted.group_quotas);
    let throttled = std::mem::take(&mut pasted.throttled);
    let paths: BTreeSet<&String> = groups.keys().chain(throttled.keys()).collect();
    // Groups that were stopped, and nothing says how much they may use.
    let mut untold: Vec<(&String, &Counted)> = Vec::new();
    for path in paths {
        let asked = || pasted.vcpu_quotas.iter().find(|(name, _)| is_of(path, name)).map(|(_, told)| told);
        let counted = throttled.get(path);
        let Some(cpus) = groups.get(path).or_else(asked).cloned() else {
            untold.extend(counted.map(|counted| (path, counted)));
            continue;
        };
        let (since_start, measured) =
            (counted.map(|counted| counted.told.value), counted.and_then(|counted| counted.more.clone()));
        pasted.machine.quotas.insert(path.clone(), Quota { cpus, since_start, measured });
    }
    // Groups of nobody that is known here, as one sees them from within a pod.
    let is_known = |path: &str| pasted.machine.domains.iter().any(|domain| is_of(path, &domain.name));
    let strange = pasted.machine.quotas.iter().filter(|(path, _)| !is_known(path));
    let mut told: Vec<(Gauge, Option<String>)> = Vec::new();
    for (path, quota) in strange {
        let measured = quota.measured.as_ref();
        let Some(counted) = measured.map(|told| told.value).or(quota.since_start).filter(|told| told.periods > 0)
        else {
            continue;
        };
        let subject = format!("{} with {:.2} CPUs", if path.is_empty() { "/" } else { path }, quota.cpus.value);
        let between = measured.map(|_| between_copies(counted));
        let place = measured.map_or_else(|| quota.cpus.place.clone(), |told| told.place.clone());
        let value = counted.share();
        told.push((Gauge { kind: GaugeKind::Throttled, subject, value, place }, between));
    }
    for (path, counted) in untold {
        let fact = counted.more.as_ref().unwrap_or(&counted.told);
        if fact.value.periods == 0 {
            continue;
        }
        let subject = if path.is_empty() { "/".to_owned() } else { path.clone() };
        let gauge = Gauge { kind: GaugeKind::Throttled, subject, value: fact.value.share(), place: fact.place.clone() };
        told.push((gauge, counted.more.as_ref().map(|more| between_copies(more.value))));
    }
    for (gauge, between) in told {
        if let Some(between) = between {
            pasted.quote("throttled between two copies", &gauge.subject, &between, gauge.place.clone());
        }
        pasted.machine.gauges.push(gauge);
    }
}

fn between_copies(Throttled { periods, throttled, ns, cpus }: Throttled) -> String {
    let lost = if cpus > 0.0 { format!(", {cpus:.2} CPUs lost") } else { String::new() };
    format!("in {throttled} of {}, for {} of its CPUs{lost}", many(periods, "period"), duration(ns as f64))
}

/// vCPUs of a domain that have groups here: some of its own, and perhaps not all.
pub(super) fn vcpus_of(quotas: &BTreeMap<String, Quota>, domain: &str) -> BTreeSet<u32> {
    let of_vcpu = |path: &String| path.rsplit_once("/vcpu")?.1.parse::<u32>().ok();
    let own = quotas.keys().filter(|path| is_of(path, domain)).filter_map(of_vcpu);
    own.filter(|vcpu| *vcpu < base::cpus::MOST_CPUS).collect()
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

    #[test]
    fn two_copies_of_cpu_stat_are_a_difference_of_the_group_that_the_shell_is_in() {
        let stat = |periods: u64, throttled: u64, us: u64| {
            format!(
                "usage_usec 9\nuser_usec 7\nsystem_usec 2\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {us}\nnr_bursts 0\n"
            )
        };
        let commands = "$ cd /sys/fs/cgroup/kubepods.slice/pod7.slice\n$ cat cpu.max cpu.stat; sleep 20; cat cpu.stat\n400000 100000\n";
        let copies = format!("{}{}", stat(1_000, 100, 5_000), stat(1_200, 280, 30_005_000));
        let machine = read(&[("t".to_owned(), format!("{commands}{copies}"))]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let (path, quota) = machine.quotas.first_key_value().expect("a quota");
        assert_eq!((path.as_str(), quota.cpus.value), ("/kubepods.slice/pod7.slice", 4.0));
        let more = quota.measured.as_ref().expect("two copies").value;
        assert_eq!((more.periods, more.throttled, more.cpus), (200, 180, 1.5));
        assert_eq!(machine.gauges[0].value, 0.9, "of the time between, not of its whole life");
        // Nobody said whose it is.
        let machine = read(&[("t".to_owned(), format!("it says\n{}", stat(10, 9, 1)))]);
        assert_eq!((machine.sources[0].2, machine.quotas.len()), (1, 0), "without its limit it is none");
        let machine = read(&[("t".to_owned(), format!("# cat cpu.max cpu.stat\n50000 100000\n{}", stat(10, 9, 1)))]);
        assert_eq!(machine.gauges[0].subject, "a group that is not named with 0.50 CPUs");
    }
}
