//! The CTF reader against babeltrace2, against metadata and bytes written by hand, and against damage.

mod babeltrace;
mod bits;
mod damage;
mod events;
mod json;
mod lttng;
mod made;
mod packets;
mod vectors;
