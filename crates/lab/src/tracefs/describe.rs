//! Everything about a recording but its events, as trace.dat holds it.

use super::clock::Scale;
use super::instance::{Instance, Tracefs};
use crate::Error;
use std::collections::BTreeMap;
use std::path::Path;
use trace::write::layout::Machine;
use trace::write::tracedat::{Compression, FileOption, TraceDat, Version};

/// The page of a ring buffer where `header_page` does not say: that of x86-64 before sub-buffers could grow (Linux 6.8).
const PAGE_BYTES: u32 = 4096;

/// Describes the events `names` of an instance.
///
/// # Errors
/// If tracefs does not describe its pages: then nothing in them could be read.
pub(super) fn describe(tracefs: &Tracefs, instance: &Instance, names: &[(String, String)]) -> Result<TraceDat, Error> {
    let header_page = instance_or_top(tracefs, instance, "events/header_page");
    if header_page.is_empty() {
        let path = tracefs.path("events/header_page");
        return Err(Error::Denied(format!("{} cannot be read: run as root", path.display())));
    }
    let mut formats: Vec<(String, Vec<String>)> = Vec::new();
    for (system, name) in names {
        let text = tracefs.text(&format!("events/{system}/{name}/format"));
        match formats.iter_mut().find(|(known, _)| known == system) {
            Some((_, texts)) => texts.push(text),
            None => formats.push((system.clone(), vec![text])),
        }
    }
    Ok(TraceDat {
        page_bytes: page_bytes(&header_page),
        compression: Compression::Zstd,
        header_event: instance_or_top(tracefs, instance, "events/header_event"),
        header_page,
        ftrace_formats: own_formats(tracefs),
        formats,
        printk: tracefs.text("printk_formats"),
        ..TraceDat::new(Version::V7, Machine::X86_64)
    })
}

/// What the file says of itself. `losses` are the texts of `per_cpu/cpuN/stats`, once they are final.
pub(super) fn options(instance: &Instance, scale: Option<Scale>, cpus: usize, losses: Vec<String>) -> Vec<FileOption> {
    let name = rustix::system::uname();
    let uname = [name.sysname(), name.nodename(), name.release(), name.machine()];
    let uname: Vec<_> = uname.iter().map(|word| word.to_string_lossy()).collect();
    let mut options: Vec<FileOption> = losses.into_iter().map(FileOption::CpuStat).collect();
    options.push(FileOption::TraceClock(instance.text("trace_clock")));
    options.push(FileOption::Uname(uname.join(" ")));
    options.push(FileOption::Program(format!("kvmscope {}", env!("CARGO_PKG_VERSION"))));
    options.push(FileOption::CpuCount(u32::try_from(cpus).unwrap_or(u32::MAX)));
    if let Some(scale) = scale {
        let offset = scale.offset_ns as u64;
        options.push(FileOption::Tsc2Nsec { mult: scale.mult, shift: scale.shift, offset });
    }
    options
}

/// Names of the threads that run now and of those the kernel has seen while tracing, which may have ended.
pub(crate) fn comms(tracefs: &Tracefs, proc: &Path, known: &mut BTreeMap<i32, String>) {
    let seen = tracefs.text("saved_cmdlines");
    known.extend(seen.lines().filter_map(|line| {
        let (tid, comm) = line.trim_start().split_once(' ')?;
        Some((tid.parse().ok()?, comm.to_owned()))
    }));
    let numbers = |path: &Path| -> Vec<i32> {
        let Ok(listing) = std::fs::read_dir(path) else { return Vec::new() };
        listing.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok()).collect()
    };
    for pid in numbers(proc) {
        let tasks = proc.join(pid.to_string()).join("task");
        for tid in numbers(&tasks) {
            if let Ok(comm) = std::fs::read_to_string(tasks.join(tid.to_string()).join("comm")) {
                known.insert(tid, comm.trim_end().to_owned());
            }
        }
    }
}

/// Addresses of the kernel's functions, which name the places where a guest was left; empty where the kernel hides them
/// (all are 0 then: kernel.kptr_restrict in Documentation/admin-guide/sysctl/kernel.rst, Linux 6.12).
pub(super) fn kallsyms(proc: &Path) -> String {
    let text = std::fs::read_to_string(proc.join("kallsyms")).unwrap_or_default();
    let hidden = |line: &str| line.split(' ').next().is_none_or(|address| address.bytes().all(|digit| digit == b'0'));
    if text.lines().all(hidden) { String::new() } else { text }
}

/// Since sub-buffers may differ in size (Linux 6.8), an instance describes its pages itself.
fn instance_or_top(tracefs: &Tracefs, instance: &Instance, name: &str) -> String {
    let own = instance.text(name);
    if own.is_empty() { tracefs.text(name) } else { own }
}

/// Place and size of `data` give the size of a page.
fn page_bytes(header_page: &str) -> u32 {
    let line = header_page.lines().find(|line| line.split(';').next().is_some_and(|name| name.ends_with(" data")));
    let number = |key: &str| {
        let value = line?.split(';').find_map(|part| part.trim().strip_prefix(key))?;
        value.trim().parse::<u32>().ok()
    };
    let sum = number("offset:").zip(number("size:")).and_then(|(offset, size)| offset.checked_add(size));
    sum.filter(|bytes| bytes.is_power_of_two()).unwrap_or(PAGE_BYTES)
}

/// Formats of the tracers' own events, `ftrace`; they may stand in any buffer.
fn own_formats(tracefs: &Tracefs) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(tracefs.path("events/ftrace"))
        .map(|listing| listing.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    names.sort_unstable();
    let texts = names.iter().map(|name| tracefs.text(&format!("events/ftrace/{name}/format")));
    texts.filter(|text| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{kallsyms, page_bytes};

    #[test]
    fn addresses_that_the_kernel_hides_are_not_stored() {
        let proc = tempfile::tempdir().unwrap();
        assert_eq!(kallsyms(proc.path()), "");
        let write = |text: &str| std::fs::write(proc.path().join("kallsyms"), text).unwrap();
        write("0000000000000000 T _stext\n0000000000000000 T do_one_initcall\n");
        assert_eq!(kallsyms(proc.path()), "");
        write("0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n");
        assert!(kallsyms(proc.path()).ends_with("_stext\n"));
    }

    #[test]
    fn the_header_says_how_long_a_page_is() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: char data;\toffset:16;\tsize:16368;\tsigned:1;\n";
        assert_eq!(page_bytes(text), 16384);
        assert_eq!(page_bytes(""), 4096);
    }
}
