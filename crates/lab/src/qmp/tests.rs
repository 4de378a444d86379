use super::*;
use std::os::unix::net::UnixListener;

const PATIENCE: Duration = Duration::from_secs(5);
const GREETING: &str =
    r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": ""}, "capabilities": []}}"#;

/// A QEMU that greets, then which answers each command by what `answers` says of its name and id, in pieces of `piece` bytes.
fn fake(piece: usize, answers: impl Fn(&str, &Value) -> String + Send + 'static) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qmp");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut say = |line: &str| line.as_bytes().chunks(piece).for_each(|part| stream.write_all(part).unwrap());
        say(&format!("{GREETING}\r\n"));
        let commands = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let mut say = |line: &str| line.as_bytes().chunks(piece).for_each(|part| stream.write_all(part).unwrap());
        for line in commands {
            let command: Value = serde_json::from_str(&line).unwrap();
            say(&answers(command["execute"].as_str().unwrap(), &command["id"]));
        }
    });
    (folder, path)
}

fn ok(id: &Value) -> String {
    format!("{{\"return\": {{}}, \"id\": {id}}}\r\n")
}

#[test]
fn events_that_come_before_an_answer_are_kept_with_their_own_times() {
    let stop = r#"{"timestamp": {"seconds": 1700000000, "microseconds": 123456}, "event": "STOP"}"#;
    let (_folder, path) = fake(3, move |command, id| match command {
        "stop" => format!("{stop}\r\n{}", ok(id)),
        _ => ok(id),
    });
    let mut qmp = Qmp::connect(&path, PATIENCE, || 7).unwrap();
    assert_eq!(qmp.version(), "7.2.22");
    qmp.execute("stop", Value::Null, PATIENCE).unwrap();
    let event = qmp.event(PATIENCE).unwrap().unwrap();
    assert_eq!((event.name.as_str(), event.at_ns), ("STOP", Some(1_700_000_000_123_456_000)));
    assert_eq!(qmp.event(Duration::from_millis(20)).unwrap(), None);
    let ways: Vec<Way> = qmp.messages().iter().map(|message| message.way).collect();
    use Way::{FromQemu, ToQemu};
    assert_eq!(ways, [FromQemu, ToQemu, FromQemu, ToQemu, FromQemu, FromQemu]);
    assert!(qmp.messages().iter().all(|message| message.at_ns == 7));
}

#[test]
fn what_qemu_refuses_is_said_in_its_own_words() {
    let (_folder, path) = fake(4096, |command, id| match command {
        "migrate" => {
            format!(
                r#"{{"error": {{"class": "GenericError", "desc": "There's a migration process in progress"}}, "id": {id}}}"#
            ) + "\n"
        }
        _ => ok(id),
    });
    let mut qmp = Qmp::connect(&path, PATIENCE, || 0).unwrap();
    let error = qmp.execute("migrate", json!({"uri": "unix:x"}), PATIENCE).unwrap_err().to_string();
    assert_eq!(error, "QEMU refuses migrate: There's a migration process in progress");
    qmp.execute("query-status", Value::Null, PATIENCE).unwrap();
}

#[test]
fn one_that_does_not_answer_and_one_that_is_none_are_told_apart() {
    let (_folder, path) = fake(4096, |command, id| if command == "hang" { String::new() } else { ok(id) });
    let mut qmp = Qmp::connect(&path, PATIENCE, || 0).unwrap();
    let error = qmp.execute("hang", Value::Null, Duration::from_millis(30)).unwrap_err().to_string();
    assert!(error.contains("no answer to hang within"), "{error}");
    let (folder, path) = fake(4096, |_, _| "no JSON\n".to_owned());
    let error = Qmp::connect(&path, PATIENCE, || 0).err().unwrap().to_string();
    assert!(error.contains("not JSON"), "{error}");
    let error = Qmp::connect(&folder.path().join("none"), PATIENCE, || 0).err().unwrap().to_string();
    assert!(error.contains("none"), "{error}");
}

#[test]
fn a_schema_tells_commands_arguments_and_capabilities_of_migrations() {
    let schema = json!([
        {"name": "migrate-set-capabilities", "meta-type": "command", "arg-type": "1"},
        {"name": "1", "meta-type": "object", "members": [{"name": "capabilities", "type": "[2]"}]},
        {"name": "[2]", "meta-type": "array", "element-type": "2"},
        {"name": "2", "meta-type": "object", "members": [{"name": "capability", "type": "3"}, {"name": "state", "type": "bool"}]},
        {"name": "3", "meta-type": "enum", "values": ["xbzrle", "events"]},
        {"name": "calc-dirty-rate", "meta-type": "command", "arg-type": "4"},
        {"name": "4", "meta-type": "object", "members": [{"name": "calc-time", "type": "int"}, {"name": "mode", "type": "5"}]},
    ]);
    let abilities = Abilities::of_schema(&schema);
    assert!(abilities.has("calc-dirty-rate") && !abilities.has("migrate"));
    assert!(abilities.takes("calc-dirty-rate", "mode") && !abilities.takes("calc-dirty-rate", "calc-time-unit"));
    assert!(abilities.has_capability("events") && !abilities.has_capability("mapped-ram"));
    assert!(abilities.accepts("migrate-set-capabilities", &["capabilities", "capability"], "xbzrle"), "through a list");
    assert!(!abilities.accepts("calc-dirty-rate", &["mode"], "dirty-ring"), "nobody says what type 5 is");
    assert!(!Abilities::of_schema(&json!({"no": "schema"})).has("migrate"));
}

#[test]
fn a_real_qemu_tells_what_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qmp");
    let arguments = ["-accel", "tcg", "-M", "none", "-nodefaults", "-display", "none", "-S", "-qmp"];
    let program = std::process::Command::new("qemu-system-x86_64")
        .args(arguments)
        .arg(format!("unix:{},server=on,wait=off", path.display()))
        .spawn();
    let Ok(mut program) = program else {
        eprintln!("skipped: qemu-system-x86_64 is not installed");
        return;
    };
    // The socket is there before anybody listens to it.
    let until = Instant::now() + Duration::from_secs(20);
    let mut connected = Qmp::connect(&path, PATIENCE, || 0);
    while connected.is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
        connected = Qmp::connect(&path, PATIENCE, || 0);
    }
    let asked = connected.and_then(|mut qmp| {
        let abilities = qmp.abilities(PATIENCE)?;
        let status = qmp.execute("query-status", Value::Null, PATIENCE)?;
        Ok((abilities, status))
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let (abilities, status) = asked.unwrap();
    assert_eq!(status["running"], false);
    assert!(abilities.has("migrate") && abilities.takes("calc-dirty-rate", "calc-time"));
    assert!(["events", "postcopy-ram", "multifd"].iter().all(|name| abilities.has_capability(name)));
}
