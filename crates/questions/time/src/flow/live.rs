//! What happens right now, in the tables of a recording: `top` fills them with what the kernel has folded, without a trace.
//!
//! In: vCPUs with what was seen of them in some stretch of time. Out: `flow.vcpus`, `flow.exits` and `flow.preemptors` in their own columns, and
//! what `live` adds to them. What nothing tells is missing, never 0.

use super::tables::{EXITS, PREEMPTORS, VCPUS};
use base::{Cell, Section, Table, TableSpec, table};

/// The sums of one VM.
const VMS: TableSpec = table! {
    live.vms version 1:
    "What one VM's vCPUs did in the interval: shares of their time, which add up to 1 with what is missing.";
    key machine, key vm, count vcpus, ns wall_ns, share guest, share kvm, share vmm, share irq, share ready, share torn, share halted,
    share blocked, share unknown, f64("exits per second") exits_per_second,
    f64("exits per second") userspace_exits_per_second, ns wakeup_p99_ns, text costliest, share costliest_share,
    text taken_by, share taken_share, count missed;
};

/// Returns to the VMM by reason.
const USERSPACE_EXITS: TableSpec = table! {
    live.userspace_exits version 1: "How often KVM_RUN of one vCPU returned to its VMM for one reason in the interval.";
    key machine, key vm, key_u64("") vcpu, key reason, count count;
};

/// The tables that only a live look has.
pub const TABLES: &[&TableSpec] = &[&VMS, &USERSPACE_EXITS];

/// Guests of the host are told, and none of theirs.
const GUEST_LEVEL: &str = "L1";

/// A vCPU in an interval.
#[derive(Debug, Clone, Default)]
pub struct Vcpu {
    pub vm: String,
    pub vcpu: u32,
    pub tid: i32,
    pub wall_ns: u64,
    pub guest_ns: Option<u64>,
    /// KVM at work on exits.
    pub handling_ns: Option<u64>,
    pub userspace_ns: Option<u64>,
    pub irq_ns: Option<u64>,
    pub softirq_ns: Option<u64>,
    pub nmi_ns: Option<u64>,
    pub halted_ns: Option<u64>,
    pub wake_delay_ns: Option<u64>,
    pub preempted_ns: Option<u64>,
    /// CPU Ready: pre-empted, or woken and not yet running. Where the two are not told apart only this is known.
    pub ready_ns: Option<u64>,
    pub blocked_ns: Option<u64>,
    pub unknown_ns: Option<u64>,
    /// Ready while another vCPU of its VM ran.
    pub torn_ns: Option<u64>,
    /// By reason; `None` where exits are silent.
    pub exits: Option<Vec<Exits>>,
    /// Returns to the VMM by reason; `None` where they are not told.
    pub userspace_exits: Option<Vec<(String, u64)>>,
    /// Who had its CPU while it was ready.
    pub preemptors: Option<Vec<Preemptor>>,
    /// Of its wake-ups 99 % waited at most so long for a CPU.
    pub wakeup_p99_ns: Option<u64>,
    /// How many of them waited for less than each of these, in ns, and no less than the one before.
    pub wakeups: Vec<(u64, u64)>,
    /// How often its story had a hole; `None` where nobody would know.
    pub missed: Option<u64>,
}

/// Exits for one reason.
#[derive(Debug, Clone)]
pub struct Exits {
    pub reason: String,
    pub count: u64,
    /// Without a cost, because the next entry was not seen.
    pub clipped: u64,
    pub total_ns: u64,
    /// Upper edges of bins, two to a doubling.
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// How many cost less than each of these, in ns, and no less than the one before.
    pub bins: Vec<(u64, u64)>,
}

/// Who had the CPU that a vCPU was ready for.
#[derive(Debug, Clone)]
pub struct Preemptor {
    pub by: String,
    /// `None`: it is not known who.
    pub tid: Option<i32>,
    pub count: u64,
    pub total_ns: u64,
    pub max_ns: Option<u64>,
}

/// Sections `flow` and `live` of `machine`.
pub fn sections(machine: &str, vcpus: &[Vcpu], about: Vec<String>, summary: String) -> Vec<Section> {
    let mut flow = Section::new("flow", super::QUESTION);
    flow.tables = vec![vcpus_table(machine, vcpus), exits(machine, vcpus), preemptors(machine, vcpus)];
    let mut live = Section::new("live", "What do the vCPUs of this host do right now?");
    live.tables = vec![vms(machine, vcpus), userspace_exits(machine, vcpus)];
    (live.about, live.summary) = (about, summary);
    vec![flow, live]
}

