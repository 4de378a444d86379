//! Starved threads become a finding, with the move that the model prefers.

use super::Starved;
use base::number::{many, percent};
use base::setting::ThreadId;
use base::{About, Change, Cost, CostKind, Evidence, Finding, Level, Needs, Setting, Severity};
use facts::shares::{Move, Prediction};
use facts::starvation;
use host::sched::Load;

/// Most threads whose case is told in full.
const MOST_TOLD: usize = 6;

/// The finding that `starved` threads, out of `loads`, make; `moves` go with what the model expects of them. `None` if nobody is starved.
pub fn finding(
    starved: &[&Starved<'_>],
    loads: &[Load],
    subject: &str,
    proposal: Option<(&[Move], &Prediction)>,
) -> Option<Finding> {
    let worst = starved.first()?;
    let waited = worst.thread.wait;
    let short: f64 = starved.iter().map(|one| one.thread.wait).sum();
    let mut evidence: Vec<Evidence> = starved
        .iter()
        .take(MOST_TOLD)
        .map(|one| {
            let (pid, tid) = (one.thread.id.pid, one.thread.id.tid);
            let place = format!("/proc/{pid}/task/{tid}/schedstat, read twice");
            Evidence::new(one.sentence(), place).about(i32::try_from(tid).map(|tid| About::Thread { tid }))
        })
        .collect();
    let mut changes = Vec::new();
    if let Some((moves, prediction)) = proposal {
        for one in moves {
            let load = loads.iter().find(|load| load.id.tid == one.tid)?;
            let thread = ThreadId {
                tid: i32::try_from(one.tid).ok()?,
                start_ticks: Some(load.id.start_ticks),
                comm: Some(load.name.clone()),
            };
            let (cpus, from) = (one.cpus.to_string(), Some(load.allowed.to_string()));
            changes.push(Setting::TaskAffinity(thread).change(cpus, from));
        }
        for (tid, now, after) in &prediction.shares {
            evidence.push(Evidence::new(
                format!("thread {tid} would get {} of a CPU instead of {} (modelled)", percent(*after), percent(*now)),
                "model: equal shares among threads that want the same CPU, less with a busy sibling",
            ));
        }
    }
    // Those that wait themselves are not who takes the CPU.
    let waits = |rival: &Load| starved.iter().any(|one| one.thread.id == rival.id);
    let rivals = worst.against.iter().filter(|rival| !waits(rival));
    let rivals: Vec<String> = rivals.map(|rival| rival.name.clone()).take(2).collect();
    let by = if rivals.is_empty() { String::new() } else { format!(" while {} ran", base::number::list(&rivals)) };
    Some(Finding {
        rule: starvation::RULE,
        subject: subject.to_owned(),
        per: "thread",
        severity: Severity::High,
        level: Level::L0,
        title: format!(
            "{} waited {}{} of the time for CPU {}{by}",
            many(starved.len() as u64, "thread"),
            if starved.len() > 1 { "up to " } else { "" },
            percent(waited),
            worst.thread.cpu
        )
        .replacen("1 thread", &worst.thread.name, usize::from(starved.len() == 1)),
        evidence,
        cost: Cost::of(CostKind::Measured, short, starvation::UNIT),
        gives_back: None,
        explains: Vec::new(),
        why: starvation::WHY.to_owned(),
        fix: changes.iter().map(Change::command).collect(),
        undo: changes.iter().filter_map(Change::undo).collect(),
        changes,
        needs: Needs::Nothing,
        source: starvation::SOURCE,
    })
}

#[cfg(test)]
mod tests {
    use super::super::starved;
    use super::super::tests::load;
    use super::*;
    use base::CpuSet;
    use facts::shares::{Contender, Cpus, best_moves, predict};

    #[test]
    fn the_finding_names_the_culprit_and_types_the_move_with_its_way_back() {
        let loads = [load(1, "CPU 0/KVM", 0, 0.6, 0.4), load(2, "vhost-1", 0, 0.3, 0.6)];
        let all = starved(&loads);
        let vhost: Vec<&Starved<'_>> = all.iter().filter(|one| one.thread.id.tid == 2).collect();
        let (cpus, threads) = (Cpus::new((0..2).map(|cpu| (cpu, cpu, 0.0))), loads.each_ref().map(Contender::from));
        let (moves, prediction) = best_moves(&cpus, &threads, &[2], &CpuSet::parse("0-1").unwrap()).unwrap();
        assert_eq!(prediction, predict(&cpus, &threads, &moves));
        let found = finding(&vhost, &loads, "vhost-1", Some((&moves, &prediction))).unwrap();
        assert_eq!(found.title, "vhost-1 waited 60.0 % of the time for CPU 0 while CPU 0/KVM ran");
        assert_eq!((found.fix, found.undo), (vec!["taskset -cp 1 2".to_owned()], vec!["taskset -cp 0 2".to_owned()]));
        assert_eq!((found.cost.value, found.cost.unit.as_str()), (Some(0.6), "CPUs short"));
        assert!(finding(&[], &loads, "vhost-1", None).is_none());
    }
}
