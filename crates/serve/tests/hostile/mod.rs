//! Requests that must not get what they ask for: nonsense, strangers, paths outside, too much, and never ending ones.

use crate::HOG;
use crate::client::{Client, fixtures};
use kvmscope_serve::{Error, Options, Server};
use serde_json::{Value, json};

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let client = Client::of_fixtures();
    for (asked, status) in [
        ("/tile?w=1000000000", 400),
        ("/tile?w=-1", 400),
        ("/tile?w=99999999999999999999", 400),
        ("/tile", 400),
        ("/tile?w=10&t0=9&t1=3", 400),
        ("/tile?w=10&t0=5&t1=5", 400),
        ("/tile?w=10&lanes=", 400),
        ("/tile?w=10&lanes=0,2", 404),
        ("/tile?w=10&lanes=4294967295", 404),
        ("/states?lane=0&t0=x", 400),
        ("/states", 400),
        ("/chains?sort=colour", 400),
        ("/chains?t0=2&t1=1", 400),
        ("/chains/-1", 400),
        ("/report?witness=L7", 400),
        ("/events?part=9", 404),
        ("/tables/none/chains", 404),
        ("/nothing", 404),
    ] {
        let reply = client.get(&format!("{HOG}{asked}"));
        assert_eq!(reply.status, status, "{asked}: {}", reply.text());
        let answer: Value = serde_json::from_slice(&reply.body).unwrap();
        let sentence = answer["error"].as_str().unwrap();
        assert!(sentence.len() > 10, "{asked}");
        for internal in ["deserialize", "digit", "u64", "usize", "query string", "/api/recordings"] {
            assert!(asked == "/nothing" || !sentence.contains(internal), "{asked}: {sentence}");
        }
    }
    let far = client.get(&format!("{HOG}/tile?w=8192&t0=0&t1=18446744073709551615&lanes={}", ["0"; 64].join(",")));
    assert_eq!(far.status, 200);
    assert_eq!(client.get(&format!("{HOG}/tile?w=1&lanes={}", ["0"; 513].join(","))).status, 400);
    assert_eq!(client.get(&format!("{HOG}/tile?w=8192&lanes={}", ["0"; 512].join(","))).status, 400);
    assert_eq!(client.json(&format!("{HOG}/chains?offset=18446744073709551615"))["chains"], json!([]));
    assert_eq!(client.json(&format!("{HOG}/events?offset=18446744073709551615"))["events"], json!([]));
}

#[test]
fn nothing_outside_the_folder_is_reached() {
    let client = Client::of_fixtures();
    for path in [
        "/api/recordings/../Cargo.toml/report",
        "/api/recordings/..%2FCargo.toml/report",
        "/api/recordings/~2E~2E~2FCargo.toml/report",
        "/api/recordings/~2Fetc~2Fpasswd/report",
        "/api/recordings/%00/report",
        "/api/recordings/nested-vmx-shadow-on~2F..~2F..~2FCargo.toml/report",
        "/..%2f..%2fCargo.toml",
        "/../Cargo.toml",
    ] {
        let reply = client.get(path);
        assert!((400..500).contains(&reply.status), "{path}: {} {}", reply.status, reply.text());
        assert!(!reply.text().contains("[workspace]"), "{path}");
    }
}

#[test]
fn only_this_machine_and_pages_of_this_server_are_answered() {
    let client = Client::of_fixtures();
    let host = |host: &str| client.send(&format!("GET /api/recordings HTTP/1.1\r\nHost: {host}\r\n\r\n")).status;
    assert_eq!((host("localhost:1"), host("[::1]")), (200, 200));
    assert_eq!((host("evil.example"), host("127.0.0.1.evil.example:80"), host("")), (403, 403, 403));
    let elsewhere = "POST /api/upload?name=x HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n";
    assert_eq!(client.send(elsewhere).status, 403);
    let reply = client.get("/");
    assert_eq!(reply.status, 200);
    assert!(reply.head.contains("default-src 'none'") && reply.head.contains("nosniff"), "{}", reply.head);
}

