//! Generated traces: what our readers, other programs and a second way of counting say of them.

mod formats;
mod read_back;
mod truth;
