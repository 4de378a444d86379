//! Any bytes as the metadata of a CTF 1.8 trace, plain or in packets, over a stream of a few plausible packets.

#![no_main]

use kvmscope_fuzz::{corpus, room};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus { corpus(fuzzed::ctf_metadata(room(), bytes)) });
