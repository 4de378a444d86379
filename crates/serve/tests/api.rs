//! The API as a client on the network sees it: right answers, and a golden file.

mod client;
mod hostile;
mod lanes;
mod listed;
mod live;

use analysis::{About, Answers, Case, Given};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::FileReader;
use base::recording::Recording;
use client::{Client, HOG, fixtures};
use serde_json::{Value, json};
use std::io::Cursor;

#[test]
fn the_report_is_what_report_json_prints() {
    let client = Client::of_fixtures();
    let expected = printed(&Given::default());
    assert_eq!(client.get(&format!("{HOG}/report")).body, expected);
    let report: Value = serde_json::from_slice(&expected).unwrap();
    let table = client.json(&format!("{HOG}/tables/flow/chains?format=json"));
    assert_eq!(table, report["sections"][0]["tables"]["chains"]);
}

/// What `report --json` prints of the recording at [`HOG`].
fn printed(narrowed: &Given) -> Vec<u8> {
    let path = fixtures().join("nested-vmx-shadow-off-hog");
    let case = Case::new(analysis::open(Recording::open(&path).unwrap()).unwrap(), narrowed.clone());
    let answers = Answers::of(&case);
    let mut bytes = Vec::new();
    let shown = show::json::Answered {
        recording: &case.input().recording,
        compared: &[],
        sections: &answers.sections,
        problems: &answers.problems,
    };
    show::json::write(&mut bytes, "report", &[shown]).unwrap();
    bytes
}

#[test]
fn a_comparison_is_what_compare_json_prints_to_the_last_digit() {
    let client = Client::of_fixtures();
    let case = |name: &str| {
        let recording = Recording::open(&fixtures().join(name)).unwrap();
        Case::new(analysis::open(recording).unwrap(), Given::default())
    };
    let compared = case("nested-vmx-shadow-on").compared_with(case("nested-vmx-shadow-off-hog"));
    let answers = Answers::about(&compared, &[About::Change]);
    let all = [compared.before()[0].input().recording.clone(), compared.input().recording.clone()];
    let mut expected = Vec::new();
    let shown = show::json::Answered {
        recording: &all[1],
        compared: &all,
        sections: &answers.sections,
        problems: &answers.problems,
    };
    show::json::write(&mut expected, "compare", &[shown]).unwrap();
    for _ in 0..2 {
        assert_eq!(client.get(&format!("{HOG}/compared/nested-vmx-shadow-on")).body, expected);
    }
    // The other way around is another question.
    let turned = client.json("/api/recordings/nested-vmx-shadow-on/compared/nested-vmx-shadow-off-hog");
    assert_ne!(
        turned["sections"][0]["summary"],
        serde_json::from_slice::<Value>(&expected).unwrap()["sections"][0]["summary"]
    );
    for (other, status) in [("nested-vmx-shadow-off-hog", 400), ("none-of-this-name", 404), ("hosts-amd", 422)] {
        let reply = client.get(&format!("{HOG}/compared/{other}"));
        let said: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(reply.status, status, "{other}: {said}");
        assert!(said["error"].as_str().is_some_and(|sentence| sentence.len() > 20), "{said}");
    }
}

#[test]
fn a_window_has_the_report_that_from_and_to_print() {
    let client = Client::of_fixtures();
    let window = base::Span { from_ns: 100_000_000, to_ns: 130_000_000 };
    let narrow = base::Narrow { window: Some(window), ..base::Narrow::default() };
    let expected = printed(&Given { narrow, ..Given::default() });
    let asked = format!("t0={}&t1={}", window.from_ns, window.to_ns);
    assert_eq!(client.get(&format!("{HOG}/report?{asked}")).body, expected);
    assert_ne!(client.get(&format!("{HOG}/report")).body, expected);
    let report: Value = serde_json::from_slice(&expected).unwrap();
    assert_eq!(client.json(&format!("{HOG}/tables/flow/exits?{asked}")), report["sections"][0]["tables"]["exits"]);
    assert_eq!(client.get(&format!("{HOG}/report?t0=9&t1=9")).status, 400);
}

#[test]
fn a_level_has_the_report_of_what_it_saw() {
    let client = Client::of_fixtures();
    let asked = |query: &str| client.get(&format!("/api/recordings/svm-linux/report{query}"));
    assert!(asked("?witness=L0").body == asked("").body, "the outermost level counts by default");
    assert!(asked("?witness=L1").body != asked("").body);
    for unknown in ["L2", "l0", "me"] {
        let refused = asked(&format!("?witness={unknown}"));
        assert_eq!((refused.status, refused.text().contains("L0, L1")), (400, true), "{}", refused.text());
    }
}

