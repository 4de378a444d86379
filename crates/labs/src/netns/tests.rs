use super::*;
use lab::journal::Journal;
use lab::journal::network::Nic;

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

fn settings(forwarder: Forwarder, load: LoadKind) -> Settings {
    let places = Places { program: std::path::PathBuf::new(), cache: None };
    Settings { forwarder, load, streams: 4, busy: 1, fault_cpu: 0, load_cpus: CpuSet::from_iter([0]), places }
}

/// True once a run has seen bytes arrive; on a machine that is busy the first may see none.
fn carries(load: &Load) -> bool {
    (0..20).any(|_| {
        let mut run = load.begin(Duration::from_secs(1)).unwrap();
        while !run.is_over().unwrap() {
            std::thread::sleep(Duration::from_millis(20));
        }
        run.bits_per_second().unwrap() > 0.0
    })
}

#[test]
fn every_forwarder_carries_bytes_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    if let Some(why) = lacking(directory.path()) {
        return println!("skipped: lab netns: {why}");
    }
    let own = [Forwarder::Vhost, Forwarder::Kernel, Forwarder::Bridge].map(|forwarder| (forwarder, LoadKind::Own));
    for (forwarder, load) in own.into_iter().chain([(Forwarder::Vhost, LoadKind::Iperf3)]) {
        let entry = journal(directory.path()).begin("netns").unwrap();
        let id = entry.id.clone();
        let bed = match start(&settings(forwarder, load), entry, Path::new("/proc"), &AtomicBool::new(false)) {
            Ok(bed) => bed,
            Err(error) if (forwarder, load) != (Forwarder::Vhost, LoadKind::Own) => {
                println!("skipped: lab netns with {forwarder:?} and {load:?}: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        assert!(namespaces().contains(&id), "{}", namespaces());
        assert!(carries(&bed.load), "{forwarder:?}, {load:?}: {:?}", bed.trouble());
        // A thread may have ended since it was listed.
        let seats = bed.forwarders.iter().chain(&bed.busy).filter_map(|tid| thread::affinity(*tid).ok());
        let seats: Vec<String> = seats.map(|cpus| cpus.to_string()).collect();
        assert!(!seats.is_empty() && seats.iter().all(|cpus| cpus == "0"), "{seats:?}");
        assert_eq!(bed.trouble(), None);
        bed.end().unwrap();
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
    assert!(before.up && before.addresses == ["198.19.7.1/24 scope global"] && before.routes.len() == 1, "{before:?}");
    assert_eq!(after.unwrap(), before, "{outcomes:?}");
    assert!(!namespaces().contains(&namespace));
}

#[test]
fn own_nics_carry_the_load_through_what_lies_between_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    if let Some(why) = lacking(directory.path()) {
        return println!("skipped: own NICs: {why}");
    }
    // A router in a namespace of the test plays what lies between the user's NICs.
    let mut made = journal(directory.path()).begin("router").unwrap();
    let router = format!("{}-between", made.id);
    made.intend(Step::NetNamespace { name: router.clone() }).unwrap();
    ip(&["netns", "add", &router]).unwrap();
    let device = |side: &str| format!("kvs{side}{}", std::process::id());
    let ends = [("c", "198.19.1"), ("d", "198.19.2")].map(|(side, net)| {
        let (device, port) = (device(side), format!("port{side}"));
        ip(&["link", "add", &device, "type", "veth", "peer", "name", &port, "netns", &router]).unwrap();
        ip(&["-n", &router, "addr", "add", &format!("{net}.1/24"), "dev", &port]).unwrap();
        ip(&["-n", &router, "link", "set", &port, "up"]).unwrap();
        own::End { device, address: format!("{net}.2/24"), gateway: format!("{net}.1") }
    });
    ip(&["netns", "exec", &router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).unwrap();
    let before = ends.each_ref().map(|end| Nic::read(&end.device).unwrap());

    let entry = journal(directory.path()).begin("own").unwrap();
    let traffic = own::Traffic { kind: LoadKind::Own, streams: 2, cpus: CpuSet::from_iter([0]) };
    let bed = own::start(&ends, &traffic, entry, Path::new("/proc")).unwrap();
    assert!(Nic::read(&ends[0].device).is_err(), "it was moved");
    let carried = carries(&bed.load);
    bed.end().unwrap();
    let after = ends.each_ref().map(|end| Nic::read(&end.device).ok());
    made.finish(Path::new("/proc")).unwrap();
    assert!(carried, "nothing arrived");
    assert_eq!(after, before.map(Some));
}
