//! Pictures as data: what is drawn, not how.
//!
//! A figure's title is a question, its caption the answer in words. Renderers choose the drawing: bars of block
//! characters in a terminal, SVG in a page.

/// One picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Stable id inside the Section.
    pub id: String,
    /// Heading, a question or its subject.
    pub title: String,
    /// The answer in one sentence.
    pub caption: String,
    /// What is drawn.
    pub drawing: Drawing,
}

/// The kinds of picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Drawing {
    /// Amounts side by side, in groups.
    Bars(Vec<BarGroup>),
    /// One episode as a sequence of steps over levels.
    Ladder(Vec<Rung>),
    /// A distribution.
    Histogram(Vec<Bin>),
    /// A machine as nested boxes with what runs in them, once for each placement, side by side.
    Topology(Vec<Panel>),
}

/// A machine under one placement.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// `now`, `proposal 1`.
    pub title: String,
    /// Its nodes.
    pub nodes: Vec<NodeBox>,
    /// Threads away from their memory, as sentences: lines between nodes.
    pub links: Vec<String>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeBox {
    /// `package 0, node 0`.
    pub title: String,
    /// Its cores: each a list of CPUs.
    pub cores: Vec<Vec<CpuBox>>,
}

/// A CPU and what is bound to it.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuBox {
    /// Its number.
    pub cpu: u32,
    /// What is bound there: `vcpu 3`, `8 vhost`.
    pub chips: Vec<String>,
    /// True if a vCPU shares the CPU.
    pub contended: bool,
}

/// Bars that add up to one whole.
#[derive(Debug, Clone, PartialEq)]
pub struct BarGroup {
    /// Heading on the left, such as a vCPU.
    pub title: String,
    /// Unit of the values: `ns`, `count`, ...
    pub unit: &'static str,
    /// The whole that shares refer to.
    pub total: f64,
    /// The bars, in drawing order.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
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

/// One step of a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Lane: `L2`, `L1`, `L0`, `VMM`.
    pub lane: String,
    /// What happens there.
    pub label: String,
    /// Start after the episode's first step.
    pub at_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// How many equal steps in a row it stands for.
    pub repeat: u64,
}

/// One bin of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct Bin {
    /// Lower bound, inside.
    pub from: f64,
    /// Upper bound, outside.
    pub to: f64,
    /// How many samples.
    pub count: u64,
}
