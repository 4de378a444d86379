//! `virsh vcpupin`, `vcpuinfo`, `emulatorpin`, `iothreadinfo`, `taskset -acp`, and the commands at prompts that name a domain.
//!
//! Two forms of virsh's tables are about: `VCPU: CPU Affinity` with `0: 0` (before libvirt 4.0) and `VCPU   CPU Affinity`
//! with `0      0`.

use super::{Pasted, Text};
use crate::machine::{Fact, Role, Thread, role_of};
use base::CpuSet;

/// A row of virsh's tables: what stands before the list, and the list.
fn row(line: &str) -> Option<(&str, CpuSet)> {
    let (name, list) = line.split_once(':').or_else(|| line.split_once(char::is_whitespace))?;
    let set = CpuSet::parse(list).filter(|set| !set.is_empty())?;
    Some((name.trim(), set))
}

/// The rows below a header whose first word is `named` and that ends in `CPU Affinity`, and how many lines all took.
fn table<'a>(text: &Text<'a>, at: usize, named: &str) -> (Vec<(usize, &'a str, CpuSet)>, usize) {
    let header = text.at(at).to_lowercase();
    if !header.starts_with(named) || !header.ends_with("cpu affinity") {
        return (Vec::new(), 0);
    }
    let mut end = at + 1;
    let rule = text.at(end);
    if !rule.is_empty() && rule.bytes().all(|byte| byte == b'-') {
        end += 1;
    }
    let mut rows = Vec::new();
    while let Some((name, set)) = row(text.at(end)) {
        rows.push((end, name, set));
        end += 1;
    }
    (rows, end - at)
}

/// `virsh numatune DOMAIN`: `numa_mode : strict` and `numa_nodeset : 0`.
pub(super) fn numatune(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let value = |line: usize, label: &str| {
        let (name, value) = text.at(line).split_once(':')?;
        (name.trim() == label).then(|| value.trim())
    };
    let Some(mode) = value(at, "numa_mode") else { return 0 };
    let Some(nodes) = value(at + 1, "numa_nodeset") else { return 0 };
    let nodes = CpuSet::parse(nodes).filter(|nodes| !nodes.is_empty());
    match (nodes, pasted.named()) {
        (Some(nodes), Some(domain)) => domain.memory_nodes = Some((nodes, mode.to_owned())),
        (None, Some(domain)) => {
            let vm = domain.name.clone();
            pasted.quote("numatune", &vm, &format!("{mode}, and no node is named"), text.place(at + 1));
        }
        _ => {}
    }
    2
}

/// `virsh vcpupin DOMAIN`.
pub(super) fn vcpus(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let (rows, taken) = table(text, at, "vcpu");
    if taken == 0 {
        return 0;
    }
    let Some(domain) = pasted.named() else { return taken };
    for (line, name, set) in rows {
        if let Ok(vcpu) = name.parse::<u32>()
            && vcpu < base::cpus::MOST_CPUS
        {
            domain.vcpu_pins.insert(vcpu, text.fact(set, line));
        }
    }
    taken
}

/// `virsh vcpuinfo DOMAIN`: for each vCPU a paragraph of `VCPU`, `CPU`, `State`, `CPU time`, `CPU Affinity`, the last one a letter
/// for each CPU of the host (`yy--`), or with `--pretty` a list (`0-1 (out of 4)`).
pub(super) fn vcpuinfo(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let value = |line: usize, label: &str| text.at(line).strip_prefix(label)?.strip_prefix(':').map(str::trim);
    let vcpu = value(at, "VCPU").and_then(|vcpu| vcpu.parse::<u32>().ok()).filter(|vcpu| *vcpu < base::cpus::MOST_CPUS);
    let Some(vcpu) = vcpu else { return 0 };
    let is_of_it =
        |line: &usize| ["CPU", "State", "CPU time", "CPU Affinity"].iter().any(|label| value(*line, label).is_some());
    let end = (at + 1..text.lines.len()).find(|line| !is_of_it(line)).unwrap_or(text.lines.len());
    let Some(domain) = pasted.named() else { return end - at };
    let mut counted = None;
    for line in at + 1..end {
        if let Some(cpu) = value(line, "CPU").and_then(|cpu| cpu.parse().ok()) {
            domain.vcpu_last_cpus.insert(vcpu, text.fact(cpu, line));
        }
        let told = value(line, "CPU Affinity");
        let count = told.and_then(|told| match told.split_once(" (out of") {
            Some((_, count)) => count.trim().trim_end_matches(')').parse().ok(),
            None => u32::try_from(told.len()).ok().filter(|_| letters(told).is_some()),
        });
        counted = counted.max(count);
        let set = told.and_then(|told| match told.split_once(" (out of") {
            Some((list, _)) => CpuSet::parse(list),
            None => letters(told),
        });
        if let Some(set) = set.filter(|set| !set.is_empty()) {
            domain.vcpu_pins.insert(vcpu, text.fact(set, line));
        }
    }
    domain.vcpus = domain.vcpus.max(Some(vcpu + 1));
    if let Some(count) = counted {
        pasted.count_cpus(count, text.place(at));
    }
    end - at
}

/// `yy--`: the first and the second CPU of four.
fn letters(text: &str) -> Option<CpuSet> {
    let is_one = text.bytes().all(|byte| matches!(byte, b'y' | b'-'));
    let cpus = text.bytes().zip(0..).filter(|(byte, _)| *byte == b'y').map(|(_, cpu)| cpu);
    is_one.then(|| cpus.take_while(|cpu| *cpu < base::cpus::MOST_CPUS).collect())
}

/// `virsh emulatorpin DOMAIN`.
pub(super) fn emulator(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let (rows, taken) = table(text, at, "emulator");
    if taken == 0 {
        return 0;
    }
    let Some(domain) = pasted.named() else { return taken };
    domain.emulator_pins.extend(rows.into_iter().filter(|row| row.1 == "*").map(|(line, _, set)| text.fact(set, line)));
    taken
}

/// `virsh iothreadinfo DOMAIN`.
pub(super) fn iothreads(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let (rows, taken) = table(text, at, "iothread id");
    if taken == 0 {
        return 0;
    }
    let Some(domain) = pasted.named() else { return taken };
    for (line, name, set) in rows {
        if let Ok(thread) = name.parse() {
            domain.iothread_pins.insert(thread, text.fact(set, line));
        }
    }
    domain.iothreads = domain.iothreads.max(domain.iothread_pins.len() as u32);
    taken
}

/// `pid 23332's current affinity list: 0-3`, of `taskset -cp` or `-acp`; without `-c` it prints a mask.
pub(super) fn taskset(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let told = text.at(at).strip_prefix("pid ").and_then(|rest| {
        let (tid, told) = rest.split_once("'s current affinity ")?;
        let set = match told.split_once(':')? {
            ("list", list) => CpuSet::parse(list),
            ("mask", mask) => CpuSet::parse_mask(mask),
            _ => None,
        };
        Some((tid.parse::<i32>().ok()?, set?))
    });
    let Some((tid, set)) = told else { return 0 };
    let role = if pasted.asks_for_workers { Role::Vhost } else { Role::Other };
    let mut thread = Thread::new(role, if pasted.asks_for_workers { "vhost" } else { "" });
    thread.tid = Some(tid);
    thread.affinity = Some(Fact::new(set, text.place(at)));
    pasted.machine.threads.push(thread);
    1
}

/// `/proc/193819/task/193824/status:Cpus_allowed_list:   0`, as `grep` prints it of several files.
pub(super) fn allowed(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let told = text.at(at).split_once("Cpus_allowed_list:").and_then(|(file, list)| {
        let ids: Vec<i32> = file.split('/').filter_map(|word| word.parse().ok()).collect();
        Some((ids, file, CpuSet::parse(list.trim())?))
    });
    let Some((ids, file, set)) = told else { return 0 };
    let (Some(process), Some(thread)) = (ids.first(), ids.last()) else {
        return named_mask(file.trim(), text.fact(set, at), pasted);
    };
    let mut told = Thread::new(Role::Other, "");
    (told.pid, told.tid) = (Some(*process), Some(*thread));
    told.affinity = Some(Fact::new(set, text.place(at)));
    pasted.machine.threads.push(told);
    1
}

/// `CPU 0/KVM Cpus_allowed_list: 4`: a loop over threads printed their names and not their ids.
fn named_mask(name: &str, set: Fact<CpuSet>, pasted: &mut Pasted) -> usize {
    let role = role_of(name).map(|(role, _)| role);
    let Some(domain) = pasted.named() else { return 1 };
    match role {
        Some(Role::Vcpu(vcpu)) => {
            domain.vcpus = domain.vcpus.max(Some(vcpu + 1));
            domain.vcpu_pins.insert(vcpu, set);
        }
        Some(Role::Emulator) => domain.emulator_pins.push(set),
        Some(Role::IoThread(thread)) => {
            domain.iothreads = domain.iothreads.max(thread);
            domain.iothread_pins.insert(thread, set);
        }
        Some(Role::Vhost | Role::Pmd | Role::Other) | None => return 0,
    }
    1
}

/// Commands of virsh whose output is of the domain that they name.
const NAME_A_DOMAIN: &[&str] = &[
    "vcpupin",
    "emulatorpin",
    "iothreadpin",
    "iothreadinfo",
    "dommemstat",
    "dumpxml",
    "vcpuinfo",
    "schedinfo",
    "numatune",
];

/// A `virsh` command: what follows is of the domain that it names. One that pins says where somebody wanted the thread.
pub(super) fn command(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    // "virsh dumpxml shows this:" is said, and not typed.
    if text.at(at).trim_end().ends_with(':') {
        return 0;
    }
    let mut words = text.at(at).split_whitespace().skip_while(|word| !word.ends_with("virsh"));
    words.next();
    // Its own prompt: `virsh # vcpuinfo web`.
    let mut words = words.skip_while(|word| *word == "#");
    let Some(asked) = words.next().filter(|word| NAME_A_DOMAIN.contains(word)) else { return 0 };
    // A comment behind the command is none of it.
    let mut words = words.take_while(|word| !word.starts_with('#')).filter(|word| !word.starts_with('-'));
    let Some(domain) = words.next() else { return 0 };
    pasted.domain = domain.trim_matches(['\'', '"']).to_owned();
    let rest: Vec<&str> = words.collect();
    let Some(domain) = pasted.named() else { return 1 };
    let place = || format!("{}, asked for", text.place(at));
    let set = |list: &str| CpuSet::parse(list).filter(|set| !set.is_empty()).map(|set| Fact::new(set, place()));
    match (asked, rest.as_slice()) {
        ("vcpupin", [vcpu, list, ..]) => {
            let vcpu = vcpu.parse::<u32>().ok().filter(|vcpu| *vcpu < base::cpus::MOST_CPUS);
            if let Some((vcpu, set)) = vcpu.zip(set(list)) {
                domain.vcpu_pins.insert(vcpu, set);
                domain.vcpus = domain.vcpus.max(Some(vcpu + 1));
            }
        }
        ("emulatorpin", [list, ..]) => domain.emulator_pins.extend(set(list)),
        ("iothreadpin", [thread, list, ..]) => {
            if let Some((thread, set)) = thread.parse().ok().zip(set(list)) {
                domain.iothread_pins.insert(thread, set);
            }
        }
        _ => {}
    }
    1
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn vcpuinfo_tells_pins_and_where_each_ran() {
        let text = "$ virsh vcpuinfo web\nVCPU:           0\nCPU:            3\nState:          running\nCPU time:       7.2s\n\
                    CPU Affinity:   --yy\n\nVCPU:           1\nCPU:            N/A\nState:          N/A\n\
                    CPU Affinity:   0-1 (out of 4)\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let domain = &machine.domains[0];
        assert_eq!((domain.name.as_str(), domain.vcpu_count()), ("web", 2));
        let pins: Vec<String> = domain.vcpu_pins.values().map(|pin| pin.value.to_string()).collect();
        assert_eq!(pins, ["2-3", "0-1"]);
        let last: Vec<_> = machine.threads.iter().map(|thread| thread.last_cpu.as_ref().map(|cpu| cpu.value)).collect();
        assert_eq!(last, [Some(3), None, None], "of the emulator nothing was told");
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
    }

    #[test]
    fn commands_that_pin_say_where_threads_were_wanted() {
        let text = "virsh vcpupin vm1 0 3\n# virsh vcpupin vm1 1 4 --live\n$ virsh emulatorpin vm1 7   # the rest\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let domain = &machine.domains[0];
        let pins: Vec<String> = domain.vcpu_pins.values().map(|pin| format!("{} {}", pin.value, pin.place)).collect();
        assert_eq!(
            (domain.vcpu_count(), pins),
            (2, vec!["3 t:1, asked for".to_owned(), "4 t:2, asked for".to_owned()])
        );
        assert_eq!(domain.emulator_pins[0].value.to_string(), "7");
    }

    #[test]
    fn status_files_tell_where_threads_may_run() {
        let text = "/proc/193819/task/193819/status:Cpus_allowed_list:\t0-23\n/proc/193819/task/193824/status:Cpus_allowed_list:\t0\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let told: Vec<_> = machine.threads.iter().map(|thread| (thread.pid, thread.tid)).collect();
        assert_eq!(told, [(Some(193_819), Some(193_819)), (Some(193_819), Some(193_824))]);
    }

    #[test]
    fn taskset_prints_lists_and_masks() {
        let text =
            "pid 7's current affinity list: 0-1\npid 8's current affinity mask: f0\npid 9's new affinity list: 3\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        let told: Vec<_> =
            machine.threads.iter().map(|thread| thread.affinity.as_ref().unwrap().value.to_string()).collect();
        assert_eq!(told, ["0-1", "4-7"]);
        assert_eq!(machine.sources[0].2, 1, "what it was told to do is no fact of now");
    }
}
