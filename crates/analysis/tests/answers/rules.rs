//! Every rule of every question: none may leave out what the base of rules leaves empty.

use kvmscope_analysis::rules;
use std::collections::BTreeSet;

#[test]
fn each_has_a_name_and_says_what_it_looks_at_why_and_by_what_source() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        assert!(rule.id.len() > 4 && rule.id.find('-') == Some(3), "{rule:?}");
        assert!([rule.per, rule.looks_at, rule.why, rule.source].iter().all(|words| !words.is_empty()), "{rule:?}");
        names.insert(rule.id);
    }
    assert!(names.len() > 100, "{names:?}");
}
