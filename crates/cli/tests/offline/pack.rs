//! `kvmscope pack`, and evidence that comes as one file, as their users meet them.

use crate::program::{ended, fills_a_file, fixture, names};
use assert_cmd::Command;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Exit status, stdout and stderr of the program, run in `place`, whose directory `tmp` it has for temporary files.
fn kvmscope(place: &Path, arguments: &[&str]) -> (i32, String, String) {
    fs::create_dir_all(place.join("tmp")).unwrap();
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    let output = command.current_dir(place).env("TMPDIR", place.join("tmp")).args(arguments).output().unwrap();
    assert_eq!(fs::read_dir(place.join("tmp")).unwrap().count(), 0, "{arguments:?} left temporary files");
    ended(output)
}

fn answer(place: &Path, arguments: &[&str]) -> String {
    let (status, out, error) = kvmscope(place, arguments);
    assert_eq!(status, 0, "{arguments:?}: {error}");
    out
}

/// A tar archive of a directory, called `top` in it.
fn tar_of(directory: &Path, top: &str, out: impl Write) {
    let mut tar = tar::Builder::new(out);
    tar.append_dir_all(top, directory).unwrap();
    tar.into_inner().unwrap().flush().unwrap();
}

#[test]
fn a_packed_recording_answers_as_the_directory_does() {
    let place = tempfile::tempdir().unwrap();
    let name = "nested-vmx-shadow-on";
    let directory = fixture(name);
    let directory = directory.to_str().unwrap();
    let said = answer(place.path(), &["pack", directory]);
    let packed = format!("{name}.kvmscope");
    assert!(said.starts_with(&format!("{packed}: ")), "{said}");
    for arguments in [&["report"][..], &["report", "--json"], &["export", "--folded", "-"]] {
        let of = |path: &str| answer(place.path(), &[arguments, &[path]].concat()).replace(&packed, directory);
        assert_eq!(of(&packed), of(directory), "{arguments:?}");
    }
    let host = fixture("hosts-intel");
    let host = host.to_str().unwrap();
    answer(place.path(), &["pack", host]);
    for arguments in [&["check"][..], &["check", "--json"]] {
        let of =
            |path: &str| answer(place.path(), &[arguments, &[path]].concat()).replace("hosts-intel.kvmscope", host);
        assert_eq!(of("hosts-intel.kvmscope"), of(host), "{arguments:?}");
    }
    let compared = answer(place.path(), &["compare", &packed, directory]).replace(&packed, directory);
    assert_eq!(compared, answer(place.path(), &["compare", directory, directory]));
    answer(place.path(), &["cut", &packed, "--from", "0", "--to", "0.1", "-o", "short"]);
    assert!(place.path().join("short/recording.json").is_file());
    let again = fs::read(place.path().join(&packed)).unwrap();
    let (status, _, error) = kvmscope(place.path(), &["pack", directory]);
    assert!(status == 1 && error.contains("already exists"), "{error}");
    answer(place.path(), &["pack", directory, "-o", "b.kvmscope"]);
    assert_eq!(fs::read(place.path().join("b.kvmscope")).unwrap(), again, "the same recording gives the same bytes");
    fs::write(place.path().join("cut.kvmscope"), &again[..again.len() / 2]).unwrap();
    let (status, _, error) = kvmscope(place.path(), &["report", "cut.kvmscope"]);
    assert!(status == 1 && error.contains("not a complete tar archive"), "{error}");
}

#[test]
fn a_bare_trace_becomes_a_recording() {
    let place = tempfile::tempdir().unwrap();
    fs::copy(fixture("nested-svm-toy/L0/trace.dat"), place.path().join("bare.dat")).unwrap();
    answer(place.path(), &["pack", "bare.dat", "-o", "bare.kvmscope"]);
    let tables = |path: &str| {
        let report: serde_json::Value =
            serde_json::from_str(&answer(place.path(), &["report", "--json", path])).unwrap();
        let tables = &report["sections"][0]["tables"];
        ["exits", "chains", "vcpus"].map(|name| tables[name].clone())
    };
    assert_eq!(tables("bare.kvmscope"), tables("bare.dat"));
}

