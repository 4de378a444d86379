//! Metadata and bytes written by hand: every kind of field that TSDL describes.

use super::babeltrace;
use super::events::{Seen, Value};
use super::made::{Bits, INTEGERS, Made, packet, plain};
use kvmscope_trace::ctf;

/// Reads the trace, and lets babeltrace2 read it too where it is installed.
fn events(made: &Made) -> Vec<Seen> {
    let whole = made.read();
    assert!(whole.problems.is_empty(), "{:?}", whole.problems);
    if babeltrace::is_there() {
        assert_eq!(babeltrace::compare(made.path()), whole.events.len() as u64);
    }
    whole.events
}

#[test]
fn bit_fields_of_any_length_stand_side_by_side_in_both_orders() {
    const LENGTHS: [usize; 9] = [1, 3, 7, 13, 24, 33, 57, 64, 6];
    let values =
        [1, 0b101, 0x55, 0x1234 & 0x1FFF, 0xAB_CDEF, 0x1_2345_6789, 0x1AB_CDEF_0123_4567, u64::MAX - 7, 0b10011];
    for order in ["le", "be"] {
        let mut fields = String::new();
        for (number, length) in LENGTHS.iter().enumerate() {
            let signed = number % 2 == 1;
            fields += &format!("integer {{ size = {length}; align = 1; signed = {signed}; }} f{number};\n");
        }
        let metadata = plain(order, &format!("event {{ name = bits; id = 7; fields := struct {{ {fields} }}; }};"));
        let mut stream = packet(if order == "be" { Bits::big() } else { Bits::little() });
        for time in [1_000, 2_000] {
            stream = stream.u8(7).u64(time);
            for (length, value) in LENGTHS.into_iter().zip(values) {
                stream = stream.put(length, value);
            }
        }
        let read = events(&Made::new(metadata, &[&stream.align(8).bytes]));
        assert_eq!(read.len(), 2, "{order}");
        for event in &read {
            for (number, (length, value)) in LENGTHS.into_iter().zip(values).enumerate() {
                let signed = number % 2 == 1 && value >> (length - 1) & 1 == 1;
                let expected = i128::from(value) - if signed { 1 << length } else { 0 };
                assert_eq!(event.int(&format!("f{number}")), expected, "f{number}, {order}");
            }
        }
    }
}

#[test]
fn numbers_may_have_a_plus() {
    let metadata = plain(
        "le",
        "event { name = e; id = +7; fields := struct {
    integer { size = +16; align = +8; } n; enum : uint8_t { LOW = +1 ... +3, HIGH } level; }; };",
    );
    let stream = packet(Bits::little()).u8(7).u64(5).u16(300).u8(4).bytes;
    let read = events(&Made::new(metadata, &[&stream]));
    assert_eq!((read.len(), read[0].int("n"), read[0].int("level")), (1, 300, 4));
}

#[test]
fn a_structure_may_end_with_its_brace() {
    let declared = "struct pair { uint8_t left; uint8_t right; }SEMI
event { name = e; id = 7; fields := struct { struct pair both; }; };";
    let stream = packet(Bits::little()).u8(7).u64(5).u8(1).u8(2).bytes;
    for end in ["", ";"] {
        let made = Made::new(plain("le", &declared.replace("SEMI", end)), &[&stream]);
        let whole = made.read();
        assert_eq!((whole.events.len(), whole.events[0].int("both.right")), (1, 2), "{end:?}");
    }
}

