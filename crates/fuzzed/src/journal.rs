//! Any bytes as an entry of the journal, whose steps `kvmscope undo` reverts as root.

use crate::room::Room;
use base::Setting;
use lab::journal::{Step, steps_in};
use std::path::{Component, Path};

/// The entry's name, which is that of its file.
const ID: &str = "apply-7-0";

/// Panics where a promise is broken by these bytes.
pub fn journal(_room: &Room, bytes: &[u8]) {
    let Ok(steps) = steps_in(bytes, ID, Path::new("/")) else { return };
    for step in &steps {
        let line = step.to_string();
        assert!(!line.contains(char::is_control), "a control character is printed: {line:?}");
        match step {
            Step::TracefsInstance { path } => assert!(path.is_absolute() && !climbs(path), "{line}"),
            Step::Setting(altered) => {
                let setting = &altered.setting;
                assert!(!matches!(setting, Setting::ModuleOption { .. }), "no command of ours makes it: {line}");
                assert!(setting.thread().is_none_or(|thread| thread.tid > 0 && thread.start_ticks.is_some()), "{line}");
                if let Setting::SysfsWrite { path } | Setting::Sysctl { path } = setting {
                    assert!(!Path::new(path).is_absolute() && !climbs(Path::new(path)), "{line}");
                }
            }
            Step::Process(owner) => assert!(owner.pid > 1, "{line}"),
            Step::LttngSession { name } => assert!(name.starts_with("kvmscope-"), "{line}"),
            Step::NetNamespace { name } => assert!(name.starts_with(ID), "{line}"),
            Step::TriggerPipe { path } | Step::ControlGroup { path } | Step::RunDirectory { path } => {
                assert!(path.is_absolute() && !climbs(path), "{line}");
            }
            Step::Mount { .. } | Step::NicMoved { .. } => {}
        }
    }
}

fn climbs(path: &Path) -> bool {
    path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir))
}
