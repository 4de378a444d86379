//! Which slices an arrow joins: from a nested guest's exit to its handling and to its re-entry.
//!
//! ```text
//! L2   ####                      ####     the guest before, and when it runs again
//! L1     \         ###          /         the first stretch of its hypervisor
//! L0      ####----/   ####-----/          the exit as L0 handles it
//! ```

use crate::picture::{Kind, Piece, Row};
use base::timeline::Chain;
use std::collections::HashMap;

/// Arrows at one slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ends {
    /// Arrows that begin here or pass.
    pub through: Vec<u64>,
    /// Arrows that end here.
    pub last: Vec<u64>,
}

/// Arrows of `chains` at `pieces`, the slices of their lane, by the position of a slice.
pub(super) fn flows<'a>(
    pieces: &[Piece<'_>],
    kinds: &[Kind],
    chains: impl Iterator<Item = (usize, &'a Chain)>,
) -> HashMap<usize, Ends> {
    let mut flows: HashMap<usize, Ends> = HashMap::new();
    let at = |ns: u64| pieces.binary_search_by_key(&ns, |piece| piece.began_ns).ok();
    let is_guest = |place: &usize| matches!(kinds[usize::from(pieces[*place].state.0)].row, Row::Guest(_));
    for (number, chain) in chains {
        // 0 is no arrow.
        let id = number as u64 + 1;
        let Some(exit) = at(chain.span.from_ns) else { continue };
        let before = exit.checked_sub(1).filter(|place| pieces[*place].span.to_ns == chain.span.from_ns);
        let end = pieces.partition_point(|piece| piece.began_ns < chain.span.to_ns);
        let handled = (exit + 1..end).find(is_guest);
        for place in before.into_iter().chain([exit]).chain(handled) {
            flows.entry(place).or_default().through.push(id);
        }
        let again = chain.cost_ns.and_then(|_| at(chain.span.to_ns)).filter(|place| *place > exit);
        if let Some(again) = again {
            flows.entry(again).or_default().last.push(id);
        }
    }
    flows
}
