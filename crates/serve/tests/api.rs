//! The API as a client on the network sees it: right answers, and a golden file.

mod client;
mod hostile;
mod live;

use analysis::{About, Answers, Case, Given, Input};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::FileReader;
use base::recording::Recording;
use client::{Client, fixtures};
use kvmscope_serve::Options;
use serde_json::{Value, json};
use std::io::Cursor;

const HOG: &str = "/api/recordings/nested-vmx-shadow-off-hog";

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
    let case = Case::new(Input::open(Recording::open(&path).unwrap()).unwrap(), narrowed.clone());
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
        Case::new(Input::open(recording).unwrap(), Given::default())
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
    let input = Input::open(Recording::open(&fixtures().join("nested-vmx-shadow-off-hog")).unwrap()).unwrap();
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
fn a_tile_sums_to_the_exact_states() {
    let client = Client::of_fixtures();
    let timeline = client.json(&format!("{HOG}/timeline"));
    let states = timeline["states"].as_array().unwrap().len();
    let tile = client.get(&format!("{HOG}/tile?lanes=0&w=1")).body;
    assert_eq!((&tile[..4], tile.len()), (&b"KVTL"[..], 32 + 4 + states + 4 + 2 + 4));
    let exact = client.json(&format!("{HOG}/states?lane=0"));
    let exact: Vec<u64> = exact["time_ns"].as_array().unwrap().iter().map(|time| time.as_u64().unwrap()).collect();
    let whole: u64 = exact.iter().sum();
    assert_eq!(whole, timeline["span"]["to_ns"].as_u64().unwrap(), "the ledger closes");
    for (cover, time) in tile[36..].iter().zip(&exact) {
        assert!((f64::from(*cover) - 255.0 * *time as f64 / whole as f64).abs() < 1.0);
    }
    assert_eq!(tile[36..36 + states].iter().map(|cover| u32::from(*cover)).sum::<u32>(), 255);
}