/// An answer that depends on whose record counts has that of the level asked for; no other passes the question over in silence.
#[test]
fn a_witness_counts_in_every_answer_that_depends_on_it_and_is_refused_by_the_others() {
    let client = Client::of_fixtures();
    let of = |path: &str| client.get(&format!("/api/recordings/vmx-linux-shadow-off/{path}"));
    let by = |path: &str, level: &str| of(&format!("{path}?witness={level}"));
    let compared = "compared/vmx-linux-shadow-on";
    for path in [compared, "sections/flow", "sections/latency"] {
        let (plain, outer, inner) = (of(path), by(path, "L0"), by(path, "L1"));
        assert_eq!((plain.status, outer.status, inner.status), (200, 200, 200), "{path}: {}", inner.text());
        assert!(plain.body == outer.body && plain.body != inner.body, "{path}");
    }
    assert_eq!(by("tables/flow/vcpus", "L1").status, 200);
    assert_eq!(client.get("/metrics?recording=vmx-linux-shadow-off&witness=L1").status, 200);
    for path in ["report", compared, "sections/flow", "tables/flow/exits"] {
        let refused = by(path, "L7");
        assert_eq!((refused.status, refused.text().contains("L0, L1")), (400, true), "{path}: {}", refused.text());
    }
    for path in ["/metrics?recording=vmx-linux-shadow-off&witness=L7", "/metrics?witness=L1"] {
        assert_eq!(client.get(path).status, 400, "{path}");
    }
    for path in ["timeline", "chains", "aggregates", "events", "brief", "progress", "perfetto"] {
        for level in ["L1", "L7"] {
            let refused = by(path, level);
            assert_eq!((refused.status, refused.text().contains("leave it out")), (400, true), "{path}");
        }
    }
}

/// Every address once, cut to what a person can review. Set UPDATE_GOLDEN=1 to write the file anew.
#[test]
fn the_api_answers_as_its_golden_file_says() {
    let client = Client::of_fixtures();
    let asked = [
        "/timeline",
        "/states?lane=0",
        "/states?lane=0&t0=121422570&t1=122714820",
        "/slices?lane=0&t0=121422570&t1=122714820&limit=3",
        "/states?lanes=0-1&t0=121422570&t1=122714820",
        "/states?lane=0&lanes=1",
        "/slices?lanes=0,1&t0=121422570&t1=121822570&limit=1",
        "/slices?lanes=0-9",
        "/reasons?lanes=0&t0=121422570&t1=122714820&limit=2",
        "/search?q=VmRead&lanes=0&at=121422570",
        "/search?q=%20",
        "/chains?reason=CPUID&sort=cost&descending=1&limit=2",
        "/chains?t0=121422570&t1=122714820&sort=time",
        "/events?offset=6642&limit=3",
        "/tables/flow/chains",
        "/tables/flow/none",
        "/tile?w=0",
        "/slices?lane=7",
        "/chains/100000",
        "/compared/nested-vmx-shadow-off-hog",
        "/compared/none",
    ];
    let mut golden = serde_json::Map::new();
    for asked in asked {
        let reply = client.get(&format!("{HOG}{asked}"));
        let answer: Value = serde_json::from_slice(&reply.body).unwrap();
        golden.insert(asked.to_owned(), json!({ "status": reply.status, "answer": answer }));
    }
    let text = serde_json::to_string_pretty(&Value::Object(golden)).unwrap() + "\n";
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api.golden.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(file).unwrap(), "UPDATE_GOLDEN=1 writes {file} anew");
}

#[test]
fn the_picture_for_perfetto_is_what_export_writes() {
    let client = Client::of_fixtures();
    let reply = client.get(&format!("{HOG}/perfetto"));
    assert!(reply.head.contains("filename=\"nested-vmx-shadow-off-hog.pftrace\""), "{}", reply.head);
    assert!(reply.head.contains("application/octet-stream") && reply.head.contains("x-kvmscope-left-out: 0\r\n"));
    let input = analysis::open(Recording::open(&fixtures().join("nested-vmx-shadow-off-hog")).unwrap()).unwrap();
    let options = Given::default();
    let flow = analysis::facts::ledger::build::build(&input, &options, &mut |_, _| {});
    let drawn = analysis::facts::timeline::draw(&input, &options, &flow, &mut |_, _| {});
    let narrow = base::Narrow::default();
    let picture = show::picture::Picture { drawn: &drawn, emulated: Some("Bochs"), narrow: &narrow };
    let fit = picture.fit(show::perfetto::MOST_SLICES);
    let mut written = Vec::new();
    show::perfetto::write(&mut written, &picture, &fit).unwrap();
    assert!(reply.body == written);
    let some = client.get(&format!("{HOG}/perfetto?t0=121422570&t1=122714820&most_slices=10"));
    assert!(some.body.len() < reply.body.len() / 10 && !some.head.contains("left-out: 0\r\n"), "{}", some.head);
}

