//! Programs of the host that keep threads of VMs waiting: sent to CPUs that no VM has, else given less.

use super::kernel_work::work_of;
use super::slice::ROOM;
use crate::placement::culprits::{Kind, Verdict, is_real_time};
use crate::placement::model::Model;
use base::shell::{printable, quoted};
use base::{Change, CpuSet, Setting};
use facts::rule::Hit;
use host::machine::{Role, Thread};
use walk::kernel_threads::is_bound;

/// Programs that are sent elsewhere: of more, what they are started by is the one to change.
const MOST_MOVED: usize = 4;

/// A group's share of CPU time beside others that want all, of systemd.resource-control(5): 100 where none is set.
const LITTLE: &str = "10";

/// The programs that win of these, each once.
fn rivals<'a>(model: &'a Model, verdicts: &[&Verdict]) -> Vec<&'a Thread> {
    let winners = verdicts.iter().filter_map(|verdict| verdict.winner());
    let threads = winners.flat_map(|winner| &winner.threads).map(|position| &model.machine.threads[*position]);
    // Ours ends when the measurement does.
    let of_others = |thread: &&Thread| thread.vm.is_none() && !thread.name.starts_with("kvmscope");
    // What the kernel does for memory goes away with its cause, which PLC-KTHREAD has.
    let can_move = |thread: &&Thread| {
        thread.role == Role::Other && thread.tid.is_some() && !is_bound(&thread.name) && work_of(&thread.name).is_none()
    };
    let mut programs: Vec<&Thread> = Vec::new();
    for thread in threads.filter(of_others).filter(can_move) {
        if !programs.iter().any(|known| known.tid == thread.tid) {
            programs.push(thread);
        }
    }
    programs
}

/// CPUs with room that no thread of a VM is bound to, and where a program may go.
fn room(model: &Model, program: &Thread) -> CpuSet {
    let machine = &model.machine;
    let idle = |cpu: &u32| machine.cpu_use.get(cpu).is_some_and(|usage| usage.idle >= ROOM);
    let free: CpuSet = model.unbound().iter().filter(idle).collect();
    // Nor where a placement on the same page sends a vCPU.
    let units = &model.proposal.task.units;
    let placed = model.proposal.better().into_iter().flat_map(|plan| units.iter().zip(&plan.places));
    let placed = placed.filter(|(unit, place)| unit.kind.is_pinned() && unit.now.as_ref() != Some(place));
    let free = placed.fold(free, |free, (_, place)| free.without(place));
    let free = machine.topology.isolated.as_ref().map_or(free.clone(), |isolated| free.without(isolated));
    machine.limit_of(program).map_or(free.clone(), |(_, limit)| free.and(&limit.value))
}

/// What sends them there, where a few programs are all that the threads wait for; none where one has no other place.
pub(super) fn moved(model: &Model, verdicts: &[&Verdict]) -> Vec<Change> {
    let programs = rivals(model, verdicts);
    let all = verdicts.iter().all(|verdict| verdict.winner().is_some_and(|winner| winner.kind == Kind::Programs));
    if !all || programs.len() > MOST_MOVED {
        return Vec::new();
    }
    let change = |program: &&Thread| {
        let (to, from) = (room(model, program), &program.affinity.as_ref()?.value);
        // Nobody was kept waiting by one that may run nowhere else already; nor are several to share one CPU.
        let leaves = to.len() >= programs.len() && !from.is_within(&to);
        leaves.then_some(Setting::TaskAffinity(program.id()?).change(to.to_string(), Some(from.to_string())))
    };
    let changes: Option<Vec<Change>> = programs.iter().map(change).collect();
    changes.unwrap_or_default()
}

/// What keeps them from taking so much, where they have no other place.
pub(super) fn held(model: &Model, verdicts: &[&Verdict], hit: &mut Hit) {
    for program in rivals(model, verdicts) {
        let group = program.time_group.as_deref().or(program.cgroup.as_deref()).unwrap_or_default();
        let unit =
            group.rsplit('/').find(|name| [".slice", ".scope", ".service"].iter().any(|kind| name.ends_with(kind)));
        let name = printable(&program.name);
        let (line, back) = match (unit, program.tid) {
            (Some(_), _) if group.contains("kubepods") => (
                format!(
                    "kubectl get pods -A -o wide   # {name} runs in one: resources.requests.cpu is its weight beside others"
                ),
                None,
            ),
            // A weight says nothing of what a real-time policy puts before all others.
            (Some(unit), _) if !is_real_time(program) => {
                let set =
                    |weight: &str| format!("systemctl set-property --runtime {} CPUWeight={weight}", quoted(unit));
                (format!("{}   # {name} yields to VMs; 100 where none is set", set(LITTLE)), Some(set("")))
            }
            (_, Some(tid)) => {
                let on = verdicts.iter().find(|verdict| verdict.winner().is_some()).map(|verdict| &verdict.cpus);
                let on = on.map_or(String::new(), |cpus| format!(", which ran on CPU {cpus}"));
                (format!("taskset -cp CPUS {tid}   # CPUs without a vCPU for {name}{on}"), None)
            }
            (_, None) => continue,
        };
        if !hit.fix.contains(&line) && hit.fix.len() < MOST_HELD {
            hit.fix.push(line);
            hit.undo.extend(back);
        }
    }
}

/// Lines about programs in one finding.
const MOST_HELD: usize = 2;
