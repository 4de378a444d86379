//! What was known of threads in the recording that another one was cut from: `cut-from.json` beside its traces.
//!
//! In a window of time a vCPU may have no event that tells it from any other thread: it waits, or runs its guest all the
//! time. And events that name no thread are those of the one that came to the CPU before. `kvmscope cut` therefore keeps
//! what the whole recording told of both. No event and no time follows from it.

use super::note;
use super::{Error, PartKind, Recording};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Name of the file in the directory of the traces that it is about.
pub const CUT_FROM_FILE: &str = "cut-from.json";

/// What was known beyond the traces of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutFrom {
    /// For each trace.
    pub traces: Vec<CutTrace>,
}

/// What was known beyond one trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutTrace {
    /// Name of the trace's file or directory, which lies beside this file.
    pub trace: PathBuf,
    /// Threads that ran vCPUs.
    pub vcpus: Vec<VcpuThread>,
    /// Which threads had the CPUs when the window began; those of other CPUs are unknown.
    pub running: Vec<Running>,
}

/// One thread that ran a vCPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpuThread {
    /// Its id.
    pub tid: i32,
    /// Number of its vCPU, where an event told it.
    pub vcpu: Option<u32>,
    /// Its name.
    pub comm: Option<String>,
    /// Its process.
    pub tgid: Option<i32>,
    /// Name of the process's first thread.
    pub process_comm: Option<String>,
}

/// A thread that had a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The CPU.
    pub cpu: u32,
    /// The thread; 0 is the idle task.
    pub tid: i32,
}

// A thread is some hundred bytes.
note::read_and_write!(CutFrom, CUT_FROM_FILE, "threads of a longer recording", most_bytes: 16 << 20);

impl Recording {
    /// What was known of the trace at `trace` before the recording was cut; `None` if it has nothing of it.
    pub fn cut_from(&self, trace: &Path) -> Option<Result<CutTrace, Error>> {
        let beside = trace.with_file_name(CUT_FROM_FILE);
        let part = self.parts.iter().find(|part| part.kind == PartKind::Notes && part.path == beside)?;
        let of_trace = |known: CutFrom| {
            let mut traces = known.traces.into_iter();
            traces.find(|known| Some(known.trace.as_os_str()) == trace.file_name()).unwrap_or_default()
        };
        Some(CutFrom::read(&self.root.join(&part.path)).map(of_trace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Part, PartState};

    #[test]
    fn each_trace_has_its_own_threads() {
        let place = tempfile::tempdir().unwrap();
        let thread = |tid| VcpuThread { tid, vcpu: Some(0), comm: None, tgid: None, process_comm: None };
        let of = |trace: &str, tid| CutTrace { trace: trace.into(), vcpus: vec![thread(tid)], running: Vec::new() };
        let known = CutFrom { traces: vec![of("trace.dat", 7), of("perf.data", 8)] };
        std::fs::create_dir(place.path().join("L0")).unwrap();
        known.write(&place.path().join("L0").join(CUT_FROM_FILE)).unwrap();
        let part = |path: &str, kind| Part {
            path: Path::new("L0").join(path),
            machine: "L0".into(),
            kind,
            clock: None,
            state: PartState::Complete,
        };
        let parts = vec![part("trace.dat", PartKind::TraceDat), part(CUT_FROM_FILE, PartKind::Notes)];
        let (created, tool, emulated) = (None, None, None);
        let (machines, problems) = (Vec::new(), Vec::new());
        let root = place.path().to_owned();
        let recording = Recording {
            root,
            created,
            tool,
            emulated,
            machines,
            parts,
            problems,
            clock_pairs: Vec::new(),
            ended: None,
            shown: Vec::new(),
        };
        let of_trace = |path: &str| recording.cut_from(Path::new(path)).map(Result::unwrap);
        assert_eq!(of_trace("L0/perf.data"), Some(of("perf.data", 8)));
        assert_eq!(of_trace("L0/ctf"), Some(CutTrace::default()), "a trace that it does not name");
        assert_eq!(of_trace("L1/trace.dat"), None, "nothing lies beside it");
    }
}
