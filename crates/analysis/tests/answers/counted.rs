//! What a collector counts is what a report says, and recordings add up.

use base::recording::Recording;
use kvmscope_analysis::facts::counted::Counted;
use kvmscope_analysis::{About, Answers, Case, Given};
use std::path::Path;

fn case(name: &str) -> Case {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    Case::new(kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap(), Given::default())
}

#[test]
fn exits_and_states_are_those_of_the_report() {
    for name in ["nested-vmx-shadow-off-hog", "nested-svm-toy"] {
        let case = case(name);
        let counted = Counted::of(&case);
        let answers = Answers::about(&case, &[About::Happened]);
        let flow = answers.sections.iter().find(|section| section.id == "flow").unwrap();
        let mut exits = 0;
        for row in flow.table("exits").unwrap().rows() {
            exits += row.number("count").unwrap() as u64;
        }
        assert_eq!(counted.exits.values().sum::<u64>(), exits, "{name}");
        let latency = answers.sections.iter().find(|section| section.id == "latency").unwrap();
        let lost: f64 = latency.table("culprits").unwrap().rows().map(|row| row.number("total_ns").unwrap()).sum();
        assert_eq!(counted.lost_ns.values().sum::<u64>(), lost as u64, "{name}");
        let states: u64 = counted.states_ns.values().sum();
        assert!(states > 0 && counted.recorded_ns > 0, "{name}");
        let mut twice = counted.clone();
        twice.add(&counted);
        assert_eq!(twice.exits.values().sum::<u64>(), 2 * exits);
        assert_eq!((twice.states_ns.values().sum::<u64>(), twice.recorded_ns), (2 * states, 2 * counted.recorded_ns));
        let samples = |counted: &Counted| counted.exits_ns.values().map(|histogram| histogram.count()).sum::<u64>();
        assert_eq!(samples(&twice), 2 * samples(&counted));
    }
}
