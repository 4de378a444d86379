//! Any bytes as a perf.data file, in either byte order.

#![no_main]

use kvmscope_fuzz::{corpus, room};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus { corpus(fuzzed::perfdata(room(), bytes)) });
