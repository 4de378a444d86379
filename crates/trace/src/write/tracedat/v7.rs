//! Version 7: sections, found through chained OPTIONS sections.

use super::options::text_with_nul;
use super::v6::{align, patch};
use super::{Compression, Instance, TraceDat, parts};
use std::io::{self, Read, Seek, Write};

const OPTIONS: u64 = 0;
const BUFFER: u64 = 3;
const DONE: u64 = 0;
const SECTION_HEAD_BYTES: u64 = 16;
const COMPRESSED: u64 = 1;
/// Pages that are compressed together (`PAGES_IN_CHUNK` of trace-cmd 3.1.6).
const PAGES_IN_CHUNK: usize = 10;

/// A chain of OPTIONS sections that is being written.
struct Chain {
    /// Where the offset of the next OPTIONS section is to be written.
    link: u64,
}

pub(super) fn write(dat: &TraceDat, out: &mut (impl Write + Seek), instances: Vec<Instance<'_>>) -> io::Result<()> {
    let mut head = parts::head(dat, "7");
    let (name, version) = match dat.compression {
        Compression::None => ("none", ""),
        Compression::Zlib => ("zlib", "1.2.13"),
        Compression::Zstd => ("zstd", "1.5.4"),
    };
    text_with_nul(&mut head, name);
    text_with_nul(&mut head, version);
    let mut chain = Chain { link: head.len() as u64 };
    dat.machine.put(&mut head, 0, 8);
    out.write_all(&head)?;
    let sections: [(u64, Vec<u8>); 6] = [
        (16, parts::headers(dat)),
        (17, parts::ftrace_formats(dat)),
        (18, parts::formats(dat)),
        (19, parts::kallsyms(dat)),
        (20, parts::printk(dat)),
        (21, parts::cmdlines(dat)),
    ];
    let mut options = Vec::new();
    for (id, data) in &sections {
        let place = section(dat, out, *id, data)?;
        let mut offset = Vec::new();
        dat.machine.put(&mut offset, place, 8);
        options.push((*id, offset));
    }
    options.extend(dat.options.iter().map(|option| (u64::from(option.id()), option.data(dat.machine))));
    for group in options.chunks(if dat.split_options { 1 } else { options.len() }) {
        chain.options(dat, out, group)?;
    }
    for instance in instances {
        let data = buffer(dat, out, instance)?;
        chain.options(dat, out, &[(BUFFER, data)])?;
    }
    Ok(())
}

impl Chain {
    /// Writes an OPTIONS section and links it to the one before.
    fn options(&mut self, dat: &TraceDat, out: &mut (impl Write + Seek), options: &[(u64, Vec<u8>)]) -> io::Result<()> {
        let here = out.stream_position()?;
        patch(dat, out, self.link, &[here])?;
        let mut data = Vec::new();
        for (id, option) in options {
            dat.machine.put(&mut data, *id, 2);
            dat.machine.put(&mut data, option.len() as u64, 4);
            data.extend_from_slice(option);
        }
        dat.machine.put(&mut data, DONE, 2);
        dat.machine.put(&mut data, 8, 4);
        self.link = here + SECTION_HEAD_BYTES + data.len() as u64;
        dat.machine.put(&mut data, 0, 8);
        out.write_all(&section_head(dat, OPTIONS, 0, data.len() as u64))?;
        out.write_all(&data)
    }
}

fn section_head(dat: &TraceDat, id: u64, flags: u64, size: u64) -> Vec<u8> {
    let mut head = Vec::new();
    dat.machine.put(&mut head, id, 2);
    dat.machine.put(&mut head, flags, 2);
    dat.machine.put(&mut head, 0, 4);
    dat.machine.put(&mut head, size, 8);
    head
}

/// Writes a section of metadata and returns its place.
fn section(dat: &TraceDat, out: &mut (impl Write + Seek), id: u64, data: &[u8]) -> io::Result<u64> {
    let place = out.stream_position()?;
    match dat.compression {
        Compression::None => {
            out.write_all(&section_head(dat, id, 0, data.len() as u64))?;
            out.write_all(data)?;
        }
        Compression::Zlib | Compression::Zstd => {
            let packed = packed(dat, data)?;
            out.write_all(&section_head(dat, id, COMPRESSED, packed.len() as u64))?;
            out.write_all(&packed)?;
        }
    }
    Ok(place)
}

/// `data` compressed, with both sizes before it.
fn packed(dat: &TraceDat, data: &[u8]) -> io::Result<Vec<u8>> {
    let body = match dat.compression {
        Compression::None => data.to_vec(),
        Compression::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(data)?;
            encoder.finish()?
        }
        Compression::Zstd => zstd::bulk::compress(data, zstd::DEFAULT_COMPRESSION_LEVEL)?,
    };
    let mut packed = Vec::with_capacity(8 + body.len());
    dat.machine.put(&mut packed, body.len() as u64, 4);
    dat.machine.put(&mut packed, data.len() as u64, 4);
    packed.extend_from_slice(&body);
    Ok(packed)
}

/// Writes the buffer section of an instance and returns the data of its BUFFER option.
fn buffer(dat: &TraceDat, out: &mut (impl Write + Seek), instance: Instance<'_>) -> io::Result<Vec<u8>> {
    let place = out.stream_position()?;
    let flags = if dat.compression == Compression::None { 0 } else { COMPRESSED };
    out.write_all(&section_head(dat, BUFFER, flags, 0))?;
    let mut option = Vec::new();
    dat.machine.put(&mut option, place, 8);
    text_with_nul(&mut option, &instance.name);
    text_with_nul(&mut option, &instance.clock);
    dat.machine.put(&mut option, u64::from(dat.page_bytes), 4);
    dat.machine.put(&mut option, instance.cpus.len() as u64, 4);
    for (cpu, mut pages) in instance.cpus {
        let offset = align(dat, out)?;
        if dat.compression == Compression::None {
            io::copy(&mut pages, out)?;
        } else {
            chunks(dat, out, &mut pages)?;
        }
        let size = out.stream_position()? - offset;
        dat.machine.put(&mut option, u64::from(cpu), 4);
        dat.machine.put(&mut option, offset, 8);
        dat.machine.put(&mut option, size, 8);
    }
    let end = out.stream_position()?;
    patch(dat, out, place + 8, &[end - place - SECTION_HEAD_BYTES])?;
    Ok(option)
}

/// Writes the number of chunks, then each chunk compressed. No pages, nothing written.
fn chunks(dat: &TraceDat, out: &mut (impl Write + Seek), pages: &mut dyn Read) -> io::Result<()> {
    let start = out.stream_position()?;
    let chunk_bytes = dat.page_bytes as usize * PAGES_IN_CHUNK;
    let mut chunk = Vec::with_capacity(chunk_bytes);
    let mut count = 0u64;
    loop {
        chunk.clear();
        pages.take(chunk_bytes as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            break;
        }
        if count == 0 {
            out.write_all(&[0; 4])?;
        }
        out.write_all(&packed(dat, &chunk)?)?;
        count += 1;
    }
    if count > 0 {
        let mut bytes = Vec::new();
        dat.machine.put(&mut bytes, count, 4);
        out.seek(io::SeekFrom::Start(start))?;
        out.write_all(&bytes)?;
        out.seek(io::SeekFrom::End(0))?;
    }
    Ok(())
}
