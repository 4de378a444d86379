//! What a survey of a guest's memory counted, as shares.

use super::share::{Drawn, Share, Z};
use base::bench::{
    ALLOCATED, BY_CONTENTS, Bench, COMPRESS_NS, COMPRESSED, COST, DIRTIED, Measured, PAGES, RESIDENT, SHARED,
};
use std::collections::BTreeMap;

pub(super) const PAGE_BYTES: f64 = 4_096.0;

/// One guest, looked at from outside.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// The VM's name.
    pub vm: String,
    pub pages: f64,
    /// Those to which nothing was ever written.
    pub holes: f64,
    /// Of these, such as lie in memory that other processes may have as well.
    pub(crate) shared_holes: f64,
    /// Those that lie on a disk, at which nobody looked.
    pub swapped: f64,
    zeros: Option<Share>,
    one_value: Option<Share>,
    pub compressed: Option<Compressed>,
    /// What was dirtied, by how long it was watched.
    pub dirtied: Vec<Dirtied>,
    /// What process and files had, before and after: name, bytes, bytes.
    pub taken: Vec<(&'static str, f64, f64)>,
    /// What looking took of a CPU, and the bytes that were read.
    pub cost: Option<(f64, f64)>,
}

/// Groups of pages that are not zeros, compressed.
#[derive(Debug, Clone, PartialEq)]
pub struct Compressed {
    pub method: String,
    pub groups: usize,
    pub ratio: f64,
    /// Its 95 % interval; `None` of too few groups.
    pub interval: Option<(f64, f64)>,
    /// How many groups came out at least a tenth shorter.
    pub shorter: Share,
    /// Bytes that one core takes in a second.
    pub bytes_per_s: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Dirtied {
    pub window_ns: u64,
    pub pages: f64,
    /// Its 95 % interval, where it is known from a sample of ours.
    pub interval: Option<(f64, f64)>,
    pub by: String,
    /// What XBZRLE would make of them; `None` where that was not looked at.
    pub xbzrle: Option<Xbzrle>,
}

/// Pages that changed, as XBZRLE sends them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Xbzrle {
    /// How many of the sample had changed.
    pub changed: u64,
    /// Which of them come out shorter than a page.
    pub shorter: Share,
    pub(crate) mean_bytes: Option<f64>,
}

impl Survey {
    /// That of a bench; `None` if it is none of a guest's memory, or counted nothing.
    pub fn of(bench: &Bench) -> Option<Self> {
        if bench.bench != "memory" {
            return None;
        }
        let named = |name: &'static str| bench.results.iter().filter(move |one| one.name == name);
        let strata: Vec<&Measured> = named(PAGES).collect();
        let sum = |name: &str| strata.iter().map(|one| count(one, name)).sum::<f64>();
        let drawn = |found: &str| {
            let parts = strata.iter().map(|one| part(one, found));
            Share::of(&parts.collect::<Vec<_>>())
        };
        let shared = strata.iter().filter(|one| one.params.memory.as_deref() == Some(SHARED));
        let taken = [RESIDENT, ALLOCATED].into_iter().filter_map(|name| match named(name).next()?.samples[..] {
            [before, after] => Some((name, before, after)),
            _ => None,
        });
        let cost = named(COST).next().and_then(|one| Some((*one.samples.first()?, count(one, "read_bytes"))));
        let survey = Self {
            vm: bench.environment.get(base::bench::VM).cloned().unwrap_or_default(),
            pages: sum("pages"),
            holes: sum("holes"),
            shared_holes: shared.map(|one| count(one, "holes")).sum(),
            swapped: sum("swapped"),
            zeros: drawn("zero"),
            one_value: drawn("one_value"),
            compressed: compressed(&named(COMPRESSED).collect::<Vec<_>>(), &named(COMPRESS_NS).collect::<Vec<_>>()),
            dirtied: dirtied(named(DIRTIED)),
            taken: taken.collect(),
            cost,
        };
        (survey.pages > 0.0).then_some(survey)
    }

    /// How much of all memory is zeros: holes for certain, of the rest what the sample says, of what was swapped out anything.
    pub fn zero(&self) -> Option<Share> {
        let rest = self.rest();
        let known = match self.zeros {
            Some(zeros) => zeros.within(rest / self.pages, self.holes / self.pages),
            None if rest == 0.0 => Share::exactly(self.holes / self.pages),
            None => return None,
        };
        Some(Share { high: known.high + self.swapped / self.pages, ..known })
    }

    /// How much of it is one value other than zero, page by page.
    pub fn one_value(&self) -> Option<Share> {
        Some(self.one_value?.within(self.rest() / self.pages, 0.0))
    }

