//! Which explanations are left, what does each predict, and which command decides?
//!
//! One measured run can fit several causes, and a change that helps may relieve all of them at once. So each explanation that
//! the facts allow is listed with what it predicts and what would decide; none is chosen without that.

use super::culprits::{Kind, Scene};
use super::model::{Model, STARVED};
use base::{Cell, CpuSet, Table, TableSpec, shown, table};
use host::machine::{Domain, Role, Thread};

/// A share of a CPU that is worth a theory: our own limit.
const MUCH: f64 = 0.1;

pub struct Hypothesis {
    /// `H1`.
    pub id: &'static str,
    pub vm: String,
    pub says: &'static str,
    /// What would be seen if it were so.
    pub predicts: &'static str,
    pub so_far: String,
    pub decides: &'static str,
}

/// Explanations for domains whose helpers may run on the CPUs of vCPUs.
pub fn hypotheses(model: &Model) -> Vec<Hypothesis> {
    let mut all = Vec::new();
    for domain in &model.machine.domains {
        let helpers: Vec<&Thread> = model.helpers(domain).collect();
        let workers: Vec<&&Thread> = helpers.iter().filter(|thread| thread.role == Role::Vhost).collect();
        let shared = |thread: &&&Thread| {
            let set = thread.affinity.as_ref().map(|set| &set.value);
            set.is_some_and(|set| {
                model.vcpus(domain).any(|vcpu| vcpu.affinity.as_ref().is_some_and(|other| other.value.meets(set)))
            })
        };
        if workers.iter().filter(|thread| shared(thread)).count() == 0 {
            continue;
        }
        all.extend(of_domain(model, domain, &workers));
    }
    all
}

fn of_domain(model: &Model, domain: &Domain, workers: &[&&Thread]) -> Vec<Hypothesis> {
    let starvation = workers.iter().filter_map(|thread| thread.starvation()).max_by(f64::total_cmp);
    let make = |id, says, predicts, so_far: String, decides| Hypothesis {
        id,
        vm: domain.name.clone(),
        says,
        predicts,
        so_far,
        decides,
    };
    let masks = workers.iter().filter_map(|thread| Some(&thread.affinity.as_ref()?.value));
    let cpus = masks.fold(CpuSet::default(), |all, set| all.or(set));
    let mut all = vec![make(
        "H1",
        "vCPU threads and vhost workers share CPUs",
        "vhost waits for more than 20 % of its runnable time while vCPUs run on its CPUs",
        match starvation {
            Some(most) if most > STARVED => match other_cause(model, workers) {
                Some(cause) => format!(
                    "not supported: a worker waited for {:.0} % of its runnable time, but {cause}",
                    most * 100.0
                ),
                None => format!("supported: a worker waited for {:.0} % of its runnable time", most * 100.0),
            },
            Some(most) => {
                format!("not supported: the worst worker waited for {:.0} % of its runnable time", most * 100.0)
            }
            None => "open: their masks overlap; waiting was not measured".to_owned(),
        },
        "kvmscope check   # on the host: reads schedstat of every thread twice",
    )];
    // Only the workers' own CPUs count: another CPU that is full of interrupts takes nothing from them.
    let softirqs = cpus.iter().filter_map(|cpu| Some((cpu, model.machine.cpu_use.get(&cpu)?.softirq)));
    all.push(make(
        "H2",
        "interrupts and softirqs of the NIC saturate the workers' CPUs",
        "those CPUs spend a large share in softirqs, and moving the interrupts alone fixes it",
        match softirqs.max_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((cpu, most)) => format!(
                "{}: on CPU {cpu}, the worst of the workers' CPUs, softirqs took {:.0} % of the time",
                if most > MUCH { "supported" } else { "not supported" },
                most * 100.0
            ),
            None => placed(model, &cpus),
        },
        "mpstat -P ALL 2 1; cat /proc/interrupts; sleep 2; cat /proc/interrupts",
    ));
    if domain.interfaces.iter().any(|interface| interface.queues.unwrap_or(1) > 1) {
        all.push(make(
            "H3",
            "each NIC uses one of its queues, the others are idle",
            "all workers of a NIC but one are nearly idle",
            used(workers),
            "pidstat -t -p ALL 2 1 | grep vhost   # and in the guest: ethtool -l DEV",
        ));
    }
    if model.machine.topology.has_siblings() {
        all.push(make(
            "H4",
            "sibling threads were counted as cores: half the cores did all the work",
            "moving helpers to other cores helps even while the old CPUs have idle time",
            "open: no instructions per cycle, and no run with the siblings idle".to_owned(),
            "perf stat -a --per-core -e cycles,instructions sleep 2   # before and after",
        ));
    }
    if model.machine.screens.len() > 1 {
        all.push(make(
            "H5",
            "the samples are of other runs than the text states",
            "CPU times of the same threads contradict the stated order",
            "see EVD-ORDER and EVD-MASK; without timestamps, which run they show stays open".to_owned(),
            "date; top -H -b -n 2 -d 5   # with timestamps, before and after",
        ));
    }
    all.push(make(
        "H6",
        "other programs of the host run on the workers' CPUs",
        "those CPUs are busy with threads of no VM, and moving these alone fixes it",
        match Scene::of(&model.machine).programs(&cpus) {
            Some((cpu, most, busiest)) => format!(
                "{}: on CPU {cpu}, the worst of the workers' CPUs, other programs ran for {:.0} % of the time{busiest}",
                if most > MUCH { "supported" } else { "not supported" },
                most * 100.0
            ),
            None => "open: how the CPUs were used was not measured".to_owned(),
        },
        "pidstat -t -p ALL 2 1   # %CPU and the last CPU of every thread",
    ));
    all
}

