//! Traces that are cut short, contradict themselves or want to be endless.

use super::events::Whole;
use super::lttng::fixture;
use super::made::{Bits, INTEGERS, Made, packet, plain};
use kvmscope_trace::ctf;
use proptest::prelude::*;
use std::fs;
use std::process::Command;

/// A metadata with everything that has a length, and a stream of a few events.
fn rich() -> (String, Vec<u8>) {
    let metadata = plain(
        "le",
        "event { name = e; id = 1; fields := struct { string s; uint8_t n; uint32_t list[n];
    enum : uint8_t { small, wide } tag; variant <tag> { uint8_t small; struct { uint16_t a; string b; } wide; } v; }; };
event { name = fixed; id = 2; fields := struct { uint32_t a; uint8_t raw[5]; }; };",
    );
    let mut bits = packet(Bits::little());
    for time in 0..4 {
        bits = bits.u8(1).u64(time).text("text").u8(2).u32(1).u32(2).u8(1).u16(5).text("b");
        bits = bits.u8(2).u64(time).u32(9).bytes(b"12345").u8(1).u64(time).text("").u8(0).u8(0).u8(3);
    }
    (metadata, bits.bytes)
}

fn is_prefix(part: &Whole, all: &Whole) -> bool {
    all.events.starts_with(&part.events) && part.events.len() as u64 == part.counted
}

#[test]
fn a_stream_cut_at_any_byte_gives_the_events_before_it() {
    let (metadata, stream) = rich();
    let all = Made::new(&metadata, &[&stream]).read();
    assert_eq!((all.events.len(), all.problems.len()), (12, 0), "{:?}", all.problems);
    let mut whole_at = 0;
    for length in 0..stream.len() {
        let part = Made::new(&metadata, &[&stream[..length]]).read();
        assert!(is_prefix(&part, &all), "{length} bytes");
        // Either the cut falls between two events, or it is noted.
        assert_eq!(part.problems.is_empty(), length == 0 || part.events.len() > whole_at || length == 4, "{length}");
        whole_at = part.events.len();
    }
}

#[test]
fn metadata_cut_at_any_byte_opens_or_says_where_it_ends() {
    let (metadata, stream) = rich();
    for length in (0..metadata.len()).filter(|length| metadata.is_char_boundary(*length)) {
        let made = Made::new(&metadata[..length], &[&stream]);
        if let Err(error) = ctf::open(made.path()) {
            let error = error.to_string();
            assert!(error.contains("expected") || error.contains("not a format"), "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn changed_bytes_never_do_harm(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_metadata: bool,
    ) {
        let (metadata, mut stream) = rich();
        let mut metadata = metadata.into_bytes();
        for (place, byte) in changes {
            let bytes = if in_metadata { &mut metadata } else { &mut stream };
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        let made = Made::new(&metadata, &[&stream]);
        if let Ok(trace) = ctf::open(made.path()) {
            super::events::read(trace.as_ref());
        }
    }
}

#[test]
fn a_stream_shorter_than_its_packet_says_keeps_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["metadata", "ch_0", "ch_1"] {
        fs::copy(fixture().join(name), directory.path().join(name)).unwrap();
    }
    let whole = super::events::read_path(directory.path());
    let bytes = fs::read(fixture().join("ch_1")).unwrap();
    fs::write(directory.path().join("ch_1"), &bytes[..bytes.len() - 1_001]).unwrap();
    let short = super::events::read_path(directory.path());
    let lost = whole.events.len() - short.events.len();
    assert!((10..100).contains(&lost), "{lost} events in a thousand bytes");
    let texts: Vec<_> =
        short.problems.iter().map(|problem| (problem.expected.as_str(), problem.bytes_skipped)).collect();
    assert_eq!(texts[0], ("a packet as long as its header says", 1_001));
}

#[test]
fn unknown_events_end_their_packet_and_are_counted() {
    let (metadata, _) = rich();
    let stream = packet(Bits::little()).u8(2).u64(1).u32(9).bytes(b"12345").u8(77).bytes(&[0; 30]).bytes;
    let whole = Made::new(metadata, &[&stream]).read();
    assert_eq!((whole.events.len(), whole.problems.len()), (1, 1));
    let problem = &whole.problems[0];
    assert_eq!((problem.found.as_str(), problem.offset, problem.bytes_skipped), ("event id 77", Some(22), 31));
}

#[test]
fn sizes_that_contradict_each_other_end_the_stream_or_are_brought_into_line() {
    let metadata = format!(
        "/* CTF 1.8 */\n{INTEGERS}
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ uint32_t magic; }}; }};
stream {{ packet.context := struct {{ uint64_t content_size; uint64_t packet_size; }}; event.header := struct {{ uint8_t id; }}; }};
event {{ name = x; id = 0; fields := struct {{ uint8_t v; }}; }};"
    );
    // content, size, events that are read
    let cases =
        [(22 * 8, 22 * 8, 1), (0, 0, 0), (0, 22 * 8, 0), (22 * 8, 8, 0), (99 * 8, 22 * 8, 1), (u64::MAX, u64::MAX, 1)];
    for (content, size, events) in cases {
        let stream = packet(Bits::little()).u64(content).u64(size).u8(0).u8(5).bytes;
        let whole = Made::new(&metadata, &[&stream]).read();
        assert_eq!(whole.events.len(), events, "{content} of {size}");
        let damaged = whole.problems.iter().any(|problem| problem.expected != "a clock");
        assert_eq!(damaged, (content, size) != (22 * 8, 22 * 8), "{:?}", whole.problems);
    }
}

