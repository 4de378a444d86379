//! Version 6: one header, then the pages of each instance.

use super::options::text_with_nul;
use super::{Instance, TraceDat, parts};
use std::io::{self, Read, Seek, SeekFrom, Write};

const OPTIONS: &[u8; 10] = b"options  \0";
const FLYRECORD: &[u8; 10] = b"flyrecord\0";
const OPTION_BUFFER: u64 = 3;

pub(super) fn write(dat: &TraceDat, out: &mut (impl Write + Seek), instances: Vec<Instance<'_>>) -> io::Result<()> {
    let mut head = parts::head(dat, "6");
    for part in [
        parts::headers(dat),
        parts::ftrace_formats(dat),
        parts::formats(dat),
        parts::kallsyms(dat),
        parts::printk(dat),
        parts::cmdlines(dat),
    ] {
        head.extend_from_slice(&part);
    }
    let cpus = instances.first().map_or(0, |top| top.cpus.len());
    dat.machine.put(&mut head, cpus as u64, 4);
    head.extend_from_slice(OPTIONS);
    for option in &dat.options {
        put_option(dat, &mut head, u64::from(option.id()), &option.data(dat.machine));
    }
    // Where each instance lies is known only when the pages before it are written.
    let mut places = Vec::new();
    for instance in instances.iter().skip(1) {
        let mut data = vec![0; 8];
        text_with_nul(&mut data, &instance.name);
        places.push(head.len() as u64 + 6);
        put_option(dat, &mut head, OPTION_BUFFER, &data);
    }
    dat.machine.put(&mut head, 0, 2);
    out.write_all(&head)?;
    for (index, instance) in instances.into_iter().enumerate() {
        if let Some(place) = index.checked_sub(1).and_then(|index| places.get(index)) {
            let here = out.stream_position()?;
            patch(dat, out, *place, &[here])?;
        }
        write_instance(dat, out, instance)?;
    }
    Ok(())
}

fn put_option(dat: &TraceDat, head: &mut Vec<u8>, id: u64, data: &[u8]) {
    dat.machine.put(head, id, 2);
    dat.machine.put(head, data.len() as u64, 4);
    head.extend_from_slice(data);
}

fn write_instance(dat: &TraceDat, out: &mut (impl Write + Seek), instance: Instance<'_>) -> io::Result<()> {
    out.write_all(FLYRECORD)?;
    let table = out.stream_position()?;
    out.write_all(&vec![0; 16 * instance.cpus.len()])?;
    for (index, (_, mut pages)) in instance.cpus.into_iter().enumerate() {
        let offset = align(dat, out)?;
        let size = io::copy(&mut pages.by_ref(), out)?;
        patch(dat, out, table + 16 * index as u64, &[offset, size])?;
    }
    Ok(())
}

/// Pads with zeros up to the next page and returns the place.
pub(super) fn align(dat: &TraceDat, out: &mut (impl Write + Seek)) -> io::Result<u64> {
    let here = out.stream_position()?;
    let there = here.next_multiple_of(u64::from(dat.page_bytes.max(1)));
    out.write_all(&vec![0; (there - here) as usize])?;
    Ok(there)
}

/// Overwrites 8-byte numbers at `place` and goes back to the end.
pub(super) fn patch(dat: &TraceDat, out: &mut (impl Write + Seek), place: u64, numbers: &[u64]) -> io::Result<()> {
    let mut bytes = Vec::new();
    numbers.iter().for_each(|number| dat.machine.put(&mut bytes, *number, 8));
    out.seek(SeekFrom::Start(place))?;
    out.write_all(&bytes)?;
    out.seek(SeekFrom::End(0))?;
    Ok(())
}
