//! A tracing instance of our own, and what is written into its files.

use crate::Error;
use crate::journal::{Entry, Step};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The tracing file system of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracefs {
    host: PathBuf,
    root: PathBuf,
}

impl Tracefs {
    /// Where it is mounted below the host's root directory.
    ///
    /// # Errors
    /// If it is not mounted, or not for us.
    pub fn find(host: &Path) -> Result<Self, Error> {
        let places = ["sys/kernel/tracing", "sys/kernel/debug/tracing"].map(|place| host.join(place));
        let found = places.iter().find(|place| place.join("instances").is_dir());
        found.map(|root| Self { host: host.to_owned(), root: root.clone() }).ok_or_else(|| {
            Error::Denied(format!(
                "no tracing file system below {}: run as root; if the kernel has none, it was built without CONFIG_TRACING",
                places[0].display()
            ))
        })
    }

    /// The host's root directory.
    pub fn host(&self) -> &Path {
        &self.host
    }

    /// A file or directory in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Text of one of its files, empty where the kernel has none.
    pub fn text(&self, name: &str) -> String {
        read(&self.path(name))
    }
}

#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
}

impl Instance {
    /// Makes an instance called `name` with tracing off, noted in `entry` first. If somebody who had our pid before has
    /// left one behind, the name gets a number: what we note is ours.
    ///
    /// # Errors
    /// If the journal cannot be written or the kernel refuses.
    pub(super) fn create(tracefs: &Tracefs, name: &str, entry: &mut Entry) -> Result<Self, Error> {
        let above = tracefs.path("instances");
        let numbered = (1..).map(|number: u32| above.join(format!("{name}-{number}")));
        let mut names = std::iter::once(above.join(name)).chain(numbered);
        let path = names.find(|path| !path.exists()).unwrap_or_else(|| above.join(name));
        entry.intend(Step::TracefsInstance { path: path.clone() })?;
        std::fs::create_dir(&path).map_err(|error| {
            Error::Denied(format!(
                "{}: {error}; recording needs root and a kernel with ftrace instances",
                path.display()
            ))
        })?;
        let instance = Self { path };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    /// Text of one of its files, empty where the kernel has none.
    pub(super) fn text(&self, name: &str) -> String {
        read(&self.path.join(name))
    }

    /// Writes a value into one of its files.
    ///
    /// # Errors
    /// If the kernel refuses; the sentence names the file and the value.
    pub(super) fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        std::fs::write(&path, value)
            .map_err(|error| Error::refused(format_args!("{}: writing {value} was refused", path.display()), error))
    }

    /// The same for a setting that older kernels lack.
    ///
    /// # Errors
    /// If the file is there and the kernel refuses.
    pub(crate) fn set_if_there(&self, name: &str, value: &str) -> Result<(), Error> {
        if self.path.join(name).exists() { self.set(name, value) } else { Ok(()) }
    }

    /// CPUs that have a buffer, in order. Those that are offline have one as well, once they have been online.
    ///
    /// # Errors
    /// If the instance has gone.
    pub(super) fn cpus(&self) -> Result<Vec<u32>, Error> {
        let path = self.path.join("per_cpu");
        let listing = std::fs::read_dir(&path).map_err(|error| Error::io(&path, error))?;
        let names = listing.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let mut cpus: Vec<u32> = names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// Opens the raw pages of a CPU, to be read without waiting.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn open_raw(&self, cpu: u32) -> Result<File, Error> {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let open = File::options().read(true).custom_flags(flags).open(&path);
        open.map_err(|error| Error::io(path, error))
    }

    /// Text of `per_cpu/cpuN/stats`.
    pub(super) fn stats(&self, cpu: u32) -> String {
        self.text(&format!("per_cpu/cpu{cpu}/stats"))
    }
}

/// Room for one read. `events/header_page` answers the first read alone (`if (*ppos) return 0` in `show_header`,
/// kernel/trace/trace_events.c, Linux 6.12), so it has to be larger than any such text.
const READ_BYTES: usize = 64 << 10;

fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    if let Ok(mut file) = File::open(path) {
        while let Ok(read @ 1..) = file.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..read]);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
