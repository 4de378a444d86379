//! Any text as Open vSwitch's database, a log of JSON transactions.

#![no_main]

use host::{Machine, Snapshot};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let place = kvmscope_fuzz::directory().join("etc/openvswitch");
    std::fs::create_dir_all(&place).expect("memory for the input");
    std::fs::create_dir_all(kvmscope_fuzz::directory().join("proc")).expect("memory for the input");
    kvmscope_fuzz::write("etc/openvswitch/conf.db", bytes);
    let Ok(snapshot) = Snapshot::open(kvmscope_fuzz::directory()) else { return };
    let switch = Machine::of_snapshots(&[snapshot]).switch;
    assert!(switch.bridges.len() <= host::budget::BRIDGES, "more bridges than are kept");
});
