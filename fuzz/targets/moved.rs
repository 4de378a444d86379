//! Any lines as what a lab saw of a migration besides its sessions: packets, a heartbeat, processes, memory. All the way to the answer.

#![no_main]

use kvmscope_fuzz::room;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzed::moved(room(), bytes));