#[test]
fn texts_floats_arrays_and_structures_are_read_and_printed() {
    let metadata = plain(
        "le",
        "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char;
typealias integer { size = 16; align = 8; signed = false; byte_order = be; base = x; } := net16;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := double;
typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; byte_order = be; } := float_be;
struct pair { uint8_t _left; net16 right; };
typedef uint16_t two[2];
enum state : uint8_t { IDLE, RUN = 4 ... 6, \"on its way\", }
event {
    name = \"prov:kinds\"; id = 0; // a provider, as in user space
    fields := struct {
        string _name; char comm[8]; uint8_t _len; char counted[_len]; uint8_t ids[3];
        two grid[2]; uint16_t n; struct pair pairs[n]; struct pair one; double big; float_be small; enum state s;
        struct { int32_t deep; } nested, again; uint8_t none[_none_len];
    };
};"
        .replace(
            "enum state : uint8_t { IDLE, RUN = 4 ... 6, \"on its way\", }\n",
            "enum state : uint8_t { IDLE, RUN = 4 ... 6, \"on its way\", };\n",
        )
        .replace(
            "struct { int32_t deep; } nested, again;",
            "struct { int32_t deep; } nested, again; uint8_t _none_len;",
        )
        .as_str(),
    );
    let stream =
        packet(Bits::little()).u8(0).u64(5).text("a \"b\"").bytes(b"qemu\0xyz").u8(2).bytes(b"hi").bytes(&[1, 2, 3]);
    let stream = stream.u16(10).u16(11).u16(12).u16(13).u16(2).u8(1).bytes(&[0x12, 0x34]).u8(2).bytes(&[0, 9]);
    let stream = stream.u8(8).bytes(&[1, 0]).u64(2.5f64.to_bits()).bytes(&(-0.25f32).to_be_bytes()).u8(5);
    let stream = stream.u32(-3i32 as u32).u32(4).u8(0);
    let read = events(&Made::new(metadata, &[&stream.bytes]));
    let [event] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(event.name, "prov:kinds");
    let texts = ["name", "comm", "counted", "ids", "grid", "pairs", "none"].map(|name| event.text(name).to_owned());
    let pairs = "[ { left = 1, right = 4660 }, { left = 2, right = 9 } ]";
    assert_eq!(texts, ["a \"b\"", "qemu", "hi", "[ 1, 2, 3 ]", "[ [ 10, 11 ], [ 12, 13 ] ]", pairs, "[  ]"]);
    assert_eq!((event.int("one.left"), event.int("one.right"), event.int("s")), (8, 256, 5));
    assert_eq!((event.get("big"), event.get("small")), (Some(&Value::Float(2.5)), Some(&Value::Float(-0.25))));
    assert_eq!((event.int("nested.deep"), event.int("again.deep")), (-3, 4));
}

#[test]
fn variants_are_selected_by_contexts_and_by_headers() {
    let metadata = format!(
        "/* CTF 1.8 */{INTEGERS}
trace {{ major = 1; minor = 8; byte_order = be; packet.header := struct {{ uint32_t magic; uint8_t width; }}; }};
clock {{ name = c; freq = 1000000000; }};
stream {{
    event.header := struct {{ enum : uint8_t {{ small = 0, wide = 1 ... 9 }} id;
                              integer {{ size = 64; align = 8; map = clock.c.value; }} timestamp; }};
    event.context := struct {{ enum : uint8_t {{ number, word }} _kind; int32_t _tid; uint8_t shared; }};
}};
variant shape {{ uint8_t small; uint32_t wide; }};
event {{
    name = e; id = 1;
    context := struct {{ enum : int {{ minus = -5 ... -1, plus = 0 ... 5 }} sign; }};
    fields := struct {{
        variant <stream.event.context._kind> {{ int32_t number; string word; }} mixed;
        variant <event.context.sign> {{ int32_t minus; int32_t plus; }} equal;
        variant shape <stream.event.header.id> by_header;
        uint8_t counted[trace.packet.header.width];
        uint8_t shared;
    }};
}};"
    );
    let start = packet(Bits::big()).u8(2);
    let first = start.u8(1).u64(10).u8(0).u32(41).u8(1).u32(-2i32 as u32).u32(7).u32(8).u32(9).bytes(&[1, 2]).u8(3);
    let both = first.u8(1).u64(20).u8(1).u32(42).u8(4).u32(3).text("seven").u32(80).u32(90).bytes(&[4, 5]).u8(6);
    // babeltrace2 2.0.4 takes neither keywords in selectors nor paths that leave the payload without them.
    let read = Made::new(metadata, &[&both.bytes]).read().events;
    assert_eq!(read.iter().map(|event| event.tid).collect::<Vec<_>>(), [41, 42]);
    assert_eq!(read[0].text("mixed"), "7", "options of different kinds are printed");
    assert_eq!(read[1].text("mixed"), "\"seven\"");
    assert_eq!((read[0].int("equal"), read[1].int("equal")), (8, 80), "options of one kind are values");
    assert_eq!((read[0].int("by_header"), read[0].text("counted")), (9, "[ 1, 2 ]"));
    assert_eq!((read[1].int("shared"), read[1].int("context.shared"), read[1].int("sign")), (6, 4, 3));
}