#[test]
fn a_server_for_others_needs_a_token() {
    let options = Options {
        folder: fixtures(),
        address: ([0, 0, 0, 0], 0).into(),
        token: None,
        upload_bytes: None,
        budget: None,
    };
    assert!(matches!(Server::start(&options), Err(Error::NeedsToken(_))));
    let client = Client::new(&Options { token: Some("s3cret".into()), ..options });
    assert_eq!((client.get("/metrics").status, client.get("/metrics?token=s3cret").status), (401, 200));
    let with = |line: &str| client.send(&format!("GET /api/recordings HTTP/1.1\r\nHost: localhost\r\n{line}\r\n"));
    assert_eq!((with("").status, with("Authorization: Bearer s3cre\r\n").status), (401, 401));
    assert_eq!(with("Authorization: Bearer s3cret\r\n").status, 200);
    assert_eq!(client.get("/api/recordings?token=s3cret").status, 200);
    assert_eq!(client.get("/api/recordings?token=s3cre").status, 401);
    let entered = client.get("/?token=s3cret");
    assert_eq!(entered.status, 303);
    let cookie = entered.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && entered.head.contains("location: /\r\n"), "{}", entered.head);
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(with(&format!("Cookie: a=b; {cookie}\r\n")).status, 200);
}

#[test]
fn uploads_are_traces_of_a_bounded_size_and_replace_nothing() {
    let place = tempfile::tempdir().unwrap();
    let options = Options {
        folder: place.path().to_owned(),
        address: ([127, 0, 0, 1], 0).into(),
        token: None,
        upload_bytes: Some(2 << 20),
        budget: None,
    };
    let refused = Client::new(&Options { upload_bytes: None, ..options.clone() });
    let trace = std::fs::read(fixtures().join("nested-vmx-shadow-on/L0/trace.dat")).unwrap();
    assert_eq!(refused.post("/api/upload?name=a.dat", b"x").status, 403);
    let client = Client::new(&options);
    assert_eq!(client.post("/api/upload?name=a.dat", &trace).status, 200);
    // Names that would make the folder one recording, or that a recorder writes.
    for name in
        ["recording.json", "Recording.JSON", "metadata", "METADATA", "live.json", "recording.json.new", "x.partial"]
    {
        assert_eq!(client.post(&format!("/api/upload?name={name}"), &trace).status, 400, "{name}");
    }
    for (name, status) in [("a.dat", 409), ("..%2fb", 400), (".c", 400), ("", 400)] {
        let reply = client.post(&format!("/api/upload?name={name}"), b"x");
        assert_eq!(reply.status, status, "{name}: {}", reply.text());
    }
    assert_eq!(client.post("/api/upload?name=d", b"no trace at all").status, 422);
    assert_eq!(
        client.send("POST /api/upload?name=e HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2097153\r\n\r\n").status,
        413
    );
    let chunked = format!("{:x}\r\n{}\r\n", (2 << 20) + 1, "x".repeat((2 << 20) + 1));
    let head = "POST /api/upload?name=f HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(client.send(&format!("{head}{chunked}0\r\n\r\n")).status, 413);
    let files: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["a.dat"], "nothing half-done is left");
    let timeline = client.json("/api/recordings/a.dat/timeline");
    let kinds: Vec<&Value> = timeline["lanes"].as_array().unwrap().iter().map(|lane| &lane["kind"]).collect();
    assert_eq!(kinds, ["vcpu", "cpu"]);
}

#[test]
fn half_requests_take_nobody_s_place_for_long() {
    use std::io::{Read, Write};
    let client = Client::of_fixtures();
    let half = || {
        let mut stream = std::net::TcpStream::connect(client.address()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
        stream
    };
    let mut slow: Vec<_> = (0..300).map(|_| half()).collect();
    assert_eq!(client.get("/api/recordings").status, 200, "answered once the slow ones are cut off");
    let mut rest = Vec::new();
    let _ = slow[0].read_to_end(&mut rest);
    // One that was answered and stays idle is cut off as well.
    let mut idle = std::net::TcpStream::connect(client.address()).unwrap();
    idle.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let _ = idle.read_to_end(&mut rest);
}
