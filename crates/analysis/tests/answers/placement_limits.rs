//! Hosts made by chance: whatever is typed off their pages, one finding or all together, breaks no limit, leaves no more CPUs
//! missing by the model, and is undone to what was.
//!
//! The masks of a host are kept here by themselves, and each change is made to them as the kernel and libvirt would.

use base::{Change, CpuSet, Finding, Setting};
use host::Machine;
use host::machine::{Cpu, CpuUse, Domain, Fact, Irq, Nic, Pmd, Role, Switch, Thread};
use kvmscope_analysis::placement::model::Model;
use kvmscope_analysis::placement::proposal::What;
use kvmscope_analysis::placement::solver::{Goal, load};
use kvmscope_analysis::placement::{Wishes, build, section::section};
use std::collections::BTreeMap;

/// Numbers that look like chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }

    fn happens(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one_of(&mut self, cpus: &[u32]) -> u32 {
        cpus[self.below(cpus.len())]
    }

    fn some_of(&mut self, cpus: &[u32], most: usize) -> CpuSet {
        (0..1 + self.below(most)).map(|_| self.one_of(cpus)).collect()
    }

    /// What a thread ran and waited: idle, busy or starved.
    fn shares(&mut self) -> (f64, f64) {
        let percent = |percent: usize| percent as f64 / 100.0;
        match self.below(3) {
            0 => (percent(self.below(10)), 0.0),
            1 => (percent(30 + self.below(60)), percent(self.below(2))),
            _ => (percent(20 + self.below(30)), percent(10 + self.below(35))),
        }
    }
}

fn fact<T>(value: T) -> Fact<T> {
    Fact::new(value, "test:1")
}

