//! Any bytes as a stream of a CTF trace whose metadata came with it.

#![no_main]

use kvmscope_fuzz::{corpus, room};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus { corpus(fuzzed::ctf_stream(room(), bytes)) });
