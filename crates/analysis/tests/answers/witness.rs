//! Where several levels recorded the same time, it counts once: all numbers are those of the outermost level alone, or of the level that is
//! asked for.

use base::recording::Recording;
use base::{Level, Narrow, Section};
use kvmscope_analysis::facts::budget;
use kvmscope_analysis::facts::counted::Counted;
use kvmscope_analysis::{Case, Given, fleet, flow, latency};
use std::path::{Path, PathBuf};

/// Recordings with traces of two levels.
fn of_two_levels() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let folders = std::fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| {
        let Ok(recording) = Recording::open(path) else { return false };
        let traces = recording.parts.iter().filter(|part| part.kind.is_trace());
        let mut levels: Vec<Level> = traces.map(|part| recording.level_of(&part.machine)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.len() > 1
    };
    let found: Vec<PathBuf> = folders.filter(|path| path.join("recording.json").exists()).filter(is_one).collect();
    assert!(found.len() >= 3, "{found:?}");
    found
}

/// The recording, or only what was recorded at one level of it.
fn case(path: &Path, alone: Option<Level>, witness: Option<Level>) -> Case {
    let mut recording = Recording::open(path).unwrap();
    if let Some(level) = alone {
        let levels: Vec<Level> = recording.parts.iter().map(|part| recording.level_of(&part.machine)).collect();
        let mut levels = levels.into_iter();
        recording.parts.retain(|_| levels.next() == Some(level));
    }
    let given = Given { narrow: Narrow { witness, ..Narrow::default() }, ..Given::default() };
    Case::new(kvmscope_analysis::open(recording).unwrap(), given)
}

fn sections(case: &Case) -> (Section, Section) {
    let flow = flow::answer(case).unwrap().unwrap().section;
    (flow, latency::answer(case).unwrap().unwrap().section)
}

#[test]
fn what_two_levels_saw_counts_once() {
    for path in of_two_levels() {
        let name = path.display();
        let (joined, alone) = (case(&path, None, None), case(&path, Some(Level::L0), None));
        let (of_both, of_host) = (Counted::of(&joined), Counted::of(&alone));
        assert_eq!(of_both.exits, of_host.exits, "{name}");
        assert_eq!(of_both.states_ns, of_host.states_ns, "{name}");
        assert_eq!(of_both.lost_ns, of_host.lost_ns, "{name}");
        let ((flow, lost), (host_flow, host_lost)) = (sections(&joined), sections(&alone));
        assert_eq!(flow.figures, host_flow.figures, "{name}");
        assert_eq!(lost.summary, host_lost.summary, "{name}");
        assert_eq!(lost.figures, host_lost.figures, "{name}");
        assert_eq!(lost.unknown, host_lost.unknown, "{name}");
        assert!(flow.about.iter().any(|line| line.contains("--witness L1")), "{name}: {:?}", flow.about);
        // Shares of time that add up are of one level.
        let given = |section: &Section| {
            let back = section.findings.iter().filter_map(|finding| finding.gives_back.clone());
            back.map(|back| (back.state, back.share)).collect::<Vec<_>>()
        };
        assert_eq!(given(&flow), given(&host_flow), "{name}");
        assert!(given(&flow).iter().map(|(_, share)| share).sum::<f64>() <= 1.0, "{name}");
    }
}

#[test]
fn a_budget_and_a_fleet_have_each_vcpu_once_and_tables_begin_with_the_outermost_machine() {
    let (budget, _) = budget::named(Path::new("kvm4nfv-2015")).unwrap();
    let judged = |case: &Case| {
        let case = case.asked_with(Given { budget: Some(budget.clone()), ..Given::default() });
        let losses = case.judged().iter().filter(|judged| judged.whose.place.is_some());
        losses.map(|judged| (judged.goal, judged.whose.vm.clone(), judged.whose.vcpu)).collect::<Vec<_>>()
    };
    for path in of_two_levels() {
        let name = path.display();
        let (joined, alone) = (case(&path, None, None), case(&path, Some(Level::L0), None));
        assert!(!judged(&alone).is_empty() && judged(&joined) == judged(&alone), "{name}: {:?}", judged(&joined));
        let vcpus = |case: &Case| fleet::stored(case, "digest", "schema").recording.cell(0, "vcpus").cloned();
        assert_eq!(vcpus(&joined), vcpus(&alone), "{name}");
        let (flow, lost) = sections(&joined);
        for table in flow.tables.iter().chain(&lost.tables) {
            if ["exit_details", "preemptors", "host_interrupts", "culprits"].contains(&table.spec.name)
                && !table.rows.is_empty()
            {
                let first = table.shown_order()[0];
                assert_eq!(table.cell(first, "machine"), Some(&"L0".into()), "{name}: {}", table.spec.name);
            }
        }
    }
}

#[test]
fn another_level_is_a_witness_if_it_is_asked_for() {
    for path in of_two_levels() {
        let name = path.display();
        let (asked, alone) = (case(&path, None, Some(Level::At(1))), case(&path, Some(Level::At(1)), None));
        let (of_asked, of_guest) = (Counted::of(&asked), Counted::of(&alone));
        assert_eq!(of_asked.exits, of_guest.exits, "{name}");
        let vcpus = |case: &Case| case.stacks().iter().map(|sums| (sums.vm.clone(), sums.vcpu)).collect::<Vec<_>>();
        assert!(!vcpus(&asked).is_empty() && vcpus(&asked) == vcpus(&alone), "{name}: {:?}", vcpus(&asked));
        let (flow, _) = sections(&asked);
        assert!(flow.summary.starts_with("In the trace of L1"), "{name}: {}", flow.summary);
        let levels = flow.figures.iter().find(|figure| figure.id.starts_with("levels-")).unwrap();
        assert!(levels.caption.contains("as L1 saw it"), "{name}: {}", levels.caption);
        let error = flow::answer(&case(&path, None, Some(Level::At(7)))).err().unwrap().to_string();
        assert!(error.contains("no trace of L7"), "{error}");
    }
}

#[test]
fn levels_that_are_given_the_wrong_way_round_are_said() {
    let told = |path: &Path, swapped: bool| {
        let mut recording = Recording::open(path).unwrap();
        let turned = |level: u8| if swapped { 1 - level } else { level };
        recording.machines.iter_mut().for_each(|machine| machine.level = turned(machine.level));
        let case = Case::new(kvmscope_analysis::open(recording).unwrap(), Given::default());
        flow::answer(&case).unwrap().unwrap().problems.into_iter().map(|problem| problem.text).collect::<Vec<_>>()
    };
    for path in of_two_levels() {
        assert_eq!(told(&path, false), Vec::<String>::new(), "{}", path.display());
        let said = told(&path, true);
        assert!(said.len() == 1 && said[0].starts_with("The levels look swapped: "), "{}: {said:?}", path.display());
    }
}
