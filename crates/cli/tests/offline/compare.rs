//! `kvmscope compare` on bundled recordings, whose difference is known.

use base::Bench;
use base::bench::{Measured, Params};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn compared(before: &str, after: &str) -> Value {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    compare(&[before, after].map(|name| format!("{fixtures}/{name}")))
}

fn compare(recordings: &[String]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    let command = command.args(["compare", "--json"]).args(recordings);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(answer: &Value) -> Vec<Value> {
    assert_eq!(answer["sections"][0]["id"], "compare");
    answer["sections"][0]["tables"]["change"]["rows"].as_array().unwrap().clone()
}

#[test]
fn shadow_vmcs_removes_vmread_exits_and_that_is_certain() {
    // The same guests in the same emulator, with and without VMCS shadowing: fixtures' own README.
    let answer = compared("vmx-linux-shadow-off", "vmx-linux-shadow-on");
    let rows = rows(&answer);
    let row =
        |metric: &str| rows.iter().find(|row| row[0] == metric).unwrap_or_else(|| panic!("no {metric}: {rows:?}"));
    let vmread = row("L1 VMREAD, exits/s");
    assert_eq!(vmread[6], "lower", "{vmread}");
    assert!(vmread[3].as_f64().unwrap() < 0.5 && vmread[5].as_f64().unwrap() < 1.0, "{vmread}");
    let chain = row("CPUID, L1 exits per chain");
    assert_eq!((&chain[1], &chain[2], &chain[6]), (&12.0.into(), &3.0.into(), &"lower".into()), "{chain}");
}

#[test]
fn what_two_levels_saw_is_the_outermost_machine_s_number() {
    // L1's traces of these recordings show the time of L0's once more.
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    for pair in [["vmx-linux-shadow-off", "vmx-linux-shadow-on"], ["svm-linux", "vmx-linux-shadow-on"]] {
        let joined = rows(&compare(&pair.map(|name| format!("{fixtures}/{name}"))));
        let alone = rows(&compare(&pair.map(|name| format!("{fixtures}/{name}/L0/trace.dat"))));
        assert!(alone.len() > 30, "{alone:?}");
        for row in &alone {
            let same = joined.iter().find(|other| other[0] == row[0]).unwrap_or_else(|| panic!("{row} is gone"));
            assert_eq!((&same[1], &same[2], &same[3]), (&row[1], &row[2], &row[3]), "{row}");
        }
        let more: Vec<&Value> = joined.iter().filter(|row| !alone.iter().any(|other| other[0] == row[0])).collect();
        let is_of_inner_task =
            |row: &&Value| row[0].as_str().unwrap().starts_with("L1 ") && row[0].as_str().unwrap().ends_with("share");
        assert!(more.iter().all(is_of_inner_task), "{more:?}");
    }
}

#[test]
fn two_runs_are_said_to_be_two_runs_and_several_of_a_side_are_its_spread() {
    let pair = compared("vmx-linux-shadow-off", "vmx-linux-shadow-on");
    let section = &pair["sections"][0];
    let said = section["summary"].as_str().unwrap();
    assert!(said.contains("between these two runs") && !said.contains("changed by more than noise"), "{said}");
    assert!(section["about"].to_string().contains("of these two runs"), "{}", section["about"]);
    assert_eq!(section["unknown"][0]["what"], "run_to_run");
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let [off, on] = ["vmx-linux-shadow-off", "vmx-linux-shadow-on"].map(|name| format!("{fixtures}/{name}"));
    let more = ["--before", &off, "--after", &on, "--after", &on].map(str::to_owned);
    let several = compare(&[vec![off.clone(), on.clone()], more.to_vec()].concat());
    let section = &several["sections"][0];
    let said = section["summary"].as_str().unwrap();
    assert!(said.contains("changed by more than noise between runs (2 recordings before, 3 after)"), "{said}");
    // These fixtures have no snapshots of their hosts.
    let unknown: Vec<&Value> = section["unknown"].as_array().unwrap().iter().map(|one| &one["what"]).collect();
    assert_eq!(unknown, ["configuration"]);
    let paths: Vec<&str> =
        several["recordings"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths.iter().filter(|path| path.ends_with("shadow-off")).count(), 2, "{paths:?}");
    assert!(paths.len() == 5 && paths[0].ends_with("shadow-off") && paths[4].ends_with("shadow-on"), "{paths:?}");
}

#[test]
fn unlike_machines_are_a_finding_and_alike_ones_are_none() {
    let unlike = |before: &str, after: &str| -> Option<Value> {
        let answer = compared(before, after);
        let findings = answer["sections"][0]["findings"].as_array().unwrap().clone();
        findings.into_iter().find(|finding| finding["rule"] == "EVD-UNLIKE")
    };
    let found = unlike("nested-svm-toy", "nested-vmx-shadow-on").unwrap();
    assert_eq!(found["severity"], "medium");
    let title = found["title"].as_str().unwrap();
    assert!(title.contains("emulator") && title.contains("instruction set"), "{title}");
    assert!(found["evidence"].to_string().contains("instruction set: SVM before, VMX after"), "{found}");
    assert_eq!(unlike("vmx-linux-shadow-off", "vmx-linux-shadow-off"), None);
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let answer = compared("nested-svm-toy", "nested-svm-toy");
    let rows = rows(&answer);
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        assert!(row[3] == 1.0 && row[6] != "higher" && row[6] != "lower", "{row}");
    }
}

