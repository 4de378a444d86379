//! What the timeline is drawn from, over the network: tiles, lanes with their wake-ups, chains.

use crate::client::{Client, HOG};
use serde_json::{Value, json};

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
