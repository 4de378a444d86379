//! Causes of samples, added up.

use crate::facts::ledger::model::PartFlow;
use crate::facts::losses::Cause;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one cause took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// From how many samples.
    pub count: u64,
    /// In all.
    pub total_ns: u64,
    /// From one sample.
    pub max_ns: u64,
}

impl Part {
    fn add(&mut self, ns: u64) {
        self.add_many(ns, 1);
    }

    fn add_many(&mut self, ns: u64, count: u64) {
        if ns > 0 && count > 0 {
            self.count = self.count.saturating_add(count);
            self.total_ns = self.total_ns.saturating_add(ns.saturating_mul(count));
            self.max_ns = self.max_ns.max(ns);
        }
    }
}

/// Samples over a limit with their causes: the totals of all parts are the total of all lengths.
///
/// Shorter ones are not counted, but the longest of them may be the longest of all if a cause had taken nothing.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// Only longer ones are counted.
    above_ns: u64,
    /// All that are counted.
    pub samples: u64,
    /// Their lengths.
    pub total_ns: u64,
    /// By the name of the cause: what has one name is one cause.
    pub causes: BTreeMap<Arc<str>, Part>,
    /// What no cause took.
    pub unexplained: Part,
    /// Samples that lie where the trace shows nothing, which are unexplained.
    pub outside: u64,
    /// The longest samples with what each cause took, longest first.
    longest: Vec<(u64, Shares)>,
    /// A sample was left out there.
    is_cut: bool,
}

/// What each cause took of one sample.
type Shares = Vec<(Arc<str>, u64)>;

/// So many of the longest samples are kept with their causes.
const LONGEST: usize = 1 << 12;

/// What causes are called in one trace.
pub(super) struct Names<'p> {
    part: &'p PartFlow,
    known: FxHashMap<Cause, Arc<str>>,
}

impl<'p> Names<'p> {
    pub(super) fn new(part: &'p PartFlow) -> Self {
        Self { part, known: FxHashMap::default() }
    }

    pub(super) fn of(&mut self, cause: Cause) -> Arc<str> {
        self.known.entry(cause).or_insert_with(|| cause.by.name(self.part).into()).clone()
    }
}

/// Where a cause took time from a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    pub cause: Arc<str>,
    /// Inside the sample.
    pub inside_ns: u64,
    /// Beside it, where it may lie because the clocks are not the same.
    pub beside_ns: u64,
}

impl Sums {
    /// Of samples that are longer than that.
    pub(super) fn above(above_ns: u64) -> Self {
        Self { above_ns, ..Self::default() }
    }

    /// Adds a sample. What causes took beside it fills up what is left of its length.
    pub(super) fn add(&mut self, length_ns: u64, taken: &[Taken]) {
        let mut left_ns = length_ns;
        let mut parts: Vec<(Arc<str>, u64)> = Vec::new();
        for of in [|taken: &Taken| taken.inside_ns, |taken: &Taken| taken.beside_ns] {
            for one in taken {
                let ns = of(one).min(left_ns);
                left_ns -= ns;
                match parts.iter_mut().find(|(cause, _)| *cause == one.cause) {
                    Some((_, sum)) => *sum += ns,
                    None if ns > 0 => parts.push((one.cause.clone(), ns)),
                    None => {}
                }
            }
        }
        if length_ns > self.above_ns {
            self.samples += 1;
            self.total_ns = self.total_ns.saturating_add(length_ns);
            self.unexplained.add(left_ns);
            parts.iter().for_each(|(cause, ns)| self.causes.entry(cause.clone()).or_default().add(*ns));
        }
        self.keep(length_ns, parts);
    }

    fn keep(&mut self, length_ns: u64, parts: Shares) {
        self.longest.push((length_ns, parts));
        if self.longest.len() >= 2 * LONGEST {
            self.cut();
        }
    }

    /// Adds samples of which nothing is known.
    pub(super) fn add_unexplained(&mut self, length_ns: u64, count: u64) {
        if length_ns > self.above_ns {
            self.samples = self.samples.saturating_add(count);
            self.total_ns = self.total_ns.saturating_add(length_ns.saturating_mul(count));
            self.unexplained.add_many(length_ns, count);
        }
        if count > 0 {
            self.keep(length_ns, Vec::new());
        }
    }

    /// Adds samples over the limit of which only the sum of their lengths, and the longest, are left.
    pub(super) fn add_rest(&mut self, count: u64, total_ns: u64, max_ns: u64) {
        self.samples = self.samples.saturating_add(count);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.unexplained.count = self.unexplained.count.saturating_add(count);
        self.unexplained.total_ns = self.unexplained.total_ns.saturating_add(total_ns);
        self.unexplained.max_ns = self.unexplained.max_ns.max(max_ns);
        if count > 0 {
            self.keep(max_ns, Vec::new());
        }
    }

    /// Adds a sample that lies where the trace shows nothing.
    pub(super) fn add_outside(&mut self, length_ns: u64) {
        self.outside += u64::from(length_ns > self.above_ns);
        self.add_unexplained(length_ns, 1);
    }

