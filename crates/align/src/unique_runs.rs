//! Which effects in a guest's own trace belong to which causes below, where nothing but kind and time tells them apart?
//!
//! In:  causes, each with its kind and the stretch in which its effect must lie, and the effects. Out: causal bounds.
//!
//! Where a map is known, an effect belongs to the only cause of its kind in whose stretch it can lie. Where none is, a seed
//! is looked for: so many effects in a row that fit a row of causes at one place only, in kinds, in times, and in the
//! windows in which the guest ran. One place further on either side they must have been tried and not fit: a timer that
//! ticks evenly, in a guest that never leaves the CPU, fits everywhere, and then nothing is said. Of a few places side by
//! side what holds for all is. Kinds of which there are more effects than causes have other causes too, and are left out.

use super::inside::Inside;
use super::lines::{Bound, Lines};
use super::matches::Pairs;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Handlers in a row that a seed begins with, and how many it may grow to.
const SEED: usize = 24;
const LONGEST_SEED: usize = 1_536;

/// So few places are looked at closely; with so many left after four times the first length the tick is even, and more of
/// it will not tell them apart.
const FEW: usize = 64;
const MANY: usize = 4_096;

/// Places side by side of which each may be the right one: a handler that comes right after its entry may as well have
/// come at the end of the stretch before. Then what holds for all of them holds.
const NEIGHBOURS: usize = 3;

/// Seeds that are tried, from different places of the guest's trace.
const SEEDS: usize = 8;

/// Rounds in which a map reaches from its seed to the ends of the traces: each extends it several times.
const ROUNDS: usize = 12;

/// Something that the guest wrote down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect<K> {
    /// When, on the guest's clock.
    pub at: u64,
    pub kind: K,
}

/// Where the effect of a cause must lie, on the clock below.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<K> {
    pub kind: K,
    /// Not before.
    pub from: u64,
    /// Not behind.
    pub to: u64,
}

/// Between which times below a time of the guest's lies, by what is known already.
pub(super) type Known<'a> = &'a dyn Fn(u64) -> Option<(u64, u64)>;

/// Bounds of effects that fit one cause only, by what is `known`, or by a seed.
pub(super) fn bounds<K: Copy + Eq + Hash>(
    inside: &Inside,
    mut stretches: Vec<Stretch<K>>,
    mut effects: Vec<Effect<K>>,
    known: Option<Known<'_>>,
    slopes: (f64, f64),
) -> Vec<Bound> {
    let mut counts: FxHashMap<K, (u64, u64)> = FxHashMap::default();
    stretches.iter().for_each(|stretch| counts.entry(stretch.kind).or_default().0 += 1);
    effects.iter().for_each(|effect| counts.entry(effect.kind).or_default().1 += 1);
    let usable = |kind: &K| (1..=counts[kind].0).contains(&counts[kind].1);
    stretches.retain(|stretch| usable(&stretch.kind));
    effects.retain(|effect| usable(&effect.kind));
    match known {
        Some(known) => joined(&stretches, &effects, &fitting(&stretches, &effects, known)),
        None => UniqueRuns { stretches: &stretches, inside, slopes }.grown(&effects).unwrap_or_default(),
    }
}

/// Places of those causes and effects for which what is known leaves each other only.
pub(super) fn fitting<K: Copy + Eq>(stretches: &[Stretch<K>], effects: &[Effect<K>], known: Known<'_>) -> Pairs {
    let mut pairs = Pairs::new();
    for (place, effect) in effects.iter().enumerate() {
        let Some((low, high)) = known(effect.at) else { continue };
        let first = stretches.partition_point(|stretch| stretch.to < low);
        let near = stretches[first..].iter().take_while(|stretch| stretch.from <= high).zip(first..);
        let mut own = near.filter(|(stretch, _)| stretch.kind == effect.kind);
        if let (Some((_, only)), None) = (own.next(), own.next()) {
            pairs.push((only, place));
        }
    }
    pairs
}

fn both<K>(effect: &Effect<K>, stretch: &Stretch<K>) -> [Bound; 2] {
    let bound = |y: u64, is_lower: bool| Bound { x: effect.at, y, is_lower };
    [bound(stretch.from, true), bound(stretch.to, false)]
}

