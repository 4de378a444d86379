//! Pieces in which a thread waited for a CPU get who had it.
//!
//! ```text
//! waits    |-------------------|          |--------|
//! shares   |- A -|--- B ---|                 |- A -|
//! pieces   |- A -|--- B ---|- ? -|        |-?|- A -|
//! ```

use super::model::{BEGINS, Piece};
use base::Span;

/// `pieces` in order, of those that wait (by their cause's place) the time of each share with its cause; `instant` hears of the
/// cause of each share inside them that took no time.
pub(super) fn charged(
    pieces: Vec<Piece>,
    mut shares: Vec<Piece>,
    waits: impl Fn(u32) -> bool,
    mut instant: impl FnMut(u32),
) -> Vec<Piece> {
    if shares.is_empty() {
        return pieces;
    }
    // Told when they were over, on different CPUs.
    shares.sort_by_key(|share| share.from_ns);
    let mut charged = Vec::with_capacity(pieces.len() + shares.len());
    let mut shares = shares.into_iter().peekable();
    for piece in pieces {
        if !waits(piece.cause & !BEGINS) {
            charged.push(piece);
            continue;
        }
        let Span { from_ns, to_ns } = piece.span();
        let (mut at_ns, mut begins) = (from_ns, piece.cause & BEGINS);
        let mut add = |from_ns: u64, to_ns: u64, cause: u32| {
            charged.push(Piece { from_ns, length_ns: (to_ns - from_ns) as u32, cause });
        };
        while let Some(share) = shares.peek_mut().filter(|share| share.from_ns < to_ns) {
            let share_to_ns = share.span().to_ns;
            let (first_ns, last_ns) = (share.from_ns.max(at_ns), share_to_ns.min(to_ns));
            if first_ns < last_ns {
                if at_ns < first_ns {
                    add(at_ns, first_ns, piece.cause & !BEGINS | begins);
                }
                add(first_ns, last_ns, share.cause);
                // What is left of it belongs to the next piece, and began here.
                share.cause &= !BEGINS;
                (at_ns, begins) = (last_ns, 0);
            } else if share.length_ns == 0 && share.from_ns >= from_ns {
                instant(share.cause & !BEGINS);
            }
            if share_to_ns > to_ns {
                break;
            }
            shares.next();
        }
        if at_ns < to_ns {
            add(at_ns, to_ns, piece.cause & !BEGINS | begins);
        }
    }
    charged
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: u32 = 3;

    fn piece(from_ns: u64, to_ns: u64, cause: u32) -> Piece {
        Piece { from_ns, length_ns: (to_ns - from_ns) as u32, cause }
    }

    #[test]
    fn every_nanosecond_of_waiting_is_charged_once_and_what_is_left_to_nothing() {
        let pieces = vec![piece(0, 10, 7), piece(10, 30, WAITS), piece(30, 40, WAITS), piece(40, 50, 7)];
        let told = vec![
            piece(24, 36, 9 | BEGINS),
            piece(5, 5, 6 | BEGINS),
            piece(10, 10, 6 | BEGINS),
            piece(10, 20, 8 | BEGINS),
            piece(60, 70, 8),
        ];
        let mut instants = Vec::new();
        let charged = charged(pieces, told, |cause| cause == WAITS, |cause| instants.push(cause));
        assert_eq!(instants, [6], "it took the CPU and did not run; before the wait it took nothing");
        let expected = [
            piece(0, 10, 7),
            piece(10, 20, 8 | BEGINS),
            piece(20, 24, WAITS),
            piece(24, 30, 9 | BEGINS),
            piece(30, 36, 9),
            piece(36, 40, WAITS),
            piece(40, 50, 7),
        ];
        assert_eq!(charged, expected);
    }

    #[test]
    fn a_wait_without_a_share_stays_whole_and_shares_that_overlap_are_cut() {
        let pieces = vec![piece(0, 10, WAITS | BEGINS), piece(20, 30, WAITS)];
        let told = vec![piece(20, 26, 8), piece(24, 28, 9 | BEGINS)];
        let charged = charged(pieces, told, |cause| cause == WAITS, |_| {});
        let expected =
            [piece(0, 10, WAITS | BEGINS), piece(20, 26, 8), piece(26, 28, 9 | BEGINS), piece(28, 30, WAITS)];
        assert_eq!(charged, expected);
    }
}
