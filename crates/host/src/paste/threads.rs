//! Threads out of what was pasted: those that a domain must have, and those that screens show.
//!
//! A domain with pins has its vCPUs, an emulator and, by its interfaces, vhost workers, whether a screen shows them or not.
//! Rows of screens are put to them: vhost by name; a vCPU by its name, or where a screen shows QEMU's threads under one
//! name, by the CPUs that they ran on (QEMU makes vCPU threads in a row, so that their ids follow each other).

use super::{Pasted, groups, limits};
use crate::budget;
use crate::machine::{Cpu, Domain, Fact, Machine, Quoted, Role, Thread, TopRow, domain_of, role_of, vm_named_in};
use crate::sched::Shares;
use base::number::percent;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A share above this is a process with its threads added up: a thread has one CPU, and `top` rounds.
const MOST_OF_A_THREAD: f64 = 1.05;

/// Threads of all domains, with what screens and `taskset` say of them; polling threads, which serve all.
pub(super) fn finish(mut pasted: Pasted) -> Machine {
    limits::finish(&mut pasted);
    let mut machine = pasted.machine;
    if !pasted.ovs.is_empty() {
        machine.switch.add(pasted.ovs.switch("ovs-vsctl"));
    }
    if machine.topology.cpus.is_empty()
        && let Some(count) = pasted.cpu_count
    {
        let cpus = (0..count.value).map(|cpu| (cpu, Cpu { core: cpu, ..Cpu::default() }));
        machine.topology.cpus = cpus.collect();
        machine.topology.online = (0..count.value).collect();
        (machine.topology.cores_unknown, machine.topology.place) = (true, count.place);
    }
    free_pages(&mut machine);
    let vms = name_domains(&mut machine);
    for row in machine.screens.iter().flat_map(|screen| &screen.rows) {
        // A definition says it all; a screen may have cut the command.
        let Some(name) = vm_named_in(&row.command).filter(|_| row.command.contains(" -smp ")) else { continue };
        let Some(known) = machine.domains.iter_mut().find(|domain| domain.name == name && domain.whole.is_none())
        else {
            continue;
        };
        if known.topology.is_none() && known.interfaces.is_empty() {
            known.add(domain_of(&row.command.replace(' ', "\0"), &name, &row.place));
        }
    }
    let told: Vec<Thread> = std::mem::take(&mut machine.threads);
    let rows: Vec<TopRow> = machine.screens.iter().flat_map(|screen| screen.rows.iter().cloned()).collect();
    let domains = machine.domains.clone();
    let by_vm = by_vm(&rows, &vms, &domains);
    let mut left = budget::DOMAIN_THREADS;
    for domain in &domains {
        let rows = by_vm.get(domain.name.as_str()).map_or(&[][..], Vec::as_slice);
        let owner = vms.processes.get(&domain.name).copied().or(domain.pid);
        let mut threads = of_domain(domain, rows, owner, &limits::vcpus_of(&machine.quotas, &domain.name));
        for thread in &mut threads {
            if let Role::Vcpu(vcpu) = thread.role {
                thread.time_group = limits::group_of(&machine.quotas, &domain.name, vcpu);
            }
        }
        if threads.len() > left {
            let most = budget::DOMAIN_THREADS;
            machine
                .unread
                .push(format!("threads of domains beyond the first {most} were not read, those of {}", domain.name));
            break;
        }
        left -= threads.len();
        machine.threads.extend(threads);
    }
    for process in std::mem::take(&mut machine.process_memory) {
        let of_domain = domains.iter().find(|domain| domain.pid == Some(process.pid)).map(|domain| &domain.name);
        match vms.by_process.get(&process.pid).or(of_domain) {
            Some(vm) => drop(machine.vm_memory.insert(vm.clone(), process.bytes)),
            None => machine.process_memory.push(process),
        }
    }
    let mut known: HashMap<i32, usize> =
        machine.threads.iter().enumerate().rev().filter_map(|(index, thread)| Some((thread.tid?, index))).collect();
    let mut polling: BTreeMap<i32, Vec<&TopRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| matches!(role_of(program(&row.command)), Some((Role::Pmd, _)))) {
        polling.entry(row.pid).or_default().push(row);
    }
    for (tid, rows) in polling.into_iter().filter(|(tid, _)| !known.contains_key(tid)).collect::<Vec<_>>() {
        let mut thread = Thread::new(Role::Pmd, program(&rows[0].command));
        (thread.pid, thread.tid) = (rows[0].process, Some(tid));
        seen(&mut thread, &rows);
        known.insert(tid, machine.threads.len());
        machine.threads.push(thread);
    }
    let by_tid: HashMap<i32, &TopRow> = rows.iter().map(|row| (row.pid, row)).collect();
    for mut thread in told {
        let Some(tid) = thread.tid else { continue };
        match known.get(&tid) {
            Some(index) => machine.threads[*index].affinity = thread.affinity,
            None => {
                // Another thread of a VM's process, by the screen that names it; a worker is the only VM's.
                let row = by_tid.get(&tid);
                let of_vm = row.and_then(|row| vms.by_process.get(&row.process?));
                if let Some((row, vm)) = row.zip(of_vm).filter(|_| thread.role == Role::Other) {
                    thread.name = program(&row.command).to_owned();
                    (thread.role, thread.vm, thread.pid) = (Role::Emulator, Some(vm.clone()), row.process);
                } else if let (Role::Vhost, [only]) = (thread.role, domains.as_slice()) {
                    (thread.vm, thread.assumed) = (Some(only.name.clone()), true);
                }
                known.insert(tid, machine.threads.len());
                machine.threads.push(thread);
            }
        }
    }
    tell_of_others(&mut machine, &rows);
    machine
}