#[test]
fn arrays_of_nothing_end_although_they_say_they_are_endless() {
    let metadata = plain(
        "le",
        "event { name = x; id = 1; fields := struct { uint64_t n; struct { } void[n]; struct { uint8_t a[0]; } rows[n]; }; };",
    );
    let stream = packet(Bits::little()).u8(1).u64(1).u64(u64::MAX).bytes(&[0; 64]).bytes;
    let whole = Made::new(metadata, &[&stream]).read();
    assert_eq!(whole.events.len(), 0);
    assert_eq!(whole.problems[0].expected, "arrays of bounded length");
}

#[test]
fn types_that_double_at_each_level_are_refused() {
    let mut types = "struct s0 { uint8_t a; uint8_t b; };\n".to_owned();
    for level in 1..40 {
        types += &format!("struct s{level} {{ struct s{} a; struct s{} b; }};\n", level - 1, level - 1);
    }
    let made = Made::new(plain("le", &format!("{types}event {{ name = x; fields := struct s39; }};")), &[]);
    let error = ctf::open(made.path()).err().unwrap().to_string();
    assert!(error.contains("fields in one event"), "{error}");
}

#[test]
fn types_of_endless_depth_are_refused() {
    let chain = |first: &str, next: fn(usize) -> String| {
        let types: String = (1..5_000).map(next).collect();
        let made =
            Made::new(plain("le", &format!("{first}{types}event {{ name = x; fields := struct t4999; }};")), &[]);
        ctf::open(made.path()).err().unwrap().to_string()
    };
    let structs = chain("struct t0 { uint8_t a; };\n", |n| format!("struct t{n} {{ struct t{} a; }};\n", n - 1));
    let arrays = chain("typedef uint8_t t0[1];\n", |n| format!("typedef t{} t{n}[1];\n", n - 1));
    let inside = format!("event {{ name = x; fields := struct {{ uint8_t a{}; }}; }};", "[1]".repeat(5_000));
    let inside = ctf::open(Made::new(plain("le", &inside), &[]).path()).err().unwrap().to_string();
    for error in [structs, arrays, inside] {
        assert!(error.contains("types nested at most 64 deep"), "{error}");
    }
}

#[test]
fn files_that_are_no_streams_are_passed_over() {
    let (metadata, stream) = rich();
    let made = Made::new(metadata, &[&stream, b"notes of somebody", b""]);
    fs::create_dir(made.path().join("index")).unwrap();
    fs::write(made.path().join("index/stream_0.idx"), b"\xC1\xF1\xDC\xC1junk").unwrap();
    fs::write(made.path().join(".hidden"), b"junk").unwrap();
    let whole = made.read();
    assert_eq!((whole.events.len(), whole.problems.len()), (12, 1));
    assert_eq!(whole.problems[0].expected, "the magic number of a packet");
}

/// Neither waits, nor fails the streams beside it, nor vanishes.
#[test]
fn what_is_no_file_among_streams_is_named() {
    let (metadata, stream) = rich();
    let made = Made::new(metadata, &[&stream]);
    assert!(Command::new("mkfifo").arg(made.path().join("fifo")).status().unwrap().success());
    std::os::unix::fs::symlink("nowhere", made.path().join("lost")).unwrap();
    let whole = made.read();
    let said: Vec<&str> = whole.problems.iter().map(|problem| problem.text.as_str()).collect();
    assert_eq!((whole.events.len(), said.len()), (12, 2), "{said:?}");
    assert!(said[0].ends_with("fifo: it is a FIFO, not a regular file; this stream is skipped"), "{said:?}");
    assert!(said[1].contains("lost: No such file or directory"), "{said:?}");
}

#[test]
fn metadata_without_end_or_of_fields_without_number_is_refused_with_its_bound() {
    let refused = |made: &Made| ctf::open(made.path()).err().map(|error| error.to_string()).unwrap_or_default();
    let sparse = Made::new(format!("/* CTF 1.8 */\n{INTEGERS}"), &[]);
    let metadata = std::fs::OpenOptions::new().write(true).open(sparse.path().join("metadata")).unwrap();
    metadata.set_len(6 << 30).unwrap();
    assert!(refused(&sparse).contains("it has more than 16777216 bytes"), "{}", refused(&sparse));
    let mut text = format!("/* CTF 1.8 */\n{INTEGERS}\ntrace {{ major = 1; minor = 8; byte_order = le; }};\n");
    text += "typealias struct { uint8_t a; uint8_t b; } := t0;\n";
    for level in 0..15 {
        text += &format!("typealias struct {{ t{level} a; t{level} b; }} := t{};\n", level + 1);
    }
    // Each event alone is within its own bound.
    for event in 0..40 {
        text += &format!("event {{ id = {event}; name = \"e{event}\"; fields := struct {{ t14 x; }}; }};\n");
    }
    let nested = Made::new(text, &[&[0; 64]]);
    assert!(refused(&nested).contains("more than 1048576 fields in all events"), "{}", refused(&nested));
}
