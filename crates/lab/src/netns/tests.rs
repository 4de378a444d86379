use super::*;
use crate::journal::Journal;
use crate::journal::network::Nic;

/// The names of all namespaces of this machine.
fn namespaces() -> String {
    ip(&["netns", "list"]).unwrap_or_default()
}

fn journal(directory: &Path) -> Journal {
    Journal::new(directory.join("journal"), "/proc")
}

/// Why the bench cannot be built here, if it cannot.
fn lacking(directory: &Path) -> Option<String> {
    let mut entry = journal(directory).begin("probe").unwrap();
    // Tests of one process run side by side: their directories tell them apart.
    let probe = format!("{}-{}", entry.id, directory.file_name().unwrap().to_string_lossy().trim_start_matches('.'));
    entry.intend(Step::NetNamespace { name: probe.clone() }).unwrap();
    let made = ip(&["netns", "add", &probe]).and_then(|_| {
        ip(&["link", "add", "a0", "netns", &probe, "type", "veth", "peer", "name", "b0", "netns", &probe])
    });
    entry.finish(Path::new("/proc")).unwrap();
    made.err().map(|error| error.to_string())
}

fn settings(forwarder: Forwarder) -> Settings {
    Settings { forwarder, streams: 4, busy: 1, fault_cpu: 0, load_cpus: Cpus::from_iter([0]) }
}

#[test]
fn every_forwarder_carries_bytes_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    if let Some(why) = lacking(directory.path()) {
        return println!("skipped: lab netns: {why}");
    }
    for forwarder in [Forwarder::Vhost, Forwarder::Kernel, Forwarder::Bridge] {
        let entry = journal(directory.path()).begin("netns").unwrap();
        let id = entry.id.clone();
        let bed = match Bed::start(&settings(forwarder), entry, Path::new("/proc")) {
            Ok(bed) => bed,
            Err(error) if forwarder != Forwarder::Vhost => {
                println!("skipped: lab netns with {forwarder:?}: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        assert!(namespaces().contains(&id), "{}", namespaces());
        let since = std::time::Instant::now();
        while bed.received.bytes() < 1 << 20 && since.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(bed.received.bytes() >= 1 << 20, "{forwarder:?}: {:?}", bed.trouble());
        for tid in bed.forwarders.iter().chain(&bed.busy) {
            assert_eq!(thread::affinity(*tid).unwrap().to_string(), "0");
        }
        assert_eq!((bed.trouble(), bed.end().unwrap()), (None, vec![]));
        assert!(!namespaces().contains(&id), "{}", namespaces());
    }
    assert!(journal(directory.path()).entries().unwrap().is_empty());
}

#[test]
fn a_nic_gets_back_what_it_had() {
    let directory = tempfile::tempdir().unwrap();
    if let Some(why) = lacking(directory.path()) {
        return println!("skipped: moving a NIC: {why}");
    }
    // A NIC of our own, in the test's own name: nothing of the host is touched.
    let (device, peer) = (format!("kvsa{}", std::process::id()), format!("kvsb{}", std::process::id()));
    ip(&["link", "add", &device, "type", "veth", "peer", "name", &peer]).unwrap();
    ip(&["addr", "add", "198.19.7.1/24", "dev", &device]).unwrap();
    ip(&["link", "set", &peer, "up"]).unwrap();
    ip(&["link", "set", &device, "up"]).unwrap();
    ip(&["route", "add", "198.19.99.0/24", "via", "198.19.7.2", "dev", &device]).unwrap();
    let before = Nic::read(&device).unwrap();
    let mut entry = journal(directory.path()).begin("nic").unwrap();
    let namespace = format!("{}-end", entry.id);
    entry.intend(Step::NetNamespace { name: namespace.clone() }).unwrap();
    ip(&["netns", "add", &namespace]).unwrap();
    entry.intend(Step::NicMoved { nic: before.clone(), namespace: namespace.clone() }).unwrap();
    ip(&["link", "set", "dev", &device, "netns", &namespace]).unwrap();
    assert!(Nic::read(&device).is_err(), "it was moved");
    drop(entry); // as if killed here
    let outcomes = journal(directory.path()).entries().unwrap().remove(0).unwrap().finish(Path::new("/proc")).unwrap();
    let after = Nic::read(&device);
    ip(&["link", "delete", &device]).unwrap();
    assert!(before.up && before.addresses == ["198.19.7.1/24"] && before.routes.len() == 1, "{before:?}");
    assert_eq!(after.unwrap(), before, "{outcomes:?}");
    assert!(!namespaces().contains(&namespace));
}