/// Huge pages of nodes whose files stand in the text, one by one: how many there are, and how many are free.
fn free_pages(machine: &mut Machine) {
    const ROOT: &str = "sys/devices/system/node/node";
    let told: Vec<(u32, u64, u64, u64)> = machine
        .settings
        .iter()
        .filter_map(|(path, free)| {
            let (folder, _) = path.split_once("/free_hugepages")?;
            let (node, size) = folder.strip_prefix(ROOT)?.split_once("/hugepages/hugepages-")?;
            let all = machine.setting(&format!("{folder}/nr_hugepages"))?;
            let node = node.parse().ok().filter(|node| *node < budget::NODES)?;
            let kib = size.strip_suffix("kB")?.parse().ok()?;
            Some((node, kib, all.trim().parse().ok()?, free.value.trim().parse().ok()?))
        })
        .collect();
    for (node, kib, all, free) in told {
        machine.nodes.entry(node).or_default().huge_pages.push((kib, all, free));
    }
}

/// Processes of QEMU of which nothing tells the VM: what the screen says of them.
fn tell_of_others(machine: &mut Machine, rows: &[TopRow]) {
    let known: BTreeSet<i32> = machine.threads.iter().flat_map(|thread| [thread.tid, thread.pid]).flatten().collect();
    let is_vm = |row: &&TopRow| matches!(role_of(program(&row.command)), Some((Role::Emulator, _)));
    let others = rows.iter().filter(|row| row.process.is_none() && !known.contains(&row.pid)).filter(is_vm);
    let left = budget::QUOTED_VALUES.saturating_sub(machine.quoted.len());
    for row in others.take(left) {
        let state = match row.state {
            'D' => ", in state D: it waits for a disk or for memory, and cannot be interrupted".to_owned(),
            '?' => String::new(),
            state => format!(", in state {state}"),
        };
        let Some(share) = row.share else { continue };
        machine.quoted.push(Quoted {
            what: "a process of QEMU".to_owned(),
            subject: format!("{} ({})", program(&row.command), row.pid),
            value: format!("{} of a CPU{state}", percent(share)),
            place: row.place.clone(),
        });
    }
}

/// Which VM a process or a thread is of.
struct Vms {
    by_process: BTreeMap<i32, String>,
    /// Of threads whose process no screen tells.
    by_thread: BTreeMap<i32, String>,
    /// Processes that threads tell, by their VMs.
    processes: HashMap<String, i32>,
}

