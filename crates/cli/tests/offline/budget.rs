//! `kvmscope budget`: the built-in budgets are printed as files that it reads again, and errors have line and column.
//! `--budget`: verdicts, what they do to the exit status, and as which tests build servers read them.

use crate::program::{fixture_named, kvmscope};
use std::process::Command;

#[test]
fn built_in_budgets_are_listed_and_what_is_printed_reads_again() {
    let directory = tempfile::tempdir().unwrap();
    let (status, list, _) = kvmscope(&["budget"]);
    assert_eq!((status, list.as_str()), (0, "kvm4nfv-2015    9 goals\nkvm4nfv-future  4 goals\n"));
    for name in list.lines().map(|line| line.split(' ').next().unwrap()) {
        let (status, text, _) = kvmscope(&["budget", name]);
        assert!(status == 0 && text.contains("schema = \"kvmscope.budget/1\""), "{text}");
        let file = directory.path().join("mine.toml");
        std::fs::write(&file, text.replace(name, "mine")).unwrap();
        let (status, said, _) = kvmscope(&["budget", file.to_str().unwrap()]);
        assert!(status == 0 && said.contains("budget mine, "), "{said}");
    }
}

#[test]
fn what_is_wrong_with_a_file_has_its_place_and_a_name_its_neighbour() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    let (_, text, _) = kvmscope(&["budget", "kvm4nfv-2015"]);
    let wrong = text.replacen("limit = \"15us\"", "limt = \"15us\"", 1);
    let line = wrong.lines().position(|line| line.starts_with("limt")).unwrap() + 1;
    std::fs::write(&file, wrong).unwrap();
    let name = file.to_str().unwrap();
    let (status, said, complaint) = kvmscope(&["budget", name]);
    assert_eq!((status, said.as_str()), (2, ""));
    assert_eq!(complaint, format!("kvmscope: {name}:{line}:1: a goal has no key `limt`; did you mean `limit`?\n"));
    let (status, _, complaint) = kvmscope(&["budget", "kvm4nfv-2016"]);
    assert!(status == 2 && complaint.contains("did you mean `kvm4nfv-2015`?"), "{complaint}");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    assert_eq!(kvmscope(&["budget", name]).0, 2);
    assert_eq!(kvmscope(&["budget", directory.path().to_str().unwrap()]).0, 2);
}

#[test]
fn the_file_of_the_documentation_is_a_budget() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/read/latency.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, example).unwrap();
    let (status, said, complaint) = kvmscope(&["budget", file.to_str().unwrap()]);
    assert!(status == 0 && said.ends_with("budget mine, 2 goals\n"), "{said}{complaint}");
}

