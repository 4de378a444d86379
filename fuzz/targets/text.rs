//! Any bytes as what `trace-cmd report`, ftrace or `perf script` print.

#![no_main]

use kvmscope_fuzz::{corpus, room};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus { corpus(fuzzed::text(room(), bytes)) });
