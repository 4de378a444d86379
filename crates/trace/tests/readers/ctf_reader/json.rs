//! CTF 2. No reader of it is in Debian 12, so these vectors are our own: the same bytes described by TSDL and by JSON
//! must give the same events, and what only CTF 2 has is checked against values written by hand.

use super::babeltrace;
use super::made::{Bits, Made, packet, plain};
use kvmscope_trace::{Format, ctf};

/// Fragments, each after its record separator.
fn fragments(fragments: &[&str]) -> String {
    fragments.iter().map(|fragment| format!("\u{1E}{fragment}\n")).collect()
}

const PREAMBLE: &str = r#"{"type": "preamble", "version": 2, "uuid": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}"#;
const CLOCK: &str = r#"{"type": "clock-class", "id": "c", "name": "monotonic", "frequency": 1000000000, "namespace": "n",
    "origin": "unix-epoch", "offset-from-origin": {"seconds": 2, "cycles": -5}, "precision": 1}"#;
const ALIASES: [&str; 3] = [
    r#"{"type": "field-class-alias", "name": "u8", "field-class":
        {"type": "fixed-length-unsigned-integer", "length": 8, "alignment": 8, "byte-order": "little-endian"}}"#,
    r#"{"type": "field-class-alias", "name": "u16", "field-class":
        {"type": "fixed-length-unsigned-integer", "length": 16, "alignment": 8, "byte-order": "little-endian"}}"#,
    r#"{"type": "field-class-alias", "name": "u32", "field-class":
        {"type": "fixed-length-unsigned-integer", "length": 32, "alignment": 8, "byte-order": "little-endian"}}"#,
];
const TRACE: &str = r#"{"type": "trace-class", "name": "t", "uid": "x", "environment": {"hostname": "h", "tracer_major": 2},
    "packet-header-field-class": {"type": "structure", "member-classes": [
        {"name": "m", "field-class": {"type": "fixed-length-unsigned-integer", "length": 32, "alignment": 8,
            "byte-order": "little-endian", "roles": ["packet-magic-number"]}}]}}"#;
const STREAM: &str = r#"{"type": "data-stream-class", "default-clock-class-id": "c", "event-record-header-field-class":
    {"type": "structure", "member-classes": [
        {"name": "kind", "field-class": {"type": "fixed-length-unsigned-integer", "length": 8, "alignment": 8,
            "byte-order": "little-endian", "roles": ["event-record-class-id"]}},
        {"name": "when", "field-class": {"type": "fixed-length-unsigned-integer", "length": 64, "alignment": 8,
            "byte-order": "little-endian", "roles": ["default-clock-timestamp"]}}]}}"#;

/// Metadata of one stream with these events.
fn metadata(events: &[&str]) -> String {
    let start = [&[PREAMBLE, CLOCK], &ALIASES[..], &[TRACE, STREAM]].concat();
    fragments(&[start.as_slice(), events].concat())
}

