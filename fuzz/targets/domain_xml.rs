//! Any text as the XML of domains.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(domains) = host::machine::domains_of(&text, "f", 1, "") else { return };
    for domain in domains {
        assert!(domain.vcpu_count() <= base::cpus::MOST_CPUS, "more vCPUs than CPUs can be");
        domain.workers();
    }
});
