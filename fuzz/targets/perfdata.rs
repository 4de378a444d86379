//! Any bytes as a perf.data file, in either byte order.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if !bytes.starts_with(b"PERFILE2") && !bytes.starts_with(b"2ELIFREP") {
        return Corpus::Reject;
    }
    kvmscope_fuzz::read_everything(&kvmscope_fuzz::write("perf.data", bytes));
    Corpus::Keep
});
