//! What labs and benches with programs of DPDK run in: a directory of their own, and what the machine was before.

use std::path::Path;
use std::process::{Command, Output};
use testing::Workspace;

const PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

pub(crate) struct Bed {
    pub(crate) directory: Workspace,
    pub(crate) huge_pages: Option<String>,
}

impl Bed {
    /// Nothing, and a reason on stdout, where `what` cannot run for want of root, two CPUs, or one of the `programs`.
    pub(crate) fn new(what: &str, programs: &[&str]) -> Option<Self> {
        if let Some(why) = lacking(programs) {
            println!("skipped: {what}: {why}");
            return None;
        }
        let directory = Workspace::alone();
        Some(Self { directory, huge_pages: pages() })
    }

    pub(crate) fn kvmscope(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        command.env("KVMSCOPE_JOURNAL", self.directory.path().join("journal"));
        command
    }

    /// Huge pages that were not there before, or are there no more.
    pub(crate) fn left_pages(&self) -> Option<String> {
        (pages() != self.huge_pages).then(|| "huge pages".to_owned())
    }
}

fn pages() -> Option<String> {
    std::fs::read_to_string(PAGES).ok()
}

fn lacking(programs: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it needs root".to_owned());
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Some("it needs two CPUs".to_owned());
    }
    let missing: Vec<&str> = programs.iter().copied().filter(|name| !Path::new(name).exists()).collect();
    let packages = "the Debian packages openvswitch-switch-dpdk and dpdk-dev bring them";
    (!missing.is_empty()).then(|| format!("{} missing; {packages}", missing.join(", ")))
}

pub(crate) fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
