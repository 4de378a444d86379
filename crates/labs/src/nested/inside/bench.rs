//! What do exits cost on this emulated host? Nothing that a number could say; but which exits there are, it shows truly.
//!
//! Here ring 0 of guests runs as on real hardware, and guests are offered SVM or VMX: what `kvmscope bench exits` can only
//! measure on such hosts runs here on any computer.

use crate::bench::exits::{Plan, catalogue};
use crate::bench::launch;
use crate::machine::initramfs::PROGRAM;
use crate::nested::settings::{Settings, Tests};
use base::Bench;
use base::recording::{Part, PartKind, PartState};
use lab::Error;
use lab::environment::{self, How};
use lab::setting::thread;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Samples of a test may take so long: an emulated exit takes a hundred times what a real one does.
const TARGET: Duration = Duration::from_millis(50);
/// A first touch of thousands of pages takes long here.
const LIMIT: Duration = Duration::from_secs(20);

/// Measures everything; the result becomes a part of the recording in `root`.
pub(super) fn run(settings: &Settings, root: &Path, id: &str, say: &mut dyn FnMut(&str)) -> Result<Vec<Part>, Error> {
    let plan = Plan {
        device: PathBuf::from("/dev/kvm"),
        root: PathBuf::from("/"),
        cpu: 0,
        other_cpu: thread::affinity(thread::own())?.iter().find(|cpu| *cpu != 0),
        ns_per_tick: launch::ns_per_tick(),
        target: TARGET,
        limit: LIMIT,
        launch: 0,
        disturb: false,
        fifo: false,
        only: match settings.tests {
            Tests::All => Vec::new(),
            Tests::Nested => catalogue::nested().map(str::to_owned).collect(),
        },
    };
    let mut bench = Bench::new("exits", environment::here(How::default()));
    for number in 0..settings.loops {
        launch::run(Path::new(PROGRAM), &["bench", "launch"], &plan.launch(number)?, &|| false, &mut |measured| {
            let without = measured.skipped.as_ref().map_or(String::new(), |why| format!(": {why}"));
            say(&format!("launch {}: {} {}{without}", number + 1, measured.params.place, measured.name));
            bench.results.push(measured);
            Ok(())
        })?;
    }
    let path = Path::new(id).join("bench/exits.json");
    bench.write(&root.join(&path))?;
    Ok(vec![Part { path, machine: id.to_owned(), kind: PartKind::Bench, clock: None, state: PartState::Complete }])
}
