//! Writes the seeds of all fuzz targets to the directory that is named: TARGET/NAME.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let corpus = PathBuf::from(std::env::args_os().nth(1).ok_or_else(|| std::io::Error::other("name a directory"))?);
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for seed in fuzzed::seeds(&root)? {
        let directory = corpus.join(&seed.target);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(&seed.name), &seed.bytes)?;
    }
    Ok(())
}
