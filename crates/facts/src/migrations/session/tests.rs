//! Sessions as QEMU and whoever asks it write them.

use super::super::Began;
use super::*;
use serde_json::json;

fn departs(messages: &[Message]) -> Option<Migration> {
    Departure::of_source(messages, "L0").map(|departure| departure.migration)
}

fn resumed(messages: &[Message]) -> Option<u64> {
    Arrival::of_target(messages, "L0")?.resumed_ns
}

fn to(at_ns: u64, id: u64, command: &str) -> Message {
    Message { at_ns, way: Way::ToQemu, message: json!({ "execute": command, "id": id }) }
}

fn from(at_ns: u64, message: Value) -> Message {
    Message { at_ns, way: Way::FromQemu, message }
}

fn event(us: u64, name: &str, data: Value) -> Message {
    from(0, json!({ "event": name, "data": data, "timestamp": { "seconds": 1, "microseconds": us } }))
}

#[test]
fn a_session_tells_when_passes_began_and_what_was_answered_to_what() {
    let ram =
        |transferred: u64| json!({ "status": "active", "ram": { "transferred": transferred, "page-size": 4096 } });
    let messages = [
        from(1, json!({ "QMP": {} })),
        to(2, 0, "migrate"),
        from(3, json!({ "return": {}, "id": 0 })),
        event(10, "MIGRATION_PASS", json!({ "pass": 1 })),
        to(5, 1, "query-migrate"),
        to(6, 2, "query-status"),
        event(20, "MIGRATION_PASS", json!({ "pass": 2 })),
        from(7, json!({ "return": { "status": "running" }, "id": 2 })),
        from(8, json!({ "return": ram(100), "id": 1 })),
        event(30, "STOP", Value::Null),
        event(40, "MIGRATION", json!({ "status": "device" })),
        event(50, "MIGRATION", json!({ "status": "completed" })),
    ];
    let migration = departs(&messages).unwrap();
    let us = |us: u64| 1_000_000_000 + us * 1_000;
    assert_eq!(migration.began_ns, 2);
    assert_eq!(migration.passes, [(1, us(10)), (2, us(20))]);
    assert_eq!((migration.stopped_ns, migration.ended.clone()), (Some(us(30)), Some((us(50), "completed".to_owned()))));
    let [(8, poll)] = &migration.polls[..] else { panic!("{:?}", migration.polls) };
    assert_eq!((poll.transferred_bytes, poll.zero_pages), (Some(100), None), "what is not told is missing");
    assert_eq!(departs(&messages[..1]), None);
    assert_eq!(resumed(&messages), None);
    let failed = || event(50, "MIGRATION", json!({ "status": "failed" }));
    let ended = |messages: &[Message]| departs(messages).unwrap().ended.unwrap().1;
    assert_eq!(ended(&[to(2, 0, "migrate"), to(3, 1, "migrate_cancel"), failed()]), "cancelled");
    assert_eq!(ended(&[to(2, 0, "migrate_cancel"), to(3, 1, "migrate"), failed()]), "failed", "that was another one");
    let target = [to(1, 0, "migrate-incoming"), event(60, "RESUME", Value::Null)];
    assert_eq!(resumed(&target), Some(us(60)));
    assert_eq!(resumed(&target[1..]), None, "somebody let a guest go on that was never moved");
}

fn asked(at_ns: u64, id: u64, answer: Value) -> [Message; 2] {
    [to(at_ns - 1_000, id, "query-migrate"), from(at_ns, json!({ "return": answer, "id": id }))]
}

const MS: u64 = 1_000_000;

#[test]
fn one_that_somebody_else_began_begins_with_what_is_first_heard_of_it() {
    let told = [
        event(10, "MIGRATION", json!({ "status": "setup" })),
        event(12, "MIGRATION_PASS", json!({ "pass": 1 })),
        event(13, "MIGRATION", json!({ "status": "active" })),
        event(50, "MIGRATION", json!({ "status": "completed" })),
    ];
    let us = |us: u64| 1_000_000_000 + us * 1_000;
    let migration = departs(&told).unwrap();
    assert_eq!((migration.began_ns, migration.began, migration.passes_are_polled), (us(10), Began::Told, false));
    let migration = departs(&told[1..]).unwrap();
    assert_eq!((migration.began_ns, migration.began), (us(12), Began::Before));
    assert_eq!(migration.total_ns(), None, "how long it had gone on is not known");
    // Where events are off, answers tell all of it.
    let poll = |ms: u64, pass: u64| json!({ "status": "active", "total-time": ms, "ram": { "dirty-sync-count": pass, "transferred": ms } });
    let kvm = [to(1, 90, "query-kvm"), from(2, json!({ "return": { "enabled": false }, "id": 90 }))];
    let begins = [kvm.to_vec(), asked(1_000 * MS, 0, json!({})).to_vec(), asked(1_100 * MS, 1, poll(70, 1)).to_vec()];
    let goes_on = [
        asked(1_200 * MS, 2, poll(170, 1)),
        asked(1_300 * MS, 3, poll(270, 2)),
        asked(1_400 * MS, 4, json!({ "status": "completed" })),
    ];
    let all = begins.into_iter().flatten().chain(goes_on.iter().flatten().cloned()).collect::<Vec<_>>();
    let migration = departs(&all).unwrap();
    assert_eq!((migration.began_ns, migration.began), (1_030 * MS, Began::Counted { error_ns: MS + 1_000 }));
    assert_eq!((migration.passes.clone(), migration.passes_are_polled), (vec![(1, 1_030 * MS), (2, 1_300 * MS)], true));
    assert_eq!(migration.ended, Some((1_400 * MS, "completed".to_owned())));
    assert_eq!(migration.is_emulated, Some(true));
    // Joined in its second pass: when that began is not known.
    let late: Vec<Message> = goes_on[1..].iter().flatten().cloned().collect();
    let migration = departs(&late).unwrap();
    assert_eq!((migration.began_ns, migration.passes.len()), (1_030 * MS, 0));
}

