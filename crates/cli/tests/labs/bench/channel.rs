//! `bench channel` from end to end: that every frame arrives as it was sent, whatever the path, the window and the policy; never a rate.

use super::{kvmscope, rows_of};
use assert_cmd::Command;
use serde_json::Value;
use testing::{Hogs, Workspace, machine};

fn measured(json: &str) -> Vec<Value> {
    rows_of(json, "channel", "rates").into_iter().filter(|row| row["window_kind"] == "measured").collect()
}

#[test]
#[ignore = "make channel"]
fn every_frame_arrives_once_in_order_and_whole_over_each_path() {
    let directory = Workspace::alone();
    let place = directory.path().join("channel");
    let place = place.to_str().unwrap();
    // Wherever this runs: on one CPU the two take turns.
    let wanted = "--only rates --same-core --path ring,ring-ro --window none,pkey,mprotect --policy poll,kick,adaptive --batch 1,32 --size 64,1518 \
                  --seconds 0.02 --launches 2 --no-progress";
    let arguments: Vec<&str> = ["bench", "channel", "-o", place].into_iter().chain(wanted.split_whitespace()).collect();
    let (status, text, complaint) = kvmscope(&arguments);
    assert_eq!((status, complaint.as_str()), (Some(0), ""), "{text}");
    let (_, json, _) = kvmscope(&["report", "--json", place]);
    let rows = measured(&json);
    let keys: std::collections::BTreeSet<&str> = rows.iter().map(|row| row["window"].as_str().unwrap()).collect();
    if !keys.contains("pkey") {
        println!("skipped: no memory protection keys here");
        assert!(json.contains("protection key"), "the row is left out with its reason");
    }
    assert_eq!(rows.len(), 2 * keys.len() * 3 * 2 * 2, "every setup has a row");
    for row in &rows {
        for wrong in ["lost", "duplicated", "reordered", "torn"] {
            assert_eq!(row[wrong], Value::from(0), "{row}");
        }
        assert!(row["raw_mpps"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["open_share"].is_null(), row["window"] == "none", "{row}");
        if let Some(share) = row["open_share"].as_f64() {
            assert!((0.0..=1.02).contains(&share), "{row}");
        }
    }
}

#[test]
#[ignore = "make channel"]
fn frames_that_nobody_looked_at_are_not_said_to_be_whole() {
    let _machine = machine();
    let (status, json, complaint) = kvmscope(&[
        "bench",
        "channel",
        "--only",
        "rates",
        "--same-core",
        "--no-verify",
        "--window",
        "none",
        "--seconds",
        "0.02",
        "--json",
    ]);
    assert_eq!((status, complaint.as_str()), (Some(0), ""));
    assert!(measured(&json).iter().all(|row| row["lost"].is_null() && row["torn"].is_null()));
    assert!(json.contains("CHN-UNVERIFIED"));
}

#[test]
#[ignore = "make channel"]
fn a_plain_run_has_all_four_tables_and_nothing_is_misdelivered_or_not_survived() {
    let _machine = machine();
    let (status, json, complaint) = kvmscope(&[
        "bench",
        "channel",
        "--same-core",
        "--seconds",
        "0.05",
        "--launches",
        "2",
        "--batch",
        "1,32",
        "--json",
    ]);
    assert_eq!((status, complaint.as_str()), (Some(0), ""), "{json}");
    let rows = |table| rows_of(&json, "channel", table);
    assert!(!rows("rates").is_empty());

    let delays = rows("delays");
    let loads: Vec<&str> =
        delays.iter().filter(|row| row["batch"] == 32).map(|row| row["load"].as_str().unwrap()).collect();
    assert_eq!(loads, ["10 %", "50 %", "90 %", "no loss", "10 ppm loss"]);
    for row in delays.iter().filter(|row| !row["rate_mpps"].is_null()) {
        let ns = ["p50_ns", "p99_ns", "p999_ns", "max_ns"].map(|name| row[name].as_f64().unwrap());
        assert!(ns.is_sorted() && ns[0] > 0.0, "{row}");
        assert!(row["due"].as_u64() >= row["lost"].as_u64(), "{row}");
    }

    let flows = rows("flows");
    assert_eq!((flows.len(), &flows[0]["vms"], &flows[0]["misdelivered"]), (1, &Value::from(2), &Value::from(0)));
    for some in ["changes_per_s", "lag_p99_ns", "revocations", "sent", "delivered"] {
        assert!(flows[0][some].as_f64().unwrap() > 0.0, "{some}: {}", flows[0]);
    }
    assert_eq!(flows[0]["ack_faults"], Value::from(0), "{}", flows[0]);

    let faults = rows("faults");
    assert_eq!(
        faults.iter().map(|row| row["rule"].as_u64().unwrap()).collect::<Vec<_>>(),
        (1..=12).collect::<Vec<_>>()
    );
    for row in &faults {
        let (injected, rule) = (row["injected"].as_u64().unwrap(), row["rule"].as_u64().unwrap());
        assert_eq!(row["survived"], if rule == 12 { Value::Null } else { Value::from(true) }, "{row}");
        match rule {
            5 | 6 | 12 => assert!(row["seen"].is_null() && row["why"].is_string(), "{row}"),
            // A length that changes while nobody looks is seen by nobody, and of kicks wishes alone are counted.
            3 | 10 => assert!(row["seen"].as_u64().unwrap() > 0, "{row}"),
            _ => assert_eq!(row["seen"], Value::from(injected), "{row}"),
        }
        assert_eq!(injected == 0, rule == 12, "{row}");
    }
}

#[test]
#[ignore = "make channel"]
fn delays_are_measured_at_given_rates_by_each_policy_in_every_launch() {
    let _machine = machine();
    let wanted = "--only delays --same-core --rate 0.1,0.5 --batch 8 --path ring,ring-ro --policy poll,kick --seconds 0.1 --launches 2 --json";
    let arguments: Vec<&str> = ["bench", "channel"].into_iter().chain(wanted.split_whitespace()).collect();
    let (status, json, complaint) = kvmscope(&arguments);
    assert_eq!((status, complaint.as_str()), (Some(0), ""), "{json}");
    let rows = rows_of(&json, "channel", "delays");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let keys: Vec<_> = rows
        .iter()
        .map(|row| format!("{} {} {}", text(row, "path"), text(row, "policy"), row["rate_mpps"].as_f64().unwrap()))
        .collect();
    let of = |way: &str| [format!("{way} 0.1"), format!("{way} 0.5")];
    assert_eq!(keys, ["ring poll", "ring kick", "ring-ro poll", "ring-ro kick"].map(of).concat());
    for row in &rows {
        assert_eq!(row["launches"], Value::from(2), "{row}");
        // 20 ms at that rate, twice.
        let due = row["rate_mpps"].as_f64().unwrap() * 1e6 * 0.02 * 2.0;
        assert!((row["due"].as_f64().unwrap() - due).abs() <= 4.0, "{row}");
        // The first frame of a batch of 8 waits for seven others.
        assert!(row["max_ns"].as_f64().unwrap() >= 0.9 * 7.0 * 1e3 / row["rate_mpps"].as_f64().unwrap(), "{row}");
    }
}

#[test]
#[ignore = "make channel"]
fn machines_by_pairs_and_through_a_switch_get_what_was_sent_to_them() {
    let _machine = machine();
    let wanted = "--only rates --same-core --vms 3,4 --path ring,switch --batch 8 --seconds 0.1 --launches 1 --json";
    let arguments: Vec<&str> = ["bench", "channel"].into_iter().chain(wanted.split_whitespace()).collect();
    let (status, json, complaint) = kvmscope(&arguments);
    assert_eq!((status, complaint.as_str()), (Some(0), ""), "{json}");
    let rows = measured(&json);
    assert_eq!(rows.len(), 4, "{json}");
    for row in &rows {
        assert!(row["raw_mpps"].as_f64().unwrap() > 0.0, "{row}");
        for wrong in ["lost", "duplicated", "reordered", "torn"] {
            assert_eq!(row[wrong], Value::from(0), "{row}");
        }
        assert!(row["path"] == "switch" || row["dropped"] == 0, "{row}");
    }
    // Nine machines have no CPU each on most hosts, and no windows on any.
    let (status, _, complaint) =
        kvmscope(&["bench", "channel", "--cpus", "0,0", "--vms", "8", "--same-core", "--path", "ring-ro"]);
    assert_eq!(status, Some(2), "{complaint}");
    assert!(complaint.contains("--path ring,switch"), "{complaint}");
}

#[test]
#[ignore = "make channel"]
fn more_machines_than_cpus_are_refused_with_a_way_out() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus > 8 {
        println!("skipped: this machine has a CPU for each of 8 machines");
        return;
    }
    let (status, _, complaint) = kvmscope(&["bench", "channel", "--vms", "8", "--path", "switch", "--window", "none"]);
    assert_eq!(status, Some(2), "{complaint}");
    assert!(complaint.contains("--same-core"), "{complaint}");
}

