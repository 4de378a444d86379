//! Who disturbed a trial? By /proc: which threads that are none of a bed's ran on its CPUs, and what the machine below took.
//!
//! In: what threads did within a window ([`host::sched`]). Out: a sentence for each that took more than a hundredth of it.

use base::datapath::Poller;
use base::number::percent;
use host::sched::Load;

/// Other threads that ran for a smaller share of the window disturbed nobody.
const DISTURBS: f64 = 0.01;
const MOST_NAMED: usize = 8;
/// Steal above which CSIT's kind of search discards a trial (2 %); here it is told.
const MUCH_STEAL: f64 = 0.02;

/// Who took CPU time from pollers, a sentence each, the worst first.
pub(crate) fn interference(pollers: &[Poller], loads: &[Load], steal_share: Option<f64>) -> Vec<String> {
    let mut found: Vec<String> = stolen(steal_share, "of a poller's CPU").into_iter().collect();
    for poller in pollers.iter().filter(|poller| poller.wait_share > DISTURBS) {
        found.push(format!(
            "{} was ready and did not run for {} of the window",
            poller.name,
            percent(poller.wait_share)
        ));
        found.extend(others_on(poller.cpu, |load| load.id.tid == poller.tid, loads));
    }
    found
}

/// Who ran on CPUs of a bed whose threads sleep while nothing comes, and wait for each other: only others are named.
pub(crate) fn others(
    cpus: &[u32],
    is_own: impl Fn(&Load) -> bool,
    loads: &[Load],
    steal_share: Option<f64>,
) -> Vec<String> {
    let on = cpus.iter().flat_map(|cpu| others_on(*cpu, &is_own, loads));
    stolen(steal_share, "of the CPUs' time").into_iter().chain(on).collect()
}

fn stolen(share: Option<f64>, of_what: &str) -> Option<String> {
    let share = share.filter(|share| *share > MUCH_STEAL)?;
    Some(format!("the machine below took {} {of_what}", percent(share)))
}

/// Threads that ran on a CPU, the one that ran most first.
fn others_on(cpu: u32, is_own: impl Fn(&Load) -> bool, loads: &[Load]) -> Vec<String> {
    let is_other = |load: &&Load| !is_own(load) && load.cpu == cpu && load.run > DISTURBS;
    let mut others: Vec<&Load> = loads.iter().filter(is_other).collect();
    others.sort_by(|one, other| other.run.total_cmp(&one.run));
    let sentence = |other: &Load| {
        format!("{} (thread {}) ran {} of the window on CPU {cpu}", other.name, other.id.tid, percent(other.run))
    };
    others.into_iter().take(MOST_NAMED).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::CpuSet;
    use host::sched::ThreadId;

    fn poller(wait_share: f64) -> Poller {
        Poller { name: "pmd-c00/id:9".into(), tid: 9, cpu: 0, run_share: 0.5, wait_share, cycles: None }
    }

    #[test]
    fn who_ran_instead_of_a_poller_is_named_and_nobody_where_it_did_not_wait() {
        let load = |tid, name: &str, cpu, run| {
            let id = ThreadId { pid: 1, tid, start_ticks: 1 };
            Load { id, name: name.into(), cpu, allowed: CpuSet::one(cpu), run, wait: 0.0 }
        };
        let loads =
            [load(9, "pmd-c00/id:9", 0, 0.5), load(5, "cc1", 0, 0.4), load(6, "ld", 1, 0.9), load(7, "sh", 0, 0.001)];
        let found = interference(&[poller(0.4)], &loads, Some(0.03));
        assert_eq!(
            found,
            [
                "the machine below took 3.0 % of a poller's CPU",
                "pmd-c00/id:9 was ready and did not run for 40.0 % of the window",
                "cc1 (thread 5) ran 40.0 % of the window on CPU 0",
            ]
        );
        assert!(interference(&[poller(0.0)], &loads, Some(0.0)).is_empty());
        let beside = others(&[0, 1], |load| load.id.tid == 9, &loads, None);
        let expected =
            ["cc1 (thread 5) ran 40.0 % of the window on CPU 0", "ld (thread 6) ran 90.0 % of the window on CPU 1"];
        assert_eq!(beside, expected, "and not the bed's own");
    }
}
