//! The sums of intervals: what a vCPU did since the program was started.

use analysis::flow::live::{Preemptor, Vcpu};

/// Adds an interval to `all`. What is unknown of one interval is unknown of the sum; quantiles of a sum are not known.
pub(super) fn add(all: &mut Vec<Vcpu>, vcpus: &[Vcpu]) {
    for vcpu in vcpus {
        match all.iter_mut().find(|known| (&known.vm, known.vcpu, known.tid) == (&vcpu.vm, vcpu.vcpu, vcpu.tid)) {
            Some(known) => add_vcpu(known, vcpu),
            None => all.push(vcpu.clone()),
        }
    }
}

fn add_vcpu(sum: &mut Vcpu, more: &Vcpu) {
    sum.wall_ns += more.wall_ns;
    let times: [fn(&mut Vcpu) -> &mut Option<u64>; 14] = [
        |vcpu| &mut vcpu.guest_ns,
        |vcpu| &mut vcpu.handling_ns,
        |vcpu| &mut vcpu.userspace_ns,
        |vcpu| &mut vcpu.irq_ns,
        |vcpu| &mut vcpu.softirq_ns,
        |vcpu| &mut vcpu.nmi_ns,
        |vcpu| &mut vcpu.halted_ns,
        |vcpu| &mut vcpu.wake_delay_ns,
        |vcpu| &mut vcpu.preempted_ns,
        |vcpu| &mut vcpu.ready_ns,
        |vcpu| &mut vcpu.blocked_ns,
        |vcpu| &mut vcpu.unknown_ns,
        |vcpu| &mut vcpu.torn_ns,
        |vcpu| &mut vcpu.missed,
    ];
    let mut added = more.clone();
    for of in times {
        let more = *of(&mut added);
        let known = of(sum);
        *known = known.zip(more).map(|(known, more)| known + more);
    }
    sum.exits = joined(
        sum.exits.take(),
        added.exits,
        |one, other| one.reason == other.reason,
        |known, more| {
            (known.count, known.clipped) = (known.count + more.count, known.clipped + more.clipped);
            known.total_ns += more.total_ns;
            known.max_ns = known.max_ns.max(more.max_ns);
            (known.p50_ns, known.p90_ns, known.p99_ns) = (None, None, None);
            known.bins.clear();
        },
    );
    sum.userspace_exits = joined(
        sum.userspace_exits.take(),
        added.userspace_exits,
        |one, other| one.0 == other.0,
        |known, more| known.1 += more.1,
    );
    sum.preemptors = joined(sum.preemptors.take(), added.preemptors, same_taker, |known, more| {
        (known.count, known.total_ns) = (known.count + more.count, known.total_ns + more.total_ns);
        known.max_ns = known.max_ns.max(more.max_ns);
    });
    sum.wakeup_p99_ns = None;
    sum.wakeups.clear();
}

fn same_taker(one: &Preemptor, other: &Preemptor) -> bool {
    (&one.by, one.tid) == (&other.by, other.tid)
}

/// The rows of both, those that are the same as one.
fn joined<T>(
    known: Option<Vec<T>>,
    more: Option<Vec<T>>,
    is_same: impl Fn(&T, &T) -> bool,
    add: impl Fn(&mut T, T),
) -> Option<Vec<T>> {
    let (mut known, more) = (known?, more?);
    for row in more {
        match known.iter_mut().find(|known| is_same(known, &row)) {
            Some(known) => add(known, row),
            None => known.push(row),
        }
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::flow::live::Exits;

    #[test]
    fn intervals_add_up_and_what_one_does_not_know_the_sum_does_not() {
        let exits = |count, max_ns| Exits {
            reason: "MSR".to_owned(),
            count,
            clipped: 0,
            total_ns: 10 * count,
            p50_ns: Some(1),
            p90_ns: Some(1),
            p99_ns: Some(1),
            max_ns,
            bins: Vec::new(),
        };
        let vcpu = |guest_ns, ready_ns, exits| Vcpu {
            vm: "web".to_owned(),
            wall_ns: 100,
            guest_ns,
            ready_ns,
            exits: Some(vec![exits]),
            ..Vcpu::default()
        };
        let mut all = Vec::new();
        add(&mut all, &[vcpu(Some(60), Some(1), exits(2, Some(30)))]);
        add(&mut all, &[vcpu(None, Some(2), exits(3, None)), Vcpu { vm: "db".to_owned(), ..Vcpu::default() }]);
        assert_eq!((all.len(), all[0].wall_ns, all[0].guest_ns, all[0].ready_ns), (2, 200, None, Some(3)));
        let sum = &all[0].exits.as_ref().unwrap()[0];
        assert_eq!((sum.count, sum.total_ns, sum.max_ns, sum.p99_ns), (5, 50, Some(30), None));
    }
}
