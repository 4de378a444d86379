//! A recording that is being made, over the network: its samples as server-sent events, and the mark in the list.

use crate::client::{self, Client};
use serde_json::Value;

const ENDED: &str = r#"{"schema":"kvmscope-live/1","every_ns":100000000,"ended":true,"samples":[
    {"number":7,"from_ns":0,"to_ns":100,"seen_share":1.0,"events_per_second":5.5,"exits_per_second":null,
     "userspace_exits_per_second":2.0,"chains_per_second":null,"exits_per_chain":null,"wakeup_p99_ns":12,"vcpus":1,
     "shares":{"kvm":null,"unknown":1.0},"vms":[],"lost_events":0,"bytes":4096},
    {"number":8,"from_ns":100,"to_ns":200,"seen_share":0.5,"events_per_second":6.5,"exits_per_second":0.0,
     "vcpus":0,"shares":{},"vms":[],"lost_events":3,"bytes":8192}]}"#;

fn folder() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (client::fixtures().join("nested-vmx-shadow-on"), place.path().join("now"));
    std::fs::create_dir_all(to.join("L0")).unwrap();
    for file in ["recording.json", "L0/trace.dat"] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
    place
}

#[test]
fn samples_come_as_events_and_the_end_is_said() {
    let folder = folder();
    let file = folder.path().join("now/live.json");
    let client = Client::of(folder.path());
    let none = client.get("/api/live");
    assert_eq!(none.status, 404, "{}", none.text());
    assert!(none.text().contains("record --live"), "{}", none.text());
    std::fs::write(&file, ENDED).unwrap();
    let live = |client: &Client| client.json("/api/recordings")["recordings"][0]["live"].clone();
    assert_eq!(live(&client), false);
    let reply = client.get("/api/live");
    assert!(reply.head.contains("text/event-stream") && reply.head.contains("nosniff"), "{}", reply.head);
    let text = reply.text();
    let events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["recording", "sample", "sample", "end"]);
    assert!(text.contains("{\"recording\":\"now\",\"every_ns\":100000000}") && text.contains("{\"reason\":\"ended\"}"));
    let sample = text.lines().find_map(|line| line.strip_prefix("data: {\"number\":8")).unwrap();
    let sample: Value = serde_json::from_str(&format!("{{\"number\":8{sample}")).unwrap();
    assert_eq!((&sample["exits_per_second"], &sample["exits_per_chain"]), (&Value::from(0.0), &Value::Null));
    let again = client.send("GET /api/live?recording=now HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 7\r\n\r\n");
    assert!(!again.text().contains("id: 7\n") && again.text().contains("id: 8\n"), "{}", again.text());
    std::fs::write(&file, ENDED.replace("\"ended\":true", "\"ended\":false")).unwrap();
    assert_eq!(live(&client), true);
}

#[test]
fn whoever_may_not_ask_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("now/live.json"), ENDED).unwrap();
    let client = Client::of(folder.path());
    assert_eq!(client.send("GET /api/live HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
    assert_eq!(client.get("/api/live?recording=..%2Fnow").status, 404);
    std::fs::write(folder.path().join("now/live.json"), b"\0 not JSON").unwrap();
    assert_eq!(client.get("/api/live").status, 404);
    std::fs::remove_file(folder.path().join("now/live.json")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("now/live.json")).unwrap();
    assert_eq!(client.get("/api/live?recording=now").status, 403);
}
