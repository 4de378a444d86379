//! Section `placement` of `kvmscope check` as its users meet it.

use crate::program::kvmscope;
use assert_cmd::Command;
use serde_json::Value;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/seed-vhost");

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
fn pins_alone_show_who_may_compete_and_are_not_high() {
    for file in ["fallback.xml", "pins.xml"] {
        let file = format!("{}/../../fixtures/libvirt-xml/{file}", env!("CARGO_MANIFEST_DIR"));
        let (code, out, complaint) = kvmscope(&["check", "--all", "--paste", &file, "--fail-on", "medium"]);
        assert_eq!(code, 0, "{file}: {out}{complaint}");
        assert!(out.contains("low     PLC-OVERLAP"), "{out}");
    }
}

#[test]
fn a_text_of_which_no_line_is_understood_is_refused_with_what_is_read() {
    let text = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&text, "the port is slow\nplease help\n").unwrap();
    let (code, out, complaint) = kvmscope(&["check", "--paste", text.path().to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(complaint.contains("has nothing that is read") && complaint.contains("the output of lscpu"), "{complaint}");
}

/// `check -` and `check FILE` take text as `--paste` does; a trace of text stays a trace.
#[test]
fn text_that_is_no_trace_needs_no_option() {
    let lscpu = "CPU NODE SOCKET CORE\n0 0 0 0\n1 1 1 1\n";
    let piped = Command::cargo_bin("kvmscope").unwrap().args(["check", "-"]).write_stdin(lscpu).output().unwrap();
    let out = String::from_utf8(piped.stdout).unwrap();
    assert!(out.contains("2 CPUs on 2 cores, 2 packages and 2 nodes") && out.contains("1 pasted text"), "{out}");
    let next = out.lines().find(|line| line.contains("kvmscope check --all -")).unwrap();
    assert!(next.ends_with("; pipe the same in again"), "{next}");
    let text = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&text, lscpu).unwrap();
    let (_, out, _) = kvmscope(&["check", text.path().to_str().unwrap()]);
    assert!(out.contains("2 CPUs on 2 cores") && !out.contains("pipe the same"), "{out}");
    std::fs::write(&text, "please help\n").unwrap();
    let (code, _, complaint) = kvmscope(&["check", text.path().to_str().unwrap()]);
    assert!(code == 1 && complaint.contains("no line of"), "{complaint}");
    std::fs::write(&text, [0, 1, 2]).unwrap();
    let (code, _, complaint) = kvmscope(&["check", text.path().to_str().unwrap()]);
    assert!(code == 1 && complaint.contains("not a format that kvmscope reads"), "{complaint}");
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/text/trace-cmd-svm-6.1.txt");
    let (code, out, _) = kvmscope(&["check", trace]);
    assert!(code == 0 && out.contains("recorded at L0 (SVM"), "{out}");
}

#[test]
fn pasted_evidence_names_the_culprit_and_what_to_type() {
    let (code, out, complaints) = pasted(&["--all"]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    for wanted in [
        "PLC-OVERLAP",
        "virsh emulatorpin bigip-virtio 1,3,5,7,9,11,13,15",
        "virsh emulatorpin bigip-virtio 0,2,4,6,8,10,12,14",
        "WHAT RUNS WHERE ON L0",
        "EXPLANATIONS STILL OPEN",
    ] {
        assert!(out.contains(wanted), "{wanted} is not in\n{out}");
    }
    assert!(!out.contains("Gb/s") && !out.contains("Gbit"), "{out}");
    assert_eq!(pasted(&["--fail-on", "medium"]).0, 3);
    assert_eq!(pasted(&["--fail-on", "high"]).0, 0, "no waiting was measured");
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
    let cpus = |row: &Value| base::CpuSet::parse(row[3].as_str().unwrap()).unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| !cpus(row).contains(1) && !cpus(row).contains(9)));
    let (_, out, _) = pasted(&["--json", "--keep", "bigip-virtio"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["sections"][0]["tables"]["proposal"]["rows"].as_array().unwrap().len(), 0);
    assert_eq!(pasted(&["--reserve", "x"]).0, 2);
    assert_eq!(kvmscope(&["check", "--paste", "/nonexistent"]).0, 1);
}

