use super::super::model::working_set::WorkingSet;
use super::super::predict::{Order, tests::asked};
use super::*;
use facts::migrations::Migration;

/// What the model says of this guest, and runs of it that took these times as long.
fn biased(ratios: &[f64]) -> (Asked, Prediction, History) {
    let asked = asked(WorkingSet::Cyclic, 24_000.0, Order::Unknown);
    let said = Prediction::of(&asked);
    let mut history = History::default();
    ratios
        .iter()
        .enumerate()
        .for_each(|(number, ratio)| history.add(&format!("run-{number}"), &ran(&said.kept(&asked), *ratio)));
    (asked, said, history)
}

/// A run of that prediction; one that never ends is cancelled.
fn ran(said: &base::prediction::Prediction, ratio: f64) -> Migrations {
    let likely = said.said.iter().find(|said| said.what == "total").unwrap().likely.unwrap();
    let took_ns = ratio.is_finite().then_some((likely * ratio) as u64);
    let how = if took_ns.is_some() { "completed" } else { "cancelled" };
    let migration = Migration {
        resumed_ns: took_ns,
        ended: Some((took_ns.unwrap_or_default(), how.to_owned())),
        ..Migration::default()
    };
    Migrations { list: vec![migration], said: Some(said.clone()), ..Migrations::default() }
}

#[test]
fn a_history_of_biased_runs_makes_the_next_interval_hold() {
    let ratios: Vec<f64> = (0..20).map(|number| 1.8 + 0.02 * f64::from(number)).collect();
    let next_s = |said: &Prediction| said.total_s.likely.unwrap() * 2.005;
    let inside =
        |said: &Prediction, value: f64| said.total_s.low.unwrap() <= value && value <= said.total_s.high.unwrap();
    for count in [4, 10, 20] {
        let some: Vec<f64> = ratios.iter().step_by(20 / count).copied().collect();
        let (_, said, history) = biased(&some);
        let corrected = history.corrected(said.clone());
        assert!(!inside(&said, next_s(&said)), "the model alone is wrong");
        assert!(inside(&corrected, next_s(&said)), "{count}: {:?}", corrected.total_s);
        let ratio = corrected.total_s.likely.unwrap() / said.total_s.likely.unwrap();
        assert!((1.9..=2.2).contains(&ratio), "{count}: {ratio}");
        let (low, high) = (corrected.total_s.low.unwrap(), corrected.total_s.high.unwrap());
        if count < ENOUGH_RUNS {
            assert!(low <= said.total_s.low.unwrap() && high >= said.total_s.high.unwrap(), "never narrower");
        } else {
            assert!(low > said.total_s.high.unwrap(), "shifted as a whole");
        }
    }
}

#[test]
fn few_runs_move_nothing_and_one_that_never_ended_leaves_no_upper_end() {
    let (_, said, history) = biased(&[2.0, 2.0, 2.0]);
    assert_eq!(history.corrected(said.clone()).total_s, said.total_s);
    assert!(history.sentence(&said).unwrap().contains("too few"));
    assert_eq!(history.runs("total"), 3);
    let (_, said, history) = biased(&[1.0, 1.0, 1.0, 1.0, f64::INFINITY]);
    let corrected = history.corrected(said.clone()).total_s;
    assert_eq!((corrected.high, corrected.low), (None, said.total_s.low));
    assert!(history.sentence(&said).unwrap().contains("took 1.00 times"));
}

#[test]
fn what_is_kept_remembers_what_the_model_alone_said() {
    let (asked, said, history) = biased(&[2.0; 4]);
    let kept = history.kept(&said, &asked);
    let mut later = History::default();
    later.add("later", &ran(&kept, 1.0));
    // It took what the corrected one said, which is twice what the model says.
    assert_eq!(later.ratios("total").iter().map(|ratio| (ratio * 10.0).round()).collect::<Vec<_>>(), [20.0]);
    let (rows, model) = (history.corrections(&said, &asked).rows, said.kept(&asked).said);
    let Cell::F64(likely) = rows[0][6] else { panic!("{rows:?}") };
    assert!((likely / model[0].likely.unwrap() - 2.0).abs() < 1e-6, "{likely}");
}

#[test]
fn a_run_that_was_not_followed_to_its_end_or_failed_says_nothing() {
    let (asked, said, _) = biased(&[]);
    let mut history = History::default();
    for ended in [None, Some((1, "failed".to_owned()))] {
        let migration = Migration { ended, ..Migration::default() };
        let said = Some(said.kept(&asked));
        history.add("x", &Migrations { list: vec![migration], said, ..Migrations::default() });
    }
    assert!(history.is_empty());
}
