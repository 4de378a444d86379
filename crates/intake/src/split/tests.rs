use super::*;

fn kinds(text: &str) -> Vec<(Kind, u32, u32)> {
    let split = split(Normal::of(text.as_bytes()));
    let range = |piece: &Piece| {
        let told: Vec<u32> =
            piece.lines.iter().filter(|line| !line.text.trim().is_empty()).map(|line| line.number).collect();
        (piece.kind, told[0], told[told.len() - 1])
    };
    split.pieces.iter().map(range).collect()
}

const ROW: &str = "T: 0 ( 1001) P:80 I:1000 C:  10000 Min:      5 Act:    9 Avg:   12 Max:     340";
const HISTOGRAM: &str =
    "# Histogram\n000003 000037\n# Min Latencies: 00003\n# Max Latencies: 00003\n# Histogram Overflows: 00000\n";
const EVENT: &str = " qemu-4000 [001] 100.000000: kvm_entry: vcpu 0";

#[test]
fn a_paste_has_pieces_in_the_order_of_its_lines() {
    use Kind::{Machine, Result, Trace};
    use ResultFile::{CyclictestText, Hwlatdetect};
    let hwlat = "hwlatdetect:  test duration 120 seconds\n   detector: tracer\n\nMax Latency: 48us\n";
    for (text, expected) in [
        (
            format!("Without:\n{ROW}\nWith:\n{ROW}\n"),
            vec![(Result(CyclictestText), 2, 2), (Result(CyclictestText), 4, 4)],
        ),
        (
            format!("{hwlat}\nand in the guest:\n{ROW}\n"),
            vec![(Result(Hwlatdetect), 1, 4), (Result(CyclictestText), 7, 7)],
        ),
        (format!("{HISTOGRAM}{HISTOGRAM}"), vec![(Result(CyclictestText), 1, 5), (Result(CyclictestText), 6, 10)]),
        (format!("# cyclictest -m\n{ROW}\n{ROW}\n"), vec![(Result(CyclictestText), 2, 3)]),
        (
            format!(
                "$ lscpu\nCPU(s): 4\nOn-line CPU(s) list: 0-3\nThread(s) per core: 1\n\n# tracer: nop\n#\n{EVENT}\n\n{ROW}\n"
            ),
            vec![(Trace, 6, 8), (Result(CyclictestText), 10, 10), (Machine, 1, 4)],
        ),
        ("Dear all,\nthe machine is slow.\n".to_owned(), Vec::new()),
    ] {
        assert_eq!(kinds(&text), expected, "{text}");
    }
}

#[test]
fn nothing_vanishes() {
    let text = format!("Hello,\n# cyclictest -m\n{ROW}\n^C\nsee above, {EVENT}\nBye.\n");
    let split = split(Normal::of(text.as_bytes()));
    let numbers = |lines: &[Line]| lines.iter().map(|line| line.number).collect::<Vec<_>>();
    assert_eq!((numbers(&split.commands), numbers(&split.rest)), (vec![2, 4], vec![1, 6]));
}

#[test]
fn objects_end_where_their_braces_close() {
    let text =
        "before\n{ \"return\": { \"status\": \"active\",\n \"ram\": { \"x\": \"}\" } } }\nafter that we waited\n";
    assert_eq!(kinds(text), [(Kind::Migration, 2, 3)]);
}
