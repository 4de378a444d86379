//! How long does zstd alone take? `cargo run --release -p kvmscope-trace --example unpack FILE`
//!
//! Unpacks the ring-buffer chunks of a trace.dat file, one after the other on one thread, and prints their bytes: what
//! `kvmscope report` is held against in `make bench`. It shares no code with the reader. Chunks are found by zstd's
//! magic number (RFC 8878, 3.1.1) behind their two sizes (trace-cmd.dat.v7(5)); sections that hold text rather than
//! ring-buffer pages do not unpack to whole pages and are left out.

use std::error::Error;

const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
const PAGE: usize = 4096;
/// Chunks hold a few dozen pages; a larger size stands before bytes that only look like a frame.
const MOST_UNPACKED: usize = 16 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: unpack FILE")?;
    let file = std::fs::read(path)?;
    let mut decoder = zstd::bulk::Decompressor::new()?;
    let mut page_bytes = Vec::with_capacity(MOST_UNPACKED);
    let (mut chunks, mut bytes) = (0_u64, 0_u64);
    let mut at = 8;
    while let Some(found) = memchr::memmem::find(&file[at..], &MAGIC) {
        at += found;
        let sizes = [at - 8, at - 4].map(|place| file[place..place + 4].try_into().map(u32::from_le_bytes));
        let (stored, size) = (sizes[0]? as usize, sizes[1]? as usize);
        let whole_pages = size > 0 && size % PAGE == 0 && size <= MOST_UNPACKED;
        match file.get(at..at.saturating_add(stored)).filter(|_| whole_pages) {
            Some(frame) => {
                bytes += decoder.decompress_to_buffer(frame, &mut page_bytes)? as u64;
                chunks += 1;
                at += stored;
            }
            None => at += MAGIC.len(),
        }
        if at >= file.len() {
            break;
        }
    }
    println!("{bytes} bytes in {chunks} chunks");
    Ok(())
}