/// One event called `e` with id 1 and these members.
fn event(members: &str) -> String {
    let payload = format!(r#"{{"type": "structure", "member-classes": [{members}]}}"#);
    format!(r#"{{"type": "event-record-class", "id": 1, "name": "prov:e", "payload-field-class": {payload}}}"#)
}

#[test]
fn the_same_bytes_are_the_same_events_in_both_versions() {
    let tsdl = plain(
        "le",
        "typealias integer { size = 8; align = 8; encoding = UTF8; } := char;
typealias integer { size = 8; align = 8; } := byte;
typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; byte_order = be; } := float_be;
event { name = \"prov:e\"; id = 1; fields := struct {
    integer { size = 3; align = 1; } bits; integer { size = 13; align = 1; signed = true; } more;
    string s; byte n; uint16_t list[n]; char fixed[4]; char counted[n];
    enum : byte { a, b = 1 ... 3 } state; variant <state> { uint16_t a; uint16_t b; } v;
    struct { uint8_t x; integer { size = 32; align = 32; byte_order = be; } y; } inner; float_be f;
    struct { byte m; byte raw[m]; } rows[2]; }; };",
    )
    .replace("name = c; freq", "name = c; offset_s = 1; offset = 999999995; freq");
    let members = r#"
        {"name": "bits", "field-class": {"type": "fixed-length-unsigned-integer", "length": 3, "byte-order": "little-endian"}},
        {"name": "more", "field-class": {"type": "fixed-length-signed-integer", "length": 13, "byte-order": "little-endian",
            "bit-order": "first-to-last"}},
        {"name": "s", "field-class": {"type": "null-terminated-string"}},
        {"name": "n", "field-class": "u8"},
        {"name": "list", "field-class": {"type": "dynamic-length-array", "element-field-class": "u16",
            "length-field-location": {"path": ["n"]}}},
        {"name": "fixed", "field-class": {"type": "static-length-string", "length": 4}},
        {"name": "counted", "field-class": {"type": "dynamic-length-string",
            "length-field-location": {"origin": "event-record-payload", "path": ["n"]}}},
        {"name": "state", "field-class": {"type": "fixed-length-unsigned-integer", "length": 8, "alignment": 8,
            "byte-order": "little-endian", "mappings": {"a": [[0, 0]], "b": [[1, 3]]}}},
        {"name": "v", "field-class": {"type": "variant", "selector-field-location": {"path": ["state"]}, "options": [
            {"name": "a", "selector-field-ranges": [[0, 0]], "field-class": "u16"},
            {"name": "b", "selector-field-ranges": [[1, 3]], "field-class": "u16"}]}},
        {"name": "inner", "field-class": {"type": "structure", "member-classes": [
            {"name": "x", "field-class": "u8"},
            {"name": "y", "field-class": {"type": "fixed-length-unsigned-integer", "length": 32, "alignment": 32,
                "byte-order": "big-endian", "attributes": {"whose": 1}}}]}},
        {"name": "f", "field-class": {"type": "fixed-length-floating-point-number", "length": 32, "alignment": 8,
            "byte-order": "big-endian"}},
        {"name": "rows", "field-class": {"type": "static-length-array", "length": 2, "element-field-class":
            {"type": "structure", "member-classes": [
                {"name": "m", "field-class": "u8"},
                {"name": "raw", "field-class": {"type": "dynamic-length-array", "element-field-class": "u8",
                    "length-field-location": {"path": ["m"]}}}]}}}"#;
    let mut stream = packet(Bits::little());
    for (time, state) in [(1_000, 0), (2_000, 2)] {
        stream = stream
            .u8(1)
            .u64(time)
            .align(32)
            .put(3, 5)
            .put(13, -9i64 as u64)
            .text("word")
            .u8(2)
            .u16(7)
            .u16(8)
            .bytes(b"abc\0hi");
        stream = stream.u8(state).u16(77).align(32).u8(1).align(32).bytes(&[0, 0, 1, 2]).bytes(&1.5f32.to_be_bytes());
        stream = stream.u8(0).u8(3).bytes(&[1, 2, 3]);
    }
    let one = Made::new(tsdl, &[&stream.bytes]);
    let two = Made::new(metadata(&[&event(members)]), &[&stream.bytes]);
    assert!(ctf::sniff(two.path()));
    assert_eq!(ctf::open(one.path()).unwrap().facts().format, Format::Ctf1);
    let trace = ctf::open(two.path()).unwrap();
    let facts = trace.facts();
    assert_eq!(
        (facts.format, facts.clock.name.as_str(), facts.hostname.as_deref()),
        (Format::Ctf2, "monotonic", Some("h"))
    );
    assert_eq!(facts.event_types, ctf::open(one.path()).unwrap().facts().event_types);
    if babeltrace::is_there() {
        assert_eq!(babeltrace::compare(one.path()), 2);
    }
    let (one, two) = (one.read(), two.read());
    assert_eq!((one.events.len(), one.problems.len(), two.problems.len()), (2, 0, 0), "{:?}", two.problems);
    assert_eq!(one.events, two.events);
    assert_eq!(
        (one.events[0].time_ns, one.events[1].int("more"), one.events[1].int("inner.y")),
        (2_000_000_995, -9, 258)
    );
}

