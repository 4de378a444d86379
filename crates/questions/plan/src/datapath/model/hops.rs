//! What others published of a hop of Open vSwitch with DPDK, for a host on which nobody has measured it. The rows of `hops.tsv`, typed.

use super::switch::HopCost;
use std::sync::LazyLock;

/// One published cost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Published {
    pub id: &'static str,
    /// Cycles of a hop of a frame of `bytes`.
    pub cycles: f64,
    /// `None`: the source does not say.
    pub bytes: Option<f64>,
    /// More for each byte, where several sizes tell.
    pub cycles_per_byte: Option<f64>,
    /// Found in the exact-match cache; else in the classifier of megaflows.
    pub is_exact_match: bool,
    pub source: &'static str,
}

/// The least, the middle and the most of something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Range<T> {
    pub least: T,
    pub middle: T,
    pub most: T,
}

impl<T> Range<T> {
    pub(crate) fn each(&self) -> [&T; 3] {
        [&self.least, &self.middle, &self.most]
    }
}

static HOPS: LazyLock<Vec<Published>> = LazyLock::new(|| {
    let rows = include_str!("hops.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| Published::of(row).unwrap_or_else(|| panic!("hops.tsv: {row}"))).collect()
});

impl Published {
    fn of(row: &'static str) -> Option<Self> {
        let cells: Vec<&str> = row.split('\t').collect();
        let [id, cycles, bytes, per_byte, lookup, _version, source] = cells[..] else { return None };
        let number = |cell: &str| if cell == "-" { Some(None) } else { cell.parse().ok().map(Some) };
        Some(Self {
            id,
            cycles: cycles.parse().ok()?,
            bytes: number(bytes)?,
            cycles_per_byte: number(per_byte)?,
            is_exact_match: match lookup {
                "emc" => true,
                "megaflow" => false,
                _ => return None,
            },
            source,
        })
    }

    /// The same of a frame of 64 bytes, as far as the row tells sizes apart.
    fn at_64_bytes(&self) -> f64 {
        let longer = self.bytes.zip(self.cycles_per_byte).map_or(0.0, |(bytes, each)| (bytes - 64.0) * each);
        self.cycles - longer
    }
}

pub(crate) fn hops() -> &'static [Published] {
    &HOPS
}

/// What a hop costs by all rows whose flows were found in the exact-match cache: the cheapest, the median and the dearest, at 64 bytes and for
/// each further byte.
pub(crate) fn published() -> Range<HopCost> {
    let of = |value: &dyn Fn(&Published) -> Option<f64>| {
        let mut all: Vec<f64> = hops().iter().filter(|row| row.is_exact_match).filter_map(value).collect();
        all.sort_by(f64::total_cmp);
        Range { least: all[0], middle: all[all.len() / 2], most: all[all.len() - 1] }
    };
    let (at_64, each) = (of(&|row| Some(row.at_64_bytes())), of(&|row| row.cycles_per_byte));
    let cost = |cycles: f64, cycles_per_byte: f64| HopCost {
        cycles: cycles - 64.0 * cycles_per_byte,
        cycles_per_byte,
        spread: 1.0,
        source: Some("published costs".to_owned()),
    };
    Range {
        least: cost(at_64.least, each.least),
        middle: cost(at_64.middle, each.middle),
        most: cost(at_64.most, each.most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_hops_have_a_source_and_their_range_is_that_of_the_rows() {
        assert!(hops().len() >= 10 && hops().iter().all(|row| row.source.len() >= 8 && row.cycles >= 200.0));
        let mut ids: Vec<&str> = hops().iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), hops().len());
        let Range { least, middle, most } = published();
        assert_eq!([&least, &middle, &most].map(|hop| hop.of(64.0).round()), [255.0, 550.0, 895.0]);
        assert_eq!([&least, &middle, &most].map(|hop| hop.of(1518.0).round()), [459.0, 896.0, 1433.0]);
        assert!(hops().iter().any(|row| !row.is_exact_match && row.cycles > most.of(64.0)), "megaflows cost more");
    }
}
