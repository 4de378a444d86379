//! What tests of the rules have in common, and a run that none of them fires on; each rule is tested beside its check, on a run that it fires
//! on, and on one that differs in one thing.

use super::super::measured::Channel;
use super::super::rules::findings;
use super::super::tests::{Made, benches, of_batches};
use base::Finding;
use facts::machines::Machines;

pub(super) fn found(made: &[Made], change: impl Fn(&mut Channel<'_>)) -> Vec<Finding> {
    let benches = benches(made);
    let mut channel = Channel::of(&benches, &Machines::default());
    change(&mut channel);
    findings(&channel)
}

pub(super) fn ids(made: &[Made]) -> Vec<&'static str> {
    found(made, |_| {}).iter().map(|finding| finding.rule).collect()
}

pub(super) const NOTHING: [&str; 0] = [];

#[test]
fn a_quiet_and_verified_ring_has_nothing_to_change() {
    assert_eq!(ids(&of_batches(&[1, 8, 32], |n| 60.0 + 14.0 * n, |made| made)), NOTHING);
}