#[test]
fn what_blocks_is_what_was_answered_last() {
    let blocks = asked(2_000, 0, json!({ "blocked": true, "blocked-reasons": ["VFIO"] }));
    assert_eq!(blocked(&blocks), ["VFIO"]);
    let no_more = asked(4_000, 1, json!({ "blocked": false }));
    assert_eq!(blocked(&[blocks, no_more].concat()), [""; 0]);
}

#[test]
fn what_a_target_tells_that_waited_is_no_migration_of_its_own() {
    let waits = [to(1, 0, "query-status"), from(2, json!({ "return": { "status": "inmigrate" }, "id": 0 }))];
    let arrives = [
        event(10, "MIGRATION", json!({ "status": "setup" })),
        event(20, "RESUME", Value::Null),
        event(30, "MIGRATION", json!({ "status": "completed" })),
    ];
    let moves_on = [event(40, "MIGRATION", json!({ "status": "setup" })), event(50, "STOP", Value::Null)];
    let target = [&waits[..], &arrives[..]].concat();
    assert_eq!((departs(&target), resumed(&target)), (None, Some(1_000_020_000)));
    // The guest may set out just when somebody connects.
    let begins = [&waits[..1], &arrives[..1], &waits[1..], &arrives[1..]].concat();
    assert_eq!((departs(&begins), resumed(&begins)), (None, Some(1_000_020_000)));
    let both = [&target[..], &moves_on[..]].concat();
    assert_eq!(departs(&both).map(|migration| migration.began_ns), Some(1_000_040_000), "then it was moved on");
}

#[test]
fn a_target_that_never_ran_the_guest_is_found_by_its_address_and_what_it_alone_was_told() {
    let with = |at_ns, command: &str, arguments: Value| Message {
        at_ns,
        way: Way::ToQemu,
        message: json!({ "execute": command, "arguments": arguments }),
    };
    let on = |name: &str| json!({ "capabilities": [{ "capability": name, "state": true }] });
    let uri = |path: &str| json!({ "uri": path });
    let source = [
        with(1, "migrate-set-capabilities", on("multifd")),
        with(10, "migrate", uri("unix:a")),
        event(20, "STOP", Value::Null),
        event(30, "MIGRATION", json!({ "status": "pre-switchover" })),
        event(50, "MIGRATION", json!({ "status": "device" })),
        event(60, "MIGRATION", json!({ "status": "failed" })),
        to(70, 5, "query-status"),
        from(71, json!({ "return": { "running": true }, "id": 5 })),
    ];
    let target = |at_ns, path: &str, name: &str| {
        let told = [with(1, "migrate-set-capabilities", on(name)), with(at_ns, "migrate-incoming", uri(path))];
        Arrival::of_target(&told, "B").unwrap()
    };
    let mut targets =
        vec![target(2, "unix:a", "multifd"), target(9, "unix:a", "events"), target(10, "unix:b", "events")];
    let met = Departure::of_source(&source, "A").unwrap().meets(&mut targets);
    assert_eq!(met.one_sided, [("multifd".to_owned(), true)], "the nearest one at that address");
    assert_eq!((targets.len(), met.runs_on_source, met.resumed_ns), (2, Some(true), None));
    let held_ns = |migration: Migration| migration.held_ns.map(|(from_ns, until_ns)| until_ns - from_ns);
    assert_eq!(held_ns(met), Some(20_000));
    let mut let_go = source.to_vec();
    let_go.insert(4, to(1_000_037_000, 4, "migrate-continue"));
    assert_eq!(
        held_ns(Departure::of_source(&let_go, "A").unwrap().migration),
        Some(7_000),
        "that is when it was let go"
    );
}

#[test]
fn an_answer_that_comes_after_the_end_to_what_was_asked_before_begins_no_other_migration() {
    let us = |us: u64| 1_000_000_000 + us * 1_000;
    let active = json!({ "status": "active", "total-time": 1, "ram": { "dirty-sync-count": 2 } });
    let messages = [
        to(us(1), 0, "migrate"),
        event(10, "MIGRATION_PASS", json!({ "pass": 1 })),
        to(us(40), 7, "query-migrate"),
        event(50, "MIGRATION", json!({ "status": "completed" })),
        from(us(60), json!({ "return": active, "id": 7 })),
        to(us(70), 8, "query-migrate"),
        from(us(80), json!({ "return": { "status": "completed" }, "id": 8 })),
    ];
    let migration = departs(&messages).unwrap();
    assert_eq!((migration.began_ns, migration.method.is_some()), (us(1), true));
    assert_eq!(migration.ended, Some((us(50), "completed".to_owned())));
    // Asked afterwards, it is another one.
    let mut later = messages.to_vec();
    later[2] = to(us(55), 7, "query-migrate");
    assert_eq!(departs(&later).map(|migration| migration.method), Some(None));
}

#[test]
fn a_pass_that_is_told_after_the_failure_begins_no_other_migration() {
    let messages = [
        to(1, 0, "migrate"),
        event(10, "MIGRATION", json!({ "status": "setup" })),
        event(12, "MIGRATION", json!({ "status": "failed" })),
        event(55, "MIGRATION_PASS", json!({ "pass": 1 })),
    ];
    let migration = departs(&messages).unwrap();
    assert_eq!((migration.began_ns, migration.method.is_some()), (1, true));
    assert_eq!(migration.ended, Some((1_000_012_000, "failed".to_owned())));
}
