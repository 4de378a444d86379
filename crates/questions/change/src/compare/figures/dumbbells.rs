//! What changed, as pairs of numbers: a group for each kind of metric, its surest and largest changes on top.
//!
//! ```text
//! L1's exits in a chain, shares of states, exits per second, what tasks ran and waited, what was measured as a whole
//! ```

use super::super::metrics::Metric;
use super::super::ratio::Verdict;
use super::super::{Changed, SINGLE};
use base::Figure;
use base::figure::{Axis, Drawing, Dumbbell, DumbbellGroup, Mark, Sure};
use base::number::{counted, decimals, many, plain};

/// Pairs of one group; the table has all.
const MOST: usize = 16;
/// Those of them that noise could explain.
const MOST_UNSURE: usize = 6;

pub(super) const LOGARITHMIC: &str = "logarithmic, 0 at the left";

/// The picture; `None` where there is nothing in it. `changed` is in the order of the table, and `are_runs` where a side has several
/// recordings. Numbers with time in them are those of the emulator where a side is emulated; counts are real.
pub(in crate::compare) fn figure(changed: &[Changed], are_runs: bool, is_emulated: bool) -> Option<Figure> {
    let mut kinds: Vec<(Kind, Vec<&Changed>)> = Vec::new();
    for one in changed {
        let kind = Kind::of(&one.metric);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, rows)) => rows.push(one),
            None => kinds.push((kind, vec![one])),
        }
    }
    kinds.sort_by(|a, b| a.0.cmp(&b.0));
    let mut drawn = 0;
    let groups: Vec<DumbbellGroup> = kinds
        .into_iter()
        .map(|(kind, rows)| {
            let (sure, unsure): (Vec<&Changed>, Vec<&Changed>) = rows.into_iter().partition(|one| one.is_certain());
            let rows: Vec<Dumbbell> = sure
                .into_iter()
                .take(MOST)
                .chain(unsure.into_iter().take(MOST_UNSURE))
                .map(|one| pair(one, are_runs, is_emulated && kind.has_time()))
                .collect();
            drawn += rows.len();
            kind.group(rows)
        })
        .collect();
    if drawn == 0 {
        return None;
    }
    let claims = changed.iter().filter(|one| one.is_certain()).count();
    let than = if are_runs { "noise between runs" } else { "each of these two runs varies within itself" };
    let verb = if claims == 1 { "differs" } else { "differ" };
    let left_out = changed.len() - drawn;
    let more = if left_out == 0 {
        String::new()
    } else {
        format!(" {} in table change alone.", counted(left_out as u64, "more metric is", "more metrics are"))
    };
    Some(Figure {
        id: "dumbbells".into(),
        title: "What changed, and is it real?".into(),
        caption: format!("Of {}, {claims} {verb} by more than {than}.{more}", many(changed.len() as u64, "metric")),
        in_terminals: true,
        drawing: Drawing::Dumbbells(groups),
    })
}

/// What can stand on one axis; their order is that of the picture.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Chains,
    States,
    Exits,
    Tasks,
    /// By its unit.
    Named(String),
}

impl Kind {
    fn of(metric: &Metric) -> Self {
        match metric {
            Metric::ChainExits(_) => Kind::Chains,
            Metric::State(_) => Kind::States,
            Metric::ExitRate(..) => Kind::Exits,
            Metric::TaskRuns(_) | Metric::TaskWaits(_) => Kind::Tasks,
            Metric::Named(text) => Kind::Named(text.rsplit_once(", ").map_or("", |(_, unit)| unit).to_owned()),
        }
    }

    /// False for counts, which are real where time is not.
    fn has_time(&self) -> bool {
        *self != Kind::Chains
    }

    fn group(&self, rows: Vec<Dumbbell>) -> DumbbellGroup {
        let (title, axis, unit, is_logarithmic) = match self {
            Kind::Chains => ("Exits of L1 that one exit of L2 causes, median", "exits of L1", "count", false),
            Kind::States => ("Share of the vCPUs' time", "of the vCPUs' time", "share", false),
            Kind::Exits => ("Exits per second, by level and reason", LOGARITHMIC, "count", true),
            Kind::Tasks => ("Time that threads ran, or waited for a CPU", "of time", "share", false),
            Kind::Named(unit) if unit == "ns" => ("Times", LOGARITHMIC, "ns", true),
            Kind::Named(unit) => {
                let title = if unit.is_empty() { "Numbers".to_owned() } else { format!("Numbers in {unit}") };
                let x = Axis { title: LOGARITHMIC.into(), unit: "count", is_logarithmic: true };
                return DumbbellGroup { title, x, rows };
            }
        };
        let x = Axis { title: axis.into(), unit, is_logarithmic };
        let in_points = |row: Dumbbell| Dumbbell { change: points(row.before, row.after), ..row };
        let rows = if unit == "share" { rows.into_iter().map(in_points).collect() } else { rows };
        DumbbellGroup { title: title.into(), x, rows }
    }
}

fn pair(one: &Changed, are_runs: bool, is_emulated: bool) -> Dumbbell {
    let (before, after) = (one.ratio.before, one.ratio.after);
    let interval = one.ratio.interval.map(|(low, high)| (low * before, high * before));
    let (sure, verdict) = match one.verdict {
        Verdict::Higher | Verdict::Lower if are_runs => (Sure::Changed, one.verdict.name().to_owned()),
        Verdict::Higher | Verdict::Lower => (Sure::TwoRuns, format!("{}, {SINGLE}", one.verdict.name())),
        Verdict::NoChange => (Sure::Noise, one.verdict.name().to_owned()),
        Verdict::Void => (Sure::Void, one.verdict.name().to_owned()),
        Verdict::Unknown => (Sure::Unknown, one.verdict.name().to_owned()),
    };
    Dumbbell {
        label: one.metric.label(),
        before,
        after,
        interval: interval.filter(|(low, high)| low.is_finite() && high.is_finite() && high > low),
        change: change(before, after),
        verdict,
        sure,
        mark: if is_emulated { Mark::Emulated } else { Mark::Measured },
        hue: one.metric.hue(),
    }
}

