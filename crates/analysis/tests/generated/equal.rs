//! Every scenario in every format.

use super::answer::{Answer, differences};
use kvmscope_analysis::flow::{build, model::PartFlow};
use kvmscope_analysis::{Ask, Input, Options};
use base::recording::{Named, Recording};
use generate::scenario::ALL;
use generate::{Generation, Story, Target, Vendor};
use std::collections::BTreeMap;

pub fn flow(story: &Story, target: Target) -> PartFlow {
    let directory = tempfile::tempdir().unwrap();
    let path = story.write(target, directory.path()).unwrap();
    let input = Input::open(Recording::of_files(&[Named::at_l0(path)], None).unwrap()).unwrap();
    let mut ask = Ask { input: &input, options: &Options::default(), progress: &mut |_, _| {} };
    build::build(&mut ask).unwrap().parts.remove(0)
}

fn wrong(story: &Story, target: Target) -> Vec<String> {
    let part = flow(story, target);
    let found = Answer::found_in(&part);
    let Some(truth) = story.truth_in(target) else { return Vec::new() };
    let expected = Answer::true_of(&truth);
    let mut wrong = Vec::new();
    if part.vcpus.iter().any(|v| !expected.contains_key(&v.tid)) || expected.len() != found.len() {
        wrong.push(format!("vcpus {:?} {:?}", expected.keys(), found.keys()));
    }
    for (tid, expected) in &expected {
        let Some(found) = found.get(tid) else { continue };
        if found.vcpu != expected.vcpu { wrong.push(format!("{tid} vcpu {} {}", expected.vcpu, found.vcpu)); }
        let mut lines = Vec::new();
        let keep = target.keeps_ns();
        let strip = |m: &BTreeMap<(String, String), (u64, u64)>| m.iter().map(|(k, v)| (k.clone(), (v.0, if keep { v.1 } else { 0 }))).collect::<BTreeMap<_, _>>();
        if keep { lines.extend(differences("ledger", &expected.ledger, &found.ledger)); }
        lines.extend(differences("exits", &strip(&expected.exits), &strip(&found.exits)));
        let sc = |m: &BTreeMap<String, super::answer::Chains>| m.iter().map(|(k, v)| (k.clone(), super::answer::Chains { total_ns: if keep { v.total_ns } else { 0 }, ..v.clone() })).collect::<BTreeMap<_, _>>();
        lines.extend(differences("chains", &sc(&expected.chains), &sc(&found.chains)));
        if keep { lines.extend(differences("preemptors", &expected.preemptors, &found.preemptors)); }
        if keep && found.wall_ns() != story.truth.wall_ns() { lines.push(format!("wall {} {}", found.wall_ns(), story.truth.wall_ns())); }
        wrong.extend(lines.into_iter().map(|line| format!("{tid}: {line}")));
    }
    wrong
}

#[test]
fn explore() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let most: usize = std::env::var("MOST").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let all = std::env::var("TARGETS").is_ok();
    let mut n = 0;
    let mut bad: BTreeMap<String, usize> = BTreeMap::new();
    let start = std::time::Instant::now();
    for scenario in ALL.iter().filter(|s| s.name.contains(&only)) {
        for vendor in [Vendor::Vmx, Vendor::Svm] {
            for generation in Generation::ALL {
                if all && generation != scenario.usual { continue; }
                let Some(story) = scenario.run_on(vendor, generation, 1) else { continue };
                let targets = if all { Target::all() } else { vec![Target::named("tracedat7-le-64-none").unwrap()] };
                for target in targets {
                    n += 1;
                    let wrong = wrong(&story, target);
                    if !wrong.is_empty() {
                        println!("## {} {vendor:?} {generation:?} {}", scenario.name, target.name());
                        wrong.iter().take(most).for_each(|line| println!("   {line}"));
                        *bad.entry(format!("{} {vendor:?} {generation:?}", scenario.name)).or_default() += 1;
                    }
                }
            }
        }
    }
    println!("{n} cases, {} bad, {:?}\n{bad:#?}", bad.values().sum::<usize>(), start.elapsed());
}