    /// How much of it comes out at least a tenth shorter when compressed: of what is not zeros.
    pub(crate) fn compressible(&self) -> Option<Share> {
        let other = 1.0 - self.zero()?.share - self.swapped / self.pages;
        Some(self.compressed.as_ref()?.shorter.within(other.max(0.0), 0.0))
    }

    /// The same for who knows better what is dirtied.
    #[must_use]
    pub fn without_windows(self) -> Self {
        Self { dirtied: Vec::new(), ..self }
    }

    fn rest(&self) -> f64 {
        (self.pages - self.holes - self.swapped).max(0.0)
    }

    /// Windows in seconds and what was dirtied in each, as a curve is made of: by one way of knowing it, ours where there is one.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let is_ours = |one: &&Dirtied| one.interval.is_some();
        let any_of_ours = self.dirtied.iter().any(|one| is_ours(&one));
        let taken = self.dirtied.iter().filter(|one| is_ours(one) == any_of_ours);
        taken.map(|one| (one.window_ns as f64 / 1e9, one.pages)).collect()
    }
}

fn count(measured: &Measured, name: &str) -> f64 {
    measured.counters.get(name).copied().unwrap_or(0) as f64
}

fn part(measured: &Measured, found: &str) -> Drawn {
    Drawn { all: count(measured, "data"), sampled: count(measured, "sampled"), found: count(measured, found) }
}

fn compressed(sizes: &[&Measured], times: &[&Measured]) -> Option<Compressed> {
    /// What gains less is not worth it (docs/read/migration.md, "Compressing").
    const SHORTER: f64 = 0.9;
    let group_bytes = sizes.first()?.params.bytes? as f64;
    let shares: Vec<f64> = sizes.iter().flat_map(|one| &one.samples).map(|size| size / group_bytes).collect();
    let taken_ns: Vec<f64> = times.iter().flat_map(|one| &one.samples).copied().collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if shares.is_empty() || taken_ns.is_empty() || !(mean(&shares) > 0.0 && mean(&taken_ns) > 0.0) {
        return None;
    }
    let (share, groups) = (mean(&shares), shares.len() as f64);
    let variance = shares.iter().map(|one| (one - share).powi(2)).sum::<f64>() / (groups - 1.0);
    let half = Z * (variance / groups).sqrt();
    let shorter = shares.iter().filter(|share| **share <= SHORTER).count() as f64;
    Some(Compressed {
        method: sizes.first()?.params.content.clone()?,
        groups: shares.len(),
        ratio: 1.0 / share,
        interval: (half.is_finite() && half < share).then(|| (1.0 / (share + half), 1.0 / (share - half))),
        // Groups are few of many.
        shorter: Share::of(&[Drawn { all: 1e12, sampled: groups, found: shorter }])?,
        bytes_per_s: group_bytes / mean(&taken_ns) * 1e9,
    })
}

fn dirtied<'b>(results: impl Iterator<Item = &'b Measured>) -> Vec<Dirtied> {
    let mut by_window: BTreeMap<(u64, &str), Vec<&Measured>> = BTreeMap::new();
    for one in results {
        let Some(window_ns) = one.params.window_ns else { continue };
        by_window.entry((window_ns, one.params.content.as_deref().unwrap_or_default())).or_default().push(one);
    }
    let windows = by_window.into_iter().filter_map(|((window_ns, by), strata)| {
        if by != BY_CONTENTS {
            let pages = *strata.first()?.samples.first()?;
            return Some(Dirtied { window_ns, pages, interval: None, by: by.to_owned(), xbzrle: None });
        }
        let drawn = |found: &str| strata.iter().map(|one| part(one, found)).collect::<Vec<_>>();
        let changed = drawn("changed");
        let all: f64 = changed.iter().map(|part| part.all).sum();
        let share = Share::of(&changed)?;
        let sum = |name: &str| strata.iter().map(|one| count(one, name)).sum::<f64>();
        let [seen, encoded, bytes] = ["changed", "xbzrle", "xbzrle_bytes"].map(sum);
        let shorter = Share::of(&[Drawn { all: 1e12, sampled: seen, found: encoded }]);
        Some(Dirtied {
            window_ns,
            pages: share.share * all,
            interval: Some((share.low * all, share.high * all)),
            by: by.to_owned(),
            xbzrle: shorter.map(|shorter| Xbzrle {
                changed: seen as u64,
                shorter,
                mean_bytes: (encoded > 0.0).then(|| bytes / encoded),
            }),
        })
    });
    windows.collect()
}

#[cfg(test)]
pub(in super::super) mod tests {
    use super::*;
    use base::bench::{ANONYMOUS, Params};

