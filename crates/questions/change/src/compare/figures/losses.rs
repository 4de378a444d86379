//! What did the host take from vCPUs, before and after?

use super::{SIDES, curve, figure};
use base::figure::{Form, On};
use base::number::{counted, duration, many, plain};
use base::{Figure, Span, parallel};
use facts::Case;
use facts::budget::{Goal, Metric, moment_ns, windows_ns};
use facts::ledger::model::{PartFlow, Vcpu};
use facts::ledger::witness::told_levels;
use facts::losses::{Definition, Stretches, VcpuLosses};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// VMs that are told apart: both curves of each.
const MOST_VMS: usize = 3;

/// Points of a curve are this far apart: 0.5 % along the page, less than a pixel.
const APART: f64 = 1.005;

/// One vCPU of one recording.
struct Lost<'c> {
    vm: &'c str,
    span: Span,
    unknown_ns: u64,
    lost: Stretches,
    /// What was lost in the worst window of each length, or in all of a shorter recording.
    worst_ns: Vec<u64>,
    /// Its recording shows all that can be lost.
    is_whole: bool,
}

/// vCPUs that have one curve on each side.
struct Group<'l, 'c> {
    /// Their VM; empty where all are one group.
    vm: &'c str,
    sides: [Vec<&'l Lost<'c>>; 2],
}

/// Both pictures; none if one side has no vCPU, or nothing was lost on either.
pub(super) fn figures(sides: [&[&Case]; 2]) -> Vec<Figure> {
    let budget = sides[1].first().and_then(|case| case.budget());
    let lengths_ns: Vec<u64> = windows_ns(budget).into_iter().collect();
    let lost = sides.map(|side| side.iter().flat_map(|case| of(case, &lengths_ns)).collect::<Vec<_>>());
    let total_ns: u64 = lost.iter().flatten().map(|one| one.lost.total_ns()).sum();
    if lost.iter().any(Vec::is_empty) || total_ns == 0 {
        return Vec::new();
    }
    let (groups, left_out) = groups(&lost);
    let goals = |metric| budget.into_iter().flat_map(move |budget| budget.on_losses(metric));
    let notes = notes(&lost, left_out);
    vec![
        by_window(&groups, &lengths_ns, moment_ns(budget), goals(Metric::PreemptWindow), &notes),
        by_length(&groups, goals(Metric::PreemptPeriod), &notes),
    ]
}

/// What the wanted vCPUs of a recording lost.
fn of<'c>(case: &'c Case, lengths_ns: &[u64]) -> Vec<Lost<'c>> {
    let told = told_levels(case);
    let is_told = |part: &PartFlow| part.twin_of.is_none() && told.contains(&part.level);
    let parts = case.ledger().parts.iter().zip(case.losses()).filter(|(part, _)| is_told(part));
    let all = parts.flat_map(|(part, losses)| part.vcpus.iter().zip(&losses.vcpus).map(move |one| (part, one)));
    let wanted: Vec<(&PartFlow, (&Vcpu, &VcpuLosses))> =
        all.filter(|(_, (vcpu, _))| case.given().narrow.wants_vcpu(&vcpu.vm, vcpu.vcpu)).collect();
    parallel::map(wanted.len(), |number| {
        let (part, (vcpu, losses)) = wanted[number];
        let (span, lost) = (losses.span, losses.stretches(Definition::Involuntary));
        let worst = |window_ns: &u64| lost.sup(span, *window_ns).map_or(lost.total_ns(), |worst| worst.loss_ns);
        Lost {
            vm: &vcpu.vm,
            span,
            unknown_ns: losses.unknown.iter().map(Span::length_ns).sum(),
            worst_ns: lengths_ns.iter().map(worst).collect(),
            lost,
            is_whole: part.has_switches && !part.lacks_exits(),
        }
    })
}

/// The VMs that both sides have, the one that lost most first, and how many others there are. Where both have one VM, or their names
/// differ, as those with the number of a process do, all vCPUs of a side are one group.
fn groups<'l, 'c>(lost: &'l [Vec<Lost<'c>>; 2]) -> (Vec<Group<'l, 'c>>, usize) {
    let names = lost.each_ref().map(|side| side.iter().map(|one| one.vm).collect::<BTreeSet<&str>>());
    let all = names[0].union(&names[1]).count();
    let mut both: Vec<&str> = names[0].intersection(&names[1]).copied().collect();
    if both.len() < 2 {
        return (vec![Group { vm: "", sides: lost.each_ref().map(|side| side.iter().collect()) }], 0);
    }
    let of = |vm: &str| lost.each_ref().map(|side| side.iter().filter(|one| one.vm == vm).collect::<Vec<_>>());
    both.sort_by_key(|vm| Reverse(of(vm).iter().flatten().map(|one| one.lost.total_ns()).sum::<u64>()));
    both.truncate(MOST_VMS);
    let left_out = all - both.len();
    (both.into_iter().map(|vm| Group { vm, sides: of(vm) }).collect(), left_out)
}