/// A budget of one goal in a file.
fn budget(directory: &tempfile::TempDir, goal: &str) -> String {
    let file = directory.path().join("one.toml");
    let text = format!("schema = \"kvmscope.budget/1\"\nname = \"one\"\n[[goal]]\nid = \"g\"\n{goal}");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Losses of no more than 2 s in each ms, which no vCPU can break.
const MET: &str = "metric = \"preempt_window\"\nwindow = \"1ms\"\nstat = \"sup\"\nop = \"<\"\nlimit = \"2s\"\n";
const UNMEASURED: &str = "metric = \"irq_latency\"\nstat = \"max\"\nop = \"<=\"\nlimit = \"20us\"\n";

#[test]
fn a_broken_goal_ends_with_3_and_names_who_took_the_time() {
    let hog = fixture_named("nested-vmx-shadow-off-hog");
    let (status, said, _) = kvmscope(&["report", "--budget", "kvm4nfv-2015", "--no-progress", &hog]);
    assert_eq!(status, 3);
    for words in [
        "vCPU 0 of nestv-98 broke budget kvm4nfv-2015 (9 goals: 2 FAIL and 7 NOT MEASURED).",
        "preempt-window FAIL: vCPU 0 of nestv-98 lost 1 ms in the millisecond at 0.092026 s: 1 ms busybox; budget < 20 us.",
        "1 ms busybox",
        "emulated by Bochs",
        "LAT-GOAL",
        "LAT-EVIDENCE",
    ] {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(
        said.trim_start().starts_with("How much time did the host take"),
        "the page begins with the breach: {said}"
    );
    let (status, json, _) = kvmscope(&["report", "--json", "--budget", "kvm4nfv-2015", "--no-progress", &hog]);
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    let latency = answer["sections"].as_array().unwrap().iter().find(|section| section["id"] == "latency").unwrap();
    let table = &latency["tables"]["goals"];
    let columns = table["columns"].as_array().unwrap();
    let at = |name: &str| columns.iter().position(|column| column["name"] == name).unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    let contract = "machine goal metric vm vcpu stat window_ns limit_ns value_ns low_ns high_ns verdict at_ns samples over bound_p95";
    assert_eq!(names[..16].join(" "), contract);
    let verdicts: Vec<_> =
        table["rows"].as_array().unwrap().iter().map(|row| (&row[at("goal")], &row[at("verdict")])).collect();
    let expected = [
        ("timer-mean", "NOT MEASURED"),
        ("timer-max", "NOT MEASURED"),
        ("irq-max", "NOT MEASURED"),
        ("preempt-period", "FAIL"),
        ("preempt-window", "FAIL"),
        ("migration-total", "NOT MEASURED"),
        ("downtime-vmm-io", "NOT MEASURED"),
        ("downtime-vmm-memory", "NOT MEASURED"),
        ("downtime-net", "NOT MEASURED"),
    ];
    assert!(
        status == 3
            && verdicts.iter().zip(expected).all(|(row, expected)| *row.0 == expected.0 && *row.1 == expected.1),
        "{verdicts:?}"
    );
    assert_eq!(verdicts.len(), expected.len());
}

/// A goal that the hog breaks.
const BROKEN: &str = "metric = \"preempt_window\"\nwindow = \"1ms\"\nstat = \"sup\"\nop = \"<\"\nlimit = \"20us\"\n";

fn in_line(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_recording_may_carry_its_budget_and_the_option_wins() {
    let (directory, hog) = (tempfile::tempdir().unwrap(), fixture_named("nested-vmx-shadow-off-hog"));
    let report = |goal: &str, more: &[&str]| {
        let part = format!("L0={}", budget(&directory, goal));
        kvmscope(&[&["report", "--no-progress", &hog, "--part", &part], more].concat())
    };
    let (status, said, _) = report(BROKEN, &[]);
    let said = in_line(&said);
    assert!(status == 3 && said.contains("Judged by budget one of the recording ("), "{status} {said}");
    assert!(
        said.contains("one.toml); --budget judges by another.") && said.contains("g FAIL: vCPU 0 of nestv-98"),
        "{said}"
    );
    assert_eq!((report(MET, &[]).0, report(UNMEASURED, &["--strict"]).0), (0, 3));
    let (status, said, _) = report(MET, &["--budget", "kvm4nfv-2015"]);
    let said = in_line(&said);
    assert!(status == 3 && said.contains("Judged by budget kvm4nfv-2015; the recording has budget one ("), "{said}");
    let (status, json, _) = report("metric = \"none\"\n", &["--json"]);
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(status == 0 && answer["problems"].to_string().contains("one.toml:5:10"), "{}", answer["problems"]);
}

#[test]
fn both_sides_of_a_comparison_are_judged_and_the_later_one_decides() {
    let (directory, hog) = (tempfile::tempdir().unwrap(), fixture_named("nested-vmx-shadow-off-hog"));
    let compare = |goal: &str, after: &str, more: &[&str]| {
        let file = budget(&directory, goal);
        kvmscope(&[&["compare", &hog, after, "--budget", &file], more].concat())
    };
    let (status, json, complaint) = compare(BROKEN, &hog, &["--json"]);
    assert_eq!(status, 3, "{complaint}");
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    let table = &answer["sections"][0]["tables"]["goals"];
    let names: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    let row = &table["rows"][0];
    let of = |name: &str| row[names.iter().position(|known| *known == name).unwrap()].clone();
    assert_eq!((of("goal"), of("before_verdict"), of("after_verdict")), ("g".into(), "FAIL".into(), "FAIL".into()));
    assert_eq!((of("before_ns"), of("after_ns"), of("limit_ns")), (1_000_000.into(), 1_000_000.into(), 20_000.into()));
    assert_eq!((of("before_failed"), of("after_recordings")), (1.into(), 1.into()));
    let (status, said, _) = compare(MET, &hog, &[]);
    assert!(
        status == 0 && in_line(&said).contains("Budget one: g: PASS (1 ms) before, PASS (1 ms) after, limit < 2 s."),
        "{said}"
    );
    // What a change mended is no failure; what nothing measures any more is none either, unless asked strictly.
    let scoped = format!("{BROKEN}scope = {{ vm = \"nestv-98\" }}\n");
    let other = fixture_named("vmx-linux-shadow-on");
    let (status, said, complaint) = compare(&scoped, &other, &[]);
    assert!(status == 0, "{said}{complaint}");
    assert!(in_line(&said).contains("g: FAIL (1 ms) before, NOT MEASURED after"), "{said}");
    assert_eq!(compare(&scoped, &other, &["--strict"]).0, 3);
    assert_eq!(kvmscope(&["compare", &hog, &hog, "--strict"]).0, 2, "strict about no budget");
}

#[test]
fn what_is_not_broken_ends_with_0_and_strictly_with_3() {
    let (directory, hog) = (tempfile::tempdir().unwrap(), fixture_named("nested-vmx-shadow-off-hog"));
    let status = |goal: &str, more: &[&str]| {
        let file = budget(&directory, goal);
        kvmscope(&[&["report", "--no-progress", "--budget", &file], more, &[&hog]].concat()).0
    };
    assert_eq!((status(MET, &[]), status(MET, &["--strict"])), (0, 0));
    assert_eq!((status(UNMEASURED, &[]), status(UNMEASURED, &["--strict"])), (0, 3));
    let long = format!("{MET}require = {{ trace = \"60s\" }}\n");
    assert_eq!((status(&long, &[]), status(&long, &["--strict"])), (0, 3));
    let elsewhere = format!("{MET}scope = {{ vm = \"nowhere\" }}\n");
    assert_eq!((status(&elsewhere, &[]), status(&elsewhere, &["--strict"])), (0, 3));
    assert_eq!(kvmscope(&["report", "--strict", &hog]).0, 2, "strict about no budget");
    assert_eq!(kvmscope(&["report", "--budget", "none.toml", &hog]).0, 2);
    let samples = fixture_named("samples/kvm4nfv-after.txt");
    assert_eq!(kvmscope(&["report", "--no-progress", "--budget", "kvm4nfv-2015", &samples]).0, 3);
    assert_eq!(
        kvmscope(&["report", "--no-progress", "--budget", "kvm4nfv-future", &samples]).0,
        0,
        "it has no timer goal"
    );
}

#[test]
fn verdicts_are_tests_of_a_build_server() {
    let (directory, hog) = (tempfile::tempdir().unwrap(), fixture_named("nested-vmx-shadow-off-hog"));
    let file = directory.path().join("verdicts.xml");
    let junit = file.to_str().unwrap();
    let run = |more: &[&str]| {
        let fixed = ["report", "--no-progress", "--budget", "kvm4nfv-2015", "--junit", junit];
        let (status, ..) = kvmscope(&[&fixed[..], more, &[&hog]].concat());
        (status, std::fs::read_to_string(&file).unwrap_or_default())
    };
    let (status, lenient) = run(&[]);
    assert_eq!(status, 3);
    assert!(lenient.contains("tests=\"9\" failures=\"2\" errors=\"0\" skipped=\"7\""), "{lenient}");
    assert!(
        lenient.contains("<testcase classname=\"kvm4nfv-2015.preempt-window\" name=\"vCPU 0 of nestv-98 on L0\">"),
        "{lenient}"
    );
    assert!(lenient.contains("<skipped message=\"NOT MEASURED: the recording has no result"), "{lenient}");
    assert_eq!(run(&[]).0, 2, "an existing file is not replaced");
    let (_, strict) = run(&["--force", "--strict"]);
    assert!(strict.contains("tests=\"9\" failures=\"2\" errors=\"7\" skipped=\"0\""), "{strict}");
    // A reader of another project: Python's standard library.
    let parse = "import sys, xml.etree.ElementTree as t; print(len(list(t.parse(sys.argv[1]).iter('testcase'))))";
    match Command::new("python3").args(["-c", parse, junit]).output() {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "9"),
        Err(error) => println!("skipped: python3: {error}"),
    }
}

#[test]
fn samples_have_a_row_for_each_limit() {
    let samples = fixture_named("samples/kvm4nfv-after.txt");
    let rows = |more: &[&str]| -> Vec<serde_json::Value> {
        let (_, json, _) = kvmscope(&[&["report", "--json", "--no-progress", &samples], more].concat());
        let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
        let table = &answer["sections"][0]["tables"]["samples"];
        let columns: Vec<&str> =
            table["columns"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        let wanted = ["limit_ns", "count", "over_low", "over_high"]
            .map(|name| columns.iter().position(|one| *one == name).unwrap());
        table["rows"].as_array().unwrap().iter().map(|row| wanted.iter().map(|at| row[*at].clone()).collect()).collect()
    };
    assert_eq!(rows(&[]), [serde_json::json!([null, 79_810_183, null, null])]);
    let judged = rows(&["--budget", "kvm4nfv-2015"]);
    assert_eq!(judged[1], serde_json::json!([15_000, 79_810_183, 5, 54]), "{judged:?}");
    assert_eq!(judged.len(), 2);
}

#[test]
fn exported_tables_have_the_verdicts() {
    let (directory, hog) = (tempfile::tempdir().unwrap(), fixture_named("nested-vmx-shadow-off-hog"));
    let tables = directory.path().join("tables");
    let (status, ..) =
        kvmscope(&["export", "--no-progress", "--budget", "kvm4nfv-future", "--csv", tables.to_str().unwrap(), &hog]);
    let goals = std::fs::read_to_string(tables.join("latency.goals.csv")).unwrap();
    assert!(status == 0 && goals.contains("preempt-window") && goals.contains("FAIL"), "{goals}");
}

/// Rows of `migration.goals` by goal: verdict and kind.
fn of_migration(arguments: &[&str]) -> (i32, Vec<(String, String, String)>) {
    let (status, json, complaint) = kvmscope(arguments);
    let answer: serde_json::Value = serde_json::from_str(&json).expect(&complaint);
    let migration = answer["sections"].as_array().unwrap().iter().find(|section| section["id"] == "migration").unwrap();
    let table = &migration["tables"]["goals"];
    let columns = table["columns"].as_array().unwrap();
    let contract = ["metric", "limit_ns", "value_ns", "low_ns", "high_ns", "verdict"];
    assert!(columns.iter().zip(contract).all(|(column, name)| column["name"] == name), "{columns:?}");
    let at = |name: &str| columns.iter().position(|column| column["name"] == name).unwrap();
    let places = [at("goal"), at("verdict"), at("kind")];
    let row = |row: &serde_json::Value| places.map(|place| row[place].as_str().unwrap().to_owned()).into();
    (status, table["rows"].as_array().unwrap().iter().map(row).collect())
}

#[test]
fn a_planned_migration_is_judged_by_its_interval_and_ends_with_3_where_it_breaks_a_goal() {
    let plan = |more: &[&str]| {
        let bed = ["plan", "migration", "--json", "--ram", "256M", "--hot", "64M", "--bandwidth", "200MB/s"];
        of_migration(&[&bed, more, &["--budget", "kvm4nfv-2015"]].concat())
    };
    let named = |rows: &[(String, String, String)], goal: &str| {
        let row = rows.iter().find(|row| row.0 == goal).map(|row| row.1.clone());
        row.unwrap_or_default()
    };
    let (status, rows) = plan(&["--rate", "24000pages/s", "--limit", "10ms", "--workload", "io"]);
    let met =
        ["downtime-vmm-io", "migration-total", "downtime-net", "downtime-vmm-memory"].map(|goal| named(&rows, goal));
    assert_eq!((status, met), (0, ["PASS", "PASS", "NOT MEASURED", ""].map(str::to_owned)), "of 1.7 to 1.97 s");
    assert!(rows.iter().all(|row| row.2 == "modelled"));
    let (status, rows) = plan(&["--rate", "24000pages/s", "--limit", "600ms", "--devices", "20ms", "--workload", "io"]);
    assert_eq!((status, named(&rows, "downtime-vmm-io")), (3, "FAIL".into()), "its devices alone take longer");
    let (status, rows) = plan(&["--rate", "40000pages/s", "--limit", "50ms"]);
    assert_eq!((status, named(&rows, "migration-total")), (0, "INCONCLUSIVE".into()), "1.7 to 3.0 s");
    let (status, rows) = plan(&["--rate", "60000pages/s", "--limit", "50ms"]);
    assert_eq!((status, named(&rows, "migration-total")), (3, "FAIL".into()), "it never ends");
}

#[test]
fn a_recorded_migration_is_judged_by_what_was_seen_of_the_guest() {
    let moved = fixture_named("migrate-tcg");
    let (status, rows) = of_migration(&["report", "--json", "--no-progress", "--budget", "kvm4nfv-2015", &moved]);
    assert_eq!((status, rows.len()), (0, 12), "{rows:?}");
    assert!(rows.iter().all(|row| row.2 == "measured" && row.1 != "PASS"), "emulated: {rows:?}");
    let memory = of_migration(&[
        "report",
        "--json",
        "--no-progress",
        "--budget",
        "kvm4nfv-2015",
        "--workload",
        "memory",
        &moved,
    ]);
    assert!(memory.1.iter().all(|row| row.0 != "downtime-vmm-io"), "a goal of other guests: {:?}", memory.1);
}
