//! `kvmscope export` from end to end: files are whole or not there, and what is there is kept.

use crate::program::{fills_a_file, fixture, names};
use assert_cmd::Command;
use std::path::Path;
use std::process::Output;

/// Runs `kvmscope export` on a bundled recording in `directory`.
fn export(directory: &Path, arguments: &[&str]) -> Output {
    let toy = fixture("nested-svm-toy");
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    command.current_dir(directory).arg("export").arg(toy).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_file_is_written_said_and_not_replaced_unasked() {
    let place = tempfile::tempdir().unwrap();
    let first = export(place.path(), &["--perfetto", "x.pftrace"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let length = std::fs::metadata(place.path().join("x.pftrace")).unwrap().len();
    assert!(length > 10_000);
    let said = text(&first.stdout);
    assert!(said.starts_with("x.pftrace: ") && said.contains("slices of"), "{said}");
    let again = export(place.path(), &["--perfetto", "x.pftrace", "--most-slices", "10"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--force"));
    assert_eq!(std::fs::metadata(place.path().join("x.pftrace")).unwrap().len(), length);
    let forced = export(place.path(), &["--perfetto", "x.pftrace", "--most-slices", "10", "--force"]);
    assert!(text(&forced.stdout).contains("more after"), "{}", text(&forced.stdout));
    assert!(std::fs::metadata(place.path().join("x.pftrace")).unwrap().len() < length);
    assert_eq!(names(place.path()), ["x.pftrace"]);
}

#[test]
fn stdout_is_the_file_alone() {
    let place = tempfile::tempdir().unwrap();
    let piped = export(place.path(), &["--perfetto", "-"]);
    assert!(export(place.path(), &["--perfetto", "x"]).status.success());
    assert!(piped.stdout == std::fs::read(place.path().join("x")).unwrap());
}

#[test]
fn stacks_and_time_lines_are_written_in_one_go() {
    let place = tempfile::tempdir().unwrap();
    let both = export(place.path(), &["--folded", "-", "--speedscope", "x.json", "--from", "0.5", "--vcpu", "0"]);
    assert!(both.status.success(), "{}", text(&both.stderr));
    let folded = text(&both.stdout);
    assert!(folded.lines().any(|line| line.contains(";vCPU_0;L2;L2_guest ")), "{folded}");
    assert!(folded.lines().all(|line| line.contains("emulated_by_QEMU_TCG")));
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(place.path().join("x.json")).unwrap()).unwrap();
    assert_eq!(file["profiles"].as_array().unwrap().len(), 2);
    let none = export(place.path(), &["--folded", "y", "--weight", "samples"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("-e cycles"), "{}", text(&none.stderr));
    assert_eq!(export(place.path(), &["--folded", "-", "--perfetto", "-"]).status.code(), Some(2));
    assert_eq!(names(place.path()), ["x.json"]);
}

#[test]
fn tables_of_an_export_are_those_of_a_report() {
    // With traces, snapshots and benches: questions add to their answers what another's facts tell.
    for name in ["nested-vmx-shadow-off-hog", "two-tracers", "hosts-intel", "bench-vmx-shadow-off"] {
        let place = tempfile::tempdir().unwrap();
        for (command, directory) in [("report", "report"), ("export", "export")] {
            let mut program = Command::cargo_bin("kvmscope").unwrap();
            program
                .current_dir(place.path())
                .arg(command)
                .arg(fixture(name))
                .args(["--csv", directory])
                .assert()
                .success();
        }
        let tables = names(&place.path().join("report"));
        assert_eq!(tables, names(&place.path().join("export")), "{name}");
        for table in tables {
            let read = |directory: &str| std::fs::read(place.path().join(directory).join(&table)).unwrap();
            assert!(read("report") == read("export"), "{name}: {table}");
        }
    }
    let place = tempfile::tempdir().unwrap();
    assert!(export(place.path(), &["--csv", "tables"]).status.success());
    let mut report = Command::cargo_bin("kvmscope").unwrap();
    let toy = fixture("nested-svm-toy");
    report.current_dir(place.path()).arg("report").arg(toy).args(["--csv", "report"]).assert().success();
    let tables = names(&place.path().join("tables"));
    assert_eq!(tables, names(&place.path().join("report")));
    for table in tables {
        let read = |directory: &str| std::fs::read(place.path().join(directory).join(&table)).unwrap();
        assert!(read("tables") == read("report"), "{table}");
    }
    std::fs::write(place.path().join("tables/mine"), "mine").unwrap();
    assert_eq!(export(place.path(), &["--csv", "tables"]).status.code(), Some(2));
    assert!(export(place.path(), &["--csv", "tables", "--force"]).status.success());
    assert_eq!(std::fs::read(place.path().join("tables/mine")).unwrap(), b"mine");
    assert_eq!(names(place.path()), ["report", "tables"]);
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_is_read() {
    let place = tempfile::tempdir().unwrap();
    for (arguments, word) in [
        (vec!["--perfetto", "/dev/null", "--force"], "regular file"),
        (vec!["--perfetto", "x", "--from", "2", "--to", "1"], "--from"),
        (vec![], "--perfetto"),
    ] {
        let refused = export(place.path(), &arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(word), "{}", text(&refused.stderr));
    }
    let nobody = export(place.path(), &["--perfetto", "x", "--vm", "nobody"]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(names(place.path()).is_empty());
    assert!(export(place.path(), &["--perfetto", "made/on/the/way/x"]).status.success());
    assert_eq!(names(&place.path().join("made/on/the/way")), ["x"]);
}

#[test]
fn a_full_disk_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let disk = place.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return println!("skipped: full disk: no tmpfs can be mounted here");
    }
    let file = export(place.path(), &["--perfetto", "disk/x"]);
    let directory = export(place.path(), &["--csv", "disk/tables"]);
    let left = names(&disk);
    assert!(std::process::Command::new("umount").arg(&disk).status().unwrap().success());
    assert_eq!(file.status.code(), Some(1));
    assert!(text(&file.stderr).contains("No space left"), "{}", text(&file.stderr));
    assert!(directory.status.success() || left.is_empty(), "{}", text(&directory.stderr));
    assert!(!left.iter().any(|name| name.starts_with(".") || name == "x"), "{left:?}");
}

#[test]
fn ctrl_c_in_the_midst_of_a_file_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let interrupted = (0..20).any(|_| {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kvmscope"))
            .current_dir(place.path())
            .args(["export", fixture("svm-linux").to_str().unwrap(), "--perfetto", "x", "--force"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while !fills_a_file(child.id(), place.path()) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let told = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).output();
        assert!(told.is_ok());
        // One that was done before the signal came proves nothing.
        let status = child.wait().unwrap();
        assert!(!names(place.path()).iter().any(|name| name.starts_with('.')), "{:?}", names(place.path()));
        status.code() == Some(130) && !place.path().join("x").exists()
    });
    assert!(interrupted);
}

#[test]
#[cfg(not(feature = "full"))]
fn the_slim_build_says_which_one_has_columns() {
    let place = tempfile::tempdir().unwrap();
    for format in ["--parquet", "--arrow"] {
        let refused = export(place.path(), &[format, "columns"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("make full"), "{}", text(&refused.stderr));
    }
    assert!(names(place.path()).is_empty());
}

#[test]
#[cfg(feature = "full")]
fn every_table_becomes_a_file_of_columns() {
    let place = tempfile::tempdir().unwrap();
    let written = export(place.path(), &["--parquet", "p", "--arrow", "a", "--csv", "c"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let stems = |directory: &str, extension: &str| -> Vec<String> {
        let names = names(&place.path().join(directory)).into_iter();
        names.map(|name| name.strip_suffix(extension).unwrap().to_owned()).collect()
    };
    assert_eq!(stems("p", ".parquet"), stems("c", ".csv"));
    assert_eq!(stems("a", ".arrow"), stems("c", ".csv"));
}

#[test]
fn each_of_several_recordings_gets_files_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let (toy, hog) = (fixture("nested-svm-toy"), fixture("nested-vmx-shadow-off-hog"));
    let several = |paths: &[&Path], arguments: &[&str]| {
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        command.current_dir(place.path()).arg("export").args(paths).args(arguments).output().unwrap()
    };
    let one_name = several(&[&toy, &hog], &["--perfetto", "x.pftrace"]);
    assert_eq!(one_name.status.code(), Some(2));
    assert!(text(&one_name.stderr).contains("{}.pftrace"), "{}", text(&one_name.stderr));
    assert_eq!(several(&[&toy, &hog], &["--folded", "-"]).status.code(), Some(2));
    let missing = place.path().join("missing");
    let arguments = ["--folded", "{}.txt", "--csv", "{}-tables"];
    let written = several(&[&toy, &missing, &hog, &toy], &arguments);
    assert!(written.status.success(), "{}", text(&written.stderr));
    assert!(text(&written.stderr).contains("missing"), "{}", text(&written.stderr));
    let recordings = ["nested-svm-toy", "nested-svm-toy-2", "nested-vmx-shadow-off-hog"];
    let mut expected: Vec<String> =
        recordings.iter().flat_map(|name| [format!("{name}.txt"), format!("{name}-tables")]).collect();
    expected.sort();
    assert_eq!(names(place.path()), expected);
    let read = |name: &str| std::fs::read(place.path().join(name)).unwrap();
    assert!(read("nested-svm-toy.txt") == read("nested-svm-toy-2.txt"));
    let table = |name: &str| String::from_utf8(read(&format!("{name}-tables/flow.exits.csv"))).unwrap();
    assert!(
        table("nested-svm-toy").lines().next().unwrap().ends_with(",recording"),
        "rows of several tell whose they are"
    );
    for (name, path) in [("nested-svm-toy", &toy), ("nested-vmx-shadow-off-hog", &hog)] {
        let path = format!(",{}", path.display());
        assert!(
            table(name).lines().count() > 2 && table(name).lines().skip(1).all(|row| row.ends_with(&path)),
            "{name}"
        );
    }
    assert!(export(place.path(), &["--folded", "{}-alone.txt"]).status.success());
    assert!(read("nested-svm-toy.txt") == read("nested-svm-toy-alone.txt"));
    assert_eq!(several(&[&toy, &hog], &arguments).status.code(), Some(2), "what is there is kept");
    assert_eq!(several(&[&missing], &["--folded", "y"]).status.code(), Some(1));
}
