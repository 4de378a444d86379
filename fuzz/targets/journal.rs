//! Any bytes as an entry of the journal, whose steps `kvmscope undo` reverts as root.

#![no_main]

use lab::journal::{Step, steps_in};
use libfuzzer_sys::fuzz_target;
use std::path::{Component, Path};

/// The entry's name, which is that of its file.
const ID: &str = "apply-7-0";

fuzz_target!(|bytes: &[u8]| {
    let Ok(steps) = steps_in(bytes, ID, Path::new("/")) else { return };
    for step in &steps {
        let line = step.to_string();
        assert!(!line.contains(char::is_control), "a control character is printed: {line:?}");
        match step {
            Step::TracefsInstance { path } | Step::SysfsWrite { path, .. } | Step::CpuList { path, .. } => {
                let climbs = path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir));
                assert!(path.is_absolute() && !climbs, "{line}");
                let instance = matches!(step, Step::TracefsInstance { .. });
                let below = ["/sys", "/proc/sys", "/proc/irq"].iter().any(|root| path.starts_with(root));
                assert!(instance || below, "{line}");
            }
            Step::Process(owner) => assert!(owner.pid > 1, "{line}"),
            Step::LttngSession { name } => assert!(name.starts_with("kvmscope-"), "{line}"),
            Step::NetNamespace { name } => assert!(name.starts_with(ID), "{line}"),
            _ => {}
        }
    }
});