/// Rules that fired on a tree of another tool.
fn fired(tree: &str) -> Vec<String> {
    let tree = format!("{}/../../fixtures/{tree}", env!("CARGO_MANIFEST_DIR"));
    let (code, out, complaints) = kvmscope(&["check", "--json", "--root", &tree]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    let section = answer["sections"].as_array().unwrap().iter().find(|section| section["id"] == "placement").unwrap();
    let findings = section["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_sosreport_answers_as_a_host_does() {
    let found = fired("hosts-sosreport");
    for wanted in [
        "PLC-PMD@vnf",
        "PLC-PMDNODE@pmd-c02",
        "PLC-MEMORY@vnf",
        "PLC-LATE@vnf",
        "PLC-ESCAPE@vnf",
        "PLC-IRQ@irq43",
        "PLC-TUNED@proc.sys.vm.swappiness",
    ] {
        assert!(found.iter().any(|id| id == wanted), "{wanted} is not among {found:?}");
    }
    assert!(found.iter().all(|id| !id.starts_with("PLC-FLOAT")), "PLC-LATE has said it: {found:?}");
}

#[test]
fn every_node_of_a_must_gather_is_a_machine() {
    let found = fired("hosts-must-gather/must-gather.local.1");
    assert!(found.iter().any(|id| id == "PLC-NODE@L0-worker-0:virt-launcher-web-x7k2p"), "{found:?}");
    // Its vCPUs have isolated CPUs of their own: nearer memory is not to be had at the price of company.
    assert!(!found.iter().any(|id| id.starts_with("PLC-PROPOSAL")), "{found:?}");
    let gathered = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/hosts-must-gather/must-gather.local.1");
    let (_, out, _) = kvmscope(&["check", gathered]);
    assert!(out.contains("sysinfo.tgz is packed"), "{out}");
    let node = "hosts-must-gather/must-gather.local.1/quay-io-openshift-must-gather/nodes/worker-0";
    assert!(fired(node).iter().any(|id| id == "PLC-NODE@virt-launcher-web-x7k2p"));
}

#[test]
fn throughput_in_a_ticket_is_told_as_what_it_is() {
    let ticket = tempfile::NamedTempFile::new().unwrap();
    let text = "[ ID] Interval           Transfer     Bitrate         Retr\n\
                [  5]   0.00-10.04  sec  3.16 GBytes  2.70 Gbits/sec                  receiver\n";
    std::fs::write(ticket.path(), text).unwrap();
    let (code, out, _) = kvmscope(&["check", "--paste", ticket.path().to_str().unwrap()]);
    assert_eq!(code, 0);
    assert!(out.contains("iperf3 measured 2.700 Gbit/s in 1 stream over 10 s"), "{out}");
}

#[test]
fn polling_threads_of_a_plan_are_placed_beside_the_vcpus() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = scratch.path().join("chain.toml");
    let written = |datapath: &str| {
        let text = format!(
            "schema = \"kvmscope.chain/1\"\n[host]\npmd_cores = \"search\"\n[nic.a]\nmodel = \"XL710\"\n[traffic]\nsizes = [64]\n\
             [[chain]]\nvnfs = 2\ndatapath = \"{datapath}\"\n[calibration]\novs = {{ c0 = 240.0, source = \"own\" }}\n"
        );
        std::fs::write(&plan, text).unwrap();
    };
    let host = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/seed-vhost");
    let check = |options: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        let output = command.args(["check", host]).args(options).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), out + &err)
    };
    written("ovs-dpdk");
    let (code, said) = check(&["--plan", plan.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("3 polling threads are asked for"), "{said}");
    assert!(said.contains("other_config:pmd-cpu-mask=0x"), "{said}");
    let (_, said) = check(&[]);
    assert!(!said.contains("PLC-PMDCOUNT"), "{said}");
    written("sriov");
    let (code, said) = check(&["--plan", plan.to_str().unwrap()]);
    assert!(code == Some(2) && said.contains("none of its best designs has threads that poll"), "{said}");
    let (code, said) = check(&["--pmd-cores", "17"]);
    assert!(code == Some(2) && said.contains("17 polling threads, and this host has 16 CPUs"), "{said}");
}