#[test]
fn a_sosreport_is_opened_as_it_was_sent() {
    let place = tempfile::tempdir().unwrap();
    let directory = fixture("hosts-sosreport");
    let file = |name: &str| File::create(place.path().join(name)).unwrap();
    tar_of(&directory, "sosreport-host", flate2::write::GzEncoder::new(file("a.tar.gz"), flate2::Compression::fast()));
    let mut xz = Vec::new();
    tar_of(&directory, "sosreport-host", &mut xz);
    fs::write(place.path().join("plain.tar"), &xz).unwrap();
    let packed = std::process::Command::new("xz").args(["-k", "plain.tar"]).current_dir(place.path()).status();
    let mut archives = vec!["a.tar.gz", "plain.tar"];
    match packed {
        Ok(status) if status.success() => archives.push("plain.tar.xz"),
        _ => println!("skipped: sosreport.tar.xz: xz is not installed"),
    }
    let tables = |arguments: &[&str]| {
        let text = answer(place.path(), &[arguments, &["--json"]].concat());
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let sections = report["sections"].as_array().unwrap();
        let placement = sections.iter().find(|section| section["id"] == "placement").unwrap();
        placement["tables"]["threads"]["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row.as_array().unwrap()[2..].to_owned())
            .collect::<Vec<_>>()
    };
    let own = tables(&["check", "--root", directory.to_str().unwrap()]);
    for archive in archives {
        assert_eq!(tables(&["check", "--root", archive]), own, "{archive}");
        assert_eq!(tables(&["check", archive]), own, "{archive}");
    }
    let (status, out, error) = kvmscope(place.path(), &["report", "a.tar.gz"]);
    assert!(status == 0 && out.contains("VM"), "{error}");
    let (status, out, error) = kvmscope(place.path(), &["report", directory.to_str().unwrap()]);
    assert!(status == 0 && out.contains("VM"), "{error}");
}

#[test]
fn a_must_gather_is_found_from_its_top() {
    let place = tempfile::tempdir().unwrap();
    let directory = fixture("hosts-must-gather");
    let own = answer(place.path(), &["check", directory.to_str().unwrap()]);
    assert!(own.contains("worker-0") && own.contains("worker-1"), "{own}");
    tar_of(
        &directory.join("must-gather.local.1"),
        "must-gather.local.1",
        File::create(place.path().join("m.tar")).unwrap(),
    );
    let packed = answer(place.path(), &["check", "--root", "m.tar"]);
    let known = |text: &str| text.split_once("NOT KNOWN").map(|(known, _)| known.to_owned());
    assert_eq!(known(&packed), known(&own));
    let on_one_line = packed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(on_one_line.contains("worker-1/sysinfo.tgz is not a complete"), "{packed}");
}

#[test]
fn pasted_text_comes_from_stdin_or_is_said_to_be_missing() {
    let place = tempfile::tempdir().unwrap();
    let (status, _, error) = kvmscope(place.path(), &["check", "--paste", "nosuch"]);
    assert!(status == 1 && error.contains("nosuch: No such file"), "{error}");
    let lscpu = "CPU(s): 16\nOn-line CPU(s) list: 0-15\nThread(s) per core: 2\nNUMA node0 CPU(s): 0-3,8-11\n";
    let pins = "$ virsh vcpupin web\nVCPU: CPU Affinity\n 0: 0\n 1: 1\n\nWhy is it slow?\n";
    let run = |text: String| {
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        let output = command.args(["check", "--paste", "-"]).write_stdin(text).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let out = run(format!("{lscpu}\n{pins}"));
    assert!(out.contains("16 CPUs on 1 node, cores unknown"), "{out}");
    assert!(out.contains("1 line is of no program that is read, such as line 11 `Why is it slow?`"), "{out}");
    let out = run(pins.to_owned());
    assert!(out.contains("CPUs unknown") && !out.contains("0 CPUs") && out.contains("lscpu -e"), "{out}");
}

/// The paths in an answer that lie in the directory for temporary files.
fn leaked(place: &Path, text: &str) -> Option<String> {
    let private = place.join("tmp");
    let at = text.find(private.to_str().unwrap())?;
    Some(text[at..].chars().take(120).collect())
}

#[test]
fn what_was_packed_is_named_as_the_user_named_it() {
    let place = tempfile::tempdir().unwrap();
    let recording = fixture("svm-linux");
    answer(place.path(), &["pack", recording.to_str().unwrap(), "-o", "web.kvmscope"]);
    tar_of(&fixture("hosts-sosreport"), "sos-1", File::create(place.path().join("sos.tar")).unwrap());
    for arguments in [["report", "web.kvmscope"], ["check", "sos.tar"], ["report", "sos.tar"]] {
        for form in [None, Some("--json")] {
            let text = answer(place.path(), &[&arguments[..], form.as_slice()].concat());
            assert_eq!(leaked(place.path(), &text), None, "{arguments:?}");
        }
    }
    let text = answer(place.path(), &["report", "web.kvmscope", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["recording"]["path"], "web.kvmscope");
    assert!(text.contains("web.kvmscope/L0/trace.dat"));
    let run = |arguments: &[&str], file: &str| {
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        command.args(arguments).env("TMPDIR", place.path().join("tmp"));
        let output = command.write_stdin(fs::read(place.path().join(file)).unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for (arguments, file) in [
        (&["report", "-", "--json"][..], "web.kvmscope"),
        (&["check", "-", "--json"], "sos.tar"),
        (&["check", "--root", "-", "--json"], "sos.tar"),
    ] {
        let text = run(arguments, file);
        assert_eq!(leaked(place.path(), &text), None, "{arguments:?}");
    }
    assert!(run(&["report", "-", "--json"], "web.kvmscope").contains("\"-/L0/trace.dat\""));
}

#[test]
fn an_error_names_what_the_user_gave_and_no_private_directory() {
    let place = tempfile::tempdir().unwrap();
    let broken = place.path().join("broken");
    fs::create_dir_all(broken.join("L0")).unwrap();
    fs::write(broken.join("L0/trace.dat"), "no trace at all").unwrap();
    let manifest = r#"{"schema": "kvmscope-recording/1",
        "machines": [{"id": "L0", "level": 0, "parent": null, "name": null}],
        "parts": [{"path": "L0/trace.dat", "machine": "L0", "kind": "trace.dat", "clock": null, "state": "complete"}]}"#;
    fs::write(broken.join("recording.json"), manifest).unwrap();
    answer(place.path(), &["pack", "broken"]);
    tar_of(&broken, "inside", File::create(place.path().join("sent.tar")).unwrap());
    for given in ["broken.kvmscope", "sent.tar"] {
        for command in [
            &["report"][..],
            &["export", "--folded", "-"],
            &["cut", "--from", "0", "--to", "1", "-o", "cut"],
            &["check"],
            &["compare", "broken"],
        ] {
            let (status, out, error) = kvmscope(place.path(), &[command, &[given]].concat());
            assert_eq!((status, out.as_str()), (1, ""), "{command:?} {given}: {error}");
            let named = if command[0] == "compare" { "broken" } else { given };
            assert!(error.starts_with(&format!("kvmscope: {named}/")), "{command:?} {given}: {error}");
            assert_eq!(leaked(place.path(), &error), None, "{command:?} {given}");
        }
    }
    for command in [&["report"][..], &["cut", "--from", "0", "--to", "1", "-o", "cut"]] {
        let mut program = Command::cargo_bin("kvmscope").unwrap();
        let program = program.current_dir(place.path()).args(command).arg("-");
        for given in [&b"no trace at all"[..], b"\x28\xb5\x2f\xfd no archive either"] {
            let error = String::from_utf8(program.write_stdin(given).output().unwrap().stderr).unwrap();
            assert!(error.starts_with("kvmscope: -"), "{command:?}: {error}");
        }
    }
}

#[test]
fn a_packed_recording_is_taken_wherever_one_is() {
    let place = tempfile::tempdir().unwrap();
    for (name, packed) in [("bench-svm", "bench.kvmscope"), ("seed-vhost", "ticket.kvmscope")] {
        answer(place.path(), &["pack", fixture(name).to_str().unwrap(), "-o", packed]);
    }
    let rates = ["--arch", "svm", "--ghz", "2.4", "--rate", "CPUID=10"];
    let plan = |bench: &str| answer(place.path(), &[&["plan", "nested", "--bench", bench], &rates[..]].concat());
    assert_eq!(plan("bench.kvmscope"), plan(fixture("bench-svm").to_str().unwrap()));
    let apply = |from: &str| {
        let (status, out, error) = kvmscope(place.path(), &["apply", "PLC-PROPOSAL", "--dry-run", "--from", from]);
        (status, out, error)
    };
    let own = apply(fixture("seed-vhost").to_str().unwrap());
    assert!(own.1.starts_with("PLC-PROPOSAL: placement 1"), "{own:?}");
    assert_eq!(apply("ticket.kvmscope"), own);
    let report = answer(place.path(), &["check", "ticket.kvmscope", "--json"]);
    for stdin in [report.into_bytes(), fs::read(place.path().join("ticket.kvmscope")).unwrap()] {
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        let output = command.args(["apply", "PLC-PROPOSAL", "--dry-run", "--from", "-"]).write_stdin(stdin);
        let output = output.output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), own.1);
    }
}

#[test]
fn a_snapshot_becomes_one_file_at_once() {
    let place = tempfile::tempdir().unwrap();
    let tree = fixture("hosts-intel/L0/host/0");
    let snapshot =
        |rest: &[&str]| kvmscope(place.path(), &[&["snapshot", "--root", tree.to_str().unwrap()], rest].concat());
    for (words, file) in [(&["-o", "one.kvmscope"][..], "one.kvmscope"), (&["-o", "two", "--pack"], "two.kvmscope")] {
        let (status, said, error) = snapshot(words);
        assert!(status == 0 && said.starts_with(&format!("{file}: ")), "{said}{error}");
        let mut names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| name != "tmp");
        assert_eq!(names, [file], "the directory is gone");
        assert!(answer(place.path(), &["check", file]).contains("L0"));
        let (status, _, error) = snapshot(words);
        assert!(status == 2 && error.contains(file) && error.contains("--force"), "{error}");
        assert_eq!(snapshot(&[words, &["--force"]].concat()).0, 0);
        fs::remove_file(place.path().join(file)).unwrap();
    }
}

#[test]
fn a_must_gathers_nodes_are_unpacked_along_with_it() {
    let place = tempfile::tempdir().unwrap();
    let node = place.path().join("must-gather.local.1/image/nodes/worker-0");
    fs::create_dir_all(&node).unwrap();
    let worker = fixture("hosts-must-gather/must-gather.local.1/quay-io-openshift-must-gather/nodes/worker-0");
    for name in ["cpu_affinities.json", "lscpu"] {
        fs::copy(worker.join(name), node.join(name)).unwrap();
    }
    let inner =
        flate2::write::GzEncoder::new(File::create(node.join("sysinfo.tgz")).unwrap(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(inner);
    let mut header = tar::Header::new_gnu();
    let release = b"5.14.0-427.el9.x86_64\n";
    header.set_size(release.len() as u64);
    tar.append_data(&mut header, "proc/sys/kernel/osrelease", &release[..]).unwrap();
    tar.into_inner().unwrap().finish().unwrap();
    let gathered = place.path().join("must-gather.local.1");
    tar_of(&gathered, "must-gather.local.1", File::create(place.path().join("m.tar")).unwrap());
    let packed = answer(place.path(), &["check", "m.tar"]);
    assert!(packed.contains("5.14.0-427.el9.x86_64") && !packed.contains("is packed"), "{packed}");
    let directory = answer(place.path(), &["check", gathered.to_str().unwrap()]);
    let how = format!("tar -xf {} -C {}", node.join("sysinfo.tgz").display(), node.display());
    let lines: String = directory.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(lines.contains(&how), "{how}: {directory}");
}

/// Nothing lies under the final name, and what a killed program began does not outlive the next one that writes there.
#[test]
fn a_killed_pack_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let trace = |name: &str| {
        fs::create_dir_all(place.path().join(name).join("L0")).unwrap();
        File::create(place.path().join(name).join("L0/trace.dat")).unwrap()
    };
    // Takes longer to pack than to be killed, and no room on disk.
    trace("web").set_len(64 << 30).unwrap();
    trace("small").write_all(b"few").unwrap();
    let mut pack = std::process::Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    let mut pack = pack.args(["pack", "web", "-o", "ticket.kvmscope"]).current_dir(place.path()).spawn().unwrap();
    while !fills_a_file(pack.id(), place.path()) {
        assert!(pack.try_wait().unwrap().is_none(), "it ended before it was killed");
    }
    pack.kill().unwrap();
    pack.wait().unwrap();
    assert!(!place.path().join("ticket.kvmscope").exists());
    answer(place.path(), &["pack", "small"]);
    assert_eq!(names(place.path()), ["small", "small.kvmscope", "tmp", "web"]);
}
