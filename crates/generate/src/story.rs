//! A story is told in every format, and its truth with it.

use crate::kernel::{Generation, Vendor};
use crate::lttng;
use crate::printed::Printer;
use crate::truth::Truth;
use base::{Clock, ClockSource};
use std::io;
use std::path::{Path, PathBuf};
use trace::format::Endian;
use trace::write::ctf::{Ctf, EventHeader, Metadata, Style};
use trace::write::layout::Machine;
use trace::write::page::PageStyle;
use trace::write::perfdata::{self, PerfData};
use trace::write::text::{Form, Text};
use trace::write::tracedat::{Compression, FileOption, Records, TraceDat, Version};
use trace::write::{Loss, Record, Schema, Sink, Value};

/// What happened on a host, as events and as truth.
#[derive(Debug, Clone)]
pub struct Story {
    pub vendor: Vendor,
    /// How old a kernel.
    pub generation: Generation,
    pub cpus: u32,
    /// The events that the kernel has.
    pub schema: Schema,
    /// The events, in time order.
    pub records: Vec<Record>,
    /// Marks of lost events, in time order.
    pub losses: Vec<Loss>,
    pub comms: Vec<(i32, String)>,
    /// The clock of the records' ticks.
    pub clock: Clock,
    pub truth: Truth,
}

/// A format to write a story in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// trace.dat version 6.
    TraceDat6 {
        endian: Endian,
        long_bytes: u8,
    },
    /// trace.dat version 7.
    TraceDat7 {
        endian: Endian,
        long_bytes: u8,
        compression: Compression,
    },
    /// CTF 1.8.
    Ctf1 {
        endian: Endian,
        /// True: the names and stale fields of LTTng's kernel tracer, no thread context, large event headers. False:
        /// the kernel's names and fields, the thread as context, compact event headers.
        lttng: bool,
    },
    /// CTF 2, the kernel's names and fields, the thread as context.
    Ctf2 {
        endian: Endian,
    },
    PerfData {
        endian: Endian,
    },
    /// Text of `trace-cmd report -R -t`: every field, times in ns.
    TextRaw,
    /// Text of `trace_pipe`: the kernel's print formats, times rounded to us.
    TextPrinted,
}

impl Target {
    /// Every format in every variant.
    pub fn all() -> Vec<Target> {
        let mut all = Vec::new();
        for endian in [Endian::Little, Endian::Big] {
            for long_bytes in [8, 4] {
                all.push(Target::TraceDat6 { endian, long_bytes });
                for compression in [Compression::None, Compression::Zlib, Compression::Zstd] {
                    all.push(Target::TraceDat7 { endian, long_bytes, compression });
                }
            }
            all.push(Target::Ctf1 { endian, lttng: false });
            all.push(Target::Ctf1 { endian, lttng: true });
            all.push(Target::Ctf2 { endian });
            all.push(Target::PerfData { endian });
        }
        all.extend([Target::TextRaw, Target::TextPrinted]);
        all
    }

    /// A name for files and command lines: `tracedat7-be-32-zstd`, `ctf1-le-lttng`.
    pub fn name(self) -> String {
        let order = |endian| if endian == Endian::Little { "le" } else { "be" };
        match self {
            Target::TraceDat6 { endian, long_bytes } => format!("tracedat6-{}-{}", order(endian), 8 * long_bytes),
            Target::TraceDat7 { endian, long_bytes, compression } => {
                let compression = format!("{compression:?}").to_lowercase();
                format!("tracedat7-{}-{}-{compression}", order(endian), 8 * u32::from(long_bytes))
            }
            Target::Ctf1 { endian, lttng } => {
                format!("ctf1-{}{}", order(endian), if lttng { "-lttng" } else { "" })
            }
            Target::Ctf2 { endian } => format!("ctf2-{}", order(endian)),
            Target::PerfData { endian } => format!("perfdata-{}", order(endian)),
            Target::TextRaw => "text-raw".into(),
            Target::TextPrinted => "text-printed".into(),
        }
    }

    /// The target called `name`.
    pub fn named(name: &str) -> Option<Target> {
        Self::all().into_iter().find(|target| target.name() == name)
    }
}

impl Story {
    /// The same story on a clock of `hz` ticks per second, as `x86-tsc` is: for the trace.dat targets alone.
    ///
    /// The truth stays what it is, for with more than one tick per nanosecond every time is hit exactly. If `stated`, the
    /// file says how long a tick is (option TSC2NSEC); else only `hrtimer_expire_entry.now` tells.
    pub fn on_tsc(&self, hz: u64, stated: bool) -> Self {
        let mut story = self.clone();
        let exact = Clock::with_frequency("x86-tsc", hz);
        // trace.dat's TSC2NSEC has 32 bits for the multiplier.
        let coarse = Clock { mult: (1_000_000_000 << 32) / hz, shift: 32, ..exact.clone() };
        story.clock = if exact.shift == 0 { exact } else { coarse };
        if !stated {
            story.clock.source = ClockSource::None;
        }
        let clock = &story.clock;
        story.records.iter_mut().for_each(|record| record.ticks = clock.ticks(record.ticks));
        story.losses.iter_mut().for_each(|loss| loss.ticks = clock.ticks(loss.ticks));
        story
    }

