//! What the two sides do with their time: how long they keep the window open, and what waiting costs them by each policy.

use super::super::delays::{self, Delayed};
use super::super::measured::{Channel, Measured, NONE, POLL};
use super::super::tables::MPPS;
use super::mark;
use base::Figure;
use base::channel::{Run, Setup, Side};
use base::figure::{Drawing, Mark, Point, PointGroup};
use base::number::counted;

fn figure(id: &str, title: &str, caption: String, groups: Vec<PointGroup>) -> Option<Figure> {
    let groups: Vec<PointGroup> = groups.into_iter().filter(|group| !group.points.is_empty()).collect();
    (!groups.is_empty()).then(|| Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption,
        in_terminals: false,
        drawing: Drawing::Points(groups),
    })
}

fn launches(one: &Measured<'_>) -> String {
    counted(one.launches.len() as u64, "launch", "launches")
}

type Of = fn(&Side) -> u64;

/// For how much of the time, and for how long at once, each window stood open.
pub(super) fn open(channel: &Channel<'_>, main: &Measured<'_>) -> Option<Figure> {
    let Setup { path, size_bytes, policy, vms, .. } = main.setup;
    let is_like = |one: &&Measured<'_>| {
        let same = (&one.setup.path, &one.setup.size_bytes, &one.setup.policy, &one.setup.vms);
        one.machine == main.machine && same == (path, size_bytes, policy, vms) && one.setup.window != NONE
    };
    let share = |one: &Measured<'_>| {
        Some(Point {
            label: format!("{}, batch {}", one.setup.window, one.setup.batch),
            value: one.open_share()?,
            interval: None,
            mark: mark(channel, one),
            source: launches(one),
        })
    };
    let longest = |run: &Run, of: Of| run.sides().map(of).max().map(|ns| ns as f64);
    let lengths = |one: &Measured<'_>| {
        let lengths: [(&str, Of); 3] =
            [("p50", |side| side.open_p50_ns), ("p99", |side| side.open_p99_ns), ("longest", |side| side.open_max_ns)];
        lengths.map(|(name, of)| {
            Some(Point {
                label: format!("{}, {name}", one.setup.window),
                value: one.median(|run| longest(run, of)).filter(|ns| *ns > 0.0)?,
                interval: None,
                mark: mark(channel, one),
                source: launches(one),
            })
        })
    };
    let own = || channel.measured().filter(is_like);
    let at_once = own().filter(|one| one.setup.batch == main.setup.batch);
    figure(
        "channel_open",
        "How long is a window open?",
        format!(
            "Of the side that keeps it open for longer, frames of {size_bytes} B over {path} on {}. Outside of this time a stray write of this \
             process cannot reach the ring.",
            main.machine
        ),
        vec![
            PointGroup {
                title: "share of the time".to_owned(),
                unit: "share",
                points: own().filter_map(share).collect(),
            },
            PointGroup {
                title: format!("for one batch of {}", main.setup.batch),
                unit: "ns",
                points: at_once.flat_map(lengths).flatten().collect(),
            },
        ],
    )
}

/// What each policy of waiting costs, in CPU time and in kicks, and what it carries and delays.
pub(super) fn policies(channel: &Channel<'_>, main: &Measured<'_>) -> Option<Figure> {
    let is_like = |one: &&Measured<'_>| {
        let like = Setup { policy: one.setup.policy.clone(), ..main.setup.clone() };
        one.machine == main.machine && *one.setup == like && one.is_emulated() == main.is_emulated()
    };
    let mut own: Vec<&Measured<'_>> = channel.measured().filter(is_like).collect();
    own.sort_by_key(|one| one.setup.policy != POLL);
    if own.len() < 2 {
        return None;
    }
    let group = |title: &str, unit, of: &dyn Fn(&Measured<'_>) -> Option<f64>| {
        let point = |one: &&Measured<'_>| {
            Some(Point {
                label: one.setup.policy.clone(),
                value: of(one)?,
                interval: None,
                mark: mark(channel, one),
                source: launches(one),
            })
        };
        PointGroup { title: title.to_owned(), unit, points: own.iter().filter_map(point).collect() }
    };
    let mut groups = vec![
        group("packets, clean", MPPS, &|one| one.clean_mpps()),
        group("CPU time of all sides for a million packets", "s", &|one| one.cpu_s_per_mpkt()),
        group("kicks for a packet", "count", &|one| one.kicks_per_packet()),
    ];
    groups.extend(delayed(channel, main));
    figure(
        "channel_policies",
        "What does waiting cost, by polling, by sleeping until kicked, and by both in turn?",
        format!(
            "Frames of {} B in batches of {} over {} on {}.",
            main.setup.size_bytes, main.setup.batch, main.setup.path, main.machine
        ),
        groups,
    )
}

/// The delay that one frame in a hundred exceeds, at the middle load that all policies have.
fn delayed(channel: &Channel<'_>, main: &Measured<'_>) -> Option<PointGroup> {
    let loads = delays::main(&channel.delays, main.machine);
    let shares: Vec<&&Delayed<'_>> = loads.iter().filter(|one| one.load.ends_with('%')).collect();
    let middle = shares.get(shares.len() / 2)?;
    let of_policies = delays::by_policy(&channel.delays, middle);
    let point = |one: &&Delayed<'_>| {
        Some(Point {
            label: one.setup.policy.clone(),
            value: one.all.quantile(0.99)? as f64,
            interval: None,
            mark: if channel.is_emulated { Mark::Emulated } else { Mark::Measured },
            source: counted(one.launches.len() as u64, "launch", "launches"),
        })
    };
    let title = format!("p99 delay at {} of the clean rate of each policy", middle.load);
    let points: Vec<Point> = of_policies.iter().filter_map(point).collect();
    (points.len() > 1).then_some(PointGroup { title, unit: "ns", points })
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{Made, benches};
    use super::*;
    use facts::machines::Machines;

    fn groups(made: &[Made], of: fn(&Channel<'_>, &Measured<'_>) -> Option<Figure>) -> Option<Vec<PointGroup>> {
        let benches = benches(made);
        let channel = Channel::of(&benches, &Machines::default());
        let Drawing::Points(groups) = of(&channel, channel.series[0].first())?.drawing else { panic!("points") };
        Some(groups)
    }

    #[test]
    fn policies_are_held_against_each_other_where_there_are_several() {
        let of = |policy: &'static str, batch_ns| Made { policy, batch_ns, ..Made::default() };
        let groups = groups(&[of("kick", 3_200.0), of("poll", 800.0)], policies).unwrap();
        let rates: Vec<_> = groups[0].points.iter().map(|point| (point.label.as_str(), point.value.round())).collect();
        assert_eq!(rates, [("poll", 40.0), ("kick", 10.0)]);
        assert_eq!(groups[1].title, "CPU time of all sides for a million packets");
        assert!(super::tests::groups(&[of("poll", 800.0)], policies).is_none());
    }

    #[test]
    fn a_ring_without_a_window_is_never_closed_and_not_drawn() {
        assert!(groups(&[Made::default()], open).is_none());
    }
}