fn keys(machine: &str, vcpu: &Vcpu) -> Vec<Cell> {
    vec![machine.into(), vcpu.vm.as_str().into(), u64::from(vcpu.vcpu).into()]
}

fn vcpus_table(machine: &str, vcpus: &[Vcpu]) -> Table {
    let mut table = Table::new(&VCPUS);
    for vcpu in vcpus {
        let mut row = keys(machine, vcpu);
        row.extend([Cell::I64(vcpu.tid.into()), vcpu.wall_ns.into()]);
        // All levels are one, the guest's.
        let none = || [const { Cell::Missing }; 3];
        row.push(vcpu.guest_ns.into());
        row.extend(none());
        row.push(vcpu.handling_ns.into());
        row.extend(none());
        row.extend([vcpu.userspace_ns, vcpu.irq_ns, vcpu.softirq_ns, vcpu.nmi_ns].map(Cell::from));
        // Polling is part of handling here.
        row.push(Cell::Missing);
        let rest = [vcpu.halted_ns, vcpu.wake_delay_ns, vcpu.preempted_ns, vcpu.blocked_ns, vcpu.unknown_ns];
        row.extend(rest.map(Cell::from));
        let sum = |of: fn(&Exits) -> u64| vcpu.exits.as_ref().map(|exits| exits.iter().map(of).sum::<u64>());
        row.extend([sum(|exits| exits.count).into(), sum(|exits| exits.clipped).into()]);
        table.push(row);
    }
    table
}

fn exits(machine: &str, vcpus: &[Vcpu]) -> Table {
    let all = || vcpus.iter().flat_map(|vcpu| vcpu.exits.iter().flatten().map(move |exits| (vcpu, exits)));
    let (count, total_ns) = all().fold((0, 0), |sums, (_, exits)| (sums.0 + exits.count, sums.1 + exits.total_ns));
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let mut table = Table::new(&EXITS);
    for (vcpu, exits) in all() {
        let known = exits.count > exits.clipped;
        let mut row = keys(machine, vcpu);
        row.extend([GUEST_LEVEL.into(), exits.reason.as_str().into(), exits.count.into()]);
        row.push(known.then_some(exits.total_ns).into());
        row.extend([exits.p50_ns, exits.p90_ns, exits.p99_ns, exits.max_ns].map(Cell::from));
        row.push(share(exits.count, count).into());
        row.push(share(exits.total_ns, total_ns).filter(|_| known).into());
        table.push(row);
    }
    table
}

fn preemptors(machine: &str, vcpus: &[Vcpu]) -> Table {
    let mut table = Table::new(&PREEMPTORS);
    for vcpu in vcpus {
        for by in vcpu.preemptors.iter().flatten() {
            let mut row = keys(machine, vcpu);
            row.extend([by.by.as_str().into(), by.tid.map_or(Cell::Missing, |tid| Cell::I64(tid.into()))]);
            row.extend([by.count.into(), by.total_ns.into(), by.max_ns.into()]);
            table.push(row);
        }
    }
    table
}

fn userspace_exits(machine: &str, vcpus: &[Vcpu]) -> Table {
    let mut table = Table::new(&USERSPACE_EXITS);
    for vcpu in vcpus {
        for (reason, count) in vcpu.userspace_exits.iter().flatten() {
            let mut row = keys(machine, vcpu);
            row.extend([reason.as_str().into(), (*count).into()]);
            table.push(row);
        }
    }
    table
}

fn vms(machine: &str, vcpus: &[Vcpu]) -> Table {
    let mut table = Table::new(&VMS);
    for vm in Vm::of(vcpus) {
        let share = |of: Option<f64>| Cell::from(of);
        let mut row: Vec<Cell> = vec![machine.into(), vm.name.into(), vm.vcpus.into(), vm.wall_ns.into()];
        row.extend([vm.guest, vm.kvm, vm.vmm, vm.irq, vm.ready, vm.torn, vm.halted, vm.blocked, vm.unknown].map(share));
        row.extend([vm.exits_per_second, vm.userspace_exits_per_second].map(share));
        row.push(vm.wakeup_p99_ns.into());
        let (reason, of_time) = vm.costliest.map_or((None, None), |most| (Some(most.reason), Some(most.share)));
        row.extend([reason.into(), share(of_time)]);
        let (by, taken) = vm.taken.map_or((None, None), |(by, taken)| (Some(by), Some(taken)));
        row.extend([by.into(), share(taken), vm.missed.into()]);
        table.push(row);
    }
    table
}