#[test]
fn what_only_ctf_2_has_is_read() {
    let members = r#"
        {"name": "flag", "field-class": {"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian", "alignment": 8}},
        {"name": "maybe", "field-class": {"type": "optional", "field-class": "u16", "selector-field-location": {"path": ["flag"]}}},
        {"name": "in_range", "field-class": {"type": "optional", "field-class": {"type": "null-terminated-string"},
            "selector-field-location": {"path": ["flag"]}, "selector-field-ranges": [[5, 9]]}},
        {"name": "map", "field-class": {"type": "fixed-length-bit-map", "length": 16, "byte-order": "big-endian",
            "bit-order": "last-to-first", "flags": {"x": [[0, 1]]}}},
        {"name": "array", "field-class": {"type": "fixed-length-bit-array", "length": 16, "byte-order": "little-endian",
            "bit-order": "last-to-first"}},
        {"name": "small", "field-class": {"type": "variable-length-signed-integer"}},
        {"name": "large", "field-class": {"type": "variable-length-unsigned-integer", "mappings": {"many": [[0, 999]]}}},
        {"name": "wide", "field-class": {"type": "null-terminated-string", "encoding": "utf-16be"}},
        {"name": "blob", "field-class": {"type": "static-length-blob", "length": 3, "media-type": "image/png"}},
        {"name": "rest", "field-class": {"type": "dynamic-length-blob", "length-field-location": {"path": ["large"]}}},
        {"name": "aligned", "field-class": {"type": "static-length-array", "length": 1, "minimum-alignment": 64,
            "element-field-class": "u8"}}"#;
    let event = event(members);
    let first = packet(Bits::little())
        .u8(1)
        .u64(5)
        .align(64)
        .u8(1)
        .u16(300)
        .bytes(&[0x12, 0x34, 0x34, 0x12])
        .bytes(&[0x7E, 0x82, 0x01]);
    let wide: Vec<u8> = "aß\0".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let first = first.bytes(&wide).bytes(&[1, 2, 3]).bytes(&[9; 130]).align(64).u8(4);
    let both = first
        .u8(1)
        .u64(6)
        .align(64)
        .u8(6)
        .u16(301)
        .text("six")
        .bytes(&[0; 4])
        .u8(1)
        .u8(0)
        .bytes(&[0, 0])
        .bytes(&[4, 5, 6]);
    let both = both
        .align(64)
        .u8(7)
        .u8(1)
        .u64(7)
        .align(64)
        .u8(0)
        .bytes(&[0; 4])
        .u8(0)
        .u8(0)
        .bytes(&[0, 0, 1, 1, 1])
        .align(64)
        .u8(8);
    let whole = Made::new(metadata(&[&event]), &[&both.bytes]).read();
    assert_eq!((whole.events.len(), whole.problems.len()), (3, 0), "{:?}", whole.problems);
    let [a, b, c] = whole.events.as_slice() else { unreachable!() };
    assert_eq!((a.int("maybe"), b.int("maybe"), c.get("maybe")), (300, 301, None));
    assert_eq!((a.get("in_range"), b.text("in_range"), c.get("in_range")), (None, "six", None));
    assert_eq!((a.int("map"), a.int("array"), a.int("small"), a.int("large")), (0x1234, 0x1234, -2, 130));
    assert_eq!((a.text("wide"), a.text("blob"), a.text("aligned")), ("aß", "[01, 02, 03]", "[ 4 ]"));
    assert_eq!((a.text("rest").len(), b.text("rest"), c.text("aligned")), (130 * 4, "[]", "[ 8 ]"));
}

