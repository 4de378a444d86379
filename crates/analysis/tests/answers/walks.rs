//! How often is a trace read for an answer?

use base::recording::Recording;
use kvmscope_analysis::facts::timeline::overview;
use kvmscope_analysis::{About, Answers, Case, Given};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Walks over traces that a case has begun, as its progress shows them.
#[derive(Clone, Default)]
struct Walks(Arc<Mutex<(u64, u64)>>);

impl Walks {
    fn hear(&self) -> impl FnMut(u64, u64) + Send + use<> {
        let Self(counted) = self.clone();
        move |done, _| {
            let mut counted = counted.lock().unwrap();
            let (walks, last) = *counted;
            // The first piece of a walk, or less than was done before: another walk has begun.
            *counted = (walks + u64::from(walks == 0 || done < last), done);
        }
    }

    fn count(&self) -> u64 {
        self.0.lock().unwrap().0
    }
}

fn case(name: &str, walks: &Walks) -> Case {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let input = kvmscope_analysis::open(Recording::open(&path).unwrap()).unwrap();
    assert_eq!(input.parts.len(), 1, "{name}: the reading of several traces is another matter: they are aligned");
    Case::new(input, Given::default()).with_progress(walks.hear())
}

#[test]
fn all_questions_read_a_trace_once() {
    let walks = Walks::default();
    let case = case("nested-svm-toy", &walks);
    let answers = Answers::of(&case);
    assert!(answers.sections.iter().any(|section| section.id == "flow"));
    assert_eq!(walks.count(), 1);
    // What else wants the ledger finds it.
    assert!(!case.ledger().parts[0].vcpus.is_empty());
    assert_eq!(walks.count(), 1);
}

#[test]
fn a_page_reads_a_trace_twice() {
    let walks = Walks::default();
    let case = case("nested-svm-toy", &walks);
    // What a page draws has to be known before: who does what is only told by the end of the trace.
    let wanted = case.chain_ranks().wanted();
    assert!(!Answers::of(&case).sections.is_empty());
    assert_eq!(walks.count(), 1);
    let hear = &mut |done, all| case.hear(done, all);
    let (_, found) = overview(case.input(), case.given(), case.ledger(), (&wanted, 10), &mut |_| {}, hear);
    assert!(!wanted.is_empty() && found.len() == wanted.len());
    assert_eq!(walks.count(), 2);
}

#[test]
fn folded_stacks_come_out_of_the_walk_of_the_answers() {
    let walks = Walks::default();
    let case = case("nested-svm-toy", &walks);
    let stacks: u64 = case.stacks().iter().flat_map(|vcpu| vcpu.sums.values()).map(|sum| sum.time_ns).sum();
    assert!(!Answers::of(&case).sections.is_empty());
    assert_eq!(stacks, case.ledger().parts[0].vcpus.iter().map(|vcpu| vcpu.sums.wall_ns()).sum::<u64>());
    assert_eq!(walks.count(), 1);
}

#[test]
fn losses_come_out_of_whichever_walk_is_the_first() {
    let firsts: [fn(&Case); 4] =
        [|case| _ = case.losses(), |case| _ = case.stacks(), |case| _ = case.chain_ranks(), |case| _ = case.windows()];
    for first in firsts {
        let walks = Walks::default();
        let case = case("nested-svm-toy", &walks);
        first(&case);
        assert_eq!(case.losses().len(), case.ledger().parts.len());
        assert!(case.losses()[0].vcpus[0].lost.total_ns() > 0);
        assert_eq!(walks.count(), 1);
    }
}

#[test]
fn a_comparison_reads_each_side_once() {
    let (before, after) = (Walks::default(), Walks::default());
    let case = case("nested-svm-toy", &after).compared_with(case("nested-svm-toy", &before));
    let answers = Answers::about(&case, &[About::Change]);
    assert!(answers.failed.is_empty() && answers.sections.len() == 1);
    assert_eq!((before.count(), after.count()), (1, 1));
    // The windows came out of the walk that filled the ledger.
    case.ledger();
    assert_eq!(after.count(), 1);
}
