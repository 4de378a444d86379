//! A trace.dat of any size, for the bars on memory and speed.
//!
//! One story's pages are repeated with their times moved on. The truth is not that of the story: what lies between two
//! rounds is a task switch to the vCPU threads and an entry.

use crate::story::Story;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::Path;
use trace::write::layout::{Machine, encode, place_all};
use trace::write::page::{PageBuilder, PageStyle};
use trace::write::repeat::Repeat;
use trace::write::tracedat::{Compression, FileOption, Instance, TraceDat, Version};

/// Writes `story` again and again as trace.dat version 7 until its pages take `bytes` bytes or a little more; compressed,
/// the file is smaller than its pages.
///
/// # Errors
/// If the file cannot be written.
pub fn write(story: &Story, bytes: u64, compression: Compression, path: &Path) -> io::Result<()> {
    let machine = Machine::X86_64;
    let mut dat = TraceDat::new(Version::V7, machine);
    dat.compression = compression;
    dat.comms.clone_from(&story.comms);
    dat.describe(&place_all(&story.schema, machine));
    dat.options = vec![
        FileOption::TraceClock("local [mono] boot\n".into()),
        FileOption::Uname(format!("Linux host {} x86_64", story.generation.release())),
        FileOption::CpuCount(story.cpus),
    ];
    let blocks = pages(story, machine, dat.page_bytes)?;
    let block_bytes: u64 = blocks.iter().map(|block| block.len() as u64).sum();
    let rounds = bytes.div_ceil(block_bytes.max(1));
    let shift = story.truth.wall_ns() + 1_000;
    let cpus = blocks.into_iter().zip(0..).map(|(block, cpu)| {
        let pages = block.len() as u64 / u64::from(dat.page_bytes) * rounds;
        let repeat: Box<dyn Read> = Box::new(Repeat::new(block, dat.page_bytes, machine.endian, shift, pages));
        (cpu, repeat)
    });
    let top = Instance { name: String::new(), clock: "mono".into(), cpus: cpus.collect() };
    dat.write_to(&mut BufWriter::with_capacity(1 << 20, File::create(path)?), vec![top])
}

/// The story's pages per CPU.
fn pages(story: &Story, machine: Machine, page_bytes: u32) -> io::Result<Vec<Vec<u8>>> {
    let formats = place_all(&story.schema, machine);
    let mut payload = Vec::new();
    (0..story.cpus)
        .map(|cpu| {
            let mut out = Vec::new();
            let mut builder = PageBuilder::new(machine, page_bytes, PageStyle::default());
            for record in story.records.iter().filter(|record| record.cpu == cpu) {
                encode(&formats[record.event], record, machine, &mut payload);
                builder.event(record.ticks, &payload, &mut out)?;
            }
            builder.finish(&mut out)?;
            Ok(out)
        })
        .collect()
}