/// `-96.1 %`, from twice on `x4.22`; of nothing there is no part: `new`, `gone`.
pub(super) fn change(before: f64, after: f64) -> String {
    match (before, after) {
        (0.0, 0.0) => "0 %".to_owned(),
        (0.0, _) => "new".to_owned(),
        (_, 0.0) => "gone".to_owned(),
        (before, after) if after >= 2.0 * before => format!("x{}", plain(after / before)),
        (before, after) => {
            let percent = (after / before - 1.0) * 100.0;
            // A number that is there is not gone.
            let text = if percent < -99.9 { "-99.9".to_owned() } else { decimals(percent, 1) };
            format!("{}{text} %", if percent > 0.0 && text != "0.0" { "+" } else { "" })
        }
    }
}

/// `+8.3 points`, `new`, `gone`: of a share a part would read as points.
fn points(before: f64, after: f64) -> String {
    match (before, after) {
        (before, after) if before == after => "0 points".to_owned(),
        (0.0, _) => "new".to_owned(),
        (_, 0.0) => "gone".to_owned(),
        (before, after) => {
            // Of both as they are printed: the difference that a reader sees.
            let printed = |share: f64| (share * 1_000.0).round();
            match printed(after) - printed(before) {
                0.0 => "<0.1 points".to_owned(),
                tenths => format!("{}{} points", if tenths > 0.0 { "+" } else { "" }, decimals(tenths / 10.0, 1)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Ratio;
    use base::Level;

    #[test]
    fn shares_change_by_points() {
        let pairs = [(0.579, 0.662), (0.223, 0.17), (0.5, 0.5), (0.0, 0.1), (0.1, 0.0), (0.000_1, 0.000_2)];
        let said = pairs.map(|(before, after)| points(before, after));
        assert_eq!(said, ["+8.3 points", "-5.3 points", "0 points", "new", "gone", "<0.1 points"]);
    }

    fn of(metric: Metric, before: &[f64], after: &[f64]) -> Changed {
        Changed::of(metric, Ratio::of(before, after).or_else(|| Ratio::with_none(before, after)).unwrap())
    }

    fn drawn(figure: &Figure) -> &[DumbbellGroup] {
        let Drawing::Dumbbells(groups) = &figure.drawing else { panic!("{figure:?}") };
        groups
    }

    #[test]
    fn a_change_is_said_as_a_part_a_multiple_or_that_it_is_gone() {
        let pairs =
            [(46.2, 1.8), (1.0, 4.22), (1.0, 1.5), (7.0, 0.0), (0.0, 7.0), (1e6, 1.0), (5.0, 5.0), (2.0, 2.0001)];
        let said = pairs.map(|(before, after)| change(before, after));
        assert_eq!(said, ["-96.1 %", "x4.22", "+50.0 %", "gone", "new", "-99.9 %", "0.0 %", "0.0 %"]);
    }

    #[test]
    fn counts_of_an_emulated_machine_are_measured_and_its_times_are_not() {
        let changed = [
            of(Metric::ChainExits("CPUID".into()), &[15.0, 15.0], &[3.0, 3.0]),
            of(Metric::State("preempted".into()), &[0.4, 0.5, 0.45], &[0.01, 0.02, 0.01]),
            of(Metric::ExitRate(Level::At(1), "VMREAD".into()), &[9.0, 10.0, 11.0], &[0.0, 0.0, 0.0]),
            of(Metric::State("irq".into()), &[0.1, 0.9], &[0.2, 0.7]),
        ];
        let figure = figure(&changed, false, true).unwrap();
        let rows: Vec<_> = drawn(&figure)
            .iter()
            .flat_map(|group| &group.rows)
            .map(|row| (row.label.as_str(), row.mark, row.sure))
            .collect();
        let expected = [
            ("CPUID of L2", Mark::Measured, Sure::TwoRuns),
            ("preempted", Mark::Emulated, Sure::TwoRuns),
            ("host interrupts", Mark::Emulated, Sure::Noise),
            ("VMREAD of L1", Mark::Emulated, Sure::TwoRuns),
        ];
        assert_eq!(rows, expected);
        assert!(figure.caption.starts_with("Of 4 metrics, 3 differ"), "{}", figure.caption);
        let several = super::figure(&changed[..1], true, false).unwrap();
        assert_eq!(drawn(&several)[0].rows[0].sure, Sure::Changed);
    }

    #[test]
    fn the_interval_is_that_of_the_number_after_and_what_has_no_end_is_not_drawn() {
        let state = Metric::State("preempted".into());
        let one = of(state.clone(), &[0.4, 0.5, 0.45], &[0.01, 0.02, 0.01]);
        let (low, high) = pair(&one, false, false).interval.unwrap();
        assert!(low < one.ratio.after && one.ratio.after < high && high < one.ratio.before);
        let new = of(state, &[0.0, 0.0], &[0.5, 0.6]);
        assert_eq!((pair(&new, false, false).interval, pair(&new, false, false).change), (None, "new".to_owned()));
    }
}