/// A host by chance: VMs pinned, on sets and free; workers with the emulator, by hand within its set and outside; polling
/// threads, interrupts, another program, isolated CPUs.
fn host(seed: u64) -> Machine {
    let mut chance = Chance(seed * 2 + 1);
    let (nodes, cores, siblings) = (1 + chance.below(2) as u32, [2, 4][chance.below(2)], 1 + chance.below(2) as u32);
    let mut machine = Machine { span_ns: Some(2_000_000_000), ..Machine::default() };
    let count = nodes * cores * siblings;
    for cpu in 0..count {
        let core = cpu % (nodes * cores);
        let node = Some(core / cores);
        let last_cache = seed.is_multiple_of(2).then_some(core / 2);
        machine.topology.cpus.insert(cpu, Cpu { core, package: node, node, last_cache });
        machine.topology.online.insert(cpu);
        machine.cpu_use.insert(cpu, CpuUse { idle: 1.0, ..CpuUse::default() });
    }
    let all: Vec<u32> = (0..count).collect();
    let every = machine.topology.online.clone();
    machine.topology.isolated = Some(if chance.happens(30) { chance.some_of(&all, 4) } else { CpuSet::default() });
    let mut tid = 1_000;
    let mut thread = |machine: &mut Machine, chance: &mut Chance, vm: Option<&str>, role: Role, cpus: &CpuSet| {
        let list: Vec<u32> = cpus.iter().collect();
        let mut thread = Thread::new(role, role.to_string());
        tid += 1;
        (thread.vm, thread.pid, thread.tid) = (vm.map(str::to_owned), Some(tid), Some(tid));
        (thread.affinity, thread.last_cpu) = (Some(fact(cpus.clone())), Some(fact(chance.one_of(&list))));
        let (run, wait) = if role == Role::Pmd { (1.0, 0.0) } else { chance.shares() };
        (thread.run_share, thread.wait_share) = (Some(fact(run)), Some(fact(wait)));
        let usage = machine.cpu_use.entry(thread.last_cpu.as_ref().unwrap().value).or_default();
        usage.busy = (usage.busy + run).min(1.0);
        machine.threads.push(thread);
    };
    for vm in 0..1 + chance.below(3) {
        let name = format!("vm{vm}");
        let mut domain = Domain { name: name.clone(), whole: Some("xml".to_owned()), ..Domain::default() };
        let on_sets = chance.happens(30);
        let set = if chance.happens(50) { every.clone() } else { chance.some_of(&all, 4) };
        for vcpu in 0..1 + chance.below(3) as u32 {
            let cpus = if on_sets { set.clone() } else { CpuSet::one(chance.one_of(&all)) };
            domain.vcpu_pins.insert(vcpu, fact(cpus.clone()));
            thread(&mut machine, &mut chance, Some(&name), Role::Vcpu(vcpu), &cpus);
        }
        domain.vcpus = Some(domain.vcpu_pins.len() as u32);
        let of_vcpus = domain.vcpu_pins.values().fold(CpuSet::default(), |all, pin| all.or(&pin.value));
        let emulator = if chance.happens(30) { of_vcpus } else { chance.some_of(&all, 3) };
        domain.emulator_pins = vec![fact(emulator.clone())];
        thread(&mut machine, &mut chance, Some(&name), Role::Emulator, &emulator);
        let inside: Vec<u32> = emulator.iter().collect();
        for _ in 0..chance.below(3) {
            let cpus = match chance.below(4) {
                0 => CpuSet::one(chance.one_of(&inside)),
                1 => CpuSet::one(chance.one_of(&all)),
                _ => emulator.clone(),
            };
            thread(&mut machine, &mut chance, Some(&name), Role::Vhost, &cpus);
        }
        if chance.happens(20) {
            domain.iothreads = 1;
            let cpus = chance.some_of(&all, 2);
            domain.iothread_pins.insert(1, fact(cpus.clone()));
            thread(&mut machine, &mut chance, Some(&name), Role::IoThread(1), &cpus);
        }
        machine.domains.push(domain);
    }
    if chance.happens(40) {
        let mask = chance.some_of(&all, 2);
        for cpu in mask.iter() {
            thread(&mut machine, &mut chance, None, Role::Pmd, &CpuSet::one(cpu));
        }
        let pmds = mask.iter().map(|cpu| Pmd { cpu, ..Pmd::default() }).collect();
        machine.switch = Switch { pmd_mask: chance.happens(60).then(|| fact(mask)), pmds, ..Switch::default() };
    }
    if chance.happens(40) {
        thread(&mut machine, &mut chance, None, Role::Other, &every);
    }
    machine.nics = vec![Nic { name: "eth0".into(), node: Some(fact(nodes - 1)), ..Nic::default() }];
    for number in 0..chance.below(3) as u32 {
        let cpu = chance.one_of(&all);
        let usage = machine.cpu_use.entry(cpu).or_default();
        usage.softirq += 0.1;
        machine.irqs.push(Irq {
            number: 30 + number,
            name: if chance.happens(20) { "nvme0q1".to_owned() } else { format!("eth0-rx-{number}") },
            affinity: Some(fact(if chance.happens(50) { every.clone() } else { CpuSet::one(cpu) })),
            effective: Some(CpuSet::one(cpu)),
            per_s: [(cpu, 9_000.0)].into(),
            counts: [(cpu, 1)].into(),
            ..Irq::default()
        });
    }
    machine
}

/// Where everything may run.
#[derive(Clone, PartialEq, Debug)]
struct Masks {
    threads: BTreeMap<i32, CpuSet>,
    irqs: BTreeMap<u32, CpuSet>,
    polling: CpuSet,
}

impl Masks {
    fn of(machine: &Machine) -> Self {
        let masks = machine.threads.iter().filter(|thread| thread.role != Role::Pmd);
        Self {
            threads: masks
                .map(|thread| (thread.tid.unwrap(), thread.affinity.as_ref().unwrap().value.clone()))
                .collect(),
            irqs: machine.irqs.iter().map(|irq| (irq.number, irq.affinity.as_ref().unwrap().value.clone())).collect(),
            polling: machine.switch.pmd_cpus(),
        }
    }