fn joined<K>(stretches: &[Stretch<K>], effects: &[Effect<K>], pairs: &Pairs) -> Vec<Bound> {
    pairs.iter().flat_map(|(cause, effect)| both(&effects[*effect], &stretches[*cause])).collect()
}

/// Effects in a row, and causes from a place on.
fn in_a_row<K>(stretches: &[Stretch<K>], effects: &[Effect<K>]) -> Vec<Bound> {
    effects.iter().zip(stretches).flat_map(|(effect, stretch)| both(effect, stretch)).collect()
}

/// Where effects may fit.
struct UniqueRuns<'a, K> {
    stretches: &'a [Stretch<K>],
    inside: &'a Inside,
    slopes: (f64, f64),
}

impl<K: Copy + Eq> UniqueRuns<'_, K> {
    /// From a seed to as much as fits.
    fn grown(&self, effects: &[Effect<K>]) -> Option<Vec<Bound>> {
        let step = (effects.len() / SEEDS).max(1);
        let mut bounds = (0..SEEDS).find_map(|seed| self.seeded(effects.get(seed * step..)?))?;
        for _ in 0..ROUNDS {
            let lines = Lines::one(&bounds, self.slopes)?;
            let pairs = fitting(self.stretches, effects, &|x| Some(lines.at(x)));
            let more = joined(self.stretches, effects, &pairs);
            if more.len() <= bounds.len() {
                break;
            }
            bounds = more;
        }
        // The line that they leave must hold all that it was not made of: else the clock is no line.
        Lines::one(&bounds, self.slopes).map(|_| bounds)
    }

    /// The only place at which the first effects fit the injections.
    fn seeded(&self, effects: &[Effect<K>]) -> Option<Vec<Bound>> {
        let longest = LONGEST_SEED.min(effects.len());
        let mut length = SEED;
        let mut places: Vec<usize> = (0..self.stretches.len()).collect();
        while length <= longest {
            places.retain(|place| self.is_near(*place, &effects[..length]));
            if places.len() <= FEW {
                places.retain(|place| self.line(*place, &effects[..length]).is_some());
            }
            let (Some(first), Some(last)) = (places.first(), places.last()) else { return None };
            let tried = *first > 0 && last + length < self.stretches.len();
            match places.len() {
                1 => return tried.then(|| in_a_row(&self.stretches[*first..], &effects[..length])),
                left if length == longest => {
                    let neighbours = left <= NEIGHBOURS && last - first < NEIGHBOURS;
                    return (tried && neighbours).then(|| self.either(&places, &effects[..length]));
                }
                left if length >= 4 * SEED && left > MANY => return None,
                _ => length = longest.min(length * 2),
            }
        }
        None
    }

    /// What holds whichever of some places is the right one.
    fn either(&self, places: &[usize], effects: &[Effect<K>]) -> Vec<Bound> {
        let lines: Vec<Lines> = places.iter().filter_map(|place| self.line(*place, effects)).collect();
        let bound = |effect: &Effect<K>| {
            let at = || lines.iter().map(|line| line.at(effect.at));
            let (from, to) = (at().map(|(low, _)| low).min()?, at().map(|(_, high)| high).max()?);
            Some(both(effect, &Stretch { kind: effect.kind, from, to }))
        };
        effects.iter().filter_map(bound).flatten().collect()
    }

    /// True if the times that passed allow it. Most places are refused by two of them.
    fn is_near(&self, place: usize, effects: &[Effect<K>]) -> bool {
        let stretches = &self.stretches[place..];
        let (first, start) = (effects[0], stretches[0]);
        stretches.len() >= effects.len()
            && effects.iter().zip(stretches).all(|(effect, stretch)| {
                let passed = effect.at.saturating_sub(first.at) as f64;
                effect.kind == stretch.kind
                    && stretch.to.saturating_sub(start.from) as f64 >= passed * self.slopes.0
                    && stretch.from.saturating_sub(start.to) as f64 <= passed * self.slopes.1
            })
    }

    /// The line that leads each effect into the stretch of its place, and into a window.
    fn line(&self, place: usize, effects: &[Effect<K>]) -> Option<Lines> {
        let times: Vec<u64> = effects.iter().map(|effect| effect.at).collect();
        self.inside.line(&mut in_a_row(&self.stretches[place..], effects), &times, self.slopes)
    }
}