impl Vms {
    /// The VM that a row is of: by the name in its command, by the process that it is of or that its name points to.
    fn of(&self, row: &TopRow) -> Option<String> {
        let owner = || role_of(program(&row.command)).and_then(|(_, owner)| self.by_process.get(&owner?));
        let process = || self.by_process.get(&row.process.unwrap_or(row.pid));
        let told = self.by_thread.get(&row.pid).or_else(owner).or_else(process);
        vm_named_in(&row.command).or_else(|| told.cloned())
    }

    /// Gives a group of threads its name.
    fn note(&mut self, group: &groups::Group, name: &str) {
        self.by_thread.extend(group.threads().map(|tid| (tid, name.to_owned())));
        if let Some(process) = group.process {
            self.by_process.insert(process, name.to_owned());
            self.processes.entry(name.to_owned()).or_insert(process);
        }
    }
}

/// Rows of screens by the VM that they are of. With one domain only, rows that name no process are its.
fn by_vm<'a>(rows: &'a [TopRow], vms: &Vms, domains: &'a [Domain]) -> HashMap<&'a str, Vec<&'a TopRow>> {
    let names: HashMap<&str, &str> =
        domains.iter().map(|domain| (domain.name.as_str(), domain.name.as_str())).collect();
    let mut by_vm: HashMap<&str, Vec<&TopRow>> = HashMap::new();
    for row in rows {
        let name = match (vms.of(row), domains) {
            (Some(vm), _) => names.get(vm.as_str()).copied(),
            (None, [only]) if row.process.is_none() => Some(only.name.as_str()),
            (None, _) => None,
        };
        if let Some(name) = name {
            by_vm.entry(name).or_default().push(row);
        }
    }
    by_vm
}

/// Facts told before anybody named a domain are of the only one that is named; names also stand in QEMU's command line, and
/// threads of a VM whose name nobody told are a domain too.
fn name_domains(machine: &mut Machine) -> Vms {
    let rows: Vec<&TopRow> = machine.screens.iter().flat_map(|screen| &screen.rows).collect();
    let noted = machine.domains.iter().filter_map(|domain| Some((domain.pid?, domain.name.clone())));
    let mut vms = Vms { by_process: noted.collect(), by_thread: BTreeMap::new(), processes: HashMap::new() };
    for domain in &machine.domains {
        vms.by_thread.extend(domain.vcpu_threads.values().map(|tid| (*tid, domain.name.clone())));
    }
    for (row, name) in rows.iter().filter_map(|row| Some((row, vm_named_in(&row.command)?))) {
        // A screen of threads shows QEMU's command line for each of them.
        match row.process {
            Some(process) => vms.by_process.insert(process, name),
            None => vms.by_thread.insert(row.pid, name),
        };
    }
    let mut groups = groups::of_rows(&rows);
    groups.retain(|group| {
        let Some(process) = group.process else { return true };
        let near = || vms.by_thread.range(process..process.saturating_add(groups::MOST_BETWEEN)).next();
        let Some(name) = vms.by_process.get(&process).or_else(|| near().map(|(_, name)| name)).cloned() else {
            return true;
        };
        vms.note(group, &name);
        false
    });
    let told: BTreeSet<String> = vms.by_process.values().cloned().collect();
    let is_open = |domain: &&Domain| !domain.name.is_empty() && !told.contains(&domain.name);
    let open: Vec<&Domain> = machine.domains.iter().filter(is_open).collect();
    let matched = groups::matched(&groups, &open);
    let mut counted = 0;
    for (at, group) in groups.iter().enumerate() {
        let name = match (matched.get(&at), group.process) {
            (Some(domain), _) => open[*domain].name.clone(),
            (None, Some(process)) => format!("process-{process}"),
            (None, None) => {
                counted += 1;
                format!("VM {counted}")
            }
        };
        vms.note(group, &name);
    }
    let mut names: Vec<String> = machine.domains.iter().map(|domain| domain.name.clone()).collect();
    names.extend(vms.by_process.values().chain(vms.by_thread.values()).cloned());
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    if names.len() > budget::DOMAINS {
        let (count, most) = (names.len(), budget::DOMAINS);
        machine.unread.push(format!("{count} VMs were named; those after the first {most} were not read"));
        names.truncate(most);
    }
    names.iter().for_each(|name| {
        machine.domain_mut(name);
    });
    if let Some(index) = machine.domains.iter().position(|domain| domain.name.is_empty()) {
        let nameless = machine.domains.remove(index);
        let name = if let [only] = &names[..] { only.clone() } else { "DOMAIN".to_owned() };
        if nameless != Domain::default() {
            machine.domain_mut(&name).add(nameless);
        }
    }
    vms
}

