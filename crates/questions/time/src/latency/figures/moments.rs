//! Who took the time in the worst moments?

use super::super::measure::{Measured, Moment, worst_first};
use super::super::summary::instant;
use super::{hue, name, words};
use base::figure::{Bar, BarGroup, Drawing};
use base::number::{duration, many};
use base::{Figure, Span};

/// Moments of all vCPUs; table `moments` has more of each.
const MOST_DRAWN: usize = 6;

/// Causes of a moment; what is left is one more.
const MOST_BARS: usize = 5;

/// Bars for each of the worst windows, worst first; each knows where it lies, so that a page opens its timeline there.
pub(super) fn figure(measured: &[Measured<'_>]) -> Option<Figure> {
    let mut all = worst_first(measured);
    let of = all.len() as u64;
    all.truncate(MOST_DRAWN);
    let (_, worst) = all.first()?;
    let window = duration(worst.length_ns as f64);
    Some(Figure {
        id: "moments".into(),
        title: "The worst moments, one by one".into(),
        caption: match all.len() as u64 {
            drawn if drawn == of => format!("{} of {window} in which time was lost; none overlap.", many(of, "window")),
            drawn => format!("The worst {drawn} of {of} windows of {window}; of one vCPU, none overlap."),
        },
        in_terminals: false,
        drawing: Drawing::Bars(all.into_iter().map(group).collect()),
    })
}

fn group((one, moment): (&Measured<'_>, &Moment)) -> BarGroup {
    let (named, rest) = moment.causes.split_at(moment.causes.len().min(MOST_BARS));
    let bars = named.iter().map(|(named, ns)| Bar {
        label: named.by.clone(),
        value: *ns as f64,
        note: words(named.state).into(),
        hue: hue(named.state).into(),
    });
    let rest_ns: u64 = rest.iter().map(|(_, ns)| ns).sum();
    let others = (rest_ns > 0).then(|| Bar {
        label: many(rest.len() as u64, "other"),
        value: rest_ns as f64,
        note: String::new(),
        hue: String::new(),
    });
    BarGroup {
        title: format!("{} at {}", name(one), instant(moment.at_ns)),
        unit: "ns",
        total: moment.loss_ns as f64,
        bars: bars.chain(others).collect(),
        span: Some(Span { from_ns: moment.at_ns, to_ns: moment.at_ns + moment.length_ns }),
    }
}