/// Every table as Arrow holds what it holds as JSON.
#[test]
fn a_table_as_arrow_is_the_table() {
    let client = Client::of_fixtures();
    let report = client.json(&format!("{HOG}/report"));
    for (name, table) in report["sections"][0]["tables"].as_object().unwrap() {
        let reply = client.get(&format!("{HOG}/tables/flow/{name}?format=arrow"));
        assert!(reply.head.contains("application/vnd.apache.arrow.file"), "{}", reply.head);
        let reader = FileReader::try_new(Cursor::new(reply.body), None).unwrap();
        let about = reader.schema().metadata().clone();
        assert_eq!((about["kvmscope.table"].as_str(), about["kvmscope.emulated"].as_str()), (name.as_str(), "Bochs"));
        let batches: Vec<_> = reader.map(Result::unwrap).collect();
        let rows = table["rows"].as_array().unwrap();
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), rows.len(), "{name}");
        let Some(batch) = batches.first() else { continue };
        for (column, described) in table["columns"].as_array().unwrap().iter().enumerate() {
            assert_eq!(batch.schema().field(column).name(), described["name"].as_str().unwrap());
            let numbers = batch.column(column).as_primitive_opt::<UInt64Type>();
            for (row, cells) in rows.iter().enumerate() {
                let shown = numbers.map(|numbers| numbers.is_valid(row).then(|| numbers.value(row)));
                assert!(shown.is_none_or(|shown| shown == cells[column].as_u64()), "{name}, row {row}");
            }
        }
    }
}

/// The bins of `exit_bins` that belong to a row of `exits` hold each of its exits that has a cost once.
#[test]
fn bins_sum_to_the_exits_they_belong_to() {
    let client = Client::of_fixtures();
    let table = |name: &str| client.json(&format!("{HOG}/tables/flow/{name}"))["rows"].as_array().unwrap().clone();
    let (exits, bins) = (table("exits"), table("exit_bins"));
    let mut without_cost = 0;
    for row in &exits {
        let mine: Vec<&Value> =
            bins.iter().filter(|bin| bin.as_array().unwrap()[..5] == row.as_array().unwrap()[..5]).collect();
        let binned: u64 = mine.iter().map(|bin| bin[7].as_u64().unwrap()).sum();
        without_cost += row[5].as_u64().unwrap() - binned;
        let median = row[7].as_u64().unwrap();
        let upto = |limit: u64| -> u64 {
            mine.iter().filter(|bin| bin[5].as_u64().unwrap() <= limit).map(|bin| bin[7].as_u64().unwrap()).sum::<u64>()
        };
        assert!(2 * upto(median) >= binned, "{row}");
    }
    assert_eq!(
        without_cost,
        table("vcpus").iter().map(|row| row.as_array().unwrap().last().unwrap().as_u64().unwrap()).sum::<u64>()
    );
}

