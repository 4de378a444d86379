//! What does the placement of each machine's threads cost, before and after, as it is modelled?
//!
//! In: the snapshots of both sides. Out: table [`PRICES`], whose rows sum up to the score of the placement that held. Modelled, never measured: it stands
//! apart from what was, and says which of its prices changed.

use base::number::{list, plain};
use base::{Shown, Table, TableSpec, shown, table};
use facts::Case;
use setup::placements::placements;
use std::collections::BTreeMap;

/// What the placements that held cost.
pub(super) const PRICES: TableSpec = table! {
    compare.placement version 1:
    "One price of the placement that held on a machine, in points of the modelled score, before and after; `all` is their sum, and 1,000 points are a CPU's worth of \
          work. The mean over a side's recordings.";
    key machine, key price, f64("points") before, f64("points") after, f64("points") difference;
    Shown {
        whole: &["price"],
        ..shown!["What the placement costs, modelled", 12; price: "for", before, after, difference]
    }
};

/// Prices that are named in the sentence.
const NAMED: usize = 3;
/// Less than this, half a hundredth of a CPU, is no difference.
const LEAST_POINTS: f64 = 5.0;

/// A machine's prices on one side: the sum over its recordings, by name, and how many those were.
type Prices = BTreeMap<String, (BTreeMap<&'static str, f64>, usize)>;

/// The table, without rows where nothing changed, and what it says; `None` where no machine has a placement on both sides.
pub(super) fn compared(before: &[&Case], after: &[&Case]) -> Option<(Table, String)> {
    let (one, two) = (prices(before), prices(after));
    let mut table = Table::new(&PRICES);
    let mut sentences = Vec::new();
    for (machine, (sums, count)) in &one {
        let Some((others, other_count)) = two.get(machine) else { continue };
        let mean = |sums: &BTreeMap<&'static str, f64>, count: usize, name: &str| {
            sums.get(name).copied().unwrap_or_default() / count as f64
        };
        let mut rows: Vec<(&str, f64, f64)> =
            sums.keys().map(|name| (*name, mean(sums, *count, name), mean(others, *other_count, name))).collect();
        rows.retain(|(_, before, after)| *before != 0.0 || *after != 0.0);
        rows.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()).then(a.0.cmp(b.0)));
        let changed: Vec<&(&str, f64, f64)> =
            rows.iter().filter(|(_, before, after)| (after - before).abs() >= LEAST_POINTS).collect();
        if changed.is_empty() {
            sentences.push(format!("The placement on {machine} costs as much as before by our model."));
            continue;
        }
        let all = rows.iter().fold((0.0, 0.0), |sum, (_, before, after)| (sum.0 + before, sum.1 + after));
        let named =
            changed.iter().take(NAMED).map(|(name, before, after)| format!("{} {name}", signed(after - before)));
        sentences.push(format!(
            "The placement on {machine} costs {} points by our model, {} before (1,000 are a CPU's worth of work): {}.",
            plain(all.1.round()),
            plain(all.0.round()),
            list(&named.collect::<Vec<String>>())
        ));
        for (name, before, after) in std::iter::once(("all", all.0, all.1)).chain(rows) {
            table.push(vec![
                machine.as_str().into(),
                name.into(),
                before.into(),
                after.into(),
                (after - before).into(),
            ]);
        }
    }
    (!sentences.is_empty()).then(|| (table, sentences.join(" ")))
}

fn prices(side: &[&Case]) -> Prices {
    let mut all = Prices::new();
    for case in side {
        for model in &placements(case).0 {
            let Some(now) = model.proposal.now() else { continue };
            let (sums, count) = all.entry(model.id.clone()).or_default();
            *count += 1;
            now.score.prices().into_iter().for_each(|(name, points)| *sums.entry(name).or_default() += points);
        }
    }
    all
}

/// `-480 points for`, `+20 points for`.
fn signed(points: f64) -> String {
    format!("{}{} points for", if points > 0.0 { "+" } else { "" }, plain(points.round()))
}
