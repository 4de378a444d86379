//! Who handled a CPUID: KVM's counter against what the kernel's own events say of the same run, on any vendor's processor.
//!
//! `kvm_cpuid` fires for each CPUID that this level's KVM emulates, also under kvm_pvm, where `kvm_exit` stays silent. So a
//! test that counts none was answered below, and one that counts some took as many exits.

use super::{kvmscope, rows};
use base::Bench;
use labs::bench::sizing::FIRST;
use std::fs;
use std::path::{Path, PathBuf};
use testing::{Workspace, cannot_record};

/// An instance of tracefs that follows this thread and all that it starts; removed when dropped.
struct Events(PathBuf);

impl Events {
    fn begin() -> std::io::Result<Self> {
        let events = Self(format!("/sys/kernel/tracing/instances/kvmscope-test-{}", std::process::id()).into());
        fs::create_dir(&events.0)?;
        let write = |file: &str, text: &str| fs::write(events.0.join(file), text);
        write("buffer_size_kb", "32768")?;
        write("options/event-fork", "1")?;
        write("set_event_pid", &rustix::thread::gettid().as_raw_nonzero().to_string())?;
        write("events/kvm/kvm_cpuid/enable", "1")?;
        write("events/kvm/kvm_exit/enable", "1")?;
        Ok(events)
    }

    /// How often an event fired.
    fn count(&self, name: &str) -> usize {
        let trace = fs::read_to_string(self.0.join("trace")).unwrap();
        trace.lines().filter(|line| line.contains(&format!(" {name}: "))).count()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // An instance that stays behind is seen by whoever lists them.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_kernels_own_events_say_who_handled_a_cpuid() {
    if let Some(why) = cannot_record() {
        return println!("skipped: events of CPUIDs: {why}");
    }
    let directory = Workspace::alone();
    let events = match Events::begin() {
        Ok(events) => events,
        Err(error) => return println!("skipped: events of CPUIDs: {error}"),
    };
    let place = directory.path().join("bench");
    let place = place.to_str().unwrap();
    let wanted = ["--tests", "cpuid", "--launches", "1", "--seconds", "0.01"];
    let (status, text, complaint) = kvmscope(&[&["bench", "exits", "-o", place][..], &wanted].concat());
    assert_eq!(status, Some(0), "{text}{complaint}");
    let (emulated, exits) = (events.count("kvm_cpuid"), events.count("kvm_exit"));
    drop(events);
    let bench = Bench::read(&Path::new(place).join("L0/bench/exits.json")).unwrap();
    let guest = bench.results.iter().find(|result| result.params.place == "guest").unwrap();
    let Some(counted) = guest.params.counted else {
        return println!("skipped: {}", guest.skipped.as_deref().unwrap_or("KVM counts no exits here"));
    };
    let (_, json, _) = kvmscope(&["report", "--json", place]);
    let rows = rows(&json, "exits");
    let row = rows.iter().find(|row| row["where"] == "guest").unwrap();
    let each = row["exits_per_op"].as_f64().unwrap();
    // The first samples, which size the run, are in the trace and not in the counters.
    let all = counted + FIRST.all();
    println!("{all} CPUIDs: {emulated} kvm_cpuid, {exits} kvm_exit, {each} exits each, by {}", row["handled_by"]);
    if emulated == 0 {
        assert!(each < 0.05, "KVM emulated no CPUID, and the bench counts exits: {row}");
        assert_eq!(row["handled_by"], "outer level");
        assert!(row["note"].as_str().unwrap().contains("a hypervisor below handles it"), "{row}");
    } else {
        assert_eq!(emulated as u64, all, "KVM emulated some of them");
        assert!((0.95..=1.05).contains(&each), "{row}");
        assert_eq!(row["handled_by"], "kernel");
    }
}
