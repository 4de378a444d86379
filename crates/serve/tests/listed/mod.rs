//! The list of what a folder holds: recordings, packed ones, data sets, what cannot be opened and why, and what is said of each in brief.

use crate::client::{Client, HOG, fixtures};
use analysis::{Answers, Case, Given};
use base::recording::Recording;
use kvmscope_serve::Options;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn a_packed_recording_is_served_and_its_manifest_names_its_own_files_only() {
    let place = tempfile::tempdir().unwrap();
    let address = ([127, 0, 0, 1], 0).into();
    let client = Client::new(&Options {
        folder: place.path().to_owned(),
        address,
        token: None,
        upload_bytes: Some(20 << 20),
        budget: None,
    });
    std::fs::write(place.path().join("secret.txt"), "of another recording").unwrap();
    let packed = tempfile::tempdir().unwrap();
    let path = packed.path().join("hog.kvmscope");
    archive::pack(&Recording::open(&fixtures().join("nested-vmx-shadow-off-hog")).unwrap(), &path).unwrap();
    assert_eq!(client.post("/api/upload?name=hog.kvmscope", &std::fs::read(&path).unwrap()).status, 200);
    let listed = client.json("/api/recordings");
    assert_eq!(
        (&listed["recordings"][0]["id"], &listed["recordings"][0]["title"]),
        (&json!("hog.kvmscope"), &json!("hog"))
    );
    let own = Client::of_fixtures().json(&format!("{HOG}/tables/flow/chains"));
    assert_eq!(client.json("/api/recordings/hog.kvmscope/tables/flow/chains"), own);
    for part in ["../secret.txt", "/etc/passwd"] {
        let manifest = json!({ "schema": "kvmscope-recording/1", "machines": [{ "id": "L0", "level": 0, "parent": null }],
            "parts": [{ "path": part, "machine": "L0", "kind": "notes", "state": "complete" }] });
        let mut tar = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
        let (text, mut header) = (manifest.to_string(), tar::Header::new_gnu());
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, "recording.json", text.as_bytes()).unwrap();
        let bytes = tar.into_inner().unwrap().finish().unwrap();
        let reply = client.post("/api/upload?name=bad.kvmscope", &bytes);
        assert!(reply.status == 422 && reply.text().contains("outside"), "{part}: {}", reply.text());
    }
}

#[test]
fn a_paste_is_served_as_the_command_reads_it_and_each_of_its_runs_has_an_id() {
    let place = tempfile::tempdir().unwrap();
    let client = Client::new(&Options {
        folder: place.path().to_owned(),
        address: ([127, 0, 0, 1], 0).into(),
        token: None,
        upload_bytes: Some(1 << 20),
        budget: None,
    });
    let machine = "the host is slow:\n\n$ lscpu\nArchitecture: x86_64\nCPU(s): 8\nOn-line CPU(s) list: 0-7\n\
        Vendor ID: GenuineIntel\nModel name: Xeon\nThread(s) per core: 2\nCore(s) per socket: 4\nSocket(s): 1\n\
        NUMA node(s): 1\nNUMA node0 CPU(s): 0-7\n";
    let domain = std::fs::read_to_string(fixtures().join("libvirt-xml/pins.xml")).unwrap();
    let test = std::fs::read_to_string(fixtures().join("samples/cyclictest-fifo.txt")).unwrap();
    for (name, text, id) in [
        ("machine.txt", format!("{machine}\n{domain}"), "machine.txt"),
        ("twice.txt", format!("before\n\n{test}\nafter\n\n{test}"), "twice.txt~~1"),
    ] {
        let reply = client.post(&format!("/api/upload?name={name}"), text.as_bytes());
        assert_eq!((reply.status, reply.text()), (200, format!("{{\"id\":\"{id}\"}}")), "{name}");
        let scratch = tempfile::tempdir().unwrap();
        let pieces = || Ok(scratch.path().to_owned());
        let runs = intake::of_file(&place.path().join(name), Path::new(name), pieces).unwrap();
        for (run, number) in runs.into_iter().zip(1..) {
            let id = if name == id { id.to_owned() } else { format!("{name}~~{number}") };
            let answers = Answers::of(&Case::new(analysis::open(run).unwrap(), Given::default()));
            let served = client.json(&format!("/api/recordings/{id}/report"));
            let served: Vec<&str> = served["sections"]
                .as_array()
                .unwrap()
                .iter()
                .map(|section| section["summary"].as_str().unwrap())
                .collect();
            let told: Vec<&str> = answers.sections.iter().map(|section| section.summary.as_str()).collect();
            assert_eq!(served, told, "{id}");
        }
    }
    let listed = client.json("/api/recordings");
    let ids: Vec<&Value> = listed["recordings"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, ["machine.txt", "twice.txt~~1", "twice.txt~~2"]);
    for (id, status) in [("twice.txt", 400), ("twice.txt~~0", 404), ("twice.txt~~3", 404), ("none.txt~~1", 404)] {
        assert_eq!(client.get(&format!("/api/recordings/{id}/report")).status, status, "{id}");
    }
    std::fs::write(place.path().join("note.txt"), "nothing that any program printed\n").unwrap();
    let left_out = &client.json("/api/recordings")["left_out"];
    assert_eq!(left_out[0]["why"], "neither a trace, a packed recording nor text that is read");
    assert!(left_out.as_array().unwrap().len() == 1, "{left_out}");
    // What was not read is not called unreadable.
    std::fs::write(place.path().join("long.txt"), format!("{machine}\n{}", "no more of that\n".repeat(300_000)))
        .unwrap();
    let left_out = &client.json("/api/recordings")["left_out"];
    assert!(
        left_out[0]["why"].as_str().unwrap().ends_with("a list reads no text above 4.2 MB: `kvmscope FILE` does"),
        "{left_out}"
    );
}

