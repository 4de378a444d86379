//! Any text as Open vSwitch's database, a log of JSON transactions.

use crate::room::Room;
use host::{Machine, Snapshot};

/// Panics where a promise is broken by these bytes.
pub fn ovsdb(room: &Room, bytes: &[u8]) {
    let place = room.path().join("etc/openvswitch");
    std::fs::create_dir_all(&place).expect("memory for the input");
    std::fs::create_dir_all(room.path().join("proc")).expect("memory for the input");
    room.write("etc/openvswitch/conf.db", bytes);
    let Ok(snapshot) = Snapshot::open(room.path()) else { return };
    let switch = Machine::of_snapshots(&[snapshot]).switch;
    assert!(switch.bridges.len() <= host::budget::BRIDGES, "more bridges than are kept");
}
