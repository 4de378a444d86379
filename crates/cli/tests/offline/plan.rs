//! `kvmscope plan nested` as its users meet it.

use crate::program::{fixture_named, kvmscope};
use serde_json::Value;

/// A table of the only section, each row as an object.
fn table(arguments: &[&str], name: &str) -> Vec<Value> {
    let (code, out, complaints) = kvmscope(&[&["plan", "nested", "--json"], arguments].concat());
    assert_eq!((code, complaints.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["sections"][0]["id"], "plan");
    let table = &answer["sections"][0]["tables"][name];
    let names: Vec<String> =
        table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap().to_owned()).collect();
    let object = |row: &Value| names.iter().cloned().zip(row.as_array().unwrap().iter().cloned()).collect();
    table["rows"].as_array().unwrap().iter().map(object).collect()
}

fn row<'a>(rows: &'a [Value], change: &str) -> &'a Value {
    rows.iter().find(|row| row["change"] == change).unwrap_or_else(|| panic!("no row {change}"))
}

#[test]
fn given_numbers_give_the_slides_answer() {
    let given = ["--ghz", "2.4", "--c1", "1350", "--c2", "20700", "--rate", "CPUID=10000/s", "--below", "hyperv"];
    let rows = table(&given, "plan");
    let evmcs = row(&rows, "evmcs");
    let of = |name: &str| evmcs[name].as_f64().unwrap();
    // 20,700 and 8,900 cycles at 10,000 a second of 2.4 GHz.
    assert!((of("cpu_now") - 0.08625).abs() < 1e-6);
    assert!((of("cpu_after") - 0.03708).abs() < 1e-4);
    assert!(of("saved_low") <= of("saved") && of("saved") <= of("saved_high"));
    assert_eq!((&evmcs["kind"], &evmcs["needs"]), (&"modelled".into(), &"reload".into()));
    assert!(row(&rows, "pinning")["cpu_after"].is_null());
}

#[test]
fn without_a_measured_d_the_answer_is_that_it_is_unknown() {
    let (code, out, _) = kvmscope(&["plan", "nested", "--ghz", "2.4", "--c1", "1350", "--rate", "CPUID=10"]);
    assert_eq!(code, 0);
    assert!(out.contains("No prediction is possible without the cost that nesting adds to an exit"), "{out}");
}

#[test]
fn a_recording_gives_its_own_rates_and_chains_and_says_that_it_was_emulated() {
    let path = fixture_named("vmx-linux-shadow-off");
    let rows = table(&[&path], "plan");
    let shadow = row(&rows, "shadow");
    assert!(shadow["cpu_after"].as_f64().unwrap() < shadow["cpu_now"].as_f64().unwrap());
    assert!(row(&rows, "together")["title"].as_str().unwrap().starts_with("shadow + "));
    let (_, out, _) = kvmscope(&["plan", "nested", &path]);
    assert!(out.starts_with("EMULATED by Bochs"), "{out}");
    // With shadowing on there is nothing to gain from it: what stays is outside KVM's list.
    let on = table(&[&fixture_named("vmx-linux-shadow-on")], "plan");
    assert!(row(&on, "shadow")["cpu_after"].is_null(), "{}", row(&on, "shadow"));
    let (_, out, _) = kvmscope(&["plan", "nested", &fixture_named("vmx-linux-shadow-on")]);
    let out = out.replace('\n', " ");
    assert!(
        out.contains(
            "None of the usual changes with a known effect would save 1.0 % of what exits and the guest take."
        ),
        "{out}"
    );
    assert!(!out.contains("saves the most"), "{out}");
}

#[test]
fn the_trace_of_l1_alone_gives_rates_and_needs_costs() {
    let trace = format!("{}/L1/trace.dat", fixture_named("vmx-linux-shadow-off"));
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("L1")).unwrap();
    std::fs::copy(trace, directory.path().join("L1/trace.dat")).unwrap();
    let path = directory.path().to_str().unwrap();
    let (_, out, _) = kvmscope(&["plan", "nested", path]);
    assert!(out.contains("No prediction is possible without"), "{out}");
    let exits = table(&[path, "--ghz", "2.4", "--c1", "1350", "--c2", "20700"], "plan_exits");
    let cpuid = exits.iter().find(|row| row["reason"] == "CPUID").unwrap();
    assert_eq!((&cpuid["level"], &cpuid["from"]), (&"L2".into(), &"given".into()));
}

#[test]
fn a_bench_gives_both_points_and_the_costs_of_other_exits() {
    let bench = fixture_named("bench-svm");
    let given = ["--bench", &bench, "--arch", "svm", "--ghz", "2.4", "--rate", "CPUID=10", "--rate", "NPF=10"];
    let assumptions = table(&given, "assumptions");
    let how = assumptions.iter().find(|row| row["what"] == "how D was determined").unwrap();
    assert!(how["value"].as_str().unwrap().contains("lower bound"), "{how}");
    assert!(assumptions.iter().all(|row| !row["what"].as_str().unwrap().contains("costs what CPUID does")));
    let (_, out, _) = kvmscope(&[&["plan", "nested"], given.as_slice()].concat());
    assert!(out.starts_with("EMULATED by QEMU TCG"), "{out}");
    let (code, _, complaints) =
        kvmscope(&["plan", "nested", "--bench", &fixture_named("hosts-intel"), "--rate", "CPUID=1"]);
    assert_eq!(code, 1);
    assert!(complaints.contains("so D stays unknown"), "{complaints}");
}

#[test]
fn a_plan_ends_with_how_far_to_trust_it() {
    let (_, out, _) =
        kvmscope(&["plan", "nested", "--ghz", "2.4", "--c1", "1350", "--c2", "20700", "--rate", "CPUID=2000"]);
    let last = out.lines().last().unwrap();
    assert!(last.contains("5 of 11 published results lie inside the predicted band, median width 1.1"), "{out}");
}

#[test]
fn wrong_use_says_what_to_write() {
    let (code, _, complaints) = kvmscope(&["plan", "nested"]);
    assert_eq!(code, 2);
    assert!(complaints.contains("--rate CPUID=2000"), "{complaints}");
    assert_eq!(kvmscope(&["plan", "nested", "--rate", "CPUID"]).0, 2);
    let (code, _, complaints) = kvmscope(&["plan", "nested", "--rate", "CPUID=1", "--with", "magic"]);
    assert_eq!(code, 2);
    assert!(complaints.contains("pinning, pvm, shadow"), "{complaints}");
}
