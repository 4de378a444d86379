//! A recording of either state: two samples of the machine, and the throughput of each run.
//!
//! ```text
//! DIR/before/L0/host/0, host/1, bench/netns.json     what `check` reads, and what `compare` holds against
//! DIR/after/...
//! ```

use super::Runs;
use base::bench::{Bench, Measured};
use base::recording::{Draft, Machine, Part, PartKind, PartState, Recording};
use base::utc::Utc;
use lab::snapshot::{More, monotonic_ns, take_more};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Between the two samples of a recording: the least that `check` takes for rates.
const BETWEEN: Duration = Duration::from_millis(500);

/// The two recordings while they are made.
pub(super) struct Shots {
    root: PathBuf,
    begun: RefCell<Vec<(&'static str, Draft, Vec<Part>)>>,
}

impl Shots {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), begun: RefCell::default() }
    }

    /// Samples the machine for the recording of that name.
    pub(super) fn take(&self, name: &'static str) -> anyhow::Result<()> {
        let draft = Draft::new(&self.root.join(name))?;
        let mut parts = Vec::new();
        for sample in ["0", "1"] {
            let path = Path::new("L0/host").join(sample);
            if sample == "1" {
                std::thread::sleep(BETWEEN);
            }
            take_more(Path::new("/"), &draft.part(&path)?, &More::default(), &monotonic_ns)?;
            parts.push(part(path, PartKind::Host));
        }
        self.begun.borrow_mut().push((name, draft, parts));
        Ok(())
    }

    /// Writes what was measured, and puts the recordings in their place.
    pub(super) fn finish(self, runs: &Runs) -> anyhow::Result<()> {
        let environment = lab::bench::environment::environment(Path::new("/"));
        for (name, draft, mut parts) in self.begun.into_inner() {
            let samples = if name == "before" { &runs.before } else { &runs.after };
            let mut bench = Bench::new("netns", environment.clone());
            bench.results.push(Measured {
                name: "throughput".to_owned(),
                unit: "bits/s".to_owned(),
                samples: samples.clone(),
                ..Measured::default()
            });
            let path = PathBuf::from("L0/bench/netns.json");
            bench.write(&draft.part(&path)?)?;
            parts.push(part(path, PartKind::Bench));
            draft.finish(Recording {
                root: PathBuf::new(),
                created: Some(Utc::of(SystemTime::now()).stamp()),
                tool: Some(concat!("kvmscope lab netns ", env!("CARGO_PKG_VERSION")).to_owned()),
                emulated: None,
                machines: vec![Machine { id: "L0".to_owned(), level: 0, parent: None, name: None }],
                parts,
                problems: Vec::new(),
            })?;
        }
        Ok(())
    }
}

fn part(path: PathBuf, kind: PartKind) -> Part {
    let clock = (kind == PartKind::Host).then(|| "monotonic".to_owned());
    Part { path, machine: "L0".to_owned(), kind, clock, state: PartState::Complete }
}