/// What both pictures cannot show.
fn notes(lost: &[Vec<Lost<'_>>; 2], left_out: usize) -> String {
    let mut notes = String::new();
    for (side, lost) in SIDES.into_iter().zip(lost) {
        if !lost.iter().all(|one| one.is_whole) {
            notes.push_str(&format!(
                " The recordings {side} lack sched_switch or kvm_exit: losses {side} are lower bounds."
            ));
        }
    }
    if left_out > 0 {
        notes.push_str(&format!(" {} not drawn.", counted(left_out as u64, "more VM is", "more VMs are")));
    }
    notes
}

impl Group<'_, '_> {
    /// The longest time of one of its vCPUs on that side.
    fn longest_ns(&self, side: usize) -> u64 {
        self.sides[side].iter().map(|one| one.span.length_ns()).max().unwrap_or(0)
    }

    /// The time of which it is known what was lost.
    fn known_ns(&self, side: usize) -> u64 {
        self.sides[side].iter().map(|one| one.span.length_ns().saturating_sub(one.unknown_ns)).sum()
    }

    /// What the worst vCPU lost in the worst window of each length that is no longer than a recording.
    fn worst(&self, side: usize, lengths_ns: &[u64]) -> Vec<(u64, u64)> {
        let reached = lengths_ns.iter().enumerate().filter(|(_, window_ns)| **window_ns <= self.longest_ns(side));
        let most = |place: usize| self.sides[side].iter().map(|one| one.worst_ns[place]).max().unwrap_or(0);
        reached.map(|(place, window_ns)| (*window_ns, most(place))).collect()
    }

    fn vcpu(&self) -> String {
        if self.vm.is_empty() { "a vCPU".to_owned() } else { format!("a vCPU of {}", self.vm) }
    }
}

fn by_window<'g>(
    groups: &[Group<'_, '_>],
    lengths_ns: &[u64],
    moment_ns: u64,
    goals: impl Iterator<Item = &'g Goal>,
    notes: &str,
) -> Figure {
    let both = |group: &Group<'_, '_>| [0, 1].map(|side| group.worst(side, lengths_ns));
    let curves = groups.iter().flat_map(|group| {
        let drawn = |points: Vec<(u64, u64)>| points.into_iter().map(|(x, y)| (x as f64, y as f64)).collect();
        both(group).into_iter().enumerate().map(move |(side, points)| curve(group.vm, side, Form::Line, drawn(points)))
    });
    let said = groups.iter().filter_map(|group| {
        let [before, after] = both(group);
        // The length that goals are about, or the longest that both sides reach.
        let common = before.iter().zip(&after).rfind(|(one, _)| one.0 <= moment_ns)?;
        let ((window_ns, before_ns), (_, after_ns)) = common;
        Some(format!(
            "In its worst {} {} lost {} before, {} after.",
            duration(*window_ns as f64),
            group.vcpu(),
            duration(*before_ns as f64),
            duration(*after_ns as f64)
        ))
    });
    let looked = groups.iter().map(|group| [0, 1].map(|side| group.longest_ns(side)));
    let [before_ns, after_ns] = looked.fold([0, 0], |most, one| [most[0].max(one[0]), most[1].max(one[1])]);
    let caption = format!(
        "{} Looked at: {} before, {} after; a longer recording may have worse windows.{notes}",
        said.collect::<Vec<_>>().join(" "),
        duration(before_ns as f64),
        duration(after_ns as f64)
    );
    figure(
        ("losses".into(), "How much of any window was lost, before and after".into(), caption),
        [("window", "ns"), ("lost in the worst window of any vCPU", "ns")],
        curves.collect(),
        goals.map(|goal| goal.drawn(On::Y)).collect(),
    )
}

