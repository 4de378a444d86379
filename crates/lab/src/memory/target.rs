//! Which process has the guest's memory?

use crate::Error;
use host::machine::vm_named_in;
use std::path::{Path, PathBuf};

/// A process, and what its command line tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub directory: PathBuf,
    pub pid: u32,
    /// The VM's name; the program's where it has none.
    pub name: String,
    /// How much memory its guest has, where the command line says so.
    pub memory_bytes: Option<u64>,
}

impl Target {
    /// The process of that id, or the QEMU of the VM of that name.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn find(name_or_pid: &str) -> Result<Self, Error> {
        let proc = Path::new("/proc");
        if let Ok(pid) = name_or_pid.parse() {
            return Self::of(proc, pid)
                .ok_or_else(|| Error::WrongUse(format!("no process {pid} runs on this computer")));
        }
        let entries = std::fs::read_dir(proc).map_err(|error| Error::io(proc, error))?;
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let all: Vec<Self> = pids.filter_map(|pid| Self::of(proc, pid)).collect();
        let is_named = |target: &&Self| target.is_vm() && target.name == name_or_pid;
        let mut named = all.iter().filter(is_named);
        match (named.next(), named.next()) {
            (Some(one), None) => Ok(one.clone()),
            (Some(one), Some(other)) => Err(Error::WrongUse(format!(
                "several VMs are called {name_or_pid}, such as processes {} and {}: name one by its process id",
                one.pid, other.pid
            ))),
            (None, _) => {
                let mut names: Vec<&str> =
                    all.iter().filter(|target| target.is_vm()).map(|target| target.name.as_str()).collect();
                names.sort_unstable();
                let running = if names.is_empty() { "none runs".to_owned() } else { names.join(", ") };
                Err(Error::WrongUse(format!("no VM is called {name_or_pid}; by their command lines: {running}")))
            }
        }
    }

    fn of(proc: &Path, pid: u32) -> Option<Self> {
        let directory = proc.join(pid.to_string());
        let line = std::fs::read(directory.join("cmdline")).ok()?;
        let words: Vec<String> =
            line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let program = words.first().map(|word| word.rsplit('/').next().unwrap_or(word).to_owned()).unwrap_or_default();
        let name = vm_named_in(&words.join(" ")).filter(|_| is_qemu(&program)).unwrap_or(program);
        Some(Self { directory, pid, name, memory_bytes: memory_of(&words) })
    }

    fn is_vm(&self) -> bool {
        self.memory_bytes.is_some()
    }
}

fn is_qemu(program: &str) -> bool {
    program.starts_with("qemu-system-") || program == "qemu-kvm" || program == "kvm"
}

/// What QEMU is told by `-m`: mebibytes, or a number with its unit, alone or as `size`.
fn memory_of(words: &[String]) -> Option<u64> {
    let program = words.first()?.rsplit('/').next()?;
    if !is_qemu(program) {
        return None;
    }
    let place = words.iter().position(|word| word == "-m")?;
    let options = words.get(place + 1)?;
    let size = options.split(',').find_map(|option| option.strip_prefix("size=")).or(options.split(',').next())?;
    let digits = size.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let scale: u64 = match size[digits.len()..].to_ascii_lowercase().as_str() {
        "b" => 1,
        "k" => 1 << 10,
        "" | "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_qemu_was_told() {
        let of = |options: &str| memory_of(&["/usr/bin/qemu-system-x86_64", "-m", options].map(str::to_owned));
        assert_eq!(of("256M"), Some(256 << 20));
        assert_eq!(of("2048"), Some(2 << 30));
        assert_eq!(of("size=8388608k,slots=16,maxmem=64G"), Some(8 << 30));
        assert_eq!(of("4g"), Some(4 << 30));
        assert_eq!((of("x"), of(""), of("9999999999999999T")), (None, None, None));
        assert_eq!(memory_of(&["grep".to_owned(), "-m".to_owned(), "1".to_owned()]), None);
    }

    #[test]
    fn a_process_is_found_by_its_id_and_one_that_is_none_is_said() {
        let own = Target::find(&std::process::id().to_string()).unwrap();
        assert!(own.directory.ends_with(own.pid.to_string()) && !own.name.is_empty() && own.memory_bytes.is_none());
        let error = Target::find("4294967295").unwrap_err().to_string();
        assert!(error.contains("no process 4294967295"), "{error}");
        let error = Target::find("no such vm").unwrap_err().to_string();
        assert!(error.contains("no VM is called no such vm"), "{error}");
    }
}