    fn cut(&mut self) {
        self.longest.sort_by_key(|(length_ns, _)| Reverse(*length_ns));
        self.is_cut |= self.longest.len() > LONGEST;
        self.longest.truncate(LONGEST);
    }

    pub(super) fn merge(&mut self, other: Self) {
        let add = |sum: &mut Part, part: Part| {
            sum.count = sum.count.saturating_add(part.count);
            sum.total_ns = sum.total_ns.saturating_add(part.total_ns);
            sum.max_ns = sum.max_ns.max(part.max_ns);
        };
        self.samples = self.samples.saturating_add(other.samples);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.outside += other.outside;
        add(&mut self.unexplained, other.unexplained);
        other.causes.into_iter().for_each(|(cause, part)| add(self.causes.entry(cause).or_default(), part));
        self.longest.extend(other.longest);
        self.is_cut |= other.is_cut;
        self.cut();
    }

    /// The longest sample.
    pub fn max_ns(&self) -> u64 {
        self.longest.iter().map(|(length_ns, _)| *length_ns).max().unwrap_or(0)
    }

    /// The causes, most first.
    pub fn most_first(&self) -> Vec<(&str, Part)> {
        let mut causes: Vec<(&str, Part)> = self.causes.iter().map(|(name, part)| (&**name, *part)).collect();
        causes.sort_by_key(|(_, part)| Reverse(part.total_ns));
        causes
    }

    /// The longest sample if the cause of that name had taken nothing.
    pub fn max_without_ns(&self, name: &str) -> u64 {
        let left_ns = |(length_ns, parts): &(u64, Vec<(Arc<str>, u64)>)| {
            let taken_ns: u64 = parts.iter().filter(|(cause, _)| **cause == *name).map(|(_, ns)| ns).sum();
            length_ns.saturating_sub(taken_ns)
        };
        let kept_ns = self.longest.iter().map(left_ns).max().unwrap_or(0);
        // Whoever was left out is no longer than the shortest that was kept.
        let left_out_ns = self.longest.iter().map(|(length_ns, _)| *length_ns).min().filter(|_| self.is_cut);
        kept_ns.max(left_out_ns.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(name: &str, inside_ns: u64, beside_ns: u64) -> Taken {
        Taken { cause: name.into(), inside_ns, beside_ns }
    }

    #[test]
    fn causes_and_what_is_unexplained_are_the_length_of_each_sample() {
        let mut sums = Sums::default();
        sums.add(100, &[taken("a", 40, 0), taken("b", 10, 0), taken("a", 20, 0)]);
        sums.add(50, &[taken("a", 20, 40), taken("b", 0, 40)]);
        sums.add(70, &[]);
        sums.add_unexplained(5, 3);
        sums.add_outside(9);
        let parts: u64 = sums.causes.values().map(|part| part.total_ns).sum();
        assert_eq!((parts + sums.unexplained.total_ns, sums.total_ns, sums.samples), (244, 244, 7));
        let of = |name: &str| sums.causes[name];
        assert_eq!(of("a"), Part { count: 2, total_ns: 110, max_ns: 60 }, "what lies beside fills the second one up");
        assert_eq!(of("b"), Part { count: 1, total_ns: 10, max_ns: 10 });
        assert_eq!((sums.unexplained.max_ns, sums.unexplained.count, sums.outside), (70, 6, 1));
    }

    #[test]
    fn what_is_below_the_limit_is_not_counted_and_may_be_the_longest_without_a_cause() {
        let mut sums = Sums::above(60);
        sums.add(100, &[taken("a", 90, 0)]);
        sums.add(50, &[taken("a", 5, 0)]);
        sums.add(60, &[taken("b", 60, 0)]);
        sums.add_unexplained(40, 7);
        sums.add_outside(30);
        sums.add_outside(70);
        assert_eq!((sums.samples, sums.total_ns, sums.outside), (2, 170, 1));
        let parts: u64 = sums.causes.values().map(|part| part.total_ns).sum();
        assert_eq!((parts, sums.unexplained.total_ns, sums.causes.len()), (90, 80, 1));
        let mut alone = Sums::above(60);
        alone.add(100, &[taken("a", 90, 0)]);
        alone.add(50, &[taken("a", 5, 0)]);
        assert_eq!((alone.max_without_ns("a"), alone.max_ns()), (45, 100));
    }

    #[test]
    fn without_a_cause_the_longest_may_be_another_one() {
        let mut sums = Sums::default();
        sums.add(100, &[taken("a", 90, 0)]);
        sums.add(80, &[taken("b", 80, 0)]);
        let without = ["a", "b", "c"].map(|name| sums.max_without_ns(name));
        assert_eq!((sums.max_ns(), without), (100, [80, 100, 100]));
        let mut many = Sums::default();
        (0..3 * LONGEST as u64).for_each(|ns| many.add(ns, &[taken("a", ns, 0)]));
        many.cut();
        assert_eq!(many.max_without_ns("a"), 2 * LONGEST as u64, "others, which were as long, are not kept");
    }
}
