//! Pictures as data: what is drawn, not how.
//!
//! A figure's title is a question, its caption the answer in words. Renderers choose the drawing: bars of block
//! characters in a terminal, SVG in a page.

mod curves;
mod dumbbells;
mod flow;
mod gauge;
mod histogram;
mod levels;
mod matrix;
mod spans;
mod waterfall;

pub use curves::{Axis, Curve, Curves, Form, Heat, HeatRow, Limit, On, Scale};
pub use dumbbells::{Dumbbell, DumbbellGroup, DumbbellKey, Sure};
pub use flow::{Flow, Fullest, Fullness, Hop, Side, Stop};
pub use gauge::{Ceiling, Gauge, GaugeGroup, Reading};
pub use histogram::{Bin, Edge, Histogram, Kind};
pub use levels::{Column, Ground, Levels, Storey, TimePart};
pub use matrix::{Matrix, MatrixRow, Standing};
pub use spans::{Key, Shape, Sign, SpanGroup, SpanRow, Stretch};
pub use waterfall::{Removed, Step, Waterfall};

use crate::Span;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// One picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Stable id inside the Section.
    pub id: String,
    /// Heading, a question or its subject.
    pub title: String,
    /// The answer in one sentence.
    pub caption: String,
    /// Whether a terminal shows it unasked, where it takes the room of what others say; pages show all.
    #[serde(skip)]
    pub in_terminals: bool,
    /// What is drawn.
    #[serde(flatten)]
    pub drawing: Drawing,
}

/// The kinds of picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "drawing", rename_all = "lowercase")]
pub enum Drawing {
    /// Amounts side by side, in groups.
    Bars(#[serde(serialize_with = "groups")] Vec<BarGroup>),
    /// A machine as nested boxes with what runs in them, once for each placement, side by side.
    Topology(#[serde(serialize_with = "panels")] Vec<Panel>),
    /// Single numbers of unlike sizes on a logarithmic scale, in groups; each group has a scale of its own.
    Points(#[serde(serialize_with = "scales")] Vec<PointGroup>),
    /// How often something had which length.
    Histogram(Histogram),
    /// How quantities depend on another one.
    Curves(Curves),
    /// How much there is of something by two others.
    Heat(Heat),
    /// Ways of packets across a boundary, one below the other.
    Flows(#[serde(serialize_with = "flows")] Vec<Flow>),
    /// Rates with their ceilings, in groups.
    Gauges(#[serde(serialize_with = "dials")] Vec<GaugeGroup>),
    /// Stretches along an axis, a row for each, in groups; each group has a scale of its own.
    Spans(#[serde(serialize_with = "spans::with_keys")] Vec<SpanGroup>),
    /// Machines inside each other, what leaves them, and where their time goes.
    Levels(#[serde(serialize_with = "levels::with_most")] Levels),
    /// Wholes that are used up step by step.
    Waterfall(#[serde(serialize_with = "wholes")] Vec<Waterfall>),
    /// What each machine says of each of many things.
    Matrix(Matrix),
    /// Pairs of numbers, before and after, a row each, in groups; each group has a scale of its own.
    Dumbbells(#[serde(serialize_with = "dumbbells::with_looks")] Vec<DumbbellGroup>),
}

/// Functions that write a list as an object, which has it under the function's name.
macro_rules! keyed {
    ($($key:ident)*) => {$(
        fn $key<T: Serialize, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([(stringify!($key), list)])
        }
    )*};
}

keyed!(groups panels scales flows dials wholes);

/// What readers of JSON get beside the fields of `of`.
#[derive(Serialize)]
struct With<'a, T> {
    #[serde(flatten)]
    of: &'a T,
    #[serde(flatten)]
    computed: Value,
}

impl BarGroup {
    /// Its values are shares already, of different things that add up to nothing.
    pub fn has_shares(&self) -> bool {
        self.unit == "share"
    }
}

/// A machine under one placement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Panel {
    /// `now`, `proposal 1`.
    pub title: String,
    /// Its nodes.
    pub nodes: Vec<NodeBox>,
    /// Threads away from their memory: arrows between nodes.
    #[serde(flatten, serialize_with = "links_and_arrows")]
    pub links: Vec<Link>,
}

/// Threads that run on one node and need what is on another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// Whose, what and where, as a sentence.
    #[serde(skip)]
    pub text: String,
    /// The box where they run, by its place among the panel's.
    pub from: Option<usize>,
    /// The box of their memory or device.
    pub to: Option<usize>,
}

fn links_and_arrows<S: Serializer>(links: &[Link], serializer: S) -> Result<S::Ok, S::Error> {
    let texts: Vec<&str> = links.iter().map(|link| link.text.as_str()).collect();
    json!({"links": texts, "arrows": links}).serialize(serializer)
}

/// A NUMA node, or the part of one that shares a last-level cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeBox {
    /// `package 0, node 0, cache of CPUs 0-2,48-50`.
    pub title: String,
    /// Its cores: each a list of CPUs.
    pub cores: Vec<Vec<CpuBox>>,
}

/// A CPU and what is bound to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuBox {
    /// Its number.
    pub cpu: u32,
    /// What is bound there: `vcpu 3`, `8 vhost`.
    pub chips: Vec<String>,
    /// Names of the states that decide their colours.
    pub hues: Vec<&'static str>,
    /// True if a vCPU shares the CPU.
    pub contended: bool,
}

/// Bars that add up to one whole, or shares of different things.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BarGroup {
    /// Heading on the left, such as a vCPU.
    pub title: String,
    /// Unit of the values: `ns`, `count`, ...
    pub unit: &'static str,
    /// The whole that shares refer to.
    pub total: f64,
    /// The bars, in drawing order.
    pub bars: Vec<Bar>,
    /// The stretch of the recording that they are about, where it is not all of it: a page opens its timeline there.
    pub span: Option<Span>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// What it measures.
    pub label: String,
    /// How much, in the group's unit.
    pub value: f64,
    /// A remark at its end, or empty.
    pub note: String,
    /// Name of the state or level that decides its colour, or empty.
    pub hue: String,
}

/// Numbers that can be held against each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointGroup {
    /// Heading, such as an operation.
    pub title: String,
    /// Unit of the values: `ns`, `cycles`, ...
    pub unit: &'static str,
    /// The numbers, in drawing order.
    pub points: Vec<Point>,
}

/// One number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// What it is of, such as a level.
    pub label: String,
    /// How much, in the group's unit.
    pub value: f64,
    /// Where it may lie as well, if somebody knows.
    #[serde(flatten, serialize_with = "low_and_high")]
    pub interval: Option<(f64, f64)>,
    /// Whether we measured it: the two kinds are never drawn alike.
    pub mark: Mark,
    /// Where it comes from.
    pub source: String,
}

