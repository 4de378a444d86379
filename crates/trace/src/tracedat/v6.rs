//! The head of a version 6 file: everything in one fixed order.
//!
//! Source: trace-cmd.dat.v6(5) of trace-cmd 3.1.6; the BUFFER option as `trace-cmd record -B` writes it.

use super::cursor::Cursor;
use super::layout::{Buffer, Compression, CpuData, Layout, event_formats, format_list, sized_text};
use crate::format::Endian;

/// Reads on behind the page size. `Err` holds the place and what was expected there.
pub(super) fn read(file: &[u8], at: usize, endian: Endian, page_size: usize) -> Result<Layout, (usize, &'static str)> {
    let mut cursor = Cursor::new(file, at, endian);
    let mut layout = Layout::new(6, endian, page_size, Compression::None);
    layout.header_page = tagged_text(&mut cursor, b"header_page\0").ok_or((cursor.at(), "header_page"))?;
    layout.header_event = tagged_text(&mut cursor, b"header_event\0").ok_or((cursor.at(), "header_event"))?;
    format_list(&mut cursor, "ftrace", &mut layout.texts).ok_or((cursor.at(), "ftrace event formats"))?;
    event_formats(&mut cursor, &mut layout.texts).ok_or((cursor.at(), "event formats"))?;
    layout.parse_formats();
    let kallsyms = block(&mut cursor).ok_or((cursor.at(), "kallsyms"))?.len();
    layout.kallsyms = cursor.at() - kallsyms..cursor.at();
    let printk = block(&mut cursor).ok_or((cursor.at(), "printk formats"))?;
    layout.printk = String::from_utf8_lossy(printk).into_owned();
    layout.cmdlines = sized_text(&mut cursor).ok_or((cursor.at(), "saved command lines"))?;
    layout.cpus = cursor.u32().ok_or((cursor.at(), "the number of CPUs"))?;
    let mut tag = cursor.take(10).ok_or((cursor.at(), "a tag `options`, `latency` or `flyrecord`"))?;
    if tag.starts_with(b"options") {
        read_options(&mut cursor, &mut layout).ok_or((cursor.at(), "an option"))?;
        tag = cursor.take(10).ok_or((cursor.at(), "a tag `latency` or `flyrecord`"))?;
    }
    if tag.starts_with(b"latency") {
        return Err((cursor.at(), LATENCY));
    }
    if !tag.starts_with(b"flyrecord") {
        return Err((cursor.at() - 10, "a tag `latency` or `flyrecord`"));
    }
    let top = cpu_list(&mut cursor, layout.cpus).ok_or((cursor.at(), "the place of each CPU's data"))?;
    layout.buffers.push(Buffer { name: String::new(), clock: String::new(), page_size, compressed: false, cpus: top });
    let instances: Vec<(u64, String)> =
        layout.options.iter().filter_map(|(id, data)| instance(*id, data, endian)).collect();
    for (offset, name) in instances {
        let mut cursor = Cursor::new(file, usize::try_from(offset).unwrap_or(usize::MAX), endian);
        let is_data = cursor.take(10).is_some_and(|tag| tag.starts_with(b"flyrecord"));
        let cpus = if is_data { cpu_list(&mut cursor, layout.cpus) } else { None };
        let cpus = cpus.ok_or((cursor.at(), "the data of a trace instance"))?;
        layout.buffers.push(Buffer { name, clock: String::new(), page_size, compressed: false, cpus });
    }
    Ok(layout)
}

/// What [`read`] reports for a file that holds text instead of events.
pub(super) const LATENCY: &str = "events; it holds latency-tracer text";

/// The BUFFER option of version 6: offset of a `flyrecord` block, name.
fn instance(id: u16, data: &[u8], endian: Endian) -> Option<(u64, String)> {
    let mut cursor = Cursor::new(data, 0, endian);
    (id == super::options::BUFFER).then(|| Some((cursor.u64()?, cursor.text().unwrap_or_default())))?
}

fn tagged_text(cursor: &mut Cursor<'_>, tag: &[u8]) -> Option<String> {
    let found = cursor.take(tag.len() as u64)?;
    if found == tag { sized_text(cursor) } else { None }
}

/// Bytes behind their number as u32.
fn block<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = cursor.u32()?;
    cursor.take(u64::from(size))
}

fn read_options(cursor: &mut Cursor<'_>, layout: &mut Layout) -> Option<()> {
    loop {
        let id = cursor.u16()?;
        if id == 0 {
            return Some(());
        }
        let size = cursor.u32()?;
        layout.options.push((id, cursor.take(u64::from(size))?.to_vec()));
    }
}

fn cpu_list(cursor: &mut Cursor<'_>, cpus: u32) -> Option<Vec<CpuData>> {
    let mut list = Vec::new();
    for cpu in 0..cpus {
        list.push(CpuData { cpu, offset: cursor.u64()?, size: cursor.u64()? });
    }
    Some(list)
}