/// Threads of one domain, whose process is `owner`; `limited` are vCPUs of whose groups something was told.
fn of_domain(domain: &Domain, rows: &[&TopRow], owner: Option<i32>, limited: &BTreeSet<u32>) -> Vec<Thread> {
    let mut by_id: BTreeMap<i32, Vec<&TopRow>> = BTreeMap::new();
    rows.iter().for_each(|row| by_id.entry(row.pid).or_default().push(*row));
    let role = |rows: &[&TopRow]| role_of(program(&rows[0].command));
    let vcpus = vcpu_ids(domain, &by_id, owner);
    let mut threads = Vec::new();
    let make = |role: Role, name: &str, pin: Option<&Fact<base::CpuSet>>| {
        let mut thread = Thread::new(role, name);
        (thread.vm, thread.pid, thread.affinity) = (Some(domain.name.clone()), owner, pin.cloned());
        thread
    };
    // Those that a domain must have, and those that were seen: vCPU 4 does not say that there is a thread of vCPU 0.
    let numbers: BTreeSet<u32> =
        (0..domain.vcpu_count()).chain(vcpus.keys().copied()).chain(limited.iter().copied()).collect();
    for vcpu in numbers.iter().copied().take_while(|vcpu| *vcpu < base::cpus::MOST_CPUS) {
        let mut thread = make(Role::Vcpu(vcpu), &format!("CPU {vcpu}"), domain.vcpu_pin(vcpu));
        if let Some((tid, assumed)) = vcpus.get(&vcpu) {
            (thread.tid, thread.assumed) = (Some(*tid), *assumed);
            let rows = by_id.get(tid).map_or(&[][..], Vec::as_slice);
            if let Some((row, (Role::Vcpu(_), _))) = rows.first().and_then(|row| Some((row, role_of(&row.command)?))) {
                thread.name.clone_from(&row.command);
            }
            seen(&mut thread, rows);
        }
        thread.last_cpu = thread.last_cpu.or_else(|| domain.vcpu_last_cpus.get(&vcpu).cloned());
        threads.push(thread);
    }
    if !numbers.is_empty() || owner.is_some() {
        let mut thread = make(Role::Emulator, "qemu", domain.emulator_pin());
        thread.tid = owner;
        if let Some(rows) = owner.and_then(|owner| by_id.get(&owner)) {
            seen(&mut thread, rows);
        }
        threads.push(thread);
    }
    let mut workers = 0;
    for (tid, rows) in by_id.iter().filter(|(_, rows)| matches!(role(rows), Some((Role::Vhost, _)))) {
        let mut thread = make(Role::Vhost, program(&rows[0].command), domain.emulator_pin());
        thread.tid = Some(*tid);
        seen(&mut thread, rows);
        threads.push(thread);
        workers += 1;
    }
    // Workers that the interfaces ask for and no screen shows.
    threads.extend((workers..domain.workers().0.min(4_096)).map(|_| make(Role::Vhost, "vhost", domain.emulator_pin())));
    for number in 1..=domain.iothreads.min(4_096) {
        // Without a pin of its own it has the CPUs of all vCPUs, not the emulator's (qemuProcessSetupPid in
        // src/qemu/qemu_process.c, libvirt 10.0).
        let pin = domain.iothread_pins.get(&number).or(domain.cpuset.as_ref());
        threads.push(make(Role::IoThread(number), &format!("IO iothread{number}"), pin));
    }
    threads
}

