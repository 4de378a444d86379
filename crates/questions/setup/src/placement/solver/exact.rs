//! The best of all placements, where a host is small enough: branch and bound.
//!
//! ```text
//! vCPUs, polling threads, interrupts: each on every CPU in turn, the most demanding first
//!    bound: the score of what stands so far. One more unit makes no other get more, and no price is negative,
//!           so a branch that is no better than the best known placement is left.
//! sets of helpers: every set of CPUs, under each complete placement of the rest
//! ```
//! A unit may also stay on the set of CPUs that it has now. Units on several CPUs are left out of the bound, because they
//! flow around the others.

use super::ground::Ground;
use super::starts::housekeeping;
use super::{Kind, Score};
use base::CpuSet;

/// Ways to place everything up to which the search is begun.
pub(super) const MOST_WAYS: f64 = 2_000_000.0;

/// Ways to place the helpers under one placement of the rest.
const MOST_SETS: f64 = 300.0;

/// Placements that are scored at most; a search that needs more proves nothing and is given up.
const MOST_SCORED: usize = 20_000;

/// What the search carries along.
struct Search<'a> {
    ground: &'a Ground<'a>,
    singles: Vec<usize>,
    sets: Vec<usize>,
    options: Vec<Vec<CpuSet>>,
    places: Vec<CpuSet>,
    best: (f64, Option<Vec<CpuSet>>),
    scored: usize,
}

/// The best placement, if `known`, the best score so far, can be beaten; `Err` if the search was too large.
pub(super) fn best(ground: &Ground<'_>, known: f64) -> Result<Option<Vec<CpuSet>>, TooLarge> {
    let task = ground.task;
    let movable = |unit: &usize| !task.units[*unit].kept && task.units[*unit].kind != Kind::Housekeeping;
    let (mut singles, sets): (Vec<usize>, Vec<usize>) =
        (0..task.units.len()).filter(movable).partition(|unit| task.units[*unit].kind.is_single());
    singles.sort_by(|a, b| task.units[*b].demand.total_cmp(&task.units[*a].demand).then(a.cmp(b)));
    let count = |units: &[usize], ways: fn(f64) -> f64| -> f64 {
        units.iter().map(|unit| ways(ground.allowed(*unit).len() as f64)).product()
    };
    let of_sets = count(&sets, |cpus| cpus.exp2());
    if of_sets > MOST_SETS || of_sets * count(&singles, |cpus| cpus + 1.0) > MOST_WAYS {
        return Err(TooLarge);
    }
    let start = ground.start();
    let options = (0..task.units.len()).map(|unit| options(ground, unit, &start[unit])).collect();
    let mut search = Search { ground, singles, sets, options, places: start, best: (known, None), scored: 0 };
    // What flows over several CPUs takes its place when all else stands.
    let mut floating: Vec<(usize, CpuSet)> = Vec::new();
    for unit in 0..task.units.len() {
        if search.places[unit].len() > 1 || movable(&unit) {
            floating.push((unit, std::mem::take(&mut search.places[unit])));
        }
    }
    search.descend(0, &floating)?;
    Ok(search.best.1)
}

#[derive(Debug, PartialEq)]
pub(super) struct TooLarge;

/// Every place that a unit may have: one CPU, or any set of them; and the one that it has.
fn options(ground: &Ground<'_>, unit: usize, start: &CpuSet) -> Vec<CpuSet> {
    let allowed: Vec<u32> = ground.allowed(unit).iter().collect();
    let mut options: Vec<CpuSet> = match ground.task.units[unit].kind {
        Kind::Housekeeping => Vec::new(),
        Kind::Helpers if allowed.len() < 16 => (1..1_u32 << allowed.len())
            .map(|bits| (0..allowed.len()).filter(|bit| bits >> bit & 1 == 1).map(|bit| allowed[bit]).collect())
            .collect(),
        _ => allowed.iter().map(|cpu| CpuSet::one(*cpu)).collect(),
    };
    if !options.contains(start) {
        options.push(start.clone());
    }
    options
}

impl Search<'_> {
    fn score(&mut self, places: &[CpuSet]) -> Result<f64, TooLarge> {
        self.scored += 1;
        if self.scored > MOST_SCORED {
            return Err(TooLarge);
        }
        Ok(Score::of(self.ground, places).0.total)
    }

    fn descend(&mut self, depth: usize, floating: &[(usize, CpuSet)]) -> Result<(), TooLarge> {
        let Some(unit) = self.singles.get(depth).copied() else { return self.place_sets(0, floating) };
        for option in 0..self.options[unit].len() {
            self.places[unit] = self.options[unit][option].clone();
            let mut standing = self.places.clone();
            standing.iter_mut().filter(|place| place.len() > 1).for_each(|place| *place = CpuSet::default());
            if self.score(&standing)? < self.best.0 - 1e-9 {
                self.descend(depth + 1, floating)?;
            }
        }
        self.places[unit] = CpuSet::default();
        Ok(())
    }

    fn place_sets(&mut self, depth: usize, floating: &[(usize, CpuSet)]) -> Result<(), TooLarge> {
        if let Some(unit) = self.sets.get(depth).copied() {
            for option in 0..self.options[unit].len() {
                self.places[unit] = self.options[unit][option].clone();
                self.place_sets(depth + 1, floating)?;
            }
            self.places[unit] = CpuSet::default();
            return Ok(());
        }
        let mut whole = self.places.clone();
        for (unit, place) in floating.iter().filter(|(unit, _)| self.places[*unit].is_empty()) {
            whole[*unit] = place.clone();
        }
        let whole = housekeeping(self.ground, whole);
        let score = self.score(&whole)?;
        if score < self.best.0 - 1e-9 {
            self.best = (score, Some(whole));
        }
        Ok(())
    }
}