#[test]
fn variants_are_selected_by_neighbours_inside_structures_and_arrays() {
    let metadata = plain(
        "be",
        "variant either { uint8_t small; string word; struct { uint16_t n; uint8_t list[n]; } many; };
event { name = e; id = 1; fields := struct {
    enum : uint8_t { small, word, many } kind;
    variant either <kind> value;
    enum : uint8_t { up = 0 ... 9, down = 10 ... 255 } way;
    variant <way> { uint8_t up; uint16_t down; } steps;
    struct { enum : uint8_t { small, word, many } tag; variant either <tag> v; } rows[3];
}; };",
    );
    let stream = packet(Bits::big()).u8(1).u64(1).u8(2).u16(2).bytes(&[7, 8]).u8(200).u16(500);
    let stream = stream.u8(1).text("ab").u8(0).u8(3).u8(2).u16(1).u8(4).u8(1).u64(2).u8(0).u8(9).u8(1).u8(6);
    let stream = stream.u8(0).u8(1).u8(0).u8(2).u8(0).u8(3);
    let read = events(&Made::new(metadata, &[&stream.bytes]));
    assert_eq!(read[0].text("value"), "{ n = 2, list = [ 7, 8 ] }");
    assert_eq!((read[0].int("steps"), read[1].int("steps"), read[1].int("kind")), (500, 6, 0));
    let rows = "[ { tag = 1, v = \"ab\" }, { tag = 0, v = 3 }, { tag = 2, v = { n = 1, list = [ 4 ] } } ]";
    assert_eq!(read[0].text("rows"), rows);
}

#[test]
fn the_thread_of_a_context_is_the_thread_of_the_event() {
    let metadata = plain(
        "le",
        "event { name = e; id = 1; fields := struct { uint32_t a; uint8_t b[2]; }; };
event { name = t; id = 2; fields := struct { string s; }; };",
    );
    let context = "stream { event.context := struct { integer { size = 32; align = 8; signed = true; } _vtid;
    integer { size = 8; align = 8; signed = false; encoding = UTF8; } _procname[4]; };";
    let metadata = metadata.replace("stream {", context);
    let mut stream = packet(Bits::little());
    for tid in 1..6u32 {
        stream = stream.u8(1).u64(u64::from(tid)).u32(tid).bytes(b"vhst").u32(7).bytes(&[1, 2]);
        stream = stream.u8(2).u64(u64::from(tid)).u32(tid + 10).bytes(b"q\0mu").text("text");
    }
    let read = events(&Made::new(metadata, &[&stream.bytes]));
    let tids: Vec<_> = read.iter().map(|event| (event.tid, event.text("procname"))).collect();
    assert_eq!(tids.len(), 10);
    for (at, pair) in tids.chunks(2).enumerate() {
        let tid = at as i32 + 1;
        assert_eq!(pair, [(tid, "vhst"), (tid + 10, "q")]);
    }
}

/// Metadata of LTTng's two event headers, with a begin stamp in the packet context.
fn lttng(header: &str) -> String {
    format!(
        "/* CTF 1.8 */\r\n{INTEGERS}
typealias integer {{ size = 5; align = 1; signed = false; }} := uint5_t;
typealias integer {{ size = 27; align = 1; signed = false; map = clock.mono.value; }} := uint27_t;
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ uint32_t magic; uint32_t stream_id; }}; }};
clock {{ name = mono; freq = 250000000; offset_s = 100; offset = 25; /* 100 ns */ }};
typealias integer {{ size = 32; align = 8; signed = false; map = clock.mono.value; }} := t32;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.mono.value; }} := t64;
struct compact {{
    enum : uint5_t {{ compact = 0 ... 30, extended = 31 }} id;
    variant <id> {{ struct {{ uint27_t timestamp; }} compact; struct {{ uint32_t id; t64 timestamp; }} extended; }} v;
}} align(8);
struct large {{
    enum : uint16_t {{ compact = 0 ... 65534, extended = 65535 }} id;
    variant <id> {{ struct {{ t32 timestamp; }} compact; struct {{ uint32_t id; t64 timestamp; }} extended; }} v;
}} align(8);
stream {{ id = 3; event.header := struct {header}; packet.context := struct {{ t64 timestamp_begin; uint32_t cpu_id; }}; }};
event {{ name = a; id = 2; stream_id = 3; fields := struct {{ uint8_t x; }}; }};
event {{ name = b; id = 70000; stream_id = 3; fields := struct {{ uint8_t x; }}; }};"
    )
}

