//! `kvmscope explain`, and the first page of `check`, which leads there.

use crate::program::ended;
use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

fn kvmscope(arguments: &[&str]) -> (i32, String, String) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    ended(
        command.args(arguments).current_dir(fixtures).env("COLUMNS", "100").env("LC_ALL", "C.UTF-8").output().unwrap(),
    )
}

fn answer(arguments: &[&str]) -> String {
    let (code, out, complaint) = kvmscope(arguments);
    assert_eq!((code, complaint.as_str()), (0, ""), "{arguments:?}");
    out
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(&[arguments, &["--json"]].concat())).unwrap()
}

fn findings(answer: &Value) -> Vec<&Value> {
    let sections = answer["sections"].as_array().unwrap().iter();
    sections.flat_map(|section| section["findings"].as_array().unwrap()).collect()
}

#[test]
fn a_rule_says_what_it_looks_at_from_where_on_and_by_what_source() {
    let text = answer(&["explain", "PLC-STARVED"]);
    for wanted in ["PLC-STARVED, one finding per VM", "looks at", "schedstat", "wanted: 20.0 %", "source"] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    let rules = json(&["explain", "PLC-STARVED"]);
    assert_eq!((&rules["schema"], &rules["command"]), (&"kvmscope/1".into(), &"explain".into()));
    assert_eq!(rules["rules"][0]["limits"][0]["amount"], 0.2);
    assert_eq!((&rules["sections"], &rules["recording"]), (&Value::Array(Vec::new()), &Value::Null));
}

#[test]
fn two_rules_of_one_name_are_both_explained() {
    let text = answer(&["explain", "MIG-MEMORY"]);
    assert!(text.contains("one finding per run") && text.contains("one finding per guest"), "{text}");
    assert_eq!(json(&["explain", "MIG-MEMORY"])["rules"].as_array().unwrap().len(), 2);
}

#[test]
fn every_rule_that_fires_is_explained() {
    for fixture in ["hosts-sosreport", "seed-vhost", "hosts-intel", "hosts-hyperv", "hosts-amd", "hosts-pvm"] {
        for finding in findings(&json(&["check", fixture])) {
            let rule = finding["rule"].as_str().unwrap();
            let text = answer(&["explain", rule]);
            assert!(text.contains("looks at") && text.contains("source"), "{text}");
        }
    }
}

#[test]
fn a_finding_is_shown_whole_and_alone_with_the_rows_that_show_it() {
    let text = answer(&["explain", "PLC-MEMORY@vnf", "hosts-sosreport"]);
    for wanted in ["PLC-MEMORY", "why", "costs", "its vCPUs may run on 1,5", "source", " THREADS"] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    assert!(!text.contains("PLC-PMD ") && !text.contains("PLACEMENTS TO CHOOSE FROM"), "{text}");
    assert!(!text.contains("WHAT RUNS WHERE"), "a figure is of all of it: {text}");
    let text = answer(&["explain", "PLC-LATE@vnf", "hosts-sosreport"]);
    assert!(text.contains("taskset -cp 0,4 4300") && text.contains("undo         taskset -cp 0-7 4300"), "{text}");
    let one = json(&["explain", "FLW-PREEMPT", "nested-vmx-shadow-off-hog"]);
    let of_report = json(&["report", "nested-vmx-shadow-off-hog"]);
    let whole: Vec<&Value> = findings(&of_report).into_iter().filter(|one| one["rule"] == "FLW-PREEMPT").collect();
    assert!(!whole.is_empty());
    assert_eq!(findings(&one), whole);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let fails = |arguments: &[&str], status: i32, wanted: &str| {
        let (code, out, complaint) = kvmscope(arguments);
        assert_eq!((code, out.as_str()), (status, ""), "{arguments:?}: {complaint}");
        assert!(complaint.contains(wanted), "{arguments:?}: {complaint}");
    };
    fails(&["explain", "PLC-OVERLPA"], 2, "did you mean `PLC-OVERLAP`?");
    fails(&["explain", "PLC-MEMORY@vfn", "hosts-sosreport"], 2, "did you mean `PLC-MEMORY@vnf`?");
    fails(&["explain", "PLC-OVERLAP", "hosts-sosreport"], 1, "`kvmscope explain PLC-OVERLAP` shows what it looks at");
    fails(&["explain", "PLC-OVERLAP", "--csv", "x"], 2, "--csv and --html need a PATH");
    fails(&["explain", "PLC-OVERLAP", "nosuch"], 1, "nosuch");
}

#[test]
fn the_first_page_has_the_findings_in_their_order_and_leads_to_the_rest() {
    for fixture in ["hosts-sosreport", "seed-vhost", "hosts-intel"] {
        let page = answer(&["check", fixture]);
        let (_, list) = page.split_once(" FINDINGS\n").unwrap();
        let at: Vec<usize> = findings(&json(&["check", fixture]))
            .iter()
            .filter_map(|finding| {
                list.find(&format!("{}\n", finding["id"].as_str()?))
                    .or(list.find(&format!("{} ", finding["id"].as_str()?)))
            })
            .collect();
        assert!(at.len() >= 6 && at.is_sorted(), "{fixture}: {at:?}\n{page}");
        assert!(!page.contains("IN DETAIL") && page.lines().count() < 60, "{page}");
        let (_, next) = page.split_once("Next:\n").unwrap();
        let steps: Vec<&str> = next.lines().filter_map(|line| line.split("   #").next()).map(str::trim).collect();
        assert_eq!(steps.len(), 2, "{page}");
        for step in steps {
            let words: Vec<&str> = step.split(' ').skip(1).collect();
            assert!(answer(&words).lines().count() > 10, "{step}");
        }
    }
}

#[test]
fn the_other_ways_to_name_machines_lead_to_the_rest_too() {
    let asked = ["check", "--root", "L1=hosts-sosreport", "--goal", "latency", "--reserve", "0-1"];
    let page = answer(&asked);
    let wanted = "kvmscope check --all --root L1=hosts-sosreport --goal latency --reserve 0-1";
    assert!(page.contains(wanted), "{page}");
    let notes = "seed-vhost/L0/notes/5-lscpu.txt";
    assert!(answer(&["check", "--paste", notes]).contains(&format!("kvmscope check --all --paste {notes}")));
}