fn by_length<'g>(groups: &[Group<'_, '_>], goals: impl Iterator<Item = &'g Goal>, notes: &str) -> Figure {
    let (mut curves, mut said) = (Vec::new(), Vec::new());
    for group in groups {
        let mut words = Vec::new();
        for (side, name) in SIDES.into_iter().enumerate() {
            let spans = group.sides[side].iter().flat_map(|one| one.lost.spans());
            let mut lengths_ns: Vec<u64> = spans.map(Span::length_ns).collect();
            lengths_ns.sort_unstable();
            let known_s = group.known_ns(side) as f64 / 1e9;
            let rate = if known_s > 0.0 { lengths_ns.len() as f64 / known_s } else { 0.0 };
            let longest =
                lengths_ns.last().map_or(String::new(), |ns| format!(", the longest {}", duration(*ns as f64)));
            words.push(format!(
                "{name} {} ({} a second of vCPU time){longest}",
                many(lengths_ns.len() as u64, "time"),
                plain(rate)
            ));
            if known_s > 0.0 {
                curves.push(curve(group.vm, side, Form::Steps, longer(&lengths_ns, known_s)));
            }
        }
        said.push(format!("{} was away without a break {}.", capital(&group.vcpu()), words.join("; ")));
    }
    figure(
        (
            "pauses".into(),
            "How often vCPUs were away for longer, before and after".into(),
            format!("{}{notes}", said.join(" ")),
        ),
        [("length", "ns"), ("longer losses a second of vCPU time", "count")],
        curves,
        goals.map(|goal| goal.drawn(On::X)).collect(),
    )
}

/// How many of these ascending lengths a second are longer than each; each number holds up to the next length.
fn longer(lengths_ns: &[u64], seconds: f64) -> Vec<(f64, f64)> {
    let Some(shortest_ns) = lengths_ns.first() else { return Vec::new() };
    let rate = |count: usize| count as f64 / seconds;
    let mut points = vec![(shortest_ns.saturating_sub(1) as f64, rate(lengths_ns.len()))];
    let mut last = 0.0;
    for (place, length_ns) in lengths_ns.iter().enumerate() {
        let (at, left) = (*length_ns as f64, lengths_ns.len() - place - 1);
        let is_last_of_its_length = lengths_ns.get(place + 1) != Some(length_ns);
        if is_last_of_its_length && (at >= last * APART || left == 0) {
            points.push((at, rate(left)));
            last = at;
        }
    }
    points
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(vm: &str, from_ns: u64, to_ns: u64) -> Lost<'_> {
        let lost = Stretches::of([Span { from_ns, to_ns }]);
        let span = Span { from_ns: 0, to_ns: 1_000_000 };
        Lost { vm, span, unknown_ns: 0, worst_ns: vec![lost.total_ns()], lost, is_whole: true }
    }

    #[test]
    fn vms_that_both_sides_have_are_told_apart_and_others_are_not() {
        let named = |lost: &[Vec<Lost<'static>>; 2]| -> (Vec<(&'static str, [usize; 2])>, usize) {
            let (groups, left_out) = groups(lost);
            (groups.iter().map(|group| (group.vm, group.sides.each_ref().map(Vec::len))).collect(), left_out)
        };
        let both = || vec![lost("web", 0, 10), lost("db", 0, 900), lost("db", 5, 6), lost("old", 0, 1)];
        let after = || vec![lost("web", 0, 10), lost("db", 0, 900), lost("new", 0, 1)];
        assert_eq!(named(&[both(), after()]), (vec![("db", [2, 1]), ("web", [1, 1])], 2));
        let unlike = [vec![lost("qemu-98", 0, 10)], vec![lost("qemu-104", 0, 20), lost("qemu-104", 0, 30)]];
        assert_eq!(named(&unlike), (vec![("", [1, 2])], 0));
        let groups = groups(&unlike).0;
        assert_eq!(
            [0, 1].map(|side| groups[0].worst(side, &[1_000])),
            [[(1_000, 10)], [(1_000, 30)]],
            "the worst vCPU"
        );
        assert!(groups[0].worst(0, &[2_000_000]).is_empty(), "no recording is that long");
    }

    #[test]
    fn a_curve_has_the_rate_of_all_that_is_longer() {
        let points = longer(&[2_000, 5_000, 5_000, 5_001, 90_000], 10.0);
        // 5,001 ns is no pixel away from 5,000 ns, so the number of the shorter one holds until the longest.
        assert_eq!(points, [(1_999.0, 0.5), (2_000.0, 0.4), (5_000.0, 0.2), (90_000.0, 0.0)]);
        assert!(longer(&[], 1.0).is_empty());
    }
}
