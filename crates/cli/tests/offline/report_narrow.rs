//! `kvmscope report` of a part of a recording: what is narrowed is narrowed everywhere, and the head names the rest.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

fn sections(arguments: &[&str]) -> Vec<Value> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vmx-linux-shadow-off");
    let output = Command::cargo_bin("kvmscope")
        .unwrap()
        .args(["report", "--json", "--no-progress", fixture.to_str().unwrap()])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut page: Value = serde_json::from_slice(&output.stdout).unwrap();
    page["sections"].as_array_mut().unwrap().drain(..).collect()
}

fn flow(arguments: &[&str]) -> Value {
    sections(arguments).into_iter().find(|section| section["id"] == "flow").unwrap()
}

fn head(section: &Value) -> String {
    section["about"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

fn rules(section: &Value) -> Vec<&str> {
    let findings = section["findings"].as_array().unwrap().iter();
    findings.map(|one| one["id"].as_str().unwrap().split('@').next().unwrap()).collect()
}

fn column(section: &Value, table: &str, name: &str) -> Vec<Value> {
    let table = &section["tables"][table];
    let columns = table["columns"].as_array().unwrap();
    let at = columns.iter().position(|column| column["name"] == name).unwrap();
    table["rows"].as_array().unwrap().iter().map(|row| row[at].clone()).collect()
}

#[test]
fn a_level_narrows_findings_chains_and_counts_of_exits() {
    let whole = flow(&[]);
    assert!(rules(&whole).contains(&"FLW-SHADOW"), "{:?}", rules(&whole));
    let l2 = flow(&["--level", "L2"]);
    assert!(!rules(&l2).contains(&"FLW-SHADOW"), "its exits are L1's: {:?}", rules(&l2));
    assert!(head(&l2).contains("--level L2: exits, chains and the findings about them are of L2 only"));
    for name in ["reasons", "exits", "exit_details", "handled_by"] {
        assert!(column(&l2, name, "level").iter().all(|level| level == "L2"), "{name}");
    }
    let sum = |section: &Value, table, name| column(section, table, name).iter().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!(sum(&l2, "vcpus", "exits"), sum(&l2, "exits", "count"));
    assert_eq!(sum(&l2, "vms", "exits"), sum(&l2, "exits", "count"));
    let l1 = flow(&["--level", "L1"]);
    assert!(rules(&l1).contains(&"FLW-SHADOW"));
    assert!(column(&l1, "chains", "vm").is_empty(), "chains are about exits of L2");
    let said = l1["summary"].as_str().unwrap();
    assert!(said.contains("exits of L1 took") && !said.contains("entered no nested guest"), "{said}");
    assert_eq!(sum(&l1, "exits", "count") + sum(&l2, "exits", "count"), sum(&whole, "exits", "count"));
}

#[test]
fn a_trace_whose_vcpus_were_not_asked_for_is_not_said_to_have_none() {
    let guest = flow(&["--vm", "L1/kvmscope-82"]);
    let said = guest["summary"].as_str().unwrap();
    assert!(!said.contains("so vCPU times are unknown"), "{said}");
    assert!(!head(&guest).contains("no KVM exits"), "{}", head(&guest));
    assert!(head(&guest).contains("--vm L1/kvmscope-82: events, losses"));
}

#[test]
fn a_window_says_what_is_of_the_whole_recording() {
    let window = flow(&["--from", "0.2", "--to", "0.3"]);
    assert!(head(&window).contains("--from, --to: events, losses"), "{}", head(&window));
    assert!(!head(&flow(&[])).contains("events, losses"), "nothing is narrowed");
}

#[test]
fn shares_of_exits_are_of_one_machine_and_each_has_its_table() {
    let whole = flow(&[]);
    for name in ["exits", "reasons"] {
        for machine in ["L0", "L1"] {
            let rows = column(&whole, name, "machine").into_iter().zip(column(&whole, name, "time_share"));
            let sum: f64 = rows.filter(|(of, _)| of == machine).filter_map(|(_, share)| share.as_f64()).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{name} of {machine}: {sum}");
        }
    }
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vmx-linux-shadow-off");
    for (arguments, table) in
        [(&["report"][..], "EXITS  "), (&["report", "--by", "reason"], "EXIT REASONS OVER ALL VCPUS")]
    {
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        let output = command.args(arguments).arg(&fixture).env("COLUMNS", "120").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let headings: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with(table)).collect();
        assert!(
            headings.len() == 2 && headings[0].contains("machine L0") && headings[1].contains("machine L1"),
            "{headings:?}"
        );
    }
}
