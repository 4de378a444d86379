//! A place to run labs in that boot a machine, and what must be gone behind them.

use labs::machine::default_cache;
use labs::machine::packages::{self, Flavour};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// One machine at a time: each takes a core or two.
static ONE: Mutex<()> = Mutex::new(());

/// A directory, and the kernels of the user's own cache.
pub struct Place {
    directory: tempfile::TempDir,
    kernels: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    /// Nothing, and a reason on stdout, where the lab cannot run: for what is `lacking`, or without a kernel of that flavour.
    pub fn new(lab: &str, lacking: Option<String>, flavour: Flavour) -> Option<Self> {
        let alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let directory = tempfile::tempdir().unwrap();
        let kernels = default_cache(|name| std::env::var_os(name)).unwrap_or_else(|| directory.path().join("kernels"));
        let why = lacking.or_else(|| {
            let kernel = packages::kernel(&kernels, flavour, &mut |_| {});
            kernel.err().map(|error| format!("there is no kernel to boot: {error}"))
        });
        match why {
            Some(why) => {
                println!("skipped: {lab}: {why}");
                None
            }
            None => Some(Self { directory, kernels, _alone: alone }),
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn output(&self) -> PathBuf {
        self.path().join("recording")
    }

    /// `kvmscope lab WHICH`, which records there.
    pub fn lab(&self, which: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
        command.args(["lab", which, "--cache"]).arg(&self.kernels).arg("-o").arg(self.output());
        command
    }

    /// Panics if a lab of process `pid` left anything, besides what the test `keeps`.
    pub fn assert_clean(&self, pid: u32, keeps: Option<&Path>) {
        let left: Vec<_> = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.iter().all(|path| Some(path.as_path()) == keeps), "{left:?}");
        assert!(!self.kernels.join(format!("scratch-{pid}")).exists());
    }
}

/// Which of these programs does not start, and the Debian package that brings it.
pub fn missing(programs: &[(&str, &str)]) -> Option<String> {
    let is_missing = |program: &str| {
        Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    };
    let (program, package) = programs.iter().find(|(program, _)| is_missing(program))?;
    Some(format!("{program} does not start; the Debian package {package} brings it"))
}

pub fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// How many processes work in a directory of that name.
pub fn processes_in(directory: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap();
    let places = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path().join("cwd")).ok());
    places.filter(|place| place.to_string_lossy().contains(directory)).count()
}

/// Waits for something that is to come about soon.
pub fn until(what: &str, there: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !there() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