    pub(crate) fn counted(name: &str, params: Params, counters: &[(&str, u64)]) -> Measured {
        let counters = counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Measured { name: name.into(), params, unit: "count".into(), counters, ..Measured::default() }
    }

    /// 2 GiB in memory of one kind: a hole, then pages of which 900 of 1,000 are zeros; zstd halves what is not.
    pub(crate) fn bench(memory: &str, zero: u64) -> Bench {
        let params = |launch| Params { launch, memory: Some(memory.to_owned()), ..Params::default() };
        let group = Params { content: Some("zstd-1".into()), bytes: Some(524_288), ..Params::default() };
        let group = |name: &str, samples: [f64; 4]| Measured {
            name: name.into(),
            params: group.clone(),
            samples: samples.to_vec(),
            ..Measured::default()
        };
        let dirtied = |window_ns, changed, xbzrle| {
            let params = Params { content: Some(BY_CONTENTS.into()), window_ns: Some(window_ns), ..Params::default() };
            let counters = [
                ("data", 262_144),
                ("sampled", 1_000),
                ("changed", changed),
                ("xbzrle", xbzrle),
                ("xbzrle_bytes", 10 * xbzrle),
            ];
            counted(DIRTIED, params, &counters)
        };
        let results = vec![
            counted(PAGES, params(0), &[("pages", 262_144), ("holes", 262_144)]),
            counted(
                PAGES,
                params(1),
                &[("pages", 262_144), ("data", 262_144), ("sampled", 1_000), ("zero", zero), ("one_value", 10)],
            ),
            group(COMPRESSED, [524_288.0, 262_144.0, 131_072.0, 131_072.0]),
            group(COMPRESS_NS, [1e6; 4]),
            dirtied(1_000_000_000, 100, 50),
            dirtied(100_000_000, 20, 20),
            Measured { name: RESIDENT.into(), samples: vec![1e9, 1e9], ..Measured::default() },
        ];
        let environment = BTreeMap::from([(base::bench::VM.to_owned(), "web".to_owned())]);
        Bench { results, ..Bench::new("memory", environment) }
    }

    #[test]
    fn holes_are_zeros_for_certain_and_the_rest_has_an_interval() {
        let survey = Survey::of(&bench(ANONYMOUS, 900)).unwrap();
        let zero = survey.zero().unwrap();
        assert!((zero.share - 0.95).abs() < 1e-9, "{zero:?}");
        // Half as wide as that of 900 of 1,000: 0.880 to 0.917.
        assert!((zero.low - 0.940).abs() < 1e-3 && (zero.high - 0.9585).abs() < 1e-3, "{zero:?}");
        assert!((survey.one_value().unwrap().share - 0.005).abs() < 1e-9);
        assert_eq!((survey.vm.as_str(), survey.shared_holes), ("web", 0.0));
        assert_eq!(Survey::of(&bench(SHARED, 900)).unwrap().shared_holes, 262_144.0);
        assert!(Survey::of(&Bench::new("memory", BTreeMap::new())).is_none());
    }

    #[test]
    fn what_was_swapped_out_may_be_zeros_or_not() {
        let mut bench = bench(ANONYMOUS, 900);
        bench.results[0] = counted(PAGES, Params::default(), &[("pages", 262_144), ("swapped", 262_144)]);
        let zero = Survey::of(&bench).unwrap().zero().unwrap();
        assert!((zero.share - 0.45).abs() < 1e-9 && zero.low > 0.43 && zero.high > 0.95, "{zero:?}");
    }

    #[test]
    fn a_ratio_is_of_all_bytes_and_windows_are_in_order() {
        let survey = Survey::of(&bench(ANONYMOUS, 900)).unwrap();
        let compressed = survey.compressed.clone().unwrap();
        // 2,097,152 bytes become 1,048,576; the mean of the four ratios would be 2.75.
        assert!((compressed.ratio - 2.0).abs() < 1e-9 && (compressed.bytes_per_s - 524_288e3).abs() < 1.0);
        let (low, high) = compressed.interval.unwrap();
        assert!(low < 2.0 && high > 2.0);
        assert!((survey.compressible().unwrap().share - 0.05 * 0.75).abs() < 1e-9);
        assert_eq!(survey.points(), [(0.1, 0.02 * 262_144.0), (1.0, 0.1 * 262_144.0)]);
        let xbzrle = survey.dirtied[1].xbzrle.unwrap();
        assert_eq!((xbzrle.changed, xbzrle.shorter.share, xbzrle.mean_bytes), (100, 0.5, Some(10.0)));
    }
}
