//! Pairs of numbers of one thing, before and after, and whether the difference is more than noise.
//!
//! ```text
//! VMREAD of L1    1,868.5     0   gone     ●━━━━━━━━━━━━━━━│     it changed
//! preempted        46.2 %  1.8 %  -44.4 points  ┄●┄┄━━━━━━━━━│      the rim is where it may lie as well
//! host interrupts   0.3 %  1.1 %   +0.8 points ┄┄│━━○┄┄┄┄           noise could explain it: hollow
//!                                           0           2,000
//! ```
//! Fill says how sure the difference is, shape where the numbers come from: neither needs a hue.

use super::{Axis, Mark, Scale, low_and_high};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Pairs on one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DumbbellGroup {
    /// Heading: what is counted, with its unit in words.
    pub title: String,
    /// Along the page.
    pub x: Axis,
    /// The pairs, from the top.
    pub rows: Vec<Dumbbell>,
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dumbbell {
    /// What it is of.
    pub label: String,
    /// The number before.
    pub before: f64,
    /// The number after.
    pub after: f64,
    /// Where the number after may lie as well: the interval of the ratio, times the number before.
    #[serde(flatten, serialize_with = "low_and_high")]
    pub interval: Option<(f64, f64)>,
    /// The change in words: `-96.1 %`, `x4.2`, `+8.3 points`, `gone`.
    pub change: String,
    /// The verdict in words, as tables have it.
    pub verdict: String,
    /// How sure that is.
    pub sure: Sure,
    /// Where both numbers come from.
    pub mark: Mark,
    /// Name of the state or level that decides its colour, or empty.
    pub hue: String,
}

crate::named! {
    /// How sure a difference is: what fills the number after.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Sure {
        /// It is more than runs of one configuration differ.
        Changed = "changed",
        /// It is more than these two runs vary within themselves; others were not made.
        #[serde(rename = "two runs")]
        TwoRuns = "two runs",
        /// Noise could explain it.
        Noise = "noise",
        /// It would be more than noise, but for measurements that others disturbed.
        Void = "void",
        /// There are too few numbers for a verdict.
        Unknown = "unknown",
    }
}

impl Sure {
    /// What a legend says of it.
    pub fn words(self) -> &'static str {
        match self {
            Sure::Changed => "changed by more than noise",
            Sure::TwoRuns => "differs between these two runs; one run a side",
            Sure::Noise => "noise could explain it",
            Sure::Void => "void, disturbed by others",
            Sure::Unknown => "too few numbers for a verdict",
        }
    }
}

pub(super) fn with_looks<S: Serializer>(groups: &[DumbbellGroup], serializer: S) -> Result<S::Ok, S::Error> {
    let look = |key: DumbbellKey| json!({"what": DumbbellGroup::say(key), "mark": key.0, "sure": key.1});
    let looks: Vec<Value> = DumbbellGroup::keys(groups).into_iter().map(look).collect();
    json!({"dumbbells": groups, "looks": looks}).serialize(serializer)
}

/// One entry of a legend: what stands for the number after.
pub type DumbbellKey = (Mark, Sure);

impl Dumbbell {
    /// The line between both numbers, lower end first.
    pub fn ends(&self) -> (f64, f64) {
        (self.before.min(self.after), self.before.max(self.after))
    }
}

impl DumbbellGroup {
    /// The scale of its axis: around all numbers. What reaches beyond twice the largest number is cut there, or one unsure row would
    /// make all others points.
    pub fn scale(&self) -> Scale {
        let numbers = || self.rows.iter().flat_map(|row| [row.before, row.after]);
        let largest = numbers().fold(0.0, f64::max);
        // Of one whole there is no more than all of it.
        let most = if self.x.unit == "share" && largest <= 1.0 { 1.0_f64.min(largest * 2.0) } else { largest * 2.0 };
        let least = numbers().filter(|number| *number > 0.0).fold(f64::INFINITY, f64::min) / 2.0;
        let rims = self.rows.iter().filter_map(|row| row.interval).flat_map(|(low, high)| [low, high]);
        let rims = rims.map(|rim| if self.x.is_logarithmic { rim.max(least) } else { rim });
        // Of a logarithmic axis the first decade has nothing in it where something is 0, which is drawn at its beginning.
        let none = numbers().any(|number| number <= 0.0) && self.x.is_logarithmic && least.is_finite();
        self.x.scale(numbers().chain(rims.map(|rim| rim.min(most))).chain(none.then_some(least / 10.0)))
    }

