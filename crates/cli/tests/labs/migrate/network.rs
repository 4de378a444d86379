//! Packets go to the guest while it is moved, and back.

use super::{at_work, found, lab, memory_holds, moved, rows};
use std::path::Path;
use std::process::{Command, Stdio};
use testing::{Workspace, send, wait_for};

/// True where a program may have a network of its own: in some containers root may not.
fn may_unshare() -> bool {
    Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// True where namespaces and taps can be made.
pub(super) fn may_have_a_network() -> bool {
    let lacks = [
        (!rustix::process::geteuid().is_root(), "not root"),
        (Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_err(), "ip is not installed (iproute2)"),
        (!Path::new("/dev/net/tun").exists(), "the kernel has no taps"),
        (!may_unshare(), "no network namespace may be made here"),
    ];
    let lacks = lacks.into_iter().find_map(|(lacks, what)| lacks.then_some(what));
    lacks.iter().for_each(|what| println!("skipped: lab migrate --network: {what}"));
    lacks.is_none()
}

/// What the journal still names.
pub(super) fn noted(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory.join("journal")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json")).count()
}

#[test]
fn packets_to_a_guest_that_is_moved_are_answered_on_both_sides_and_its_books_hold() {
    if !may_have_a_network() {
        return;
    }
    let directory = Workspace::alone();
    let Some(section) = moved(directory.path(), &["--network=most", "--observe"]) else { return };
    memory_holds(&section);
    assert_eq!(noted(directory.path()), 0);
    let (by, downtimes) = rows(&section, "downtimes");
    let definitions: Vec<&str> = downtimes.iter().map(|row| row[by("definition")].as_str().unwrap()).collect();
    assert_eq!(definitions, ["vmm_reported", "vmm_events", "guest", "net"]);
    // A busy machine may starve who sends; then there is no value, and the reason.
    let net = downtimes.last().unwrap();
    assert_eq!(net[by("value_ns")].is_null(), net[by("cause")].as_str().unwrap().starts_with("rejected: "), "{net:?}");
    let (of, packets) = rows(&section, "network");
    let number = |column: &str| packets[0][of(column)].as_u64().unwrap_or_else(|| panic!("{column}: {packets:?}"));
    let known = |column: &str| packets[0][of(column)].as_u64().unwrap_or_default();
    assert!(known("lost_in") + known("lost_out") <= number("lost") && number("lost") < number("sent"), "{packets:?}");
    assert!(packets[0][of("announced_ns")].is_i64() || packets[0][of("announced_ns")].is_u64(), "{packets:?}");
    let unknown = section["unknown"].as_array().unwrap();
    let is_said = |what: &str| unknown.iter().any(|one| one["what"] == what);
    assert!(!["guest_before_resume", "net_before_guest", "network"].iter().any(|what| is_said(what)), "{unknown:?}");
    let (by_link, by_qemu) = (number("link_bytes") as f64, number("transferred_bytes") as f64);
    assert_eq!(is_said("link_bytes"), (by_link / by_qemu - 1.0).abs() > 0.01, "{by_link} {by_qemu} {unknown:?}");
    // Nothing was written by the guest that its new memory lacks.
    assert!(!found(&section).iter().any(|one| one.starts_with("MIG-OLDER")), "{:?}", found(&section));
    let read = base::network::Network::read(&directory.path().join("moved/L0/network/0.json")).unwrap();
    assert_eq!(read.sent_ns.len() as u64, number("sent"));
}

#[test]
fn what_a_killed_lab_leaves_of_a_network_is_undone_and_what_an_interrupted_one_makes_is_gone() {
    if !may_have_a_network() {
        return;
    }
    for (signal, left) in [("-INT", 0), ("-KILL", 1)] {
        let directory = Workspace::alone();
        let Some(command) =
            lab(directory.path(), &["--network", "--rate", "100pages/s", "--repeats", "100", "--link", "1GB/s"])
        else {
            return;
        };
        let mut lab = at_work(command, "booting the guest");
        let pid = lab.id();
        let namespaces = || {
            let all = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
            let names = all.map(|entry| entry.file_name().into_string().unwrap());
            names.filter(|name| name.starts_with(&format!("migrate-{pid}-"))).count()
        };
        wait_for("three namespaces", || namespaces() == 3);
        send(&lab, signal);
        lab.wait().unwrap();
        assert_eq!((namespaces(), noted(directory.path())), (3 * left, left), "{signal}");
        let mut undo = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        let undone = undo.arg("undo").arg("--journal").arg(directory.path().join("journal")).output().unwrap();
        assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
        assert_eq!((namespaces(), noted(directory.path())), (0, 0), "{signal}");
    }
}
