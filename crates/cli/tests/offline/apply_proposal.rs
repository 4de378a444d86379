//! Placements as a whole: found, planned, made and taken back, and printed as what libvirt understands.

use assert_cmd::Command;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/seed-vhost");

/// Stands in for Open vSwitch: keeps the mask in a file beside itself, and answers as `ovs-vsctl` 3.1 does.
const SWITCH: &str = r#"#!/bin/sh
mask=$(dirname "$0")/mask
case "$*" in
"--if-exists get Open_vSwitch . other_config:pmd-cpu-mask") if [ -s "$mask" ]; then echo "\"$(cat "$mask")\""; else echo; fi ;;
"set Open_vSwitch . other_config:pmd-cpu-mask="*) echo "${4#*=}" >"$mask" ;;
"remove Open_vSwitch . other_config pmd-cpu-mask") rm -f "$mask" ;;
*) echo "not understood: $*" >&2; exit 1 ;;
esac
"#;

struct Bed {
    directory: tempfile::TempDir,
}

impl Bed {
    fn new(mask: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("ovs-vsctl");
        std::fs::write(&program, SWITCH).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        if let Some(mask) = mask {
            std::fs::write(directory.path().join("mask"), mask).unwrap();
        }
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn mask(&self) -> Option<String> {
        std::fs::read_to_string(self.path().join("mask")).ok().map(|text| text.trim().to_owned())
    }

    fn kvmscope(&self, words: &[&str]) -> (i32, String) {
        let path = format!("{}:{}", self.path().display(), std::env::var("PATH").unwrap_or_default());
        let journal = self.path().join("journal");
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        let output = command.args(words).arg("--journal").arg(journal).env("PATH", path).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }

    /// A report of this host as it runs now, with one placement that moves the polling threads from `from` to CPUs 1 and 9.
    fn report(&self, from: &str) -> String {
        let change = json!({"type": "PmdMask", "cpus": "1,9", "from": from});
        let finding = json!({"id": "PLC-PROPOSAL@1", "title": "placement 1", "level": "L0", "changes": [change], "fix": [], "evidence": []});
        let file = self.path().join("report.json");
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let recording = json!({"machines": [{"id": "L0", "level": 0, "parent": null, "boot_id": boot.trim()}]});
        let report = json!({"recording": recording, "sections": [{"findings": [finding]}]});
        std::fs::write(&file, report.to_string()).unwrap();
        file.display().to_string()
    }
}

#[test]
fn polling_threads_get_their_mask_and_have_the_old_one_again() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: a mask of polling threads: it needs root");
    }
    for (old, from) in [(Some("0x6"), "1-2"), (None, "")] {
        let bed = Bed::new(old);
        let report = bed.report(from);
        let (code, said) = bed.kvmscope(&["apply", "PLC-PROPOSAL", "--from", &report, "--dry-run"]);
        assert_eq!((code, bed.mask().as_deref()), (0, old), "{said}");
        let change = if old.is_some() { "CPUs 1-2 -> 1,9" } else { "none -> CPUs 1,9" };
        assert!(said.contains(&format!("polling threads of Open vSwitch: {change}")), "{said}");
        let (code, said) = bed.kvmscope(&["apply", "PLC-PROPOSAL@1", "--from", &report, "--yes"]);
        assert_eq!((code, bed.mask().as_deref()), (0, Some("0x202")), "{said}");
        let (code, said) = bed.kvmscope(&["apply", "PLC-PROPOSAL@1", "--from", &report, "--yes"]);
        assert!(code == 0 && said.contains("1,9 already"), "{said}");
        let (code, said) = bed.kvmscope(&["undo"]);
        assert_eq!((code, bed.mask().as_deref()), (0, old), "{said}");
    }
}

#[test]
fn a_mask_that_somebody_else_changed_is_left_alone() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: a mask of polling threads: it needs root");
    }
    let bed = Bed::new(Some("0x8"));
    let report = bed.report("1-2");
    let (code, said) = bed.kvmscope(&["apply", "PLC-PROPOSAL", "--from", &report, "--yes"]);
    assert!(code == 1 && said.contains("out of date"), "{said}");
    assert_eq!(bed.mask().as_deref(), Some("0x8"));
}

#[test]
fn placements_of_a_ticket_are_planned_by_rank() {
    let scratch = tempfile::tempdir().unwrap();
    let report = scratch.path().join("report.json");
    let output = Command::cargo_bin("kvmscope").unwrap().args(["check", FIXTURE, "--json"]).output().unwrap();
    std::fs::write(&report, output.stdout).unwrap();
    let plan = |id: &str| {
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        let output = command.args(["apply", id, "--dry-run", "--from"]).arg(&report).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let first = "PLC-PROPOSAL: placement 1, helpers to CPUs without a pinned vCPU: 1 command, CPUs short 6.89 to 3.93";
    assert!(plan("PLC-PROPOSAL").starts_with(first));
    assert!(plan("PLC-PROPOSAL@2").starts_with("PLC-PROPOSAL@2: placement 2, "));
    assert!(plan("PLC-PROPOSAL@9").contains("has no finding PLC-PROPOSAL@9"));
}

#[test]
fn libvirt_understands_the_elements_that_are_printed() {
    let xml = |words: &[&str]| {
        let output = Command::cargo_bin("kvmscope").unwrap().args(["check", FIXTURE]).args(words).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(xml(&["--xml", "99"]), (1, String::new()));
    let (code, text) = xml(&["--xml"]);
    assert_eq!((code, &text), (0, &xml(&["--xml", "1"]).1));
    assert!(text.starts_with("<domain>") && text.contains("<emulatorpin cpuset='1,3,5,7,9,11,13,15'/>"), "{text}");
    // The test driver's host has eight CPUs; it leaves out the others.
    let whole = text
        .replace("<domain>", "<domain type='test'>")
        .replace("</domain>", "<memory unit='MiB'>64</memory><os><type>hvm</type></os></domain>");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), whole).unwrap();
    let script = format!("define {}; emulatorpin bigip-virtio; vcpupin bigip-virtio", file.path().display());
    let Ok(output) = std::process::Command::new("virsh").args(["-q", "-c", "test:///default", &script]).output() else {
        return println!("skipped: the elements against libvirt: no virsh (Debian: libvirt-clients)");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lists: Vec<&str> = said.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(lists[0], "1,3,5,7", "{said}");
    assert_eq!(lists[1..5], ["0", "2", "4", "6"], "{said}");
}
