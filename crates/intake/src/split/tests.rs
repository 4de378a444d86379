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

#[test]
fn a_log_of_a_migration_goes_on_behind_a_cut_and_with_what_was_set() {
    let log = "2026-10-20 21:02:15 start migrate command to unix:/run/x\n[... and so on ...]\n2026-10-20 21:11:12 migration status: completed\nTASK OK\n\nand then?\n";
    assert_eq!(kinds(log), [(Kind::Migration, 1, 4)]);
    let set = "(qemu) info migrate\nStatus: active\nTime (ms): total=18, setup=1\nRAM info:\n(qemu) info migrate_parameters\ndowntime-limit: 300 ms\n";
    assert_eq!(kinds(set), [(Kind::Migration, 2, 6)]);
    let state = "completed: true\nmigrationUid: 3f0c\nstartTimestamp: x\n";
    assert_eq!(kinds(state), [(Kind::Migration, 1, 3)]);
    assert_eq!(kinds("completed: true\nand so on\n"), []);
}

#[test]
fn counters_of_kvm_in_their_own_folder_are_one_piece_with_their_second_copy() {
    let copy = "exits:1\nhalt_exits:2\nirq_exits:3\nmmio_exits:4\n";
    let text = format!("so:\n10:22:01.5\n{copy}# sleep 10; grep . *\n10:22:11.5\n{copy}thanks\n");
    assert_eq!(kinds(&text), [(Kind::Counts, 2, 12)]);
    assert_eq!(kinds("exits:1\nothers:2\n"), []);
}

#[test]
fn a_key_ends_no_result() {
    let text = "RTT|  00:00:01  (user, 1000 us period, priority 98, CPU3)\nRTD|      3.112|      5.220|     21.830|       0|     0|      3.112|     21.830\n^C\n\
                RTS|      2.988|      5.250|   4120.093|       5|     0|    00:00:07/00:00:30\n";
    assert_eq!(kinds(text), [(Kind::Result(ResultFile::Xenomai), 1, 4)]);
}