/// One VM: shares of the time of its vCPUs, `None` where nothing tells.
#[derive(Debug, Clone)]
pub struct Vm<'v> {
    pub name: &'v str,
    pub vcpus: u64,
    pub wall_ns: u64,
    pub guest: Option<f64>,
    pub kvm: Option<f64>,
    pub vmm: Option<f64>,
    /// Interrupts, softirqs and NMIs of the host.
    pub irq: Option<f64>,
    /// Pre-empted, or woken and not yet running: CPU Ready.
    pub ready: Option<f64>,
    /// Part of `ready`: another vCPU of the VM ran meanwhile.
    pub torn: Option<f64>,
    pub halted: Option<f64>,
    pub blocked: Option<f64>,
    pub unknown: Option<f64>,
    pub exits_per_second: Option<f64>,
    pub userspace_exits_per_second: Option<f64>,
    /// The longest of its vCPUs.
    pub wakeup_p99_ns: Option<u64>,
    pub costliest: Option<Costliest>,
    /// Who took most, and its share of the VM's time.
    pub taken: Option<(String, f64)>,
    pub missed: Option<u64>,
}

/// The reason that takes most of a VM's time.
#[derive(Debug, Clone)]
pub struct Costliest {
    pub reason: String,
    pub mean_ns: f64,
    pub share: f64,
}