    /// What numbers after look like in `groups`, each once, the surest first.
    pub fn keys(groups: &[Self]) -> Vec<DumbbellKey> {
        let mut keys: Vec<DumbbellKey> = Vec::new();
        for row in groups.iter().flat_map(|group| &group.rows) {
            if !keys.contains(&(row.mark, row.sure)) {
                keys.push((row.mark, row.sure));
            }
        }
        keys.sort_by_key(|(mark, sure)| (*sure, mark.name()));
        keys
    }

    /// What a legend says of `key`.
    pub fn say((mark, sure): DumbbellKey) -> String {
        if mark == Mark::Modelled {
            return "after, modelled: a model has no noise".to_owned();
        }
        format!("after, {}: {}", mark.name(), sure.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(before: f64, after: f64, interval: Option<(f64, f64)>, sure: Sure, mark: Mark) -> Dumbbell {
        let (label, change, verdict, hue) = Default::default();
        Dumbbell { label, before, after, interval, change, verdict, sure, mark, hue }
    }

    fn group(is_logarithmic: bool, rows: Vec<Dumbbell>) -> DumbbellGroup {
        DumbbellGroup { title: String::new(), x: Axis { title: String::new(), unit: "count", is_logarithmic }, rows }
    }

    #[test]
    fn one_unsure_row_does_not_make_the_others_points() {
        let sure = row(40.0, 2.0, Some((1.0, 6.0)), Sure::Changed, Mark::Measured);
        let unsure = row(1.0, 4.0, Some((0.1, 9_000.0)), Sure::Noise, Mark::Measured);
        let scale = group(false, vec![sure, unsure]).scale();
        assert_eq!(scale.from, 0.0);
        assert!(scale.to >= 80.0 && scale.to <= 100.0, "{scale:?}");
    }

    #[test]
    fn a_share_of_a_whole_ends_at_all_of_it() {
        let mut shares = group(false, vec![row(0.6, 0.7, Some((0.4, 1.9)), Sure::Noise, Mark::Measured)]);
        assert_eq!(shares.scale().to, 1.5);
        shares.x.unit = "share";
        assert_eq!(shares.scale().to, 1.0);
    }

    #[test]
    fn what_is_gone_lies_apart_from_the_least_number() {
        let gone = row(1_800.0, 0.0, Some((0.0, 0.0)), Sure::Changed, Mark::Measured);
        let least = row(2.0, 5.0, None, Sure::Unknown, Mark::Measured);
        let scale = group(true, vec![gone, least]).scale();
        assert!(scale.place(0.0) < 1e-9 && scale.place(2.0) > 0.2, "{scale:?}");
    }

    #[test]
    fn a_legend_has_each_look_once_and_the_surest_first() {
        let of = |sure, mark| row(1.0, 2.0, None, sure, mark);
        let rows = vec![
            of(Sure::Noise, Mark::Measured),
            of(Sure::Changed, Mark::Emulated),
            of(Sure::Noise, Mark::Measured),
            of(Sure::Changed, Mark::Measured),
        ];
        let keys = DumbbellGroup::keys(&[group(false, rows)]);
        let changed = [(Mark::Emulated, Sure::Changed), (Mark::Measured, Sure::Changed)];
        assert_eq!(keys, [&changed[..], &[(Mark::Measured, Sure::Noise)]].concat());
        assert_eq!(DumbbellGroup::say(keys[0]), "after, emulated: changed by more than noise");
    }
}
