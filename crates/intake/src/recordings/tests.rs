use super::*;

const ROW: &str = "T: 0 ( 1001) P:80 I:1000 C:  10000 Min:      5 Act:    9 Avg:   12 Max:     340\n";

fn brought(bytes: &[u8]) -> Option<Vec<(Vec<String>, usize)>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("paste.txt");
    fs::write(&path, bytes).unwrap();
    let scratch = directory.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let brought = open(parted(&path).unwrap()?, &path, Path::new("in/paste.txt"), &scratch).unwrap();
    let of = |recording: &Recording| {
        let names = recording.shown.iter().map(|shown| shown.name.display().to_string());
        (names.collect(), recording.problems.len())
    };
    Some(brought.recordings.iter().map(of).collect())
}

#[test]
fn runs_are_recordings_called_by_their_lines() {
    let text = format!("Before:\n{ROW}After:\n{ROW}");
    let names = |name: &str| vec![name.to_owned()];
    assert_eq!(
        brought(text.as_bytes()).unwrap(),
        [(names("in/paste.txt:2"), 0), (names("in/paste.txt:4"), 1)],
        "what nobody reads is said once"
    );
    assert_eq!(brought(format!("Hello,\n{ROW}").as_bytes()).unwrap(), [(names("in/paste.txt"), 1)]);
}

#[test]
fn what_is_one_piece_as_it_stands_or_no_text_stays_where_it_lies() {
    assert!(brought(ROW.as_bytes()).is_none());
    assert!(brought(ROW.replace('\n', "\r\n").as_bytes()).is_none());
    assert!(brought(b"\x17\x08\x44tracing6\0\0\0\0").is_none());
    let with_colours = [b"\x17\x08\x44tracing6\0\0\0\0\x1b[1m\n".as_slice(), ROW.as_bytes()].concat();
    assert!(brought(&with_colours).is_none(), "a byte of a binary file that looks like a colour makes no text of it");
    assert!(brought(b"Dear all,\n").is_none());
    assert!(brought(b"").is_none());
    assert!(brought(format!("\u{feff}{ROW}").as_bytes()).is_some());
}
