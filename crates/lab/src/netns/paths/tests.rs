use super::counters::{Counters, Device, books};
use super::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn here(journal: &std::path::Path) -> Journal {
    Journal::new(journal, "/proc")
}

fn namespaces() -> String {
    crate::journal::network::ip(&["netns", "list"]).unwrap()
}

/// The machine for one test alone; `None` if it is not ours to measure.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let is_root = rustix::process::geteuid().is_root();
    is_root.then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn every_frame_stands_at_its_place() {
    let device =
        |received, receive_dropped, sent, send_dropped| Device { received, receive_dropped, sent, send_dropped };
    let reading = |devices: &[(&str, Device)], sockets_dropped: &[u64]| Counters {
        devices: devices.iter().map(|(name, device)| ((*name).to_owned(), *device)).collect::<BTreeMap<_, _>>(),
        sockets_dropped: sockets_dropped.to_vec(),
    };
    let before = reading(&[("source0", device(0, 0, 10, 1)), ("sink0", device(5, 99, 0, 0))], &[0, 0]);
    let after = reading(
        &[
            ("source0", device(0, 0, 100, 11)),
            ("port0", device(90, 2, 0, 0)),
            ("port1", device(0, 0, 70, 5)),
            ("port3", device(0, 0, 60, 3)),
            ("sink0", device(65, 199, 0, 0)),
        ],
        &[13, 7],
    );
    let books = books(&before, &after, 2, 100);
    assert_eq!((books.received, books.missing(), books.faults()), (60, 0, Vec::<String>::new()));
    let named: Vec<(&str, u64)> = books.dropped.iter().map(|at| (at.place.as_str(), at.packets)).collect();
    let places = [
        ("ring into VNF 1", 10),
        ("VNF 1", 2),
        ("packet socket of VNF 1", 13),
        ("ring into VNF 2", 5),
        ("VNF 2", 0),
        ("packet socket of VNF 2", 7),
        ("queue into the sink", 3),
    ];
    assert_eq!(named, places);
}

#[test]
fn books_of_all_paths_close_and_nothing_is_left() {
    let Some(_alone) = alone() else { return };
    let directory = tempfile::tempdir().unwrap();
    let journal = here(directory.path());
    let settings = Settings {
        paths: vec![Path::Veth, Path::Bridge, Path::AfPacket],
        vnfs: vec![1, 2],
        sizes_bytes: vec![64, 1518],
        trial: Duration::from_millis(100),
        repeats: 1,
        search: None,
        messages_bytes: Vec::new(),
    };
    let runs = run(&settings, &journal, &mut |_| (), &AtomicBool::new(false)).unwrap();
    assert_eq!(runs.runs.len(), 12);
    for run in &runs.runs {
        assert_eq!(run.books.faults(), Vec::<String>::new(), "{run:#?}");
        assert!(run.books.received > 0, "{run:#?}");
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
    let runs = run(&settings, &here(directory.path()), &mut |_| (), &AtomicBool::new(false)).unwrap();
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
            std::thread::sleep(Duration::from_secs(2));
            stop.store(true, Ordering::Relaxed);
        });
        assert!(matches!(run(&settings, &journal, &mut |_| (), &stop), Err(Error::Stopped)));
    });
    assert!(journal.is_empty().unwrap());
    assert!(!namespaces().contains(&format!("paths-{}-", std::process::id())));
}
