//! From records to a trace.dat.
//!
//! The pages of one CPU stand together in the file, but records of all CPUs come mixed. So each CPU's pages are first
//! written to a file of their own beside the result (`NAME.instance0.cpu1`), and copied and removed at the end.

use super::{Instance, TraceDat};
use crate::format::EventFormat;
use crate::write::layout::{encode, place_all};
use crate::write::page::{PageBuilder, PageStyle};
use crate::write::{Loss, Record, Schema, Sink, unknown_event};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Takes records and writes a trace.dat.
pub struct Records {
    path: PathBuf,
    dat: TraceDat,
    formats: Vec<EventFormat>,
    style: PageStyle,
    instances: Vec<Spool>,
    payload: Vec<u8>,
}

/// One tracing instance whose pages wait in files.
struct Spool {
    name: String,
    clock: String,
    cpus: Vec<CpuSpool>,
}

struct CpuSpool {
    path: PathBuf,
    pages: PageBuilder,
    out: BufWriter<File>,
}

impl Records {
    /// Begins a trace.dat at `path` with the kinds of events of `schema` and `cpus` CPUs.
    ///
    /// `dat` says the rest; its format texts are replaced by those of `schema`.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn create(
        path: &Path,
        schema: &Schema,
        mut dat: TraceDat,
        clock: &str,
        cpus: u32,
        style: PageStyle,
    ) -> io::Result<Self> {
        let formats = place_all(schema, dat.machine);
        dat.describe(&formats);
        let mut records =
            Self { path: path.to_owned(), dat, formats, style, instances: Vec::new(), payload: Vec::new() };
        records.add_instance("", clock, cpus)?;
        Ok(records)
    }

    /// Adds a tracing instance with its own clock, and returns its number for [`Records::record_in`].
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn add_instance(&mut self, name: &str, clock: &str, cpus: u32) -> io::Result<usize> {
        let number = self.instances.len();
        let mut spools = Vec::new();
        for cpu in 0..cpus {
            let mut file_name = self.path.as_os_str().to_owned();
            file_name.push(format!(".instance{number}.cpu{cpu}"));
            let path = PathBuf::from(file_name);
            let out = BufWriter::new(File::create(&path)?);
            let pages = PageBuilder::new(self.dat.machine, self.dat.page_bytes, self.style);
            spools.push(CpuSpool { path, pages, out });
        }
        self.instances.push(Spool { name: name.to_owned(), clock: clock.to_owned(), cpus: spools });
        Ok(number)
    }

    /// Adds an event to an instance; 0 is the top one.
    ///
    /// # Errors
    /// If the system refuses to write, or the record has a kind, a CPU or a size that the file has no room for.
    pub fn record_in(&mut self, instance: usize, record: &Record) -> io::Result<()> {
        let format = self.formats.get(record.event).ok_or_else(|| unknown_event(record))?;
        encode(format, record, self.dat.machine, &mut self.payload);
        let spool = spool_of(&mut self.instances, instance, record.cpu)?;
        spool.pages.event(record.ticks, &self.payload, &mut spool.out)
    }
}

fn spool_of(instances: &mut [Spool], instance: usize, cpu: u32) -> io::Result<&mut CpuSpool> {
    let spool = instances.get_mut(instance).and_then(|instance| instance.cpus.get_mut(cpu as usize));
    let text = format!("instance {instance} has no CPU {cpu}");
    spool.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, text))
}

impl Sink for Records {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        self.record_in(0, record)
    }

    fn lost(&mut self, loss: &Loss) -> io::Result<()> {
        let spool = spool_of(&mut self.instances, 0, loss.cpu)?;
        spool.pages.missed(loss.events, &mut spool.out)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let mut instances = Vec::new();
        for instance in &mut self.instances {
            let mut cpus: Vec<(u32, Box<dyn Read>)> = Vec::new();
            for (spool, cpu) in instance.cpus.iter_mut().zip(0..) {
                spool.pages.finish(&mut spool.out)?;
                spool.out.flush()?;
                cpus.push((cpu, Box::new(BufReader::new(File::open(&spool.path)?))));
            }
            instances.push(Instance { name: instance.name.clone(), clock: instance.clock.clone(), cpus });
        }
        self.dat.write_to(&mut BufWriter::new(File::create(&self.path)?), instances)
    }
}

/// Whether the trace was finished or given up, nothing else keeps these files.
impl Drop for CpuSpool {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