#[test]
fn a_recording_that_cannot_be_opened_is_listed_with_its_reason() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("new")).unwrap();
    std::fs::write(place.path().join("new/recording.json"), r#"{"schema":"kvmscope-recording/9"}"#).unwrap();
    std::fs::write(place.path().join("cut.kvmscope"), b"\x28\xb5\x2f\xfd").unwrap();
    let client = Client::of(place.path());
    let listed = client.json("/api/recordings");
    let problems: Vec<(&str, &str)> = listed["recordings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["title"].as_str().unwrap(), one["problem"].as_str().unwrap()))
        .collect();
    let [(cut, why_cut), (new, why_new)] = problems[..] else { panic!("{problems:?}") };
    assert_eq!((cut, new), ("cut.kvmscope", "new"));
    assert!(why_cut.contains("not a complete tar") && why_new.contains("kvmscope-recording/9"), "{problems:?}");
}

#[test]
fn what_is_no_recording_is_named_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    std::fs::create_dir_all(at("logs/L0")).unwrap();
    for (file, text) in
        [("logs/L0/source.log", "a line"), ("logs/README.md", "# What"), ("empty.dat", ""), (".hidden", "")]
    {
        std::fs::write(at(file), text).unwrap();
    }
    assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    std::os::unix::fs::symlink("/etc", at("link")).unwrap();
    let listed = Client::of(place.path()).json("/api/recordings");
    let one = |path: &str, why: &str| json!({ "path": path, "why": why });
    assert_eq!(
        listed,
        json!({ "recordings": [], "left_out": [
            one("empty.dat", "it is empty"),
            one("fifo", "it is a FIFO, not a regular file"),
            one("link", "links are not followed"),
            one("logs", "2 files, and none is a trace or a packed recording"),
        ] })
    );
}

