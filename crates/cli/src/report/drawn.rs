//! A recording's vCPUs over time, for the page of its report.

use analysis::Case;
use analysis::facts::timeline::{inside, overview, whole_span};
use show::html::{Drafting, Drawing};

/// The vCPUs over time.
pub fn draw(case: &Case) -> Drawing {
    let (input, options, ledger) = (case.input(), case.options(), case.ledger());
    let hear = &mut |done, all| case.hear(done, all);
    let mut drafting = Drafting::new(whole_span(ledger));
    let lanes = overview(input, options, ledger, &mut |chain| drafting.chain(chain), hear);
    drafting.finish(lanes, |lanes, wanted, most| inside(input, options, ledger, (lanes, wanted, most), hear))
}