#[test]
fn short_stamps_sizes_and_losses_have_roles_instead_of_names() {
    let integer = |name: &str, length: u32, role: &str| {
        format!(
            r#"{{"name": "{name}", "field-class": {{"type": "fixed-length-unsigned-integer", "length": {length},
                "alignment": 8, "byte-order": "little-endian", "roles": ["{role}"]}}}}"#
        )
    };
    let context = [
        integer("a", 64, "default-clock-timestamp"),
        integer("b", 64, "packet-end-default-clock-timestamp"),
        integer("c", 32, "packet-content-length"),
        integer("d", 32, "packet-total-length"),
        integer("e", 16, "discarded-event-record-counter-snapshot"),
        integer("f", 16, "packet-sequence-number"),
    ];
    let stream = format!(
        r#"{{"type": "data-stream-class", "id": 4, "default-clock-class-id": "c",
        "packet-context-field-class": {{"type": "structure", "member-classes": [{}]}},
        "event-record-header-field-class": {{"type": "structure", "member-classes": [{}]}}}}"#,
        context.join(","),
        integer("t", 8, "default-clock-timestamp")
    );
    let event = r#"{"type": "event-record-class", "data-stream-class-id": 4, "name": "tick",
        "payload-field-class": {"type": "structure", "member-classes": [{"name": "n", "field-class": "u8"}]}}"#;
    let text = fragments(&[PREAMBLE, CLOCK, ALIASES[0], TRACE, &stream, event]);
    let packet_of = |begin: u64, lost: u16, number: u16, events: &[(u8, u8)]| {
        let size = (32 + 2 * events.len()) as u32 * 8;
        let start = packet(Bits::little()).u64(begin).u64(begin + 300).u32(size).u32(size + 8).u16(lost).u16(number);
        events.iter().fold(start, |bits, (time, n)| bits.u8(*time).u8(*n)).u8(0xEE).bytes
    };
    let packets = [packet_of(1_000, 0, 0, &[(0xF0, 1), (0x10, 2)]), packet_of(2_000, 3, 2, &[(0xD4, 3)])].concat();
    let made = Made::new(&text, &[&packets]);
    let whole = made.read();
    let zero = 2_000_000_000 - 5;
    let seen: Vec<_> = whole.events.iter().map(|event| (event.time_ns - zero, event.int("n"))).collect();
    assert_eq!(seen, [(0x3F0, 1), (0x410, 2), (0x7D4, 3)], "{:?}", whole.problems);
    assert_eq!(whole.lost, [(zero + 2_000, 3)]);
    // The same metadata in packets, and a cut of the trace.
    let start = Bits::big().u32(0x75D1_1D57).bytes(&[7; 16]).u32(0).u32((37 + text.len() as u32) * 8);
    let packed = start.u32((40 + text.len() as u32) * 8).bytes(&[0, 0, 0, 2, 0]).bytes(text.as_bytes()).bytes(&[0; 3]);
    let packed = Made::new(&packed.bytes, &[&packets]);
    assert_eq!(packed.read().events, whole.events);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("cut");
    assert_eq!(ctf::cut(packed.path(), &out, 0x20, 2_000).unwrap().events, 2);
    assert_eq!(super::events::read_path(&out).events, whole.events[1..]);
}