fn low_and_high<S: Serializer>(interval: &Option<(f64, f64)>, serializer: S) -> Result<S::Ok, S::Error> {
    let (low, high) = interval.unzip();
    serializer.collect_map([("low", low), ("high", high)])
}

crate::named! {
    /// Where a number comes from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Mark {
        /// Measured on the machine itself.
        Measured = "measured",
        /// Measured on an emulated machine: the emulator's cost.
        Emulated = "emulated",
        /// Somebody else's, on another machine.
        Published = "published",
        /// What a model says.
        Modelled = "modelled",
    }
}

impl PointGroup {
    /// Its axis, which is logarithmic.
    pub fn axis(&self) -> Axis {
        Axis { title: "logarithmic".to_owned(), unit: self.unit, is_logarithmic: true }
    }

    /// The scale of all points and intervals of those of `groups` that have its unit.
    pub fn scale(&self, groups: &[Self]) -> Scale {
        let alike = groups.iter().filter(|other| other.unit == self.unit).flat_map(|other| &other.points);
        let ends = alike.flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.value, point.value));
            [low, point.value, high]
        });
        self.axis().scale(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_one_unit_have_one_scale_around_values_and_intervals() {
        let point = |value: f64, interval| Point {
            label: String::new(),
            value,
            interval,
            mark: Mark::Measured,
            source: String::new(),
        };
        let group = |unit, points| PointGroup { title: String::new(), unit, points };
        let groups = [
            group("ns", vec![point(180.0, None)]),
            group("ns", vec![point(2_500.0, Some((90.0, 12_000.0)))]),
            group("B", vec![point(1e9, None)]),
        ];
        let scale = groups[0].scale(&groups);
        assert_eq!((scale.from, scale.to, scale), (50.0, 20_000.0, groups[1].scale(&groups)));
    }
}
