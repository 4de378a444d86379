//! Any bytes as a stream of a CTF trace whose metadata came with it.
//!
//! An input is the length of the metadata in four bytes, the metadata, and the stream. So metadata and stream fit each
//! other in the seeds, and each can be damaged alone.

use crate::room::Room;
use base::Span;
use std::path::Path;

/// Panics where a promise is broken by these bytes; false if they are of no use here.
pub fn ctf_stream(room: &Room, bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return false };
    let length = u32::from_le_bytes(*length) as usize;
    let Some((metadata, stream)) = rest.split_at_checked(length) else { return false };
    room.write("metadata", metadata);
    room.write("stream", stream);
    let cut = |from: &Path, to: &Path, window: Span| {
        trace::ctf::cut(from, to, window.from_ns, window.to_ns).is_ok_and(|cut| cut.events > 0)
    };
    room.read_and_cut(room.path(), cut);
    true
}