#[test]
fn a_mean_is_that_of_its_lanes_and_long_answers_are_compressed_for_who_asks() {
    let client = Client::of_fixtures();
    let window = "t0=0&t1=100000000&w=64";
    let lanes = client.get(&format!("{HOG}/tile?lanes=0-1&{window}")).body;
    let mean = client.get(&format!("{HOG}/tile?means=0-1&{window}")).body;
    let states = usize::from(u16::from_le_bytes([lanes[30], lanes[31]]));
    let track = 4 + 64 * (states + 10);
    assert_eq!((lanes.len(), mean.len()), (32 + 2 * track, 32 + track));
    assert_eq!(mean[32..36], (1u32 << 31).to_le_bytes(), "its number is none of a lane");
    for at in 36..36 + 64 * states {
        let both = u32::from(lanes[at]) + u32::from(lanes[at + track]);
        assert!((2 * u32::from(mean[at])).abs_diff(both) <= 3, "{both} and {} at {at}", mean[at]);
    }
    assert_eq!(client.get(&format!("{HOG}/tile?means=0;7&{window}")).status, 404);
    let is_packed = |path: &str| {
        let head = format!("GET {HOG}{path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
        client.send(&head).head.to_lowercase().contains("content-encoding: gzip")
    };
    assert!(is_packed("/report"));
    assert!(!is_packed("/states?lane=0"), "too short");
}

#[test]
fn a_lane_comes_with_its_wake_ups_and_who_woke_it() {
    let client = Client::of_fixtures();
    let recording = "/api/recordings/svm-linux";
    let timeline = client.json(&format!("{recording}/timeline"));
    let whole = client.json(&format!("{recording}/slices?lane=0&limit=100000"));
    assert_eq!(whole["left_out"], 0);
    let wakes = whole["wakes"].as_array().unwrap();
    let ns = |wake: &Value, what: &str| wake[what].as_u64().unwrap();
    assert!(wakes.windows(2).all(|pair| ns(&pair[0], "ran_ns") <= ns(&pair[1], "woken_ns")), "in time order");
    // Those of a lane are named as its slices on a CPU are.
    let of_lane = |wake: &&Value| wake["by"]["lane"].as_u64().is_some();
    let mut lanes = 0;
    for wake in wakes.iter().filter(of_lane) {
        let lane = &timeline["lanes"][ns(&wake["by"], "lane") as usize];
        let name = wake["by"]["name"].as_str().unwrap();
        assert!(name.ends_with(&format!("({})", lane["tid"])), "{wake}: {lane}");
        lanes += 1;
    }
    let kinds = |kind: &str| wakes.iter().filter(|wake| wake["by"]["kind"] == kind).count();
    assert!(lanes > 0 && wakes.len() > lanes, "{lanes} of {}", wakes.len());
    assert_eq!(kinds("task") + kinds("interrupt"), wakes.len(), "nothing is lost there");
    // A window has those whose wait touches it, and an answer that ends early none behind its end.
    let one = &wakes[wakes.len() / 2];
    let (t0, t1) = (ns(one, "woken_ns") + 1, ns(one, "ran_ns"));
    let inside = client.json(&format!("{recording}/slices?lanes=0&t0={t0}&t1={t1}"));
    assert_eq!(inside["lanes"][0]["wakes"], json!([one]));
    let first = client.json(&format!("{recording}/slices?lane=0&limit=1"));
    let end_ns = ns(&first["slices"][0], "to_ns");
    let expected: Vec<&Value> = wakes.iter().filter(|wake| ns(wake, "woken_ns") <= end_ns).take(1).collect();
    assert_eq!(first["wakes"], json!(expected));
}

#[test]
fn a_chain_comes_with_its_slices_and_those_to_compare_it_with() {
    let client = Client::of_fixtures();
    let chain = client.json(&format!("{HOG}/chains/5"));
    let slices = chain["slices"].as_array().unwrap();
    let why: Vec<&str> =
        slices.iter().filter_map(|slice| slice["detail"].as_str()).filter(|why| !why.is_empty()).collect();
    let sequence: Vec<&str> = chain["sequence"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!((why[0], &why[1..]), ("CPUID", &sequence[..]));
    let cost_of = |pick: &str| {
        let id = chain["picks"][pick].as_u64().unwrap();
        client.json(&format!("{HOG}/chains/{id}"))["cost_ns"].as_u64().unwrap()
    };
    let cost = chain["cost_ns"].as_u64().unwrap();
    assert!(cost_of("previous") <= cost && cost <= cost_of("next"), "the next cheaper and the next dearer one");
    let worst = client.json(&format!("{HOG}/chains?reason=CPUID&sort=cost&descending=1&limit=1"));
    assert_eq!(chain["picks"]["worst"], worst["chains"][0]["id"]);
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
fn a_recording_that_cannot_be_opened_is_listed_with_its_reason() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("new")).unwrap();
    std::fs::write(place.path().join("new/recording.json"), r#"{"schema":"kvmscope-recording/9"}"#).unwrap();
    std::fs::write(place.path().join("cut.kvmscope"), b"\x28\xb5\x2f\xfd").unwrap();
    let folder = place.path().to_owned();
    let client = Client::new(&Options {
        folder,
        address: ([127, 0, 0, 1], 0).into(),
        token: None,
        upload_bytes: None,
        budget: None,
    });
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
fn a_data_set_is_listed_and_answers_as_fleet_report_does_also_after_more_was_added() {
    let place = tempfile::tempdir().unwrap();
    let dataset = fleet::Local::create(&place.path().join("nightly")).unwrap();
    let add = |name: &str| {
        let recording = fleet::opened(&fixtures().join(name)).unwrap().recording.clone();
        let (_, digest) = fleet::identity(&recording, &Given::default()).unwrap();
        let case = Case::new(Input::open(recording).unwrap(), Given::default());
        dataset.add(&fleet::added(&case, &digest).unwrap(), name).unwrap();
    };
    add("nested-vmx-shadow-off-hog");
    let client = Client::new(&Options {
        folder: place.path().to_owned(),
        address: ([127, 0, 0, 1], 0).into(),
        token: None,
        upload_bytes: None,
        budget: None,
    });
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
        assert!(brief["answer"].as_str().unwrap().contains("stands out"), "{brief}");
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
    let folder = place.path().to_owned();
    let client = Client::new(&Options {
        folder,
        address: ([127, 0, 0, 1], 0).into(),
        token: None,
        upload_bytes: None,
        budget: None,
    });
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
