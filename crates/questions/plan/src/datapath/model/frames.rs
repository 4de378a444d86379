//! Sizes of the frames that a design carries: one, or a mix of several.

use std::fmt;

/// Frames with their check sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Frames {
    /// Share and bytes of each size; the shares add up to 1.
    sizes: Vec<(f64, f64)>,
    /// What a mix is called, such as `64:7,594:4,1518:1`.
    mix: Option<String>,
}

impl Frames {
    /// All of `bytes`.
    pub fn of(bytes: u32) -> Self {
        Self { sizes: vec![(1.0, f64::from(bytes))], mix: None }
    }

    /// So many of each size among each other; `None` if they are none.
    pub fn mix(parts: &[(f64, u32)]) -> Option<Self> {
        let all: f64 = parts.iter().map(|(weight, _)| weight).sum();
        let is_mix = all > 0.0 && all.is_finite() && parts.iter().all(|(weight, _)| *weight >= 0.0);
        let name = |(weight, bytes): &(f64, u32)| format!("{bytes}:{weight}");
        let mix = Some(parts.iter().map(name).collect::<Vec<_>>().join(","));
        is_mix.then(|| Self {
            sizes: parts.iter().map(|(weight, bytes)| (weight / all, f64::from(*bytes))).collect(),
            mix,
        })
    }

    /// The one size that they have; `None` of a mix.
    pub fn size_bytes(&self) -> Option<u64> {
        if self.mix.is_some() { None } else { self.sizes.first().map(|(_, bytes)| *bytes as u64) }
    }

    pub(crate) fn mix_name(&self) -> Option<&str> {
        self.mix.as_deref()
    }

    /// The mean over all frames of what `of` says of a size.
    pub fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.sizes.iter().map(|(share, bytes)| share * of(*bytes)).sum()
    }

    /// Frames a second of what carries `of` frames a second of one size: each takes its time.
    pub fn rate(&self, of: impl Fn(f64) -> f64) -> f64 {
        1.0 / self.mean(|bytes| 1.0 / of(bytes))
    }

    /// Share of the frames that are shorter than `bytes`.
    pub fn below(&self, bytes: u32) -> f64 {
        self.sizes.iter().filter(|(_, size)| *size < f64::from(bytes)).map(|(share, _)| share).sum()
    }

    /// Whether every size is as `is` wants it.
    pub fn all(&self, is: impl Fn(f64) -> bool) -> bool {
        self.sizes.iter().all(|(_, bytes)| is(*bytes))
    }

    pub(crate) fn longest_bytes(&self) -> f64 {
        self.sizes.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max)
    }

    /// Bytes of a frame on average.
    pub fn bytes(&self) -> f64 {
        self.mean(|bytes| bytes)
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mix {
            Some(mix) => f.write_str(mix),
            None => write!(f, "{}", self.bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_carried_at_the_mean_of_its_times() {
        let imix = Frames::mix(&[(7.0, 64), (4.0, 594), (1.0, 1518)]).unwrap();
        assert!((imix.bytes() - 361.8).abs() < 0.05, "the average of the simple IMIX");
        let line = |bytes: f64| 1e9 / (8.0 * (bytes + 20.0));
        assert!((imix.rate(line) - line(imix.bytes())).abs() < 1.0, "times on a wire are linear in bytes");
        assert!((imix.below(160) - 7.0 / 12.0).abs() < 1e-12 && Frames::of(160).below(160) == 0.0);
        assert!(Frames::mix(&[]).is_none() && Frames::mix(&[(-1.0, 64), (2.0, 64)]).is_none());
    }
}