#[test]
#[ignore = "make channel"]
fn one_cpu_and_what_cannot_be_are_refused() {
    let (status, _, complaint) = kvmscope(&["bench", "channel", "--cpus", "0,0"]);
    assert_eq!(status, Some(2), "{complaint}");
    assert!(complaint.contains("--same-core"), "{complaint}");
    for arguments in [
        ["--cpus", "0,100000"],
        ["--cpus", "1"],
        ["--slots", "100"],
        ["--size", "8"],
        ["--window", "vmfunc"],
        ["--window", "model:vmfunc=-1"],
        ["--window", "model:=20"],
        ["--vms", "9"],
        ["--rate", "0"],
        ["--only", "latency"],
    ] {
        let (status, _, complaint) = kvmscope(&[&["bench", "channel"], &arguments[..]].concat());
        assert_eq!(status, Some(2), "{arguments:?}: {complaint}");
    }
}

/// Why nobody can be named here, if so.
fn cannot_record() -> Option<&'static str> {
    if let Some(why) = testing::cannot_record() {
        return Some(why);
    }
    let has_clock =
        std::fs::read_to_string("/sys/kernel/tracing/trace_clock").is_ok_and(|text| text.contains("x86-tsc"));
    (!has_clock).then_some("this kernel has no trace clock x86-tsc")
}

