//! A time of a guest's clock on the clock of the machine below, with its error.

use super::drift_band::DriftBand;
use super::lines::{Bound, Lines};
use super::offsets::Offsets;
use super::order_only::OrderOnly;
use super::shift::Shift;

/// A time on another clock. The true one lies in `[low, high]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The best guess, the middle.
    pub value: u64,
    /// The earliest it can be.
    pub low: u64,
    /// The latest it can be.
    pub high: u64,
}

impl Placed {
    /// A time known to lie between two others.
    pub fn between(low: u64, high: u64) -> Self {
        let high = high.max(low);
        Self { value: low + (high - low) / 2, low, high }
    }

    /// Half of the distance in which the true time lies.
    pub fn error(&self) -> u64 {
        (self.high - self.low).div_ceil(2)
    }
}

/// How one CPU's times are found on the clock below.
#[derive(Debug, Clone)]
pub enum Map {
    /// By the offsets that KVM wrote or showed; times are exact but for so many units that rounding takes. Or by a measured
    /// offset, whose error is among them.
    Offsets(Offsets, u64),
    /// By trace-cmd's samples, with the same rounding.
    Shift(Shift, u64),
    /// By lines between causal bounds.
    Lines(Lines),
    /// By causal bounds and a largest drift: the clock is no line.
    DriftBand(DriftBand),
    /// By the order of causal bounds alone: the clock wanders too much for lines.
    OrderOnly(OrderOnly),
}

impl Map {
    /// Where the guest's time `at` lies below; `None` where nothing bounds it.
    pub fn place(&self, at: u64) -> Option<Placed> {
        match self {
            Map::Offsets(offsets, rounding) => {
                let (low, high) = offsets.place(at);
                Some(Placed::between(low.saturating_sub(*rounding), high.saturating_add(*rounding)))
            }
            Map::Shift(shift, rounding) => {
                let (low, high) = shift.at(at);
                Some(Placed::between(low.saturating_sub(*rounding), high.saturating_add(*rounding)))
            }
            Map::Lines(lines) => {
                let (low, high) = lines.at(at);
                Some(Placed::between(low, high))
            }
            Map::DriftBand(band) => band.at(at).map(|(low, high)| Placed::between(low, high)),
            Map::OrderOnly(order) => order.at(at).map(|(low, high)| Placed::between(low, high)),
        }
    }

    /// The method as a sentence names it.
    pub fn in_words(&self) -> &'static str {
        match self {
            Map::Offsets(offsets, _) if offsets.is_measured => "a measured TSC offset",
            Map::Offsets(offsets, _) if offsets.is_held => "the TSC offsets from KVM's debugfs",
            Map::Offsets(..) => "the TSC offsets that KVM wrote",
            Map::Shift(..) => "trace-cmd's clock samples",
            Map::Lines(_) => "lines between causes and effects in both traces",
            Map::DriftBand(_) => "causes and effects in both traces and the maximum drift of a clock",
            Map::OrderOnly(_) => "the order of causes and effects in both traces",
        }
    }

    pub fn method(&self) -> &'static str {
        match self {
            Map::Offsets(..) => "tsc_offset",
            Map::Shift(..) => "time_shift",
            Map::Lines(_) => "causal_lines",
            Map::DriftBand(_) => "causal_drift",
            Map::OrderOnly(_) => "causal_order",
        }
    }
}

/// Clocks of known scale drift less than this: each of two may be slewed by 500 ppm (MAXFREQ in include/linux/timex.h,
/// Linux 6.12).
pub(crate) const MOST_DRIFT: f64 = 1e-3;

/// How far the rate of an unsteady counter may lie from its host's between two causes. Nothing in KVM limits it: with 1,000
/// ppm 29 of 100,655 events of a nested Linux in QEMU's TCG lay outside their error, with 2 % none.
const UNSTEADY: f64 = 0.02;

/// What rounding may make of the ratio of a counter to itself.
const ROUNDED: f64 = 1e-9;

/// Slopes to try where a unit of one clock is not known.
const ANY: (f64, f64) = (0.01, 100.0);

/// A clock that is set is set rarely, and jumps. With fewer bounds than these for each line, or with lines that meet where
/// one ends and the next begins, it wanders, and a line says nothing of what it did between two bounds.
const RARE: usize = 100;

/// What is known of two clocks beside their bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Both units are known: so many of the guest's are one below, but they may drift.
    Known(f64),
    /// Both count the same counter, so many of the guest's ticks for one below: they cannot drift, only be set.
    Counter(f64),
    /// Both count the same counter, one of them perhaps scaled, and nobody wrote an offset.
    Held,
    /// Both count the same counter, which is not steady: the offset may change whenever the vCPU is loaded, by less than
    /// bounds can show.
    Unsteady,
    Unknown,
}

impl Scale {
    /// The slopes that a line can have, where anything is known of them.
    pub fn slopes(self) -> Option<(f64, f64)> {
        match self {
            Scale::Known(ratio) => Some(((1.0 - MOST_DRIFT) / ratio, (1.0 + MOST_DRIFT) / ratio)),
            Scale::Counter(ratio) => Some(((1.0 - ROUNDED) / ratio, (1.0 + ROUNDED) / ratio)),
            Scale::Held => Some((1.0 - MOST_DRIFT, 1.0 + MOST_DRIFT)),
            Scale::Unsteady | Scale::Unknown => None,
        }
    }
}

/// The map through causal bounds, sorted by x.
pub fn through(bounds: &[Bound], scale: Scale) -> Option<Map> {
    if scale == Scale::Unsteady {
        let band = DriftBand::between(bounds, (1.0 - UNSTEADY, 1.0 + UNSTEADY)).map(Map::DriftBand);
        return band.or_else(|| OrderOnly::between(bounds).map(Map::OrderOnly));
    }
    let slopes = scale.slopes().unwrap_or(ANY);
    // A counter that contradicts one line had its offset written, nobody knows how often.
    let may_be_set = !matches!(scale, Scale::Counter(_));
    let lines = Lines::one(bounds, slopes).or_else(|| {
        let lines = Lines::split(bounds, slopes).filter(|_| may_be_set)?;
        (lines.len() * RARE <= bounds.len() && lines.jump()).then_some(lines)
    });
    // A ratio that nothing tells is the slope of one line through everything.
    let scaled = || scaled(bounds).filter(|_| scale == Scale::Held);
    lines.map(Map::Lines).or_else(scaled).or_else(|| OrderOnly::between(bounds).map(Map::OrderOnly))
}

/// The map of a counter that is scaled by nobody knows how much, and whose offset held: one line of any slope.
pub fn scaled(bounds: &[Bound]) -> Option<Map> {
    Lines::one(bounds, ANY).map(Map::Lines)
}