    fn set(&mut self, machine: &Machine, setting: &Setting, value: &str) {
        let cpus = CpuSet::parse(value).unwrap_or_default();
        let tid = |domain: &str, role: Role| {
            machine.threads_of(domain).find(|thread| thread.role == role).and_then(|thread| thread.tid).unwrap()
        };
        match setting {
            Setting::TaskAffinity(thread) => drop(self.threads.insert(thread.tid, cpus)),
            Setting::VcpuPin { domain, vcpu, .. } => {
                drop(self.threads.insert(tid(domain, Role::Vcpu(*vcpu)), cpus));
            }
            Setting::IothreadPin { domain, iothread, .. } => {
                drop(self.threads.insert(tid(domain, Role::IoThread(*iothread)), cpus));
            }
            Setting::EmulatorPin { domain, .. } => {
                // The cpuset of the emulator's cgroup takes with it whoever was within.
                let old = self.threads[&tid(domain, Role::Emulator)].clone();
                for thread in machine.threads_of(domain) {
                    let follows = matches!(thread.role, Role::Emulator | Role::Vhost);
                    let mask =
                        self.threads.get_mut(&thread.tid.unwrap()).filter(|mask| follows && mask.is_within(&old));
                    mask.into_iter().for_each(|mask| *mask = cpus.clone());
                }
            }
            Setting::IrqAffinity { irq } => drop(self.irqs.insert(*irq, cpus)),
            Setting::PmdMask => self.polling = cpus,
            other => panic!("no command of this page should set {other}"),
        }
    }

    fn after<'a>(&self, machine: &Machine, changes: impl Iterator<Item = &'a Change>) -> Self {
        let mut masks = self.clone();
        changes.for_each(|change| masks.set(machine, &change.setting, &change.to));
        masks
    }
}

/// Whoever of a VM is bound to a vCPU's one CPU beside it, polling threads among them.
fn company(machine: &Machine, masks: &Masks, vcpu: i32) -> usize {
    let mine = &masks.threads[&vcpu];
    let every = &machine.topology.online;
    let of_vms = machine.threads.iter().filter(|thread| thread.vm.is_some()).filter_map(|thread| thread.tid);
    let others = of_vms.filter(|tid| *tid != vcpu).map(|tid| &masks.threads[&tid]);
    let everywhere_counts = mine.len() > 1;
    others.filter(|mask| mask.meets(mine) && (everywhere_counts || *mask != every)).count()
        + usize::from(masks.polling.meets(mine))
}

/// What breaks a limit.
fn broken(machine: &Machine, before: &Masks, after: &Masks) -> Vec<String> {
    let topology = &machine.topology;
    let isolated = topology.isolated.clone().unwrap_or_default();
    let core = |cpus: &CpuSet| {
        let cores = topology.cores_of(cpus);
        cores.into_iter().fold(CpuSet::default(), |all, core| all.or(&topology.of_core(core)))
    };
    let polled = core(&after.polling);
    let is_vcpu = |thread: &&Thread| matches!(thread.role, Role::Vcpu(_));
    let pinned = machine.threads.iter().filter(is_vcpu).map(|thread| &after.threads[&thread.tid.unwrap()]);
    let pinned = pinned.filter(|mask| mask.len() == 1).fold(CpuSet::default(), |all, mask| all.or(mask));
    let mut broken = Vec::new();
    for thread in machine.threads.iter().filter(|thread| thread.vm.is_some()) {
        let (tid, role) = (thread.tid.unwrap(), thread.role);
        let (old, new) = (&before.threads[&tid], &after.threads[&tid]);
        let came = new.without(old);
        let mut breaks = |what: &str, is: bool| {
            if is {
                broken.push(format!("{} {role} ({tid}), {old} to {new}: {what}", thread.vm.as_deref().unwrap()));
            }
        };
        breaks("no CPU that runs", new.is_empty() || !new.is_within(&topology.online));
        let unpinned = old.len() == 1 && new.len() > 1;
        if matches!(role, Role::Vcpu(_)) {
            breaks("unpinned", unpinned);
            breaks("on a polling thread's core", came.meets(&polled));
            breaks("several isolated CPUs", old != new && new.len() > 1 && new.is_within(&isolated));
            let alone = company(machine, before, tid) == 0;
            breaks("gets company", new.len() == 1 && alone && company(machine, after, tid) > 0);
        } else {
            // Emulator and workers with one mask are one pin.
            let with_emulator = machine.threads_of(thread.vm.as_deref().unwrap()).any(|other| {
                other.role == Role::Emulator && role != Role::Emulator && before.threads[&other.tid.unwrap()] == *old
            });
            breaks("unpinned", unpinned && role != Role::Emulator && !with_emulator);
            breaks("on a polling thread's CPU", came.meets(&after.polling));
            breaks("on isolated CPUs", came.meets(&isolated));
        }
    }
    for (irq, new) in after.irqs.iter().filter(|(irq, new)| before.irqs[irq] != **new) {
        let managed = machine.irqs.iter().any(|one| one.number == *irq && one.is_managed());
        let bad = [
            ("managed", managed),
            ("on a polling thread's core", new.meets(&polled)),
            ("on a vCPU's CPU", new.meets(&pinned)),
            ("on isolated CPUs", new.without(&before.irqs[irq]).meets(&isolated)),
        ];
        broken.extend(bad.iter().filter(|(_, is)| *is).map(|(what, _)| format!("interrupt {irq} to {new}: {what}")));
    }
    let came = after.polling.without(&before.polling);
    if core(&came).meets(&pinned) {
        broken.push(format!("polling threads to {came}: the core of a vCPU"));
    }
    broken
}

