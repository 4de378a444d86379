//! Which designs no other one beats.
//!
//! By the model a design is what its ends are and how many of its inner edges take which path, so that is what is enumerated, with each
//! number of polling CPUs at which the busiest of them gets less to do.

use super::model::design::{Datapath, Design};
use super::model::stages::{Bed, Load, queues};
use super::plan::Chain;
use super::predict::{Predicted, is_calibrated};
use base::datapath::Traffic;

/// Designs of a chain with what is calibrated on its bed, each with numbers of polling CPUs up to `most`.
pub(super) fn candidates(bed: &Bed, chain: &Chain, most: u32) -> Vec<(Design, u32)> {
    let designs = if chain.is_open { designs(bed, chain) } else { chain.designs.clone() };
    let allowed = designs.into_iter().filter(|design| !chain.must_migrate || design.is_migratable());
    let with_cores = |design: Design| {
        let queues = queues(bed, Load { design: &design, pattern: chain.pattern, vnfs: chain.vnfs });
        let cores = if queues == 0 { vec![0] } else { steps(queues, most) };
        cores.into_iter().map(move |cores| (design.clone(), cores))
    };
    allowed.flat_map(with_cores).collect()
}

fn designs(bed: &Bed, chain: &Chain) -> Vec<Design> {
    let known = |path: &Datapath| is_calibrated(bed, &Design::of(vec![*path]));
    let paths: Vec<Datapath> =
        [Datapath::OvsDpdk, Datapath::Sriov, Datapath::OvsKernel].into_iter().filter(known).collect();
    let uniform = paths.iter().map(|path| Design::uniform(*path, chain.pattern, chain.vnfs));
    let mut all: Vec<Design> = uniform.collect();
    if chain.pattern == Traffic::NorthSouth {
        return all;
    }
    let inner = chain.vnfs.saturating_sub(1) as usize;
    // No wire ends in memory that VNFs share.
    let rings = bed.channel.as_ref().map(|_| Datapath::Channel);
    let between: Vec<Datapath> = paths.iter().copied().chain(rings).collect();
    for (first, last) in paths.iter().flat_map(|first| paths.iter().map(move |last| (*first, *last))) {
        for (one, other) in between.iter().flat_map(|one| between.iter().map(move |other| (*one, *other))) {
            // Each pair of paths once, and a path alone once.
            let counts = if one < other {
                1..inner.max(1)
            } else if one == other {
                0..1
            } else {
                0..0
            };
            all.extend(counts.map(|count| {
                let edges = (0..inner).map(|at| if at < count { one } else { other });
                Design::of(std::iter::once(first).chain(edges).chain([last]).collect())
            }));
        }
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|design| seen.insert(design.clone()));
    all
}

/// Numbers of threads, up to `most`, at which the busiest one has fewer queues than with one thread less.
fn steps(queues: u32, most: u32) -> Vec<u32> {
    let of = |threads: u32| queues.div_ceil(threads);
    (1..=queues.min(most)).filter(|threads| *threads == 1 || of(*threads) < of(threads - 1)).collect()
}

/// Those that no other one beats: none is at least as fast with as few cores, as movable, and better in one of these.
pub(super) fn front(mut all: Vec<Predicted<'_>>) -> Vec<Predicted<'_>> {
    let pps = |one: &Predicted<'_>| one.rate.chain_pps().unwrap_or_default();
    // Stable: of equals the plainest design, which was enumerated first, stays.
    all.sort_by(|a, b| {
        let movable = b.design.is_migratable().cmp(&a.design.is_migratable());
        pps(b).total_cmp(&pps(a)).then(a.cores.cmp(&b.cores)).then(movable)
    });
    let (mut least, mut least_movable) = (u32::MAX, u32::MAX);
    all.retain(|one| {
        let is_movable = one.design.is_migratable();
        let is_best = one.cores < if is_movable { least_movable } else { least };
        if is_best {
            least = least.min(one.cores);
            if is_movable {
                least_movable = one.cores;
            }
        }
        is_best
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_where_they_help() {
        assert_eq!(steps(9, u32::MAX), [1, 2, 3, 5, 9]);
        assert_eq!(steps(9, 4), [1, 2, 3]);
        assert_eq!(steps(1, u32::MAX), [1]);
    }
}
