//! Causes of samples, added up.

use crate::ledger::model::PartFlow;
use crate::losses::{Cause, LostIn};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// From how many samples.
    pub count: u64,
    pub total_ns: u64,
    pub max_ns: u64,
}

impl Part {
    pub(super) fn add(&mut self, ns: u64) {
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
    pub samples: u64,
    pub total_ns: u64,
    /// By the name of the cause: what has one name is one cause.
    pub causes: BTreeMap<Arc<str>, Part>,
    /// What no cause took.
    pub unexplained: Part,
    /// Samples that lie where the trace shows nothing, which are unexplained.
    pub outside: u64,
    /// All samples of which it is known what took how much of them, shorter ones too, by length and by the state that took most of each;
    /// `None`: no state took more than is unexplained.
    pub by_length: BTreeMap<(u64, Option<LostIn>), u64>,
    /// What causes took in each state, by their names.
    pub by_state: BTreeMap<LostIn, BTreeMap<Arc<str>, u64>>,
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
    pub state: LostIn,
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
        let mut states: BTreeMap<LostIn, u64> = BTreeMap::new();
        for of in [|taken: &Taken| taken.inside_ns, |taken: &Taken| taken.beside_ns] {
            for one in taken {
                let ns = of(one).min(left_ns);
                left_ns -= ns;
                if ns > 0 {
                    *states.entry(one.state).or_default() += ns;
                    let named = self.by_state.entry(one.state).or_default().entry(one.cause.clone()).or_default();
                    *named = named.saturating_add(ns);
                }
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
        let most = states.into_iter().min_by_key(|(state, ns)| (Reverse(*ns), *state));
        self.count_length(length_ns, most.filter(|(_, ns)| *ns > left_ns).map(|(state, _)| state), 1);
        self.keep(length_ns, parts);
    }

    /// Lengths in nanoseconds are cut off to three digits, but not below the limit: there may be millions of them.
    fn count_length(&mut self, length_ns: u64, most: Option<LostIn>, count: u64) {
        let unit_ns = 10_u64.pow(length_ns.checked_ilog10().unwrap_or(0).saturating_sub(2));
        let cut_ns = length_ns / unit_ns * unit_ns;
        let kept_ns = if length_ns >= self.above_ns { cut_ns.max(self.above_ns) } else { cut_ns };
        let alike = self.by_length.entry((kept_ns, most)).or_default();
        *alike = alike.saturating_add(count);
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
            self.count_length(length_ns, None, count);
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
        for (key, count) in other.by_length {
            let alike = self.by_length.entry(key).or_default();
            *alike = alike.saturating_add(count);
        }
        for (state, names) in other.by_state {
            let known = self.by_state.entry(state).or_default();
            for (name, ns) in names {
                let sum = known.entry(name).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        self.longest.extend(other.longest);
        self.is_cut |= other.is_cut;
        self.cut();
    }

    pub fn max_ns(&self) -> u64 {
        self.longest.iter().map(|(length_ns, _)| *length_ns).max().unwrap_or(0)
    }

    /// The causes, most first.
    pub fn most_first(&self) -> Vec<(&str, Part)> {
        let mut causes: Vec<(&str, Part)> = self.causes.iter().map(|(name, part)| (&**name, *part)).collect();
        causes.sort_by_key(|(_, part)| Reverse(part.total_ns));
        causes
    }

    /// Whether some samples were left out, so that what is said of the longest one is a bound.
    pub fn is_bound(&self) -> bool {
        self.is_cut
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
        Taken { cause: name.into(), state: LostIn::Preempted, inside_ns, beside_ns }
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
    fn lengths_go_by_the_state_that_took_most_if_that_is_more_than_is_unexplained() {
        let mut sums = Sums::above(123_456);
        let waits = |ns: u64| Taken { state: LostIn::WakeDelay, ..taken("hog", ns, 0) };
        sums.add(100, &[taken("a", 30, 0), taken("b", 30, 0), waits(40)]);
        sums.add(100, &[taken("a", 50, 0)]);
        sums.add(123_455, &[taken("a", 123_455, 0)]);
        sums.add(123_456, &[waits(123_456)]);
        sums.add_outside(123_999);
        let told: Vec<(u64, Option<LostIn>, u64)> = sums.by_length.iter().map(|(key, n)| (key.0, key.1, *n)).collect();
        let expected = [
            (100, None, 1),
            (100, Some(LostIn::Preempted), 1),
            (123_000, Some(LostIn::Preempted), 1),
            // Three digits are kept, but no length falls below the limit by it.
            (123_456, None, 1),
            (123_456, Some(LostIn::WakeDelay), 1),
        ];
        assert_eq!(told, expected);
        let names: Vec<_> = sums.by_state[&LostIn::Preempted].iter().map(|(name, ns)| (&**name, *ns)).collect();
        assert_eq!(names, [("a", 123_535), ("b", 30)]);
        let mut all = sums.clone();
        all.merge(sums);
        assert_eq!(all.by_length[&(100, None)], 2);
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
