//! Any text as what Open vSwitch and testpmd print of the packets they forward.

use crate::room::Room;
use host::polled::{flows, forwarders, pmd, ports, testpmd};

/// Panics where a promise is broken by these bytes.
pub fn polled(_room: &Room, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for thread in pmd::read(&text) {
        assert!(thread.busy_share().is_none_or(|share| (0.0..=1.0).contains(&share)), "more busy than used");
        assert!(thread.cycles_per_packet().is_none_or(f64::is_finite), "packets without a number");
    }
    let lines = text.lines().count();
    assert!(flows::read(&text).len() <= lines && ports::read(&text).len() <= lines, "more than there are lines");
    assert!(testpmd::read(&text).accounts <= lines, "more accounts than lines");
    for port in forwarders::read(&text) {
        let share = port.worst().and_then(|(_, share)| share);
        assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "more lost than came");
    }
    ports::of_interface(&text);
}
