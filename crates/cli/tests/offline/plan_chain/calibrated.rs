//! Plans by what was measured on the host.

use super::{kvmscope, number, row, table};
use serde_json::Value;

/// Trials of a switch, and of rings.
const SWITCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/ovs-dpdk-chain");
const RINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/channel");

#[test]
fn a_recording_calibrates_the_switch_and_is_named() {
    let recording = SWITCHED;
    let asked = ["--vnfs", "3", "--size", "512", "--nic", "XL710", "--datapath", "ovs-dpdk", "--calibrate", recording];
    let assumptions = table(&asked, "assumptions");
    let from = |what: &str| {
        let row = assumptions.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("{what}"));
        row["from"].as_str().unwrap().to_owned()
    };
    for what in ["cycles of a hop of the switch", "clock of a polling CPU"] {
        assert!(from(what).starts_with("measured, from ") && from(what).contains("ovs-dpdk-chain"), "{}", from(what));
    }
    assert_eq!(from("polling CPUs of the switch"), "assumed");
    let rates = table(&asked, "rates");
    let rate = row(&rates, "ovs-dpdk", 3);
    let [low, pps, high] = ["low_pps", "chain_pps", "high_pps"].map(|column| number(rate, column));
    // What a refused packet costs was measured, so that the band is that of the trials and no factor.
    assert!(pps / 2.0 < low && low < pps && pps < high && high < 2.0 * pps, "{low} {pps} {high}");
    let (code, _, complaint) = kvmscope(&[&asked[..], &["--pattern", "north-south"]].concat());
    assert!(code == 1 && complaint.contains("no trials of OVS-DPDK") && complaint.contains("lab ovs"), "{complaint}");
}

#[test]
fn rings_that_a_bench_measured_are_weighed_against_vfs() {
    let given = ["--vnfs", "8", "--size", "64", "--nic", "XL710", "--calibrate", RINGS];
    let rows = table(&given, "rates");
    let rings = row(&rows, "sriov+channel+channel+channel+channel+channel+channel+channel+sriov", 8);
    assert_eq!((&rings["kind"], &rings["migratable"]), (&"modelled".into(), &false.into()));
    assert!(
        number(rings, "chain_pps") > number(row(&rows, "sriov", 8), "chain_pps"),
        "PCIe is crossed at the ends alone"
    );
    let all = "--vnfs 8 --size 64 --nic XL710 --hop 240+0.24 --pmd-cores 4 --must-migrate --search --calibrate";
    let movable = table(&all.split(' ').chain([RINGS]).collect::<Vec<_>>(), "rates");
    let has_rings = |row: &Value| row["design"].as_str().unwrap().contains("channel");
    assert!(!movable.is_empty() && !movable.iter().any(has_rings), "a neighbour keeps the memory that it shares");
    // What is not measured is not said: no wire ends in memory, and frames of 9,018 bytes were not sent.
    assert_eq!(row(&rows, "channel", 8)["low_pps"], Value::Null);
    let long = ["--vnfs", "2", "--size", "9018", "--nic", "XL710", "--calibrate", RINGS];
    assert_eq!(row(&table(&long, "rates"), "sriov+channel+sriov", 2)["kind"], "bound, not calibrated");
    // A window makes it slower, and a smaller batch more so.
    let carried = |window: &str, batch: &str| {
        let used = ["--channel-window", window, "--channel-batch", batch];
        let stages = table(&[&given[..], &used].concat(), "stages");
        let is_channel = |row: &&Value| row["stage"] == "channel";
        number(stages.iter().find(is_channel).unwrap(), "capacity_pps")
    };
    let (plain, windowed, small) = (carried("none", "32"), carried("hypercall", "32"), carried("hypercall", "8"));
    assert!(plain > windowed && windowed > small, "{plain} {windowed} {small}");
    let target = [&given[..], &["--target", "5 Mpps"]].concat();
    let answers = table(&target, "breakeven");
    let answer = |question: &str| number(answers.iter().find(|row| row["question"] == question).unwrap(), "value");
    assert!((answer("batch_fills") - answer("smallest_batch") * 200.0).abs() < 1e-6, "200 ns for each frame at 5 Mpps");
    let recordings = format!("{RINGS},{SWITCHED}");
    let both = [&given[..7], &[recordings.as_str()]].concat();
    let known = table(&both, "rates");
    assert_eq!(row(&known, "ovs-dpdk", 8)["kind"], "modelled", "a switch from one recording, rings from another");
    for wrong in [&["--channel", "14+0.02"][..], &["--channel-window", "padlock"], &["--channel-batch", "1000"]] {
        let (code, _, complaint) = kvmscope(&[&given[..], wrong].concat());
        assert!(code == 1 || code == 2, "{wrong:?}: {complaint}");
        assert!(complaint.contains("channel"), "{wrong:?}: {complaint}");
    }
    let (code, _, complaint) = kvmscope(&["--vnfs", "8", "--size", "64", "--nic", "XL710", "--channel-window", "pkey"]);
    assert_eq!(code, 2, "{complaint}");
}
