//! `kvmscope compare` on bundled recordings, whose difference is known.

use serde_json::Value;
use std::process::Command;

fn compared(before: &str, after: &str) -> Value {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    let command = command.args(["compare", "--json"]).args([before, after].map(|name| format!("{fixtures}/{name}")));
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
fn a_recording_does_not_differ_from_itself() {
    let answer = compared("nested-svm-toy", "nested-svm-toy");
    let rows = rows(&answer);
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        assert!(row[3] == 1.0 && row[6] != "higher" && row[6] != "lower", "{row}");
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
