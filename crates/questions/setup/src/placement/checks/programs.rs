//! Programs of the host that keep threads of VMs waiting: sent to CPUs that no VM has, else given less.

use super::idle_policy;
use super::kernel_work::work_of;
use crate::placement::culprits::{Kind, Verdict, is_real_time};
use crate::placement::model::Model;
use base::shell::printable;
use base::{Change, CpuSet, Evidence, Setting};
use facts::rule::Hit;
use host::machine::{Role, Thread, parted, unit_of};
use tongue::groups::{of_container, of_owner, of_systemd};
use walk::kernel_threads;

/// Programs that are sent elsewhere: of more, what they are started by is the one to change.
const MOST_MOVED: usize = 4;

/// A group's share of CPU time beside others that want all, of systemd.resource-control(5): 100 where none is set.
const LITTLE: &str = "10";

/// Whether the kernel refuses another mask for a thread: by its flag, else by its name.
pub(super) fn is_fixed(thread: &Thread) -> bool {
    thread.is_fixed || kernel_threads::is_bound(&thread.name)
}

/// The programs that win of these, each once.
fn rivals<'a>(model: &'a Model, verdicts: &[&Verdict]) -> Vec<&'a Thread> {
    let winners = verdicts.iter().filter_map(|verdict| verdict.winner());
    let threads = winners.flat_map(|winner| &winner.threads).map(|position| &model.machine.threads[*position]);
    // Ours ends when the measurement does.
    let of_others = |thread: &&Thread| thread.vm.is_none() && !thread.name.starts_with("kvmscope");
    // What the kernel does for memory goes away with its cause, which PLC-KTHREAD has.
    let can_move = |thread: &&Thread| {
        thread.role == Role::Other && thread.tid.is_some() && !is_fixed(thread) && work_of(&thread.name).is_none()
    };
    let mut programs: Vec<&Thread> = Vec::new();
    for thread in threads.filter(of_others).filter(can_move) {
        if !programs.iter().any(|known| known.tid == thread.tid) {
            programs.push(thread);
        }
    }
    programs
}

/// CPUs with room, where a program may go.
pub(super) fn room(model: &Model, program: &Thread) -> CpuSet {
    let mut free: CpuSet = model.spare().iter().filter(|cpu| model.has_room(*cpu)).collect();
    if free.is_empty() {
        free = model.of_idle_helpers();
    }
    model.machine.limit_of(program).map_or(free.clone(), |(_, limit)| free.and(&limit.value))
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

/// What keeps them from taking so much, where they have no other place: less weight for the group that shares the CPU with the VM's.
pub(super) fn held(model: &Model, verdicts: &[&Verdict], hit: &mut Hit) {
    for program in rivals(model, verdicts) {
        let name = printable(&program.name);
        let position = |thread: &usize| std::ptr::eq(&raw const model.machine.threads[*thread], program);
        let beside =
            verdicts.iter().find(|verdict| verdict.winner().is_some_and(|rival| rival.threads.iter().any(position)));
        let rival = beside.map(|verdict| &model.machine.threads[verdict.victim]);
        if rival.is_some_and(|victim| nicer(model, victim, program, hit)) {
            continue;
        }
        // What it weighs does not matter to who yields to everybody.
        if let Some(vm) =
            rival.filter(|victim| idle_policy::yields(model, victim, program)).and_then(|own| own.vm.as_ref())
        {
            idle_policy::as_usual(model, vm, hit);
            continue;
        }
        let group = beside.and_then(|verdict| Some(parted(&model.machine.threads[verdict.victim], program)?[1]));
        // A weight says nothing of what a real-time policy puts before all others.
        let owners = group.filter(|_| !is_real_time(program)).and_then(|group| {
            let now = model.machine.weights.get(group);
            let was = now.map_or_else(String::new, |now| of_systemd(now, now.value));
            of_container(program.time_group.as_deref()?).or_else(|| of_owner(group, LITTLE, &was))
        });
        if let Some(first) =
            owners.as_ref().and_then(|owners| owners.first.clone()).filter(|first| !hit.first.contains(first))
        {
            hit.first.push(first);
        }
        let (line, back) = match (owners, program.tid) {
            (Some(owners), _) if owners.fix.contains(" # ") => (format!("{}; {name} runs in one", owners.fix), None),
            (Some(owners), _) => {
                // Of a slice all programs yield: which of them it is.
                let unit = program.time_group.as_deref().and_then(unit_of).filter(|unit| !owners.fix.contains(*unit));
                let of = unit.map_or(String::new(), |unit| format!("; it is of {}", printable(unit)));
                (format!("{}   # {name} yields to VMs{of}", owners.fix), owners.undo)
            }
            (None, Some(tid)) if !has_room(model) => (
                format!(
                    "ps -o pid,ppid,args -p {tid}   # no CPU without a vCPU has room: what started {name} is to do less, or a VM to go"
                ),
                None,
            ),
            (None, Some(tid)) => {
                let on = beside.map_or(String::new(), |verdict| format!(", which ran on CPU {}", verdict.cpus));
                (format!("taskset -cp CPUS {tid}   # CPUs without a vCPU for {name}{on}"), None)
            }
            (None, None) => continue,
        };
        if !hit.fix.contains(&line) && hit.fix.len() < MOST_HELD {
            hit.fix.push(line);
            hit.undo.extend(back);
        }
    }
}

/// Nice values so far apart give one twice the other's time or more: 1.25 a step (`sched_prio_to_weight`, Linux 6.12).
const STEPS: i32 = 4;

/// What makes a VM count for as much as a program of its own group that is less nice: within a group that decides, and no weight of
/// groups does. Groups of the root may be those that the kernel makes for each session.
fn nicer(model: &Model, victim: &Thread, program: &Thread, hit: &mut Hit) -> bool {
    let group =
        victim.time_group.as_deref().filter(|group| group.len() > 1 && program.time_group.as_deref() == Some(group));
    let (Some(group), Some(own), Some(other), Some(vm)) = (group, victim.nice, program.nice, &victim.vm) else {
        return false;
    };
    if is_real_time(victim) || is_real_time(program) || own < other + STEPS {
        return false;
    }
    let name = printable(&program.name);
    let said = format!("; {vm} has nice {own} beside {other} of {name}");
    if !hit.title.contains(&said) {
        hit.title.push_str(&said);
        hit.evidence.push(Evidence::new(format!("both are in {group}, where nice decides"), "proc/PID/task/TID/stat"));
    }
    let (threads, to, was) = match own > 0 {
        true => (model.machine.threads_of(vm).filter(|thread| thread.nice == Some(own)).collect(), other.max(0), own),
        false => (vec![program], own, other),
    };
    let threads: Vec<String> = threads.iter().filter_map(|thread| Some(thread.tid?.to_string())).collect();
    let line = |nice: i32| format!("renice -n {nice} -p {}", threads.join(" "));
    if !hit.fix.contains(&line(to)) {
        hit.fix.push(line(to));
        hit.undo.push(line(was));
    }
    true
}

/// Whether a CPU is left for programs, or nobody told how the CPUs are used.
fn has_room(model: &Model) -> bool {
    model.machine.cpu_use.is_empty() || model.spare().iter().any(|cpu| model.has_room(cpu))
}

/// Lines about programs in one finding.
const MOST_HELD: usize = 2;
