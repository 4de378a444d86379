//! `bench channel` between two emulated guests: does every frame arrive as it was sent, and is nothing left behind? Never a rate.
//!
//! Without QEMU or without Debian's kernel there is nothing to boot, and the tests say so.

use labs::machine::default_cache;
use labs::machine::packages::{self, Flavour};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testing::{Workspace, missing, send, wait_for};

/// A cache of our own, with the kernel of the user's own cache.
struct Place {
    cache: Workspace,
}

impl Place {
    /// Nothing, and a reason on stdout, where guests cannot boot.
    fn new() -> Option<Place> {
        let cache = Workspace::alone();
        let skipped = |why: String| println!("skipped: guests with ivshmem: {why}");
        if let Some(why) = missing(&[("qemu-system-x86_64", "qemu-system-x86")]) {
            skipped(why);
            return None;
        }
        let kernels = default_cache(|name| std::env::var_os(name)).unwrap_or_else(|| cache.path().join("kernels"));
        match packages::kernel(&kernels, Flavour::Stock, &mut |_| {}) {
            Ok(kernel) => {
                let name = format!("linux-image-{}", kernel.version);
                std::os::unix::fs::symlink(kernels.join(&name), cache.path().join(&name)).unwrap();
                Some(Place { cache })
            }
            Err(error) => {
                skipped(format!("there is no kernel to boot: {error}"));
                None
            }
        }
    }

    fn bench(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        // One that is killed would leave its recorder to `kvmscope undo`.
        command.args([
            "bench",
            "channel",
            "--same-core",
            "--no-record",
            "--json",
            "--no-progress",
            "--launches",
            "1",
            "--cache",
        ]);
        command.arg(self.cache.path()).args(arguments.split_whitespace());
        command
    }

    /// How many emulators run there.
    fn emulators(&self) -> usize {
        let entries = std::fs::read_dir("/proc").unwrap();
        let places = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path().join("cwd")).ok());
        places.filter(|place| place.starts_with(self.cache.path())).count()
    }

    /// Whether neither emulators nor their files are left.
    fn is_clean(&self) -> bool {
        let mut names = std::fs::read_dir(self.cache.path()).unwrap().map(|entry| entry.unwrap().file_name());
        self.emulators() == 0 && names.all(|name| name.to_string_lossy().starts_with("linux-image-"))
    }
}

/// The section of an answer, and the rows of its rates as objects.
fn answered(json: &[u8]) -> (Value, Vec<Value>) {
    let document: Value = serde_json::from_slice(json).unwrap();
    let sections = document["sections"].as_array().unwrap();
    let section = sections.iter().find(|section| section["id"] == "channel").unwrap().clone();
    let table = &section["tables"]["rates"];
    let names = |column: &Value| column["name"].as_str().unwrap().to_owned();
    let names: Vec<String> = table["columns"].as_array().unwrap().iter().map(names).collect();
    let row = |cells: &Value| names.iter().cloned().zip(cells.as_array().unwrap().iter().cloned()).collect();
    let rows = table["rows"].as_array().unwrap().iter().map(|cells| Value::Object(row(cells))).collect();
    (section, rows)
}

fn is_said(section: &Value, words: &str) -> bool {
    section["unknown"].as_array().unwrap().iter().any(|one| one["text"].as_str().unwrap().contains(words))
}

#[test]
#[ignore = "make channel"]
fn every_frame_arrives_in_the_other_guest_and_doorbells_wake_it() {
    let Some(place) = Place::new() else { return };
    let wanted = "--path ivshmem-plain,ivshmem-doorbell --window none --policy poll,kick --batch 8 --seconds 0.2";
    let output = place.bench(wanted).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let (section, rows) = answered(&output.stdout);
    let ways: Vec<_> =
        rows.iter().map(|row| (row["path"].as_str().unwrap(), row["policy"].as_str().unwrap())).collect();
    let expected = [("ivshmem-doorbell", "kick"), ("ivshmem-doorbell", "poll"), ("ivshmem-plain", "poll")];
    assert_eq!(ways, expected, "{}", section["unknown"]);
    for row in &rows {
        assert_eq!(row["emulated"], true, "{row}");
        for wrong in ["lost", "duplicated", "reordered", "torn"] {
            assert_eq!(row[wrong], 0, "{row}");
        }
        assert!(row["raw_mpps"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert!(is_said(&section, "ivshmem-plain has no interrupts"), "{}", section["unknown"]);
    assert!(section["about"].to_string().contains("EMULATED"), "{}", section["about"]);
    assert!(place.is_clean());
}

#[test]
#[ignore = "make channel"]
fn a_bench_that_ends_early_takes_its_guests_with_it() {
    let Some(place) = Place::new() else { return };
    for (signal, status) in [("-INT", Some(130)), ("-KILL", None)] {
        let mut bench = place.bench("--path ivshmem-plain --window none --seconds 5");
        let mut bench: Child = bench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("both guests boot", || place.emulators() == 2);
        send(&bench, signal);
        assert_eq!(bench.wait().unwrap().code(), status, "{signal}");
        wait_for("nothing is left", || place.is_clean());
    }
}

#[test]
#[ignore = "make channel"]
fn without_an_emulator_the_rest_is_measured() {
    let cache = Workspace::alone();
    let place = |path: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        command.args(["bench", "channel", "--same-core", "--json", "--launches", "1", "--seconds", "0.02"]);
        command.args(["--path", "ring,ivshmem-plain", "--window", "none", "--no-progress", "--cache"]).arg(path);
        command
    };
    let output = place(cache.path()).env("PATH", "/nonexistent").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (section, rows) = answered(&output.stdout);
    let measured: Vec<_> = rows.iter().filter(|row| row["window_kind"] == "measured").collect();
    assert!(measured.len() == 4 && measured.iter().all(|row| row["path"] == "ring" && row["emulated"] == false));
    assert!(is_said(&section, "Debian package qemu-system-x86"), "{}", section["unknown"]);
}
