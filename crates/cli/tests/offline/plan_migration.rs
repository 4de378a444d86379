//! `kvmscope plan migration` as its users meet it.

use crate::program;
use serde_json::Value;

fn kvmscope(arguments: &[&str]) -> (i32, String, String) {
    program::kvmscope(&[&["plan", "migration"], arguments].concat())
}

fn section(arguments: &[&str]) -> Value {
    let (code, out, complaints) = kvmscope(&[&["--json"], arguments].concat());
    assert!(code == 0 && complaints.is_empty(), "{code}: {complaints}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["sections"][0]["id"], "migration");
    answer["sections"][0].clone()
}

/// 256 MiB of which 64 MiB are hot, 200 MB/s, 50 ms.
fn bed(more: &[&str]) -> Value {
    let bed = ["--ram", "256M", "--hot", "64M", "--bandwidth", "200MB/s", "--limit", "50ms"];
    section(&[&bed, more].concat())
}

/// Low, high and naive of a row of `prediction`, as integers of `scale`.
fn said(section: &Value, what: &str, scale: f64) -> [Option<u64>; 3] {
    let rows = section["tables"]["prediction"]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row[0] == what).unwrap();
    [1, 3, 5].map(|column| row[column].as_f64().map(|value| (value * scale).round() as u64))
}

#[test]
fn published_vectors_come_out_of_the_command() {
    for (rate, low, high, naive) in [
        ("24000pages/s", 1_693, 1_968, 2_612),
        ("40000pages/s", 1_713, 3_007, 7_290),
        ("46000pages/s", 1_713, 6_545, 23_184),
    ] {
        assert_eq!(said(&bed(&["--rate", rate]), "total", 1e-6), [Some(low), Some(high), Some(naive)], "{rate}");
        let at_sync = bed(&["--rate", rate, "--order", "sync"]);
        assert_eq!(said(&at_sync, "total", 1e-6), [Some(high), Some(high), Some(naive)], "{rate}");
    }
    let uniform = bed(&["--rate", "40000pages/s", "--order", "uniform"]);
    assert_eq!((said(&uniform, "total", 1e-6)[1], said(&uniform, "passes", 1.0)[1]), (Some(2_172), Some(6)));
}

#[test]
fn what_never_ends_has_a_finding_with_each_way_out() {
    let never = bed(&["--rate", "60000pages/s"]);
    assert_eq!(said(&never, "total", 1e-6), [None; 3]);
    assert!(never["tables"]["prediction"]["rows"][0][1].is_null(), "never is null, not 0");
    assert_eq!(never["findings"][0]["rule"], "MIG-NEVER");
    let fix = never["findings"][0]["fix"].to_string();
    let place = |what: &str| fix.find(what).unwrap();
    assert!(
        place("setspeed") < place("--auto-converge") && place("--postcopy-after-precopy") < place("setmaxdowntime")
    );
    assert!(fix.contains("migrate-setmaxdowntime DOMAIN 337") && fix.contains("undo: 50"), "{fix}");
    let ways = never["tables"]["ways_out"]["rows"].as_array().unwrap();
    let value = |change: &str| ways.iter().find(|row| row[0] == change).unwrap()[1].as_f64().unwrap();
    assert!((value("downtime_limit") - 336.2e6).abs() < 0.05e6);
    // 60,000 pages of 4,104 bytes a second.
    assert!((value("bandwidth") - 246.24e6).abs() < 1.0 && (value("throttle") - (1.0 - 200.0 / 246.24)).abs() < 1e-6);
    let never =
        ["--ram", "256M", "--hot", "64M", "--bandwidth", "200MB/s", "--limit", "50ms", "--rate", "60000pages/s"];
    let (code, ..) = kvmscope(&[&never[..], &["--fail-on", "high"]].concat());
    assert_eq!(code, 3);
}

