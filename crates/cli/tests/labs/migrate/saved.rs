//! Guests are saved to files and woken from them.

use super::{about_migration, lab, left, rows};
use serde_json::Value;
use testing::Workspace;

#[test]
fn a_guest_that_was_saved_wakes_with_the_same_memory_and_its_file_is_what_was_said() {
    let directory = Workspace::alone();
    let Some(mut lab) = lab(directory.path(), &["--to-file", "--json"]) else { return };
    let output = lab.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(left(directory.path()), [""; 0]);
    let section = &about_migration(&output.stdout);
    let columns = section["tables"]["wakes"]["columns"].as_array().unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["guest", "saved_bytes", "save_ns", "wake_ns", "predicted_low_ns", "predicted_high_ns", "disk_bytes_per_s"]
    );
    let (of, wakes) = rows(section, "wakes");
    let row = &wakes[0];
    assert!(row[of("saved_bytes")].as_u64().unwrap() > 32 << 20, "what is hot is in it: {row:?}");
    assert!(row[of("wake_ns")].is_u64() && row[of("save_ns")].is_u64(), "{row:?}");
    let (of, saves) = rows(section, "saves");
    assert_eq!(saves[0][of("equal")], true, "{saves:?}");
    let pages = |column: &str| saves[0][of(column)].as_u64().unwrap();
    assert!(pages("zero_pages") + pages("normal_pages") >= 128 << 8, "all pages of 128 MiB: {saves:?}");
    let (of, residuals) = rows(section, "residuals");
    let saved = residuals.iter().find(|row| row[of("what")] == "saved").unwrap();
    assert_eq!((residuals.len(), &saved[of("inside")]), (3, &Value::Bool(true)), "{residuals:?}");
}