impl<'v> Vm<'v> {
    /// The VMs of these vCPUs, in the order of their names.
    pub fn of(vcpus: &'v [Vcpu]) -> Vec<Self> {
        let mut names: Vec<&str> = vcpus.iter().map(|vcpu| vcpu.vm.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let of = |name: &'v str| Self::summed(name, &vcpus.iter().filter(|vcpu| vcpu.vm == name).collect::<Vec<_>>());
        names.into_iter().map(of).collect()
    }

    fn summed(name: &'v str, vcpus: &[&Vcpu]) -> Self {
        let wall_ns: u64 = vcpus.iter().map(|vcpu| vcpu.wall_ns).sum();
        // Unknown of one vCPU is unknown of the sum.
        let sum = |of: &dyn Fn(&Vcpu) -> Option<u64>| vcpus.iter().map(|vcpu| of(vcpu)).sum::<Option<u64>>();
        let share_ns = |ns: u64| ns as f64 / wall_ns.max(1) as f64;
        let share = |of: &dyn Fn(&Vcpu) -> Option<u64>| sum(of).filter(|_| wall_ns > 0).map(share_ns);
        let longest_ns = vcpus.iter().map(|vcpu| vcpu.wall_ns).max().unwrap_or(0);
        let rate =
            |count: Option<u64>| count.filter(|_| longest_ns > 0).map(|count| count as f64 * 1e9 / longest_ns as f64);
        let exits = |vcpu: &Vcpu| vcpu.exits.as_ref().map(|exits| exits.iter().map(|exits| exits.count).sum());
        let returns =
            |vcpu: &Vcpu| vcpu.userspace_exits.as_ref().map(|exits| exits.iter().map(|(_, count)| count).sum());
        let three = |a: Option<u64>, b: Option<u64>, c: Option<u64>| Some(a? + b? + c?);
        Self {
            name,
            vcpus: vcpus.len() as u64,
            wall_ns,
            guest: share(&|vcpu| vcpu.guest_ns),
            kvm: share(&|vcpu| vcpu.handling_ns),
            vmm: share(&|vcpu| vcpu.userspace_ns),
            irq: share(&|vcpu| three(vcpu.irq_ns, vcpu.softirq_ns, vcpu.nmi_ns)),
            ready: share(&|vcpu| vcpu.ready_ns),
            torn: share(&|vcpu| vcpu.torn_ns),
            halted: share(&|vcpu| vcpu.halted_ns),
            blocked: share(&|vcpu| vcpu.blocked_ns),
            unknown: share(&|vcpu| vcpu.unknown_ns),
            exits_per_second: rate(sum(&exits)),
            userspace_exits_per_second: rate(sum(&returns)),
            wakeup_p99_ns: vcpus.iter().filter_map(|vcpu| vcpu.wakeup_p99_ns).max(),
            costliest: costliest(vcpus, wall_ns),
            taken: taken(vcpus, wall_ns),
            missed: sum(&|vcpu| vcpu.missed),
        }
    }
}

fn costliest(vcpus: &[&Vcpu], wall_ns: u64) -> Option<Costliest> {
    let mut sums: Vec<(&str, u64, u64)> = Vec::new();
    for exits in vcpus.iter().flat_map(|vcpu| vcpu.exits.iter().flatten()) {
        let timed = exits.count - exits.clipped;
        match sums.iter_mut().find(|(reason, ..)| *reason == exits.reason) {
            Some(sum) => *sum = (sum.0, sum.1 + timed, sum.2 + exits.total_ns),
            None => sums.push((&exits.reason, timed, exits.total_ns)),
        }
    }
    let (reason, count, total_ns) = sums.into_iter().max_by_key(|(.., total_ns)| *total_ns)?;
    (count > 0 && wall_ns > 0).then(|| Costliest {
        reason: reason.to_owned(),
        mean_ns: total_ns as f64 / count as f64,
        share: total_ns as f64 / wall_ns as f64,
    })
}

fn taken(vcpus: &[&Vcpu], wall_ns: u64) -> Option<(String, f64)> {
    let mut sums: Vec<(&str, Option<i32>, u64)> = Vec::new();
    for by in vcpus.iter().flat_map(|vcpu| vcpu.preemptors.iter().flatten()) {
        match sums.iter_mut().find(|(_, tid, _)| *tid == by.tid) {
            Some(sum) => sum.2 += by.total_ns,
            None => sums.push((&by.by, by.tid, by.total_ns)),
        }
    }
    let (by, _, total_ns) = sums.into_iter().max_by_key(|(.., total_ns)| *total_ns)?;
    (total_ns > 0 && wall_ns > 0).then(|| (by.to_owned(), total_ns as f64 / wall_ns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcpu(vm: &str, number: u32, guest_ns: Option<u64>, ready_ns: u64) -> Vcpu {
        Vcpu {
            vm: vm.to_owned(),
            vcpu: number,
            wall_ns: 1_000,
            guest_ns,
            ready_ns: Some(ready_ns),
            unknown_ns: Some(0),
            ..Vcpu::default()
        }
    }

    #[test]
    fn what_is_unknown_of_one_vcpu_is_unknown_of_its_vm_and_never_0() {
        let vcpus = [vcpu("web", 0, Some(500), 100), vcpu("web", 1, None, 300), vcpu("db", 0, Some(250), 0)];
        let vms = Vm::of(&vcpus);
        assert_eq!((vms[0].name, vms[0].guest, vms[0].ready), ("db", Some(0.25), Some(0.0)));
        assert_eq!((vms[1].name, vms[1].vcpus, vms[1].guest, vms[1].ready), ("web", 2, None, Some(0.2)));
        assert_eq!(vms[1].exits_per_second, None);
    }

    #[test]
    fn tables_have_the_columns_of_recordings() {
        let exits = |reason: &str, count, total_ns| Exits {
            reason: reason.to_owned(),
            count,
            clipped: 0,
            total_ns,
            p50_ns: Some(12),
            p90_ns: Some(12),
            p99_ns: Some(16),
            max_ns: None,
            bins: Vec::new(),
        };
        let by = Preemptor { by: "hog".to_owned(), tid: Some(9), count: 2, total_ns: 90, max_ns: Some(60) };
        let all = vec![exits("MSR", 30, 300), exits("HLT", 10, 100)];
        let one = Vcpu { exits: Some(all), preemptors: Some(vec![by]), ..vcpu("web", 0, Some(500), 100) };
        let sections = sections("L0", &[one], vec!["here".to_owned()], "all well".to_owned());
        let row = |section: usize, table: usize| sections[section].tables[table].rows().next().unwrap();
        assert_eq!(row(0, 0).cell("exits"), Some(&Cell::U64(40)));
        assert_eq!(
            (row(0, 0).cell("halt_poll_ns"), row(0, 0).cell("guest_l1_ns")),
            (Some(&Cell::Missing), Some(&Cell::U64(500)))
        );
        assert_eq!((row(0, 1).text("reason"), row(0, 1).cell("count_share")), (Some("MSR"), Some(&Cell::F64(0.75))));
        assert_eq!(row(0, 2).text("by"), Some("hog"));
        assert_eq!((row(1, 0).text("costliest"), row(1, 0).text("taken_by")), (Some("MSR"), Some("hog")));
    }
}
