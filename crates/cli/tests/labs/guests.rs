//! A place to run labs in that boot a machine, and what must be gone behind them.

use labs::machine::default_cache;
use labs::machine::packages::{self, Flavour};
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::Workspace;

/// A directory, and the kernels of the user's own cache.
pub(crate) struct Place {
    workspace: Workspace,
    kernels: PathBuf,
}

impl Place {
    /// Nothing, and a reason on stdout, where the lab cannot run: for what is `lacking`, or without a kernel of that flavour.
    pub(crate) fn new(lab: &str, lacking: Option<String>, flavour: Flavour) -> Option<Self> {
        let workspace = Workspace::alone();
        let kernels = default_cache(|name| std::env::var_os(name)).unwrap_or_else(|| workspace.path().join("kernels"));
        let why = lacking.or_else(|| {
            let kernel = packages::kernel(&kernels, flavour, &mut |_| {});
            kernel.err().map(|error| format!("there is no kernel to boot: {error}"))
        });
        match why {
            Some(why) => {
                println!("skipped: {lab}: {why}");
                None
            }
            None => Some(Self { workspace, kernels }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.workspace.path()
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.path().join("recording")
    }

    /// `kvmscope lab WHICH`, which records there.
    pub(crate) fn lab(&self, which: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        command.args(["lab", which, "--cache"]).arg(&self.kernels).arg("-o").arg(self.output());
        command
    }

    /// Panics if a lab of process `pid` left anything, besides what the test `keeps`.
    pub(crate) fn assert_clean(&self, pid: u32, keeps: Option<&Path>) {
        let left: Vec<_> = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.iter().all(|path| Some(path.as_path()) == keeps), "{left:?}");
        assert!(!self.kernels.join(format!("scratch-{pid}")).exists());
    }
}
