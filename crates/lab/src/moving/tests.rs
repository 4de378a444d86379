use super::*;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use testing::wait_for;

const GREETING: &str =
    r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": ""}, "capabilities": []}}"#;

/// A QEMU of which `query-migrate` answers these, one after the other; after the last one it ends.
fn ends_after(socket: &Path, answers: Vec<Value>) -> JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        writeln!(stream, "{GREETING}").unwrap();
        let mut answers = answers.into_iter();
        for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
            let command: Value = serde_json::from_str(&line).unwrap();
            let answer = match command["execute"].as_str().unwrap() {
                "query-migrate" => answers.next(),
                "query-migrate-capabilities" => Some(json!([{ "capability": "events", "state": false }])),
                _ => Some(json!({})),
            };
            let Some(answer) = answer else { return };
            writeln!(stream, "{}", json!({ "return": answer, "id": command["id"] })).unwrap();
        }
    })
}

#[test]
fn it_only_reads_and_a_monitor_that_closes_is_an_end() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("qmp");
    let status = |status: &str| json!({ "status": status });
    let qemu = ends_after(
        &socket,
        vec![json!({}), status("active"), status("device"), status("completed"), status("completed")],
    );
    let recorder = MigrationRecorder::start(socket.to_str().unwrap(), 0, place.path(), "L0").unwrap();
    assert_eq!((recorder.partial().kind, recorder.partial().state), (PartKind::Qmp, PartState::Partial));
    wait_for("the end of the recorder", recorder.ended());
    qemu.join().unwrap();
    let [part] = &Box::new(recorder).stop().unwrap()[..] else { panic!() };
    let (messages, damaged) = base::qmp::read(&place.path().join(&part.path)).unwrap();
    assert_eq!(damaged, 0);
    let sent = messages.iter().filter(|one| one.way == base::qmp::Way::ToQemu);
    let sent: Vec<&str> = sent.map(|one| one.message["execute"].as_str().unwrap()).collect();
    assert_eq!(sent[..2], ["qmp_capabilities", "query-status"]);
    assert!(sent[1..].iter().all(|command| command.starts_with("query-") && !command.contains("dirty")), "{sent:?}");
    assert!(messages.iter().any(|one| one.message["return"]["status"] == "completed"));
}

#[test]
fn one_that_was_over_before_is_not_the_one_that_is_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("qmp");
    let _qemu = ends_after(&socket, vec![json!({ "status": "completed" }); 1000]);
    let recorder = MigrationRecorder::start(socket.to_str().unwrap(), 0, place.path(), "L0").unwrap();
    let asked = || {
        let (messages, _) = base::qmp::read(&place.path().join("L0/qmp/watched-0.jsonl")).unwrap();
        messages.iter().filter(|one| one.message["execute"] == "query-migrate").count()
    };
    wait_for("three questions", || asked() >= 3);
    assert!(!recorder.ended()(), "it waits for the next one");
    Box::new(recorder).stop().unwrap();
}

#[test]
fn a_monitor_that_is_taken_says_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("qmp");
    let _listener = UnixListener::bind(&socket).unwrap();
    let _other = UnixStream::connect(&socket).unwrap();
    let error = MigrationRecorder::start(socket.to_str().unwrap(), 0, place.path(), "L0").err().unwrap().to_string();
    assert!(error.contains("another program is connected") && error.contains("-qmp unix:PATH"), "{error}");
    let error = MigrationRecorder::start("no such vm", 0, place.path(), "L0").err().unwrap().to_string();
    assert!(error.contains("no VM is called no such vm"), "{error}");
    assert!(!place.path().join("L0").exists(), "nothing was begun");
}