/// CPUs missing by the model that the page shows.
fn missing(model: &Model, masks: &Masks) -> f64 {
    let proposal = &model.proposal;
    let mut polling = masks.polling.iter();
    let places = proposal.subjects.iter().zip(&proposal.task.units).map(|(subject, unit)| match subject.what {
        What::PmdMask => polling.next().map_or_else(CpuSet::default, CpuSet::one),
        What::Irq(irq) => {
            let before = model.machine.irqs.iter().find(|one| one.number == irq).unwrap();
            let moved = before.affinity.as_ref().unwrap().value != masks.irqs[&irq];
            if moved { masks.irqs[&irq].clone() } else { unit.now.clone().unwrap() }
        }
        What::Pin | What::Tasks => {
            let masks = subject.threads.iter().map(|(thread, _)| &masks.threads[&thread.tid]);
            masks.fold(CpuSet::default(), |all, mask| all.or(mask))
        }
        What::Workqueues => unit.now.clone().unwrap(),
    });
    let shares = load(&proposal.task, &places.collect::<Vec<_>>()).shares;
    proposal.task.units.iter().zip(shares).map(|(unit, share)| (unit.demand - share).max(0.0)).sum()
}

fn page(seed: u64) -> (Model, Vec<Finding>) {
    let goal = [Goal::Throughput, Goal::Throughput, Goal::Latency][seed as usize % 3];
    let wishes = Wishes { goal, ..Wishes::default() };
    let model = || build::model(base::Level::At(0), "L0", host(seed), false, &wishes);
    (model(), section(&[model()]).findings)
}

const HOSTS: u64 = 60;

#[test]
fn what_is_typed_breaks_no_limit_costs_nobody_and_is_undone() {
    let (mut typed, mut alone, mut better) = (0, 0, 0);
    for seed in 0..HOSTS {
        let (model, findings) = page(seed);
        let before = Masks::of(&model.machine);
        let now = missing(&model, &before);
        let hold = |what: &str, changes: &[&Change]| {
            let after = before.after(&model.machine, changes.iter().copied());
            let broken = broken(&model.machine, &before, &after);
            assert!(broken.is_empty(), "host {seed}, {what}: {broken:?}\n{changes:#?}");
            let then = missing(&model, &after);
            assert!(then <= now + 0.01, "host {seed}, {what}: {now:.3} CPUs missing, then {then:.3}\n{changes:#?}");
            (after, then)
        };
        let changing = || findings.iter().filter(|finding| !finding.changes.is_empty());
        for finding in changing() {
            let (after, then) = hold(&finding.id(), &finding.changes.iter().collect::<Vec<_>>());
            let mut undone = after;
            for change in &finding.changes {
                let from = change.from.as_deref();
                let from = from.unwrap_or_else(|| panic!("host {seed}: {} has no way back", change.command()));
                undone.set(&model.machine, &change.setting, from);
            }
            assert_eq!(undone, before, "host {seed}, {} undone", finding.id());
            (alone, better) = (alone + 1, better + usize::from(then < now - 0.01));
        }
        let (placements, others): (Vec<&Finding>, Vec<&Finding>) =
            changing().partition(|finding| finding.rule == "PLC-PROPOSAL");
        let all: Vec<&Change> = others.iter().flat_map(|finding| &finding.changes).collect();
        hold("all findings", &all);
        let first = placements.first().iter().flat_map(|finding| &finding.changes).collect::<Vec<_>>();
        hold("all findings and the first placement", &[all.clone(), first].concat());
        typed += all.len();
    }
    assert!(typed > 50 && alone > 80 && better > 40, "{typed} commands, {alone} findings that type, {better} better");
}
