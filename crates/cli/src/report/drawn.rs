//! A recording's vCPUs over time, for the page of its report.

use analysis::facts::ledger::build;
use analysis::facts::timeline::{inside, overview, whole_span};
use analysis::{Ask, Input, Options};
use show::html::{Drafting, Drawing};

/// The vCPUs over time, or nothing where the recording holds none: the page then has the answers alone.
pub fn draw(input: &Input, options: &Options, progress: &mut dyn FnMut(u64, u64)) -> Option<Drawing> {
    let flow = build::build(&mut Ask { input, options, progress }).ok()?;
    let mut drafting = Drafting::new(whole_span(&flow));
    let lanes = overview(input, options, &flow, &mut |chain| drafting.chain(chain), progress);
    Some(drafting.finish(lanes, |lanes, wanted, most| inside(input, options, &flow, (lanes, wanted, most), progress)))
}
