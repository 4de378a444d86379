//! Where does the kernel of the lab's machines come from?
//!
//! From Debian's package of its kernel: `apt-get download` brings it, `dpkg-deb -x` unpacks it into a cache directory.
//! Nothing is installed, and what lies in the cache is not fetched again.
//!
//! ```text
//! <cache>/linux-image-6.1.0-56-amd64/boot/vmlinuz-6.1.0-56-amd64
//!                                   /lib/modules/6.1.0-56-amd64/kernel/...
//! ```

use super::scratch;
use lab::Error;
use lab::program::{Program, tie, untranslated};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which of Debian's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    Stock,
    /// The one with PREEMPT_RT, which also has the tracers `osnoise` and `timerlat`.
    Realtime,
}

impl Flavour {
    /// The package that depends on the newest kernel of this kind.
    fn newest(self) -> &'static str {
        match self {
            Flavour::Stock => "linux-image-amd64",
            Flavour::Realtime => "linux-image-rt-amd64",
        }
    }

    /// Whether `package` is a kernel of this kind: `linux-image-6.1.0-56-amd64`, `linux-image-6.1.0-56-rt-amd64`.
    fn has(self, package: &str) -> bool {
        package.starts_with("linux-image-") && package.contains("-rt-") == (self == Flavour::Realtime)
    }
}

#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its version, such as `6.1.0-56-amd64`.
    pub version: String,
    pub image: PathBuf,
    pub modules: PathBuf,
}

/// The kernel that Debian's package for this flavour stands for; a newer one than that in the cache is not looked for when
/// apt cannot tell.
///
/// # Errors
/// If there is none in the cache and apt cannot bring one; the sentence says what is missing.
pub fn kernel(cache: &Path, flavour: Flavour, say: &mut dyn FnMut(&str)) -> Result<Kernel, Error> {
    std::fs::create_dir_all(cache).map_err(|error| Error::io(cache, error))?;
    let package = match current(flavour) {
        Some(package) => package,
        None => newest_in(cache, flavour).ok_or_else(|| {
            Error::Absent(format!(
                "the lab boots Debian's kernel: apt-cache knows no package {}, and {} holds none; on Debian, run \
                 `apt-get update` first",
                flavour.newest(),
                cache.display()
            ))
        })?,
    };
    let place = cache.join(&package);
    if !place.is_dir() {
        say(&format!("fetching {package} into {}", cache.display()));
        fetch(&package, cache, &place)?;
    }
    let version = package.trim_start_matches("linux-image-").to_owned();
    let kernel = Kernel {
        image: place.join(format!("boot/vmlinuz-{version}")),
        modules: [place.join("lib/modules").join(&version), place.join("usr/lib/modules").join(&version)]
            .into_iter()
            .find(|modules| modules.is_dir())
            .unwrap_or_else(|| place.join("lib/modules")),
        version,
    };
    for needed in [&kernel.image, &kernel.modules] {
        if !needed.exists() {
            return Err(Error::Absent(format!(
                "{} is missing; remove {} to fetch it again",
                needed.display(),
                place.display()
            )));
        }
    }
    Ok(kernel)
}

/// What the flavour's package depends on today.
fn current(flavour: Flavour) -> Option<String> {
    let output = Program::new("apt-cache", "apt").output(&["depends", flavour.newest()]).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let package = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "))?;
    package.starts_with("linux-image-").then(|| package.trim_end_matches("-unsigned").to_owned())
}

fn newest_in(cache: &Path, flavour: Flavour) -> Option<String> {
    let entries = std::fs::read_dir(cache).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| flavour.has(name)).max_by_key(|name| version(name))
}

/// The numbers in a name, in order: 6.1.0-9 is older than 6.1.0-56. The name itself decides between equals.
fn version(name: &str) -> (Vec<u64>, String) {
    let numbers = name.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    (numbers.collect(), name.to_owned())
}

/// Downloads and unpacks beside the place, then renames: what lies in its place is whole.
fn fetch(package: &str, cache: &Path, place: &Path) -> Result<(), Error> {
    // Of a lab that was killed while it fetched, a hundred megabytes and more are left.
    scratch::sweep(cache, |name| name.strip_prefix(".linux-image-")?.rsplit_once('.')?.1.parse().ok())?;
    let beside = cache.join(format!(".{package}.{}", std::process::id()));
    let fetched = download_and_unpack(package, &beside)
        .and_then(|()| std::fs::rename(beside.join("root"), place).map_err(|error| Error::io(place, error)));
    // What is left is the package itself; if it cannot be removed it only takes space.
    let _ = std::fs::remove_dir_all(&beside);
    fetched
}

fn download_and_unpack(package: &str, beside: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(beside).map_err(|error| Error::io(beside, error))?;
    let mut download = Command::new("apt-get");
    download.args(["-qq", "download", package]).current_dir(beside);
    run(download, "apt")?;
    let entries = std::fs::read_dir(beside).map_err(|error| Error::io(beside, error))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let archive = paths.find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let archive = archive.ok_or_else(|| Error::Malformed(format!("apt-get download {package} produced no package")))?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("-x").arg(archive).arg(beside.join("root"));
    run(unpack, "dpkg")
}

/// Runs a program of a Debian package, in our own process group: Ctrl-C ends a download too.
fn run(mut command: Command, package: &'static str) -> Result<(), Error> {
    let program = Program::new(command.get_program(), package);
    untranslated(&mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    tie(&mut command, Signal::TERM);
    let output = program.start(command)?.wait_with_output().map_err(|error| Error::io(&program.path, error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(program.failed(output.status, &String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_of_the_cache_stands_in() {
        let cache = tempfile::tempdir().unwrap();
        let newest = |flavour| newest_in(cache.path(), flavour);
        assert_eq!(newest(Flavour::Stock), None);
        let (old, older) = ("linux-image-6.1.0-50-amd64", "linux-image-6.1.0-9-amd64");
        let realtime = "linux-image-6.1.0-57-rt-amd64";
        for name in [old, older, "linux-image-6.1.0-56-amd64", realtime, "other", ".linux-image-9.12"] {
            std::fs::create_dir(cache.path().join(name)).unwrap();
        }
        assert_eq!(newest(Flavour::Stock).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(newest(Flavour::Realtime).as_deref(), Some(realtime));
    }

    #[test]
    fn what_cannot_be_fetched_is_said_and_nothing_is_left() {
        let cache = tempfile::tempdir().unwrap();
        let place = cache.path().join("linux-image-none");
        // What a lab left that was killed while it fetched: no process has that id.
        std::fs::create_dir(cache.path().join(".linux-image-6.1.0-56-amd64.2147483646")).unwrap();
        let error = fetch("linux-image-none", cache.path(), &place).unwrap_err().to_string();
        assert!(error.contains("apt-get"), "{error}");
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
    }
}