/// A recording with a bench of `launches` for each test, on a machine with that governor.
fn bench(root: &Path, governor: &str, tests: &[(&str, &[u64])]) -> String {
    let environment =
        [("governor", governor), ("MHz", governor)].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut bench = Bench::new("exits", BTreeMap::from(environment));
    for (name, launches) in tests {
        bench.results.extend((0..).zip(*launches).map(|(launch, cycles)| Measured {
            name: (*name).to_owned(),
            params: Params { place: "guest".into(), ring: Some(3), launch, operations: Some(10), ..Params::default() },
            unit: "cycles".into(),
            hdr: vec![(cycles * 10, 100)],
            ..Measured::default()
        }));
    }
    bench.write(&root.join("L0/bench/exits.json")).unwrap();
    let manifest = r#"{"schema": "kvmscope-recording/1", "created": null, "tool": null, "emulated": null,
        "machines": [{"id": "L0", "level": 0, "parent": null, "name": null}],
        "parts": [{"path": "L0/bench/exits.json", "machine": "L0", "kind": "bench", "clock": null, "state": "complete"}]}"#;
    std::fs::write(root.join("recording.json"), manifest).unwrap();
    root.to_str().unwrap().to_owned()
}

#[test]
fn benches_are_compared_test_by_test_and_unequal_machines_are_said() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let quiet: &[u64] = &[1_000, 1_010, 1_005, 1_020, 1_002];
    let before = bench(one.path(), "powersave", &[("cpuid", quiet), ("rdtsc", quiet), ("ud2", &quiet[..2])]);
    let faster: &[u64] = &[500, 505, 503, 510, 501];
    let after = bench(two.path(), "performance", &[("cpuid", faster), ("rdtsc", quiet), ("ud2", &quiet[..2])]);
    let answer = compare(&[before, after]);
    let section = &answer["sections"][0];
    let rows = section["tables"]["bench"]["rows"].as_array().unwrap();
    let verdicts: Vec<_> = rows.iter().map(|row| (row[0].as_str().unwrap(), row[11].as_str().unwrap())).collect();
    let expected = [("cpuid", "lower"), ("rdtsc", "noise could explain it"), ("ud2", "too few")];
    assert_eq!(verdicts, expected);
    // Every value after is smaller: U is all 25 pairs, and 2 of 252 ways to deal ten values are as lopsided.
    assert_eq!((rows[0][6].as_f64(), rows[0][9].as_f64()), (Some(0.5005), Some(25.0)));
    assert!((rows[0][10].as_f64().unwrap() - 2.0 / 252.0).abs() < 1e-5, "{}", rows[0]);
    assert_eq!(section["tables"]["fingerprint"]["rows"].as_array().unwrap().len(), 1);
    assert!(section["summary"].as_str().unwrap().contains("differ in 1 setting"), "{}", section["summary"]);
}

#[test]
fn metrics_tests_and_verdicts_are_printed_whole_on_a_narrow_page() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tests: &[(&str, &[u64])] = &[("l2_read_of_a_register_that_is_not_passed_through", &[1_000; 5])];
    let benches = [one.path(), two.path()].map(|root| bench(root, "performance", tests));
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let traces = ["vmx-linux-shadow-off", "vmx-linux-shadow-on"].map(|name| format!("{fixtures}/{name}"));
    for (recordings, name) in [(traces, "EXTERNAL_INTERRUPT, L1 exits per chain"), (benches, tests[0].0)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        let output = command.args(["compare", "--width", "60"]).args(recordings).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains('…'), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        let whole = ["verdict", "noise", "could", "explain", name];
        assert!(whole.iter().flat_map(|one| one.split(' ')).all(|word| words.contains(&word)), "{name} in {text}");
    }
}

#[test]
fn what_a_thread_waits_is_what_its_vcpu_stood_ready() {
    // Counted twice, out of the same switches: by the ledger of the vCPU, and by thread. trace-cmd's own text gives 0.46374.
    let answer = compared("nested-vmx-shadow-off-hog", "nested-vmx-shadow-off-hog");
    let rows = rows(&answer);
    let share = |metric: &str| rows.iter().find(|row| row[0] == metric).unwrap_or(&Value::Null)[1].as_f64().unwrap();
    let (waits, ready) = (share("nestv waits, share"), share("preempted, share") + share("wake_delay, share"));
    assert!((waits - ready).abs() < 0.001 && (waits - 0.46374).abs() < 0.001, "{waits} {ready}");
    // The one CPU is always one of theirs.
    let runs = share("nestv runs, share") + share("busybox runs, share");
    assert!((0.95..=1.0).contains(&runs), "{runs}");
}

#[test]
fn a_measured_datapath_is_compared_and_one_trial_a_side_is_too_few() {
    let answer = compared("ovs-dpdk-chain", "ovs-dpdk-chain");
    let section = &answer["sections"][0];
    let rows = section["tables"]["datapaths"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8, "a rate and its cycles of two lengths and two sizes");
    assert!(rows.iter().all(|row| row[8] == 1.0 && row[11] == "too few"), "{rows:?}");
    let summary = section["summary"].as_str().unwrap();
    assert!(
        summary.contains("1 repeat a side at most") && summary.contains("were the same on both sides"),
        "{summary}"
    );
    let answer = compared("ovs-dpdk-chain", "kernel-paths");
    let summary = answer["sections"][0]["summary"].as_str().unwrap();
    assert!(summary.contains("Both sides measured datapaths, and no kind of trial is on both"), "{summary}");
    assert!(summary.contains("Measured after alone, so not compared: af-xdp, chain of 1 VNF, 64 bytes, "), "{summary}");
    // Five paths, two lengths, a rate and two streams of each; four are named.
    assert!(summary.contains("and 26 others of the table."), "{summary}");
}
