//! The order of the findings, and the words of the summary.

use super::*;

#[test]
fn what_is_certain_stands_first() {
    let changed = |metric: &str, after: [f64; 3]| {
        Changed::of(Metric::Named(metric.into()), Ratio::of(&[1.0, 1.01, 0.99], &after).unwrap())
    };
    let thread = Changed { metric: Metric::TaskWaits("rustc".into()), ..changed("", [90.0, 90.1, 89.9]) };
    let all = vec![changed("noise", [1.0, 9.0, 0.1]), changed("more", [3.0, 3.01, 2.99])];
    let with_thread = [all.clone(), vec![thread]].concat();
    let open = "Whether the configuration is the cause is open: runs of one configuration differ as well.";
    let said = |some: &str| {
        let two = "between these two runs by more than within each; largest difference: more, x3";
        format!("Of {some} {two}. {open}")
    };
    assert_eq!(summary(&with_thread, [1, 1]), said("3 metrics, 2 differ"));
    assert_eq!(summary(&all, [1, 1]), said("2 metrics, 1 differs"));
    let several = "Of 2 metrics, 1 changed by more than noise between runs (3 recordings before, 2 after); largest \
        change: more, x3.";
    assert_eq!(summary(&all, [3, 2]), several);
    let table = table(&CHANGE, all);
    assert_eq!(table.cell(0, "metric"), Some(&Cell::Text("more".into())));
    assert_eq!(table.cell(0, "verdict"), Some(&Cell::Text("higher".into())));
    let hardly = Ratio::of(&[0.02], &[0.04]).unwrap();
    let shows = |metric: Metric| Changed::of(metric, hardly).is_worth_showing();
    assert!(shows(Metric::State("halted".into())) && !shows(Metric::TaskRuns("vhost".into())));
    assert_eq!(table.cell(1, "verdict"), Some(&Cell::Text("noise could explain it".into())));
}
