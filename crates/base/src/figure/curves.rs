//! Curves over a quantity, and cells over two: what they are drawn from, and where a value lies on an axis.

use super::Mark;
use serde::{Serialize, Serializer};
use serde_json::json;

/// Curves on one pair of axes, with the limits that they are held against.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curves {
    /// Along the page.
    pub x: Axis,
    /// Up the page.
    pub y: Axis,
    /// The curves, the most important one first.
    pub curves: Vec<Curve>,
    /// The limits.
    pub limits: Vec<Limit>,
}

/// What an axis measures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// What it is: `window`, `loss in the worst window`.
    pub title: String,
    /// Unit of its values: `ns`, `count`, ...
    pub unit: &'static str,
    /// Decades are equally long; what is 0 or less lies at the beginning.
    #[serde(rename = "logarithmic")]
    pub is_logarithmic: bool,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// What it is of, such as a vCPU.
    pub label: String,
    /// How its points hang together.
    #[serde(flatten)]
    pub form: Form,
    /// Its points, by ascending x.
    pub points: Vec<(f64, f64)>,
}

/// How the points of a curve hang together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// Straight lines join them.
    Line,
    /// A value holds from its point to the next one.
    Steps,
    /// The same, and what is missing up to this value is shaded.
    StepsBelow(f64),
    /// Nothing joins them: single numbers, drawn by where they come from.
    Points(Mark),
}

impl Serialize for Form {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (form, mark, below) = match self {
            Form::Line => ("line", None, None),
            Form::Steps => ("steps", None, None),
            Form::StepsBelow(value) => ("steps", None, Some(value)),
            Form::Points(mark) => ("points", Some(mark), None),
        };
        json!({"form": form, "mark": mark, "below": below}).serialize(serializer)
    }
}

/// A value that a curve should not pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// What it is: `budget kvm4nfv-2015`.
    pub label: String,
    /// Which axis has it.
    pub on: On,
    /// The value.
    pub value: f64,
    /// Up to which value of the other axis it holds; `None`: for all of them.
    pub until: Option<f64>,
}

/// Which axis has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// That along the page.
    X,
    /// That up the page.
    Y,
}

/// Amounts by two quantities: rows of cells along an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heat {
    /// Along the page.
    pub x: Axis,
    /// Where its first cell begins and its last one ends.
    #[serde(flatten, serialize_with = "from_and_to")]
    pub ends: (f64, f64),
    /// What a cell says: `lost of the worst millisecond`.
    pub what: String,
    /// Unit of the cells.
    pub unit: &'static str,
    /// The amount that the strongest colour stands for; what is above looks the same.
    pub most: f64,
    /// The rows, from the top, all as long as each other.
    pub rows: Vec<HeatRow>,
}

fn from_and_to<S: Serializer>((from, to): &(f64, f64), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("from", from), ("to", to)])
}

/// One row of cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatRow {
    /// What it is of, such as a vCPU.
    pub label: String,
    /// Its cells; `None` where nothing is known.
    pub cells: Vec<Option<f64>>,
}

/// An axis with the values that it has to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The value at its beginning.
    pub from: f64,
    /// The value at its end.
    pub to: f64,
    /// In how many equal parts its marks divide a linear one.
    parts: u32,
    is_logarithmic: bool,
}

impl Curves {
    /// The scales of both axes: around all points and limits.
    pub fn scales(&self) -> (Scale, Scale) {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let limits = |on: On| self.limits.iter().filter(move |limit| limit.on == on).map(|limit| limit.value);
        let x = self.x.scale(points().map(|point| point.0).chain(limits(On::X)));
        let y = self.y.scale(points().map(|point| point.1).chain(limits(On::Y)));
        (x, y)
    }
}

impl Axis {
    /// The shortest scale with round ends that holds `values`: a decade or more, or from 0 to an end near the largest.
    pub fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        let shown = values.filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) =
            shown.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| (least.min(value), most.max(value)));
        let is_logarithmic = self.is_logarithmic;
        if most == 0.0 {
            let from = if is_logarithmic { 1.0 } else { 0.0 };
            return Scale { from, to: from + if is_logarithmic { 9.0 } else { 1.0 }, parts: 5, is_logarithmic };
        }
        if !is_logarithmic {
            let (to, parts) = steps_to(most);
            return Scale { from: 0.0, to, parts, is_logarithmic };
        }
        let [low, high] = [least, most].map(|value| value.log10().floor() as i32);
        let within = |step: &f64| *step <= least * (1.0 + 1e-12);
        let from = steps_of(low).into_iter().rfind(within).unwrap_or(least);
        let beyond = |step: &f64| *step >= (most * (1.0 - 1e-12)).max(from * 9.9);
        let to = [steps_of(high), steps_of(high + 1)].concat().into_iter().find(beyond).unwrap_or(most);
        Scale { from, to, parts: 1, is_logarithmic }
    }
}