    /// Writes the story below `directory` under its target's name, and returns what to open.
    ///
    /// # Errors
    /// If a file cannot be written, or a CTF trace stands there already.
    pub fn write(&self, target: Target, directory: &Path) -> io::Result<PathBuf> {
        let path = directory.join(target.name());
        match target {
            Target::TraceDat6 { endian, long_bytes } => {
                self.trace_dat(&path, Version::V6, Machine { endian, long_bytes }, Compression::None)?;
            }
            Target::TraceDat7 { endian, long_bytes, compression } => {
                self.trace_dat(&path, Version::V7, Machine { endian, long_bytes }, compression)?;
            }
            Target::Ctf1 { endian, lttng: false } => self.ctf(&path, endian, Metadata::Text)?,
            Target::Ctf2 { endian } => self.ctf(&path, endian, Metadata::Json)?,
            Target::Ctf1 { endian, lttng: true } => self.lttng(&path, endian)?,
            Target::PerfData { endian } => self.perf_data(&path, endian)?,
            Target::TextRaw => self.text(&path, Form::Raw { nanoseconds: true })?,
            Target::TextPrinted => {
                let printer = Printer { generation: self.generation, schema: self.schema.clone() };
                self.text(&path, Form::Printed(Box::new(move |record| printer.body(record))))?;
            }
        }
        Ok(path)
    }

    fn tell(&self, mut sink: Box<dyn Sink>, records: &[Record]) -> io::Result<()> {
        let mut losses = self.losses.iter().peekable();
        for record in records {
            while let Some(loss) = losses.next_if(|loss| loss.ticks <= record.ticks) {
                sink.lost(loss)?;
            }
            sink.record(record)?;
        }
        losses.try_for_each(|loss| sink.lost(loss))?;
        sink.finish()
    }

    fn trace_dat(&self, path: &Path, version: Version, machine: Machine, compression: Compression) -> io::Result<()> {
        let mut dat = TraceDat::new(version, machine);
        dat.compression = compression;
        dat.comms.clone_from(&self.comms);
        dat.options = vec![
            FileOption::TraceClock(format!("local global [{}] boot\n", self.clock.name)),
            FileOption::Uname(format!("Linux host {} x86_64", self.generation.release())),
            FileOption::Program("kvmscope".into()),
            FileOption::CpuCount(self.cpus),
        ];
        let scale = (u32::try_from(self.clock.mult), self.clock.shift);
        if let (Ok(mult), shift @ 1.., ClockSource::File) = (scale.0, scale.1, self.clock.source) {
            dat.options.push(FileOption::Tsc2Nsec { mult, shift, offset: 0 });
        }
        let sink = Records::create(path, &self.schema, dat, &self.clock.name, self.cpus, PageStyle::default())?;
        if machine.long_bytes == 4 {
            return self.tell(Box::new(sink), &self.records_of_32_bits());
        }
        self.tell(Box::new(sink), &self.records)
    }

    /// The records of a host whose addresses have 32 bits: KVM's events then carry such an address in 64-bit fields too,
    /// so that `nested_rip` and the entry's `rip` still agree.
    fn records_of_32_bits(&self) -> Vec<Record> {
        let mut records = self.records.clone();
        for record in &mut records {
            for (field, value) in self.schema.events[record.event].fields.iter().zip(&mut record.values) {
                if let (true, Value::Integer(address)) = (field.name.ends_with("rip"), value) {
                    *address &= 0xffff_ffff;
                }
            }
        }
        records
    }

    fn perf_data(&self, path: &Path, endian: Endian) -> io::Result<()> {
        let release = self.generation.release().to_owned();
        let style = perfdata::Style { endian, comms: self.comms.clone(), release, cpus: self.cpus };
        self.tell(Box::new(PerfData::create(path, &self.schema, style)?), &self.records)
    }

    fn text(&self, path: &Path, form: Form) -> io::Result<()> {
        let sink = Text::create(path, &self.schema, form, &self.comms, self.cpus)?;
        self.tell(Box::new(sink), &self.records)
    }

    fn ctf(&self, path: &Path, endian: Endian, metadata: Metadata) -> io::Result<()> {
        let style = Style {
            metadata,
            header: EventHeader::Compact,
            tid_context: true,
            packet_bytes: 16 * 1024,
            env: vec![
                ("hostname".into(), "host".into()),
                ("sysname".into(), "Linux".into()),
                ("kernel_release".into(), self.generation.release().into()),
            ],
            ..Style::lttng(endian)
        };
        let sink = Ctf::create(path, &self.schema, style, self.cpus)?;
        self.tell(Box::new(sink), &self.records)
    }

    fn lttng(&self, path: &Path, endian: Endian) -> io::Result<()> {
        let mut style = Style { metadata: Metadata::Packets, packet_bytes: 16 * 1024, ..Style::lttng(endian) };
        for (name, value) in &mut style.env {
            if name == "kernel_release" {
                *value = self.generation.release().to_owned();
            }
        }
        let (schema, records) = lttng::translate(self);
        let sink = Ctf::create(path, &schema, style, self.cpus)?;
        self.tell(Box::new(sink), &records)
    }
}