#[test]
fn words_of_drafts_mean_what_they_say() {
    let state = |kind: &str| {
        format!(
            r#"{{"name": "state", "field-class": {{"type": "{kind}", "length": 8, "alignment": 8,
                "byte-order": "little-endian", "mappings": {{"idle": [[0, 0]], "on": [[1, 3]]}}}}}},
            {{"name": "n", "field-class": "u8"}},
            {{"name": "list", "field-class": {{"type": "dynamic-length-array", "element-field-class": "u8",
                "length-field-location": {{"origin": "event-record-payload", "path": ["n"]}}}}}}"#
        )
    };
    let stream = packet(Bits::little()).u8(1).u64(7).u8(0x82).u8(2).u8(8).u8(9).bytes;
    for (word, draft) in [
        ("fixed-length-unsigned-integer", "fixed-length-unsigned-enumeration"),
        ("fixed-length-signed-integer", "fixed-length-signed-enumeration"),
        ("variable-length-unsigned-integer", "variable-length-unsigned-enumeration"),
        ("variable-length-signed-integer", "variable-length-signed-enumeration"),
    ] {
        let stream = if word.starts_with("variable") {
            packet(Bits::little()).u8(1).u64(7).u8(0x82).u8(0).u8(2).u8(8).u8(9).bytes
        } else {
            stream.clone()
        };
        let finished = Made::new(metadata(&[&event(&state(word))]), &[&stream]).read();
        let drafted = metadata(&[&event(&state(draft))])
            .replace(r#""id": "c", "name": "monotonic""#, r#""name": "c""#)
            .replace("offset-from-origin", "offset")
            .replace("default-clock-class-id", "default-clock-class-name")
            .replace(r#"{"origin": "event-record-payload", "path": ["n"]}"#, r#"["event-record-payload", "n"]"#);
        let drafted = Made::new(drafted, &[&stream]).read();
        assert_eq!((finished.events.len(), finished.problems.len()), (1, 0), "{:?}", finished.problems);
        assert_eq!(drafted.events, finished.events, "{draft}");
        assert_eq!(drafted.events[0].text("list"), "[ 8, 9 ]");
    }
    let lost =
        event(r#"{"name": "x", "field-class": {"type": "dynamic-length-blob", "length-field-location": ["n"]}}"#);
    let refused = ctf::open(Made::new(metadata(&[&lost]), &[]).path()).err().unwrap().to_string();
    assert!(refused.contains("an origin of a field location"), "what a draft may have meant otherwise: {refused}");
}

#[test]
fn mistakes_in_fragments_are_located() {
    let boxed =
        |inside: &str| format!(r#"{{"type": "static-length-array", "length": 1, "element-field-class": {inside}}}"#);
    let deep = (0..80).fold("\"u8\"".to_owned(), |inside, _| boxed(&inside));
    // 40 levels by name inside 40 more.
    let shelf = (0..40).fold("\"u8\"".to_owned(), |inside, _| boxed(&inside));
    let tower = (0..40).fold("\"shelf\"".to_owned(), |inside, _| boxed(&inside));
    let alias = format!(r#"{{"type": "field-class-alias", "name": "shelf", "field-class": {shelf}}}"#);
    let high = Made::new(metadata(&[&alias, &event(&format!(r#"{{"name": "x", "field-class": {tower}}}"#))]), &[]);
    assert!(ctf::open(high.path()).err().unwrap().to_string().contains("64 deep"));
    for (event, expected) in [
        (event(&format!(r#"{{"name": "x", "field-class": {deep}}}"#)).as_str(), "64 deep"),
        (r#"{"type": "event-record-class", "#, "a JSON object"),
        (&event(r#"{"name": "x", "field-class": "u7"}"#), "the name of a field class alias"),
        (&event(r#"{"name": "x", "field-class": {"type": "fixed-length-unsigned-integer", "length": 65}}"#), "1 to 64"),
        (&event(r#"{"name": "x", "field-class": {"type": "future"}}"#), "a type of field class"),
        (r#"{"type": "event-record-class", "data-stream-class-id": 9}"#, "a data stream class described before"),
    ] {
        let made = Made::new(metadata(&[event]), &[]);
        let error = ctf::open(made.path()).err().unwrap().to_string();
        assert!(error.contains(expected) && error.contains("(line 20)"), "{error}");
    }
}
