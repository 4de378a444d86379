//! How does what a machine left on its disk become a part of a recording?
//!
//! ```text
//! disk: cpio { trace/cpuN.raw, format texts, .. , truth.json } --> L0/trace.dat (v7, zstd), L0/truth.json
//! ```

use super::cpio;
use super::inside::{TRACE, TRUTH};
use crate::Error;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use trace::write::layout::Machine;
use trace::write::tracedat::{Compression, FileOption, Instance, TraceDat, Version};

/// All that a machine left.
pub struct Harvest {
    /// Small files, by name.
    texts: BTreeMap<String, String>,
    /// Pages of each CPU.
    pages: Vec<(u32, PathBuf)>,
}

/// Unpacks a disk; pages go to files in the new directory `pages`.
///
/// # Errors
/// If the disk holds no whole archive.
pub fn unpack(disk: &Path, pages: &Path) -> Result<Harvest, Error> {
    std::fs::create_dir(pages).map_err(|error| Error::io(pages, error))?;
    let mut file = BufReader::new(File::open(disk).map_err(|error| Error::io(disk, error))?);
    let mut harvest = Harvest { texts: BTreeMap::new(), pages: Vec::new() };
    let unpacked = cpio::unpack(&mut file, &mut |name, _, body| {
        let name = name.strip_prefix(TRACE).unwrap_or(name);
        let cpu = name.strip_prefix("cpu").and_then(|name| name.strip_suffix(".raw")?.parse().ok());
        if let Some(cpu) = cpu {
            let path = pages.join(name);
            std::io::copy(body, &mut File::create(&path)?)?;
            harvest.pages.push((cpu, path));
        } else {
            let mut text = Vec::new();
            body.read_to_end(&mut text)?;
            harvest.texts.insert(name.to_owned(), String::from_utf8_lossy(&text).into_owned());
        }
        Ok(())
    });
    unpacked.map_err(|error| {
        Error::Unable(format!("the machine's disk {} holds no whole recording: {error}", disk.display()))
    })?;
    harvest.pages.sort();
    Ok(harvest)
}

impl Harvest {
    /// The truth about the guests, as JSON, where it is known.
    pub fn truth(&self) -> Option<&str> {
        self.texts.get(TRUTH).map(String::as_str)
    }

    /// The clock in use: the one in brackets of `local [mono] boot`.
    pub fn clock(&self) -> &str {
        let clocks = self.text("trace_clock");
        clocks.split(['[', ']']).nth(1).unwrap_or("local")
    }

    fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    /// Writes the trace as trace.dat.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn write_trace(&self, to: &Path) -> Result<(), Error> {
        let mut dat = TraceDat::new(Version::V7, Machine::X86_64);
        dat.compression = Compression::Zstd;
        dat.header_page = self.text("header_page").to_owned();
        dat.header_event = self.text("header_event").to_owned();
        dat.kallsyms = self.text("kallsyms").to_owned();
        dat.printk = self.text("printk_formats").to_owned();
        let comms = self.text("saved_cmdlines").lines().filter_map(|line| line.split_once(' '));
        dat.comms = comms.filter_map(|(tid, comm)| Some((tid.parse().ok()?, comm.to_owned()))).collect();
        for (name, text) in &self.texts {
            let Some((group, _)) = name.strip_prefix("events/").and_then(|name| name.split_once('/')) else { continue };
            match dat.formats.last_mut() {
                _ if group == "ftrace" => dat.ftrace_formats.push(text.clone()),
                Some((last, texts)) if last == group => texts.push(text.clone()),
                _ => dat.formats.push((group.to_owned(), vec![text.clone()])),
            }
        }
        dat.options.push(FileOption::TraceClock(self.text("trace_clock").to_owned()));
        dat.options.push(FileOption::Uname(self.text("uname").to_owned()));
        dat.options.push(FileOption::Program(format!("kvmscope lab {}", env!("CARGO_PKG_VERSION"))));
        dat.options.push(FileOption::CpuCount(self.pages.len() as u32));
        for (cpu, _) in &self.pages {
            let stats = self.text(&format!("stats/cpu{cpu}"));
            dat.options.push(FileOption::CpuStat(format!("CPU: {cpu}\n{stats}")));
        }
        let mut cpus: Vec<(u32, Box<dyn Read>)> = Vec::new();
        for (cpu, path) in &self.pages {
            cpus.push((*cpu, Box::new(BufReader::new(File::open(path).map_err(|error| Error::io(path, error))?))));
        }
        let mut out = BufWriter::new(File::create(to).map_err(|error| Error::io(to, error))?);
        let instance = Instance { name: String::new(), clock: self.clock().to_owned(), cpus };
        dat.write_to(&mut out, vec![instance]).map_err(|error| Error::io(to, error))
    }
}