impl Scale {
    /// Where `value` lies, from 0 to 1; what lies outside is at the end that it is beyond.
    pub fn place(self, value: f64) -> f64 {
        let along = if self.is_logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.from).log10() / (self.to / self.from).log10()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        along.clamp(0.0, 1.0)
    }

    /// The value at `place`, the inverse of [`place`](Self::place).
    pub fn at(self, place: f64) -> f64 {
        if self.is_logarithmic {
            self.from * (self.to / self.from).powf(place)
        } else {
            self.from + (self.to - self.from) * place
        }
    }

    /// Round values along it, from its beginning on, two to eleven.
    pub fn marks(self) -> Vec<f64> {
        if self.is_logarithmic {
            let (from, to) = ((self.from.log10() - 1e-9).ceil() as i32, (self.to.log10() + 1e-9).floor() as i32);
            if to - from < 2 {
                let within = |mark: &f64| *mark >= self.from && *mark <= self.to;
                return (from - 1..=to).flat_map(steps_of).filter(within).collect();
            }
            let step = ((to - from) / 6 + 1).max(1) as usize;
            return (from..=to).step_by(step).map(|power| times_decade(1.0, power)).collect();
        }
        let length = self.to - self.from;
        (0..=self.parts).map(|part| self.from + length * f64::from(part) / f64::from(self.parts)).collect()
    }
}

/// A linear scale has at least so many steps, and ends at most so far beyond what it holds.
const STEPS: f64 = 3.0;
const BEYOND: f64 = 1.25;

/// The end of a linear scale that holds `most`, and in how many steps: the largest of one, two or five times a power of ten that ends near it. 1,518
/// ends at 1,600 and not at 2,000. As the dashboard's.
fn steps_to(most: f64) -> (f64, u32) {
    let first = most.log10().ceil() as i32;
    for decade in (first - 3..=first).rev() {
        for times in [5.0, 2.0, 1.0] {
            let step = times_decade(times, decade);
            let count = (most / step * (1.0 - 1e-12)).ceil();
            if count >= STEPS && step * count <= most * BEYOND {
                return (times_decade(times * count, decade), count as u32);
            }
        }
    }
    (most, 1)
}

/// Where a logarithmic scale may begin and end, of one decade.
fn steps_of(decade: i32) -> [f64; 3] {
    [1.0, 2.0, 5.0].map(|times| times_decade(times, decade))
}

/// `times` a power of ten, as exact as a decimal number can be: 0.6, not 0.6000000000000001.
fn times_decade(times: f64, decade: i32) -> f64 {
    if decade < 0 { times / 10_f64.powi(-decade) } else { times * 10_f64.powi(decade) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(is_logarithmic: bool) -> Axis {
        Axis { title: "window".into(), unit: "ns", is_logarithmic }
    }

    #[test]
    fn scales_have_round_ends_and_hold_every_value() {
        let linear = |most: f64| axis(false).scale([0.0, 3.0, most].into_iter());
        assert_eq!([8.0, 10.0, 11.0, 37.0, 180.0].map(|most| linear(most).to), [8.0, 10.0, 12.0, 40.0, 200.0]);
        assert_eq!([316.0, 1_518.0, 0.52e9].map(|most| linear(most).to), [350.0, 1_600.0, 0.6e9]);
        assert_eq!(linear(37.0).marks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(axis(false).scale([0.52].into_iter()).to, 0.6);
        assert_eq!(linear(316.0).marks(), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0]);
        assert_eq!(linear(180.0).marks(), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(linear(9.0).marks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let decades = axis(true).scale([0.0, 14.0, 120_000.0].into_iter());
        assert_eq!((decades.from, decades.to), (10.0, 2e5));
        assert_eq!(decades.marks(), [1e1, 1e2, 1e3, 1e4, 1e5]);
        let near = axis(true).scale([94e3, 397e3].into_iter());
        assert_eq!((near.from, near.to, near.marks()), (5e4, 5e5, vec![5e4, 1e5, 2e5, 5e5]));
        assert_eq!(axis(true).scale([0.3, 0.6].into_iter()).marks(), [0.2, 0.5, 1.0, 2.0]);
        assert_eq!(axis(true).scale([1.0, 9e6].into_iter()).marks(), [1.0, 1e2, 1e4, 1e6]);
        assert!([(10.0, 0.0), (2e5, 1.0), (0.0, 0.0), (1e9, 1.0)].iter().all(|(v, p)| decades.place(*v) == *p));
    }

    #[test]
    fn a_place_and_its_value_are_each_others_inverse() {
        for scale in [axis(true).scale([3.0, 4e7].into_iter()), axis(false).scale([3.0, 4e7].into_iter())] {
            for part in 0..=10 {
                let place = f64::from(part) / 10.0;
                assert!((scale.place(scale.at(place)) - place).abs() < 1e-9, "{scale:?} {place}");
            }
        }
    }

    #[test]
    fn nothing_to_hold_is_no_reason_to_divide_by_it() {
        for is_logarithmic in [true, false] {
            for values in [vec![], vec![0.0], vec![f64::NAN, f64::INFINITY], vec![-3.0]] {
                let scale = axis(is_logarithmic).scale(values.into_iter());
                assert!(scale.to > scale.from && scale.place(scale.to) == 1.0);
                assert!((2..=6).contains(&scale.marks().len()) && scale.marks().iter().all(|mark| mark.is_finite()));
            }
        }
    }
}
