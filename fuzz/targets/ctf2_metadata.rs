//! Any bytes as the metadata of a CTF 2 trace: JSON fragments, each behind a record separator (RFC 7464).

#![no_main]

use kvmscope_fuzz::{corpus, room};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus { corpus(fuzzed::ctf2_metadata(room(), bytes)) });