/// The name of the thread or program that a row's command begins with; names of threads have blanks and slashes.
pub(super) fn program(command: &str) -> &str {
    let command = command.trim();
    if ["CPU ", "ALL CPUs/", "IO ", "pmd-c"].iter().any(|name| command.starts_with(name)) {
        return command;
    }
    let first = command.split_whitespace().next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or(first)
}

/// Which thread is which vCPU, and whether that was concluded.
fn vcpu_ids(domain: &Domain, by_id: &BTreeMap<i32, Vec<&TopRow>>, owner: Option<i32>) -> BTreeMap<u32, (i32, bool)> {
    let mut ids: BTreeMap<u32, (i32, bool)> =
        domain.vcpu_threads.iter().map(|(vcpu, tid)| (*vcpu, (*tid, false))).collect();
    for (tid, rows) in by_id {
        if let Some((Role::Vcpu(vcpu), _)) = role_of(program(&rows[0].command)) {
            ids.insert(vcpu, (*tid, false));
        }
    }
    if !ids.is_empty() {
        return ids;
    }
    let is_thread = |rows: &[&TopRow]| rows.iter().all(|row| row.share.is_some_and(|share| share <= MOST_OF_A_THREAD));
    let of_qemu = |rows: &[&TopRow]| matches!(role_of(program(&rows[0].command)), Some((Role::Emulator, _)));
    let nameless: Vec<(i32, u32)> = by_id
        .iter()
        .filter(|(tid, rows)| Some(**tid) != owner && is_thread(rows) && of_qemu(rows))
        .filter_map(|(tid, rows)| Some((*tid, rows[0].last_cpu?)))
        .collect();
    let (Some((lowest, _)), true) = (nameless.first(), nameless.len() > 1) else { return ids };
    // The id of vCPU 0 is at most the lowest seen; one base must explain all rows, and no other may.
    let count = domain.vcpu_count();
    let fits = |base: i32| {
        nameless.iter().all(|(tid, cpu)| {
            let vcpu = u32::try_from(tid - base).ok().filter(|vcpu| *vcpu < count);
            vcpu.and_then(|vcpu| domain.vcpu_pin(vcpu)).is_some_and(|pin| pin.value.contains(*cpu))
        })
    };
    let bases: Vec<i32> = (0..count as i32).map(|before| lowest - before).filter(|base| fits(*base)).take(2).collect();
    if let [base] = bases[..] {
        ids.extend(nameless.iter().map(|(tid, _)| ((tid - base) as u32, (*tid, true))));
    }
    ids
}

/// What the screens say of a thread: the largest share that any of them shows, because it wanted at least that. An average
/// since it began counts where nothing else was told.
fn seen(thread: &mut Thread, rows: &[&TopRow]) {
    // A process's row has its threads added up: of the first thread alone it says nothing. pidstat has a row of that one, too.
    let own: Vec<&TopRow> = rows.iter().filter(|row| row.process == Some(row.pid) && !row.average).copied().collect();
    let is_main = thread.role == Role::Emulator;
    let rows_of_its_own = if is_main { &own[..] } else { rows };
    let of_thread = |average: bool| {
        let rows = rows_of_its_own.iter().filter(move |row| row.average == average);
        let shares = rows.filter_map(|row| Some((row.share.filter(|share| *share <= MOST_OF_A_THREAD)?, *row)));
        shares.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let largest = of_thread(false).or_else(|| of_thread(true));
    thread.run_share = largest.map(|(share, row)| {
        let since = if row.average { ", an average since it began" } else { "" };
        Fact::new(share.min(1.0), format!("{}{since}", row.place))
    });
    let waits = rows_of_its_own.iter().filter(|row| !row.average).filter_map(|row| Some((row.wait?, *row)));
    let longest = waits.max_by(|a, b| a.0.total_cmp(&b.0));
    let shares = |(wait, row): (f64, &TopRow)| Shares::new(row.share.unwrap_or(0.0), wait);
    thread.wait_share = longest.map(|longest| Fact::new(shares(longest).wait, longest.1.place.clone()));
    thread.last_cpu = rows.iter().rev().find_map(|row| Some(Fact::new(row.last_cpu?, row.place.clone())));
}
