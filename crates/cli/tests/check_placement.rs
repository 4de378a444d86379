//! Section `placement` of `kvmscope check` as its users meet it.

use assert_cmd::Command;
use serde_json::Value;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/seed-vhost");

fn kvmscope(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("kvmscope").unwrap().args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn pasted(more: &[&str]) -> (i32, String, String) {
    let mut files: Vec<String> = std::fs::read_dir(format!("{FIXTURE}/L0/notes"))
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    files.sort();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    kvmscope(&[&["check", "--paste"], &files[..], more].concat())
}

#[test]
fn pasted_evidence_names_the_culprit_and_what_to_type() {
    let (code, out, complaints) = pasted(&[]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    for wanted in [
        "PLC-OVERLAP",
        "virsh emulatorpin bigip-virtio 1,3,5,7,9,11,13,15",
        "virsh emulatorpin bigip-virtio 0,2,4,6,8,10,12,14",
        "WHO IS WHERE ON L0",
        "EXPLANATIONS THAT ARE LEFT",
    ] {
        assert!(out.contains(wanted), "{wanted} is not in\n{out}");
    }
    assert!(!out.contains("Gb/s") && !out.contains("Gbit"), "{out}");
    assert_eq!(pasted(&["--fail-on", "high"]).0, 3);
}

#[test]
fn a_recording_of_notes_answers_the_same() {
    let (code, out, _) = kvmscope(&["check", FIXTURE, "--json"]);
    assert_eq!(code, 0);
    let (recorded, pasted): (Value, Value) =
        (serde_json::from_str(&out).unwrap(), serde_json::from_str(&pasted(&["--json"]).1).unwrap());
    assert_eq!(recorded["sections"][0]["id"], "placement");
    assert_eq!(recorded["sections"][0]["findings"], pasted["sections"][0]["findings"]);
    assert_eq!(recorded["sections"][0]["figures"][0]["drawing"], "topology");
}

#[test]
fn wishes_are_obeyed() {
    let (_, out, _) = pasted(&["--json", "--reserve", "1,9"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    let rows = answer["sections"][0]["tables"]["proposal"]["rows"].as_array().unwrap();
    let cpus = |row: &Value| base::CpuSet::parse(row[2].as_str().unwrap()).unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| !cpus(row).contains(1) && !cpus(row).contains(9)));
    let (_, out, _) = pasted(&["--json", "--keep", "bigip-virtio"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["sections"][0]["tables"]["proposal"]["rows"].as_array().unwrap().len(), 0);
    assert_eq!(pasted(&["--reserve", "x"]).0, 2);
    assert_eq!(kvmscope(&["check", "--paste", "/nonexistent"]).0, 1);
}