#[test]
fn short_stamps_wrap_and_long_ids_are_extended() {
    let begin = (5 << 32) - 10;
    let start = packet(Bits::little()).u32(3).u64(begin).u32(6);
    let compact = |bits: Bits, ticks: u64, x| bits.align(8).put(5, 2).put(27, ticks).u8(x);
    let stream = compact(compact(start.clone(), begin + 4, 1), begin + 20, 2);
    let stream = stream.align(8).put(5, 31).u32(70_000).u64(begin + 300_000_000).u8(3);
    let stream = compact(stream, begin + 300_000_000 + (1 << 26), 4);
    let large = |bits: Bits, ticks: u64, x| bits.u16(2).u32(ticks as u32).u8(x);
    let wide = large(large(start, begin + 4, 1), begin + 20, 2);
    let wide = wide.u16(65_535).u32(70_000).u64(begin + 300_000_000).u8(3);
    let wide = large(wide, begin + 300_000_000 + (1 << 26), 4);
    for (header, stream) in [("compact", stream), ("large", wide)] {
        let made = Made::new(lttng(header), &[&stream.bytes]);
        let read = events(&made);
        let ns = |ticks: u64| 100_000_000_100 + 4 * ticks;
        let times = [4, 20, 300_000_000, 300_000_000 + (1 << 26)].map(|after| ns(begin + after));
        assert_eq!(read.iter().map(|event| event.time_ns).collect::<Vec<_>>(), times, "{header}");
        assert_eq!(read.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["a", "a", "b", "a"]);
        assert!(read.iter().all(|event| event.cpu == 6));
    }
}

#[test]
fn alignment_counts_from_the_packet_and_lives_through_texts_and_arrays() {
    let metadata = "/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { integer { size = 32; align = 32; } magic; }; };
clock { name = c; freq = 1000000000; };
stream { event.header := struct {
    integer { size = 32; align = 32; } id; integer { size = 64; align = 64; map = clock.c.value; } timestamp; }; };
event { name = natural; id = 0; fields := struct {
    integer { size = 8; align = 8; } a; integer { size = 64; align = 64; } b; string s;
    integer { size = 16; align = 16; } n; integer { size = 32; align = 32; } list[n];
    struct { integer { size = 8; align = 8; } c; } align(32) rows[2]; integer { size = 3; align = 1; } d;
    integer { size = 16; align = 16; } e; }; };";
    let mut stream = packet(Bits::little());
    for (time, word) in [(1, "odd"), (2, "evenly")] {
        stream = stream.align(64).u32(0).align(64).u64(time).u8(1).align(64).u64(2).text(word).align(16).u16(2);
        stream = stream.align(32).u32(7).u32(8).align(32).u8(9).align(32).u8(10).put(3, 5).align(16).u16(77);
    }
    let read = events(&Made::new(metadata, &[&stream.bytes]));
    assert_eq!(read.len(), 2);
    for event in &read {
        assert_eq!((event.int("a"), event.int("b"), event.int("d"), event.int("e")), (1, 2, 5, 77));
        assert_eq!((event.text("list"), event.text("rows")), ("[ 7, 8 ]", "[ { c = 9 }, { c = 10 } ]"));
    }
}

#[test]
fn packetised_metadata_is_unpacked_in_either_byte_order() {
    let text = plain("le", "event { name = x; id = 1; fields := struct { uint8_t v; }; };");
    let stream = packet(Bits::little()).u8(1).u64(9).u8(4).bytes;
    for big in [false, true] {
        let mut packets = Vec::new();
        for chunk in text.as_bytes().chunks(100) {
            let start = Bits { big, ..Bits::default() }.u32(0x75D1_1D57).bytes(&[7; 16]).u32(0);
            let header = start.u32((37 + chunk.len() as u32) * 8).u32(256 * 8).bytes(&[0, 0, 0, 1, 8]);
            packets.extend(header.bytes(chunk).align(256 * 8).bytes);
        }
        let made = Made::new(&packets, &[&stream]);
        assert!(ctf::sniff(made.path()));
        assert_eq!(made.read().events[0].int("v"), 4);
        let cut = Made::new(&packets[..packets.len() - 240], &[&stream]);
        let error = ctf::open(cut.path()).err().unwrap().to_string();
        assert!(error.contains("a metadata packet"), "{error}");
    }
}

#[test]
fn mistakes_in_tsdl_are_located() {
    for (events, expected, line) in [
        ("event { name = x; fields := struct { nothing_t v; }; };", "the name of a type", 14),
        ("event { name = x; fields := struct { uint8_t v };  };", "`;`", 14),
        ("event { name = x; fields := struct { integer { size = 65; } v; }; };", "`size` from 1 to 64", 14),
        ("\n/* no end", "`*/`", 15),
        ("event { name = x; fields := struct { uint8_t v[len]; }; };", "references to earlier integers", 1),
        ("event { name = x; fields := struct { integer { size = 8; align = 3; } v; }; };", "a power of two", 14),
    ] {
        let made = Made::new(plain("le", events), &[]);
        let error = ctf::open(made.path()).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains(&format!("(line {line})")), "{error}");
    }
}