#[test]
fn a_data_set_is_listed_and_answers_as_fleet_report_does_also_after_more_was_added() {
    let place = tempfile::tempdir().unwrap();
    let dataset = fleet::Local::create(&place.path().join("nightly")).unwrap();
    let add = |name: &str| {
        let recording = fleet::opened(&fixtures().join(name)).unwrap().recording.clone();
        let (_, digest) = fleet::identity(&recording, &Given::default()).unwrap();
        let case = Case::new(analysis::open(recording).unwrap(), Given::default());
        dataset.add(&fleet::added(&case, &digest).unwrap(), name).unwrap();
    };
    let client = Client::of(place.path());
    let listed = client.json("/api/recordings");
    assert_eq!(listed["recordings"], json!([]), "a card of nothing helps nobody");
    assert_eq!(listed["left_out"][0]["path"], "nightly");
    assert!(listed["left_out"][0]["why"].as_str().unwrap().contains("kvmscope export"), "{listed}");
    add("nested-vmx-shadow-off-hog");
    for (recordings, more) in [(1, "nested-vmx-shadow-on"), (2, "svm-linux")] {
        let listed = client.json("/api/recordings");
        let listed = listed["recordings"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "its files are none of their own: {listed:?}");
        assert_eq!((&listed[0]["id"], &listed[0]["recordings"]), (&json!("nightly"), &json!(recordings)));
        assert_eq!((&listed[0]["problem"], &listed[0]["live"]), (&Value::Null, &json!(false)));
        let (_, answers) = fleet::answer(dataset.fleet().unwrap()).unwrap();
        let report = client.json("/api/recordings/nightly/report");
        assert_eq!(report["sections"].as_array().unwrap().len(), 1);
        assert_eq!(report["sections"][0]["summary"], json!(answers.sections[0].summary));
        let hosts = client.json("/api/recordings/nightly/tables/fleet/hosts");
        let expected = answers.sections[0].table("hosts").unwrap().rows.len();
        assert_eq!(hosts["rows"].as_array().unwrap().len(), expected);
        assert_eq!(client.json("/api/recordings/nightly/timeline")["lanes"], json!([]));
        let brief = client.json("/api/recordings/nightly/brief");
        assert!(brief["answer"].as_str().unwrap().contains(" is worst: it is on "), "{brief}");
        let all = format!("{expected} of {expected} host{}", if expected == 1 { "" } else { "s" });
        assert_eq!(brief["emulated"], json!(all), "{brief}");
        add(more);
    }
    // One of a newer layout is listed with the reason.
    std::fs::write(place.path().join("nightly").join(fleet::MANIFEST), r#"{"schema":"kvmscope-dataset/9"}"#).unwrap();
    let listed = client.json("/api/recordings");
    assert!(listed["recordings"][0]["problem"].as_str().unwrap().contains("kvmscope-dataset/9"), "{listed}");
}

#[test]
fn a_brief_has_the_length_and_the_worst_finding_of_the_report_and_opens_nothing_for_good() {
    let client = Client::of_fixtures();
    let brief = client.json(&format!("{HOG}/brief"));
    assert_eq!(client.get("/metrics").text().matches("recording=").count(), 0, "it went into the cache");
    let report = client.json(&format!("{HOG}/report"));
    let findings = report["sections"][0]["findings"].as_array().unwrap();
    let worst = findings.iter().find(|finding| finding["severity"] == "high").unwrap();
    let expected = json!({ "severity": "high", "rule": worst["rule"], "title": worst["title"] });
    assert_eq!(brief["worst"], expected);
    assert_eq!((&brief["findings"], &brief["problem"]), (&json!(findings.len()), &Value::Null));
    let span = &client.json(&format!("{HOG}/timeline"))["span"];
    assert_eq!(
        brief["duration_ns"].as_u64(),
        Some(span["to_ns"].as_u64().unwrap() - span["from_ns"].as_u64().unwrap())
    );
    let summary = report["sections"][0]["summary"].as_str().unwrap();
    assert!(summary.starts_with(brief["answer"].as_str().unwrap()), "{brief}");
    assert_eq!(brief["time"], report["sections"][0]["figures"][0]["time"]);
    assert_eq!(client.json(&format!("{HOG}/brief")), brief);
    assert_eq!(client.get("/api/recordings/none/brief").status, 404);
}

#[test]
fn a_brief_follows_the_files_and_has_the_reason_where_no_question_has_an_answer() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("trace.dat");
    let client = Client::of(place.path());
    std::fs::copy(fixtures().join("nested-vmx-shadow-off-hog/L0/trace.dat"), &file).unwrap();
    let before = client.json("/api/recordings/trace.dat/brief");
    assert_eq!(before["worst"]["rule"], "FLW-PREEMPT", "{before}");
    std::fs::write(&file, b"\x17\x08\x44tracing7\0").unwrap();
    let after = client.json("/api/recordings/trace.dat/brief");
    assert!(after["problem"].is_string() && after["worst"].is_null() && after["duration_ns"].is_null(), "{after}");
    // A trace of which nothing can be said is no longer than the limit; a hole makes it longer than that.
    std::fs::File::options().write(true).open(&file).unwrap().set_len(65 << 20).unwrap();
    assert_eq!(client.json("/api/recordings/trace.dat/brief"), Value::Null);
    // A packed one may unpack to a hundred times its size.
    let packed = place.path().join("large.kvmscope");
    std::fs::write(&packed, b"\x28\xb5\x2f\xfd").unwrap();
    assert!(client.json("/api/recordings/large.kvmscope/brief")["problem"].is_string());
    std::fs::File::options().write(true).open(&packed).unwrap().set_len(5 << 20).unwrap();
    assert_eq!(client.json("/api/recordings/large.kvmscope/brief"), Value::Null);
}
