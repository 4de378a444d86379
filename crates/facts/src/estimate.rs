//! Numbers that are known within bounds.

use serde::Deserialize;
use std::ops::{Add, Mul};

/// A number with what it could be.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The least.
    pub low: f64,
    /// The most likely.
    pub mid: f64,
    /// The most.
    pub high: f64,
}

impl Estimate {
    pub const fn exact(value: f64) -> Self {
        Self { low: value, mid: value, high: value }
    }

    /// The three in turn.
    pub fn each(self) -> [f64; 3] {
        [self.low, self.mid, self.high]
    }

    /// The difference, never less than nothing: both ends of one measurement move together.
    pub fn less(self, other: Estimate) -> Self {
        let difference = |a: f64, b: f64| (a - b).max(0.0);
        Self {
            low: difference(self.low, other.high),
            mid: difference(self.mid, other.mid),
            high: difference(self.high, other.low),
        }
    }
}

impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { low: self.low + other.low, mid: self.mid + other.mid, high: self.high + other.high }
    }
}

/// Of amounts that are not negative.
impl Mul for Estimate {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { low: self.low * other.low, mid: self.mid * other.mid, high: self.high * other.high }
    }
}
