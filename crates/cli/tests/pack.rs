//! `kvmscope pack`, and evidence that comes as one file, as their users meet them.

use assert_cmd::Command;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

/// Exit status, stdout and stderr of the program, run in `place`, whose directory `tmp` it has for temporary files.
fn kvmscope(place: &Path, arguments: &[&str]) -> (i32, String, String) {
    fs::create_dir_all(place.join("tmp")).unwrap();
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    let output = command.current_dir(place).env("TMPDIR", place.join("tmp")).args(arguments).output().unwrap();
    assert_eq!(fs::read_dir(place.join("tmp")).unwrap().count(), 0, "{arguments:?} left temporary files");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// What a command prints that has an answer.
fn answer(place: &Path, arguments: &[&str]) -> String {
    let (status, out, error) = kvmscope(place, arguments);
    assert_eq!(status, 0, "{arguments:?}: {error}");
    out
}

/// An answer in which the private directory that a recording was unpacked into is called `directory`.
fn unpacked_as(text: &str, directory: &str) -> String {
    let mut parts = text.split("kvmscope-unpacked-");
    let mut same = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `/tmp/.tmpX/tmp/` before it, and the rest of its name and the recording's behind it.
        let begin = same.rfind(['"', ' ', '\n']).map_or(0, |at| at + 1);
        same.truncate(begin);
        let name = directory.rsplit('/').next().unwrap_or_default();
        let rest = part.split_once('/').map_or("", |(_, rest)| rest);
        same += directory;
        same += rest.strip_prefix(name).unwrap_or(rest);
    }
    same
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
        let of = |path: &str| unpacked_as(&answer(place.path(), &[arguments, &[path]].concat()), directory);
        assert_eq!(of(&packed), of(directory), "{arguments:?}");
    }
    let host = fixture("hosts-intel");
    let host = host.to_str().unwrap();
    answer(place.path(), &["pack", host]);
    for arguments in [&["check"][..], &["check", "--json"]] {
        let of = |path: &str| unpacked_as(&answer(place.path(), &[arguments, &[path]].concat()), host);
        assert_eq!(of("hosts-intel.kvmscope"), of(host), "{arguments:?}");
    }
    let compared = unpacked_as(&answer(place.path(), &["compare", &packed, directory]), directory);
    assert_eq!(compared, answer(place.path(), &["compare", directory, directory]));
    answer(place.path(), &["cut", &packed, "--from", "0", "--to", "0.1", "-o", "short"]);
    assert!(place.path().join("short/recording.json").is_file());
    let again = fs::read(place.path().join(&packed)).unwrap();
    let (status, _, error) = kvmscope(place.path(), &["pack", directory]);
    assert!(status == 1 && error.contains("already there"), "{error}");
    answer(place.path(), &["pack", directory, "-o", "b.kvmscope"]);
    assert_eq!(fs::read(place.path().join("b.kvmscope")).unwrap(), again, "the same recording gives the same bytes");
    fs::write(place.path().join("cut.kvmscope"), &again[..again.len() / 2]).unwrap();
    let (status, _, error) = kvmscope(place.path(), &["report", "cut.kvmscope"]);
    assert!(status == 1 && error.contains("no whole tar archive"), "{error}");
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
    let (status, _, error) = kvmscope(place.path(), &["report", directory.to_str().unwrap()]);
    assert!(status == 1 && error.contains("kvmscope check --root"), "{error}");
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
    assert_eq!(answer(place.path(), &["check", "--root", "m.tar"]), own);
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
    assert!(out.contains("1 line not understood, the first: `Why is it slow?`"), "{out}");
    let out = run(pins.to_owned());
    assert!(out.contains("CPUs unknown") && !out.contains("0 CPUs") && out.contains("lscpu -e"), "{out}");
}
