//! Any text as the XML of domains.

use crate::room::Room;

/// Panics where a promise is broken by these bytes.
pub fn domain_xml(_room: &Room, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(domains) = host::machine::domains_of(&text, "f", 1, "") else { return };
    for domain in domains {
        assert!(domain.vcpu_count() <= base::cpus::MOST_CPUS, "more vCPUs than CPUs can be");
        domain.workers();
    }
}