/// What kept the worst worker from running, where that was not a vCPU of its VM.
fn other_cause(model: &Model, workers: &[&&Thread]) -> Option<String> {
    let of = |thread: &Thread| {
        let position = model.machine.threads.iter().position(|other| std::ptr::eq(other, thread))?;
        model.verdicts.about(position)
    };
    let verdicts = workers.iter().filter_map(|thread| of(thread));
    let worst = verdicts.max_by(|a, b| a.waited.total_cmp(&b.waited))?.winner()?;
    (worst.kind != Kind::Vcpus).then(|| worst.to_string())
}

/// Where the cards' interrupts may come, as far as that is told.
fn placed(model: &Model, cpus: &CpuSet) -> String {
    let of_cards = model.machine.irqs.iter().filter(|irq| model.machine.nic_of(irq).is_some());
    let masks: Vec<_> = of_cards.filter_map(|irq| irq.affinity.as_ref()).collect();
    let there = masks.iter().filter(|mask| mask.value.meets(cpus)).count();
    match masks.len() {
        0 => "open: the evidence has no softirq time and no interrupt affinity".to_owned(),
        all => format!("open: {there} of {all} NIC interrupts may fire there; the evidence has no softirq time"),
    }
}

/// Whether some workers carry everything, where all of them were looked at.
fn used(workers: &[&&Thread]) -> String {
    let runs: Vec<f64> = workers.iter().filter_map(|thread| Some(thread.run_share.as_ref()?.value)).collect();
    // A share without its waiting comes from a screen, which may be cut off or of another moment.
    let looked_at = workers.iter().filter(|thread| thread.wait_share.is_some()).count();
    let idle = runs.iter().filter(|run| **run < 0.01).count();
    match (looked_at == workers.len() && workers.len() > 1, idle) {
        (false, _) => "open: the samples list only some workers; the others may be idle or cut off".to_owned(),
        (true, 0) => format!("not supported: all {} workers ran", runs.len()),
        (true, idle) if idle == runs.len() => "open: no worker ran: there was no load".to_owned(),
        (true, idle) => format!("supported: {idle} of {} workers used less than 1 % of a CPU", runs.len()),
    }
}

pub(crate) const HYPOTHESES: TableSpec = table! {
    placement.hypotheses version 2:
    "One explanation that the facts about one VM still allow, with what it predicts and what would decide.";
    key machine, key vm, key id, text hypothesis, text predicts, text so_far, text decides;
    shown![
        "Explanations still open", 10;
        id: "", hypothesis: "explanation", so_far: "so far", decides: "what would decide it",
    ]
};

pub fn table(models: &[Model]) -> Table {
    let mut table = Table::new(&HYPOTHESES);
    for model in models {
        for row in hypotheses(model) {
            let cells = [model.id.as_str(), row.vm.as_str(), row.id, row.says, row.predicts, &row.so_far, row.decides];
            table.push(cells.into_iter().map(Cell::from).collect());
        }
    }
    table
}