#[test]
fn a_slow_guest_has_no_finding_and_a_throttled_one_that_saves_nothing_has() {
    assert!(bed(&["--rate", "10000pages/s"])["findings"].as_array().unwrap().is_empty());
    let rules = |section: Value| -> Vec<String> {
        section["findings"].as_array().unwrap().iter().map(|one| one["rule"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(rules(bed(&["--rate", "400000pages/s", "--throttle", "80%"])), ["MIG-NEVER", "MIG-THROTTLE"]);
    assert_eq!(rules(bed(&["--rate", "400000pages/s", "--throttle", "90%"])), [""; 0]);
    assert_eq!(rules(bed(&["--rate", "100pages/s", "--max-bandwidth", "100MB/s"])), ["MIG-BANDWIDTH"]);
    assert_eq!(rules(bed(&["--rate", "100pages/s", "--max-bandwidth", "170MB/s"])), [""; 0]);
}

#[test]
fn a_curve_of_measured_windows_is_one_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curve");
    // The points of a sweep of 64 MiB at 40,000 pages a second, in any order.
    std::fs::write(&path, "# window, dirtied\n1s 64M\n100ms 16384000B\n").unwrap();
    let arguments = ["--ram", "256M", "--bandwidth", "200MB/s", "--limit", "50ms", "--curve", path.to_str().unwrap()];
    let (code, _, complaint) = kvmscope(&arguments);
    assert!(code == 2 && complaint.contains(":3:") && complaint.contains("8G"), "{complaint}");
    std::fs::write(&path, "# window, dirtied\n1s 64M\n409600us 64M\n").unwrap();
    assert_eq!(said(&section(&arguments), "total", 1e-6)[1], Some(3_007), "as --hot 64M --rate 40000pages/s");
}

#[test]
fn wrong_use_says_what_to_write() {
    let base = ["--ram", "8G", "--bandwidth", "10Gbit"];
    for (more, says) in [
        (&["--hot", "64M"][..], "--rate"),
        (&["--hot", "16G", "--rate", "1M/s"], "more hot memory than --ram"),
        (&["--hot", "64M", "--rate", "160M"], "160M/s"),
        (&["--hot", "64M", "--rate", "1M/s", "--zero", "2"], "share"),
        (&["--hot", "64M", "--rate", "1M/s", "--limit", "300"], "300ms"),
        (&["--hot", "64M", "--rate", "1M/s", "--order", "random"], "uniform"),
    ] {
        let (code, _, complaint) = kvmscope(&[&base, more].concat());
        assert!(code == 2 && complaint.contains(says), "{more:?}: {complaint}");
    }
}

#[test]
fn saved_guests_take_what_is_not_zero_and_share_the_disk() {
    let ask = |guests: &str| {
        let asked = ["--to-file", "--ram", "1G", "--zero", "75%", "--disk", "256MiB/s", "--guests", guests];
        section(&asked)
    };
    let (one, four) = (ask("1"), ask("4"));
    // 65,536 pages are not zero: 256 MiB, less and more 1 MiB.
    let [low, high, _] = said(&one, "saved", 1.0);
    assert_eq!(low, Some(255 << 20));
    assert_eq!(high, Some(65_536 * 4_104 + 196_608 * 9 + (1 << 20)));
    assert_eq!(said(&four, "saved", 1.0), said(&one, "saved", 1.0), "each has a file of its own");
    let [alone, ..] = said(&one, "wake", 1e-6);
    assert_eq!(alone, Some(996), "255 MiB at 256 MiB/s, in ms");
    let last = |section: &Value| said(section, "wake", 1e-6)[1].unwrap();
    assert!(last(&four) >= 4 * 996 && last(&four) > last(&one), "{} {}", last(&four), last(&one));
    let (code, _, complaints) = kvmscope(&["--to-file", "--ram", "1G"]);
    assert!(code == 2 && complaints.contains("--disk 500MB/s, or --disk-of DIR"), "{complaints}");
    let (code, _, complaints) = kvmscope(&["--ram", "1G", "--hot", "64M", "--rate", "9M/s"]);
    assert!(code == 2 && complaints.contains("--bandwidth"), "{complaints}");
}

#[test]
fn the_passes_of_an_earlier_migration_are_a_curve() {
    let moved = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/migrate-tcg");
    let section = section(&["--ram", "256M", "--curve", moved, "--bandwidth", "200MB/s", "--limit", "50ms"]);
    // 24,000 pages a second in a longest pass of 339 ms.
    let rows = section["tables"]["working_set"]["rows"].as_array().unwrap();
    let pages = |window_ns: u64| rows.iter().find(|row| row[0] == window_ns).unwrap()[1].as_u64().unwrap();
    assert!((4_560..5_040).contains(&pages(200_000_000)), "{}", pages(200_000_000));
    assert!((7_700..8_200).contains(&pages(5_000_000_000)), "nothing is known of longer ones");
    let (code, _, why) = kvmscope(&[
        "--ram",
        "8G",
        "--bandwidth",
        "10Gbit",
        "--curve",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/migrate-logs"),
    ]);
    assert!(code == 2 && why.contains("no pass of a migration without throttling"), "{code}: {why}");
}
