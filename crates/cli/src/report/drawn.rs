//! A recording's vCPUs over time, for the page of its report.

use analysis::Case;
use analysis::facts::timeline::{overview, whole_span};
use show::html::{Drafting, Drawing, MOST_SLICES};

/// The vCPUs over time.
pub(super) fn draw(case: &Case) -> Drawing {
    let (ranks, ledger) = (case.chain_ranks(), case.ledger());
    let mut drafting = Drafting::new(whole_span(ledger));
    let (lanes, found) = overview(
        case.input(),
        case.given(),
        ledger,
        (&ranks.wanted(), MOST_SLICES),
        &mut |chain| drafting.chain(chain),
        &mut |done, all| case.hear(done, all),
    );
    drafting.finish(ranks, lanes, found)
}
