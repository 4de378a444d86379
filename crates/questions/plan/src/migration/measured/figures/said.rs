//! What was said before against what it was: an interval as a bar, what it was as a dot, what the naive model said as a cross.

use super::super::residuals::Held;
use base::Figure;
use base::figure::{Axis, Drawing, Shape, Sign, SpanGroup, SpanRow, Stretch};
use base::number::amount;

/// Of runs, or of guests, whichever were numbered; `None` where nothing was said.
pub(in super::super) fn figure(whose: &str, held: &[Held<'_>]) -> Option<Figure> {
    let mut whats: Vec<(&str, &'static str)> = Vec::new();
    for one in held {
        let what = (one.said.what.as_str(), unit(&one.said.unit));
        if !whats.contains(&what) {
            whats.push(what);
        }
    }
    let group = |(what, unit): &(&str, &'static str)| SpanGroup {
        title: of(held, what).next().map_or(String::new(), |one| title(one, unit)),
        x: Axis { title: words(what).to_owned(), unit, is_logarithmic: false },
        rows: of(held, what).map(|one| row(whose, one, unit)).collect(),
        limits: Vec::new(),
    };
    let groups: Vec<SpanGroup> = whats.iter().map(group).collect();
    let each = whats.iter().map(|(what, _)| {
        let inside = of(held, what).filter(|one| one.said.holds(one.was)).count();
        format!("{} in {inside} of {}", words(what), of(held, what).count())
    });
    let each: Vec<String> = each.collect();
    (!groups.is_empty()).then(|| Figure {
        id: "said".into(),
        title: "Predicted and measured".into(),
        caption: format!("Inside the prediction: {}.", base::number::list(&each)),
        in_terminals: true,
        drawing: Drawing::Spans(groups),
    })
}

/// What was said of it is the same for all runs: one recording has one prediction.
fn title(Held { said, .. }: &Held<'_>, unit: &str) -> String {
    let print = |value: Option<f64>| value.map_or("never".to_owned(), |value| amount(value, unit));
    let [low, high, naive] = [said.low, said.high, said.naive].map(print);
    format!("{}: predicted {low} to {high}, naive {naive}", words(&said.what))
}

fn of<'h, 's>(held: &'h [Held<'s>], what: &'h str) -> impl Iterator<Item = &'h Held<'s>> {
    held.iter().filter(move |one| one.said.what == what)
}

fn row(whose: &str, Held { number, said, was }: &Held<'_>, unit: &'static str) -> SpanRow {
    let is_above = was.is_some_and(|was| said.low.is_some_and(|low| was >= low));
    let place = match was {
        None => "not measured, or never",
        Some(_) if said.holds(*was) => "inside",
        Some(_) if is_above => "above",
        Some(_) => "below",
    };
    let sign = |at: Option<f64>, what: &str, shape| at.map(|at| Sign { at, what: what.into(), shape });
    let stretch = said.low.map(|from| Stretch { from, to: said.high, what: "predicted".into(), hue: String::new() });
    let signs = [sign(said.naive, "naive model", Shape::Cross), sign(*was, "measured", Shape::Dot)];
    SpanRow {
        label: format!("{whose} {number}"),
        value: was.map_or("-".to_owned(), |was| amount(was, unit)),
        note: place.into(),
        stretches: stretch.into_iter().collect(),
        signs: signs.into_iter().flatten().collect(),
    }
}

fn words(what: &str) -> &str {
    match what {
        "total" => "time in all",
        "downtime" => "dark time",
        "passes" => "passes before the final one",
        "bytes" => "bytes sent",
        "saved" => "size of the file",
        "save" => "until it is durable",
        "wake" => "until it answers",
        other => other,
    }
}

/// A prediction is read from a file, which may hold units that we do not write.
fn unit(unit: &str) -> &'static str {
    match unit {
        "ns" => "ns",
        "bytes" => "bytes",
        _ => "count",
    }
}
