use super::counters::Counters;
use super::ledger::Ledger;
use super::*;
use testing::{Machine, machine, wait_for};

fn here(journal: &std::path::Path) -> Journal {
    Journal::new(journal, "/proc")
}

fn programs() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

fn namespaces() -> String {
    lab::journal::network::ip(&["netns", "list"]).unwrap()
}

/// The machine for one test alone; `None` if it is not ours to measure.
fn alone() -> Option<Machine> {
    rustix::process::geteuid().is_root().then(machine)
}

#[test]
fn every_frame_stands_at_its_place() {
    let names = ["source0", "port0", "port1", "port2", "port3", "sink0"];
    let statistics = ["rx packets", "rx dropped", "tx packets", "tx dropped"];
    let devices = names.iter().flat_map(|name| statistics.map(|what| format!("{name} {what}")));
    let carried = (0..2).flat_map(|vnf| {
        let taps = [2 * vnf, 2 * vnf + 1].into_iter().flat_map(|tap| statistics.map(|what| format!("tap{tap} {what}")));
        let thread = ["read", "wrote", "refused"].map(|what| format!("vnf-{vnf} {what}"));
        taps.chain(thread).collect::<Vec<_>>()
    });
    let before = Counters(devices.chain(carried).map(|name| (name, 1_000)).collect());
    let mut after = before.clone();
    let grown = [
        ("source0 tx packets", 90),
        ("source0 tx dropped", 10),
        ("port0 rx dropped", 2),
        ("tap0 rx packets", 88),
        ("tap0 rx dropped", 13),
        ("vnf-0 read", 75),
        ("vnf-0 wrote", 74),
        ("vnf-0 refused", 1),
        ("port1 tx packets", 69),
        ("port1 tx dropped", 5),
        ("tap2 rx packets", 69),
        ("vnf-1 read", 69),
        ("vnf-1 wrote", 69),
        ("port3 tx packets", 66),
        ("port3 tx dropped", 3),
        ("sink0 rx packets", 66),
        ("sink0 rx dropped", 199),
    ];
    for (name, more) in grown {
        *after.0.get_mut(name).unwrap() += more;
    }
    let ledger = Ledger::of(Path::Macvtap, 2);
    let books = ledger.books(&before, &after, 100).unwrap();
    assert_eq!((books.received, books.missing(), books.faults()), (66, 0, Vec::<String>::new()));
    let named: Vec<(&str, u64)> = books.dropped.iter().map(|at| (at.place.as_str(), at.packets)).collect();
    let places = [
        ("ring into VNF 1", 10),
        ("VNF 1", 2),
        ("ring of the macvtap into VNF 1", 13),
        ("macvtap out of VNF 1", 1),
        ("ring into VNF 2", 5),
        ("VNF 2", 0),
        ("ring of the macvtap into VNF 2", 0),
        ("macvtap out of VNF 2", 0),
        ("queue into the sink", 3),
    ];
    assert_eq!(named, places);
    *after.0.get_mut("vnf-0 wrote").unwrap() += 1;
    let faults = ledger.books(&before, &after, 100).unwrap().faults();
    assert_eq!(faults, ["out of VNF 1: vnf-0 wrote is 75 and port1 tx packets + port1 tx dropped is 74"]);
    after.0.remove("sink0 rx packets");
    assert!(ledger.books(&before, &after, 100).is_err_and(|error| error.to_string().contains("sink0 rx packets")));
}

#[test]
fn testpmd_is_told_its_ports() {
    let expected = [
        "--vdev=net_virtio_user0,path=/dev/vhost-net,queues=1,queue_size=1024,iface=tap0",
        "--vdev=net_virtio_user1,path=/dev/vhost-net,queues=1,queue_size=1024,iface=tap1",
    ];
    assert_eq!(vnfs::devices(1), expected);
}

#[test]
fn books_of_all_paths_close_and_nothing_is_left() {
    let Some(_alone) = alone() else { return };
    let directory = tempfile::tempdir().unwrap();
    let journal = here(directory.path());
    // Those that this machine lacks something for are named where they are asked for.
    let mut paths = vec![Path::Veth, Path::Bridge, Path::Macvtap, Path::VhostNet];
    paths.retain(|path| needs::check(&[*path], &programs(), "/".as_ref()).is_ok());
    assert!(paths.len() >= 3, "{paths:?}");
    let trials = paths.len();
    let settings = Settings {
        paths,
        vnfs: vec![2],
        sizes_bytes: vec![64],
        trial: Duration::from_millis(100),
        repeats: 1,
        search: None,
        messages_bytes: Vec::new(),
    };
    let runs = run(&settings, &programs(), &journal, &mut |_| (), &AtomicBool::new(false)).unwrap();
    assert_eq!(runs.runs.len(), trials);
    for run in &runs.runs {
        assert_eq!(run.books.faults(), Vec::<String>::new(), "{run:#?}");
        assert!(run.books.received > 0, "{run:#?}");
        assert!(!run.interference.iter().any(|who| who.contains("napi/port") || who.contains("vnf-")), "{run:#?}");
    }
    assert!(journal.is_empty().unwrap());
    assert!(!namespaces().contains(&format!("paths-{}-", std::process::id())));
}

#[test]
fn a_search_on_a_live_path_says_bounds_or_why_there_are_none() {
    let Some(_alone) = alone() else { return };
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        paths: vec![Path::Veth],
        vnfs: vec![1],
        sizes_bytes: vec![64],
        trial: Duration::from_millis(20),
        repeats: 1,
        search: Some((vec![Goal::NDR, Goal::PDR], Method::Mlr)),
        messages_bytes: vec![4_096],
    };
    let runs = run(&settings, &programs(), &here(directory.path()), &mut |_| (), &AtomicBool::new(false)).unwrap();
    let goals: Vec<&str> = runs.bounds.iter().map(|bounds| bounds.goal.as_str()).collect();
    assert_eq!(goals, ["ndr", "pdr"]);
    for bounds in &runs.bounds {
        assert!(bounds.lower_pps.zip(bounds.upper_pps).is_none_or(|(lower, upper)| lower < upper), "{bounds:?}");
        assert!(bounds.trials > 0 && bounds.trials <= MOST_TRIALS && !bounds.ended.is_empty(), "{bounds:?}");
    }
    assert!(matches!(&runs.streams[..], [stream] if stream.gbps > 0.0 && stream.sender_cpu_s_per_gb > 0.0), "{runs:?}");
}

#[test]
fn a_lab_that_is_stopped_leaves_nothing() {
    let Some(_alone) = alone() else { return };
    let directory = tempfile::tempdir().unwrap();
    let journal = here(directory.path());
    let settings = Settings {
        paths: vec![Path::Bridge],
        vnfs: vec![1],
        sizes_bytes: vec![64],
        trial: Duration::from_secs(60),
        repeats: 1,
        search: None,
        messages_bytes: Vec::new(),
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begins = format!("paths-{}-", std::process::id());
            wait_for("the lab's namespaces", || namespaces().contains(&begins));
            stop.store(true, Ordering::Relaxed);
        });
        assert!(matches!(run(&settings, &programs(), &journal, &mut |_| (), &stop), Err(Error::Stopped)));
    });
    assert!(journal.is_empty().unwrap());
    assert!(!namespaces().contains(&format!("paths-{}-", std::process::id())));
}