#[test]
fn a_section_is_answered_anew_as_its_controls_are_set() {
    const PLAN: &str = "/api/recordings/plan-chain";
    let client = Client::of_fixtures();
    let asked = |controls: &str| client.json(&format!("{PLAN}/sections/datapath?{controls}"));
    let value = |section: &Value, id: &str| {
        let controls = section["controls"].as_array().unwrap();
        let control = controls.iter().find(|control| control["id"] == id).unwrap();
        control["values"][control["chosen"].as_u64().unwrap() as usize].clone()
    };
    let report = client.json(&format!("{PLAN}/report"));
    assert_eq!(asked(""), report["sections"][0], "as it stands in the report");
    let four = asked("vnfs=4&mps=256");
    assert_eq!(
        (value(&four, "vnfs"), value(&four, "mps"), value(&four, "size")),
        ("4".into(), "256".into(), "64".into())
    );
    let rates = |section: &Value, design: &str| {
        let table = &section["tables"]["rates"];
        let columns = table["columns"].as_array().unwrap();
        let place = |name: &str| columns.iter().position(|column| column["name"] == name).unwrap();
        let row = table["rows"].as_array().unwrap().iter().find(|row| row[place("design")] == design).unwrap();
        (row[place("vnfs")].clone(), row[place("system_pps")].as_f64().unwrap())
    };
    let (vfs_of_8, vfs_of_4) = (rates(&report["sections"][0], "sriov"), rates(&four, "sriov"));
    assert_eq!((vfs_of_8.0, vfs_of_4.0), (8.into(), 4.into()));
    assert_eq!(vfs_of_8.1, vfs_of_4.1, "the card binds at 64 bytes, whatever the length and the payload");
    for (wrong, says) in [("vnfs=5000", "`vnfs`"), ("vnf=4", "did you mean `vnfs`?"), ("nic=XL711", "XL710")] {
        let reply = client.get(&format!("{PLAN}/sections/datapath?{wrong}"));
        assert!(reply.status == 400 && reply.text().contains(says), "{wrong}: {}", reply.text());
    }
    assert_eq!(client.get(&format!("{PLAN}/sections/flow")).status, 404);
    assert_eq!(client.get(&format!("{HOG}/sections/flow?vnfs=4")).status, 400, "it has no controls");
}

#[test]
fn how_far_a_reading_is_can_be_asked_while_it_goes_on() {
    let client = Client::of_fixtures();
    let id = "/api/recordings/svm-linux";
    let progress = || client.json(&format!("{id}/progress"));
    let nothing = json!({ "read_bytes": 0, "of_bytes": 0, "pass": 0 });
    assert_eq!(progress(), nothing, "nobody asked for it yet");
    let seen = std::thread::scope(|threads| {
        let reading = threads.spawn(|| client.get(&format!("{id}/report")).status);
        let mut seen = Vec::new();
        while !reading.is_finished() {
            seen.push(progress());
        }
        assert_eq!(reading.join().unwrap(), 200);
        seen
    });
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    assert!(seen.iter().all(|now| number(now, "read_bytes") <= number(now, "of_bytes")), "{seen:?}");
    assert!(seen.iter().any(|now| number(now, "of_bytes") > 0), "it was read while somebody asked: {seen:?}");
    let after = progress();
    assert_eq!((number(&after, "read_bytes"), number(&after, "of_bytes")), (0, 0), "it is read no longer");
    assert!(number(&after, "pass") >= 1);
    assert_eq!(client.get("/api/recordings/none-of-this-name/progress").status, 404);
}

#[test]
fn events_come_before_they_are_counted() {
    let client = Client::of_fixtures();
    let page = |offset: u64, limit: u64| client.json(&format!("{HOG}/events?offset={offset}&limit={limit}"));
    let tables = client.json(&format!("{HOG}/tables/flow/events"));
    let all: u64 = tables["rows"].as_array().unwrap().iter().map(|row| row[3].as_u64().unwrap()).sum();
    let first = page(0, 3);
    assert_eq!(first["events"].as_array().unwrap().len(), 3);
    assert!(first["total"].is_null() || first["total"] == all, "{first}");
    let counted = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        page(0, 0)["total"] == all
    });
    assert!(counted, "{all} events");
    let last = page(all - 2, 3);
    assert_eq!((last["events"].as_array().unwrap().len(), &last["total"]), (2, &json!(all)));
    // The end of a trace that nobody has counted is found by walking to it.
    let other = Client::of_fixtures().json(&format!("{HOG}/events?offset={}&limit=10", all - 1));
    assert_eq!((other["events"].as_array().unwrap().len(), &other["total"]), (1, &json!(all)));
    let one = |offset| page(offset, 1)["events"][0].clone();
    assert_eq!(page(100, 2)["events"], json!([one(100), one(101)]));
}

#[test]
fn metrics_are_those_of_the_tables() {
    let client = Client::of_fixtures();
    assert_eq!(client.get("/metrics").text(), "# EOF\n", "nothing was asked for yet");
    let reply = client.get("/metrics?recording=nested-vmx-shadow-off-hog");
    assert!(reply.head.contains("application/openmetrics-text; version=1.0.0"), "{}", reply.head);
    let sample = "kvmscope_flow_chains_count{recording=\"nested-vmx-shadow-off-hog\",machine=\"L0\",vm=\"nestv-98\",\
                  reason=\"CPUID\"} 149\n";
    assert!(reply.text().contains(sample) && reply.text().ends_with("# EOF\n"), "{}", reply.text());
    assert_eq!(client.get("/metrics").text(), reply.text(), "now it was");
}