#[test]
#[ignore = "make channel"]
fn a_hog_on_the_cpu_of_a_side_is_named_and_leads_to_the_timeline() {
    let cpus: Vec<u32> = lab::setting::thread::affinity(lab::setting::thread::own()).unwrap().iter().collect();
    let (Some(first), Some(last)) = (cpus.first(), cpus.last().filter(|_| cpus.len() > 1)) else {
        return println!("skipped: culprits of gaps: two CPUs are needed");
    };
    if let Some(why) = cannot_record() {
        return println!("skipped: culprits of gaps: {why}");
    }
    let directory = Workspace::alone();
    let journal = directory.path().join("journal");
    let hog = Hogs::on(*last, 1);
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    command.current_dir(directory.path()).env("KVMSCOPE_JOURNAL", &journal);
    let options = "--same-core --only rates --window none --batch 32 --seconds 0.5 --launches 2 --json -o new --no-progress --cpus";
    command.args(["bench", "channel"]).args(options.split_whitespace()).arg(format!("{first},{last}"));
    let output = command.output().unwrap();
    drop(hog);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(&journal).map_or(0, Iterator::count), 0, "nothing is left to undo");
    let json = String::from_utf8(output.stdout).unwrap();
    let gaps = rows_of(&json, "channel", "gaps");
    let by = |row: &Value| row["by"].as_str().unwrap_or_default().to_owned();
    let named: Vec<&Value> = gaps.iter().filter(|row| by(row).starts_with("hogger/")).collect();
    assert!(!named.is_empty(), "{:?}", gaps.iter().map(by).collect::<Vec<_>>());
    for row in named {
        // The other side waits for this one, and looks at its counter meanwhile: that is no gap.
        assert_eq!(row["thread"], "consumer", "the hog stays on its CPU: {row}");
        let span = ["timeline_from_ns", "timeline_to_ns"].map(|name| row[name].as_u64().unwrap());
        let length_ns = row["length_ns"].as_u64().unwrap();
        // The bench knows the rate of its counter by a few milliseconds, the trace by all of its time.
        assert!((span[1] - span[0]).abs_diff(length_ns) < 10_000 + length_ns / 500, "{row}");
    }
    assert!(json.contains("CHN-PREEMPTED") && json.contains("of the time in gaps"), "the finding says who took most");
}

#[test]
#[ignore = "make channel"]
fn without_a_recorder_the_bench_goes_on_and_says_what_is_missing() {
    let _machine = machine();
    let options = "--same-core --window none --batch 8 --seconds 0.02 --launches 1 --json";
    let (status, json, complaint) =
        kvmscope(&[&["bench", "channel", "--no-record"], &options.split_whitespace().collect::<Vec<_>>()[..]].concat());
    assert_eq!((status, complaint.as_str()), (Some(0), ""));
    assert!(!measured(&json).is_empty());
    for row in rows_of(&json, "channel", "rates") {
        assert!(row["raw_mpps"].is_number() || row["window_kind"] == "modelled", "{row}");
    }
    if cannot_record().is_some() {
        let (status, json, _) =
            kvmscope(&[&["bench", "channel"], &options.split_whitespace().collect::<Vec<_>>()[..]].concat());
        assert_eq!(status, Some(0));
        assert!(json.contains("so no gap has a culprit"), "{json}");
    }
}
