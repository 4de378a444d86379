//! Scopes and limits by their definitions.

use super::*;

#[test]
fn a_star_stands_for_any_characters() {
    for (pattern, name) in
        [("*", ""), ("*", "web"), ("web", "web"), ("w*", "web"), ("*b", "web"), ("w*b*1", "web-1"), ("a*a", "aa")]
    {
        assert!(matches(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [("web", "web1"), ("w*", "a"), ("", "web"), ("a*a", "a"), ("*x*", "web"), ("w*b", "web-1")] {
        assert!(!matches(pattern, name), "{pattern} {name}");
    }
}

#[test]
fn a_scope_is_of_some_vcpus_of_some_vms() {
    let scope = Scope { vm: "web*".to_owned(), vcpus: CpuSet::parse("1-3") };
    assert!(scope.has("web-2", 1) && scope.has("web", 3));
    assert!(!scope.has("web-2", 0) && !scope.has("db", 1));
    assert!(Scope::default().has("anything", 511));
}

#[test]
fn twenty_is_a_violation_of_less_than_twenty() {
    assert!(!Op::Below.holds(20_000, 20_000) && Op::Below.holds(19_999, 20_000));
    assert!(Op::AtMost.holds(20_000, 20_000) && !Op::AtMost.holds(20_001, 20_000));
}
