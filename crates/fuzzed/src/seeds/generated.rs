//! A few scenarios in each format.

use super::Seed;
use generate::{Scenario, Target};
use std::path::Path;

const SCENARIOS: [&str; 6] = ["plain", "vmx-refused", "l3", "fastpath", "halts", "losses"];

const FORMATS: [&str; 14] = [
    "tracedat6-le-64",
    "tracedat6-be-32",
    "tracedat7-le-64-none",
    "tracedat7-le-64-zstd",
    "tracedat7-be-32-zlib",
    "ctf1-le",
    "ctf1-be",
    "ctf1-le-lttng",
    "ctf2-le",
    "ctf2-be",
    "perfdata-le",
    "perfdata-be",
    "text-raw",
    "text-printed",
];

/// So much of a stream goes along with its metadata.
const STREAM_BYTES: usize = 16_384;

/// Each of them, for the targets that take its format.
pub(super) fn seeds() -> std::io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for name in SCENARIOS {
        let scenario = Scenario::named(name).ok_or_else(|| std::io::Error::other(format!("no scenario {name}")))?;
        let (story, directory) = (scenario.run(1), tempfile::tempdir()?);
        for format in FORMATS {
            let target = Target::named(format).ok_or_else(|| std::io::Error::other(format!("no format {format}")))?;
            let path = story.write(target, directory.path())?;
            let name = format!("{name}-{format}");
            if path.is_dir() {
                seeds.extend(ctf(&name, &path)?);
                continue;
            }
            let bytes = std::fs::read(&path)?;
            let family = format.split(['-', '6', '7']).next().unwrap_or_default();
            seeds.extend([family, "answer"].map(|target| Seed::new(target, &name, bytes.clone())));
        }
    }
    Ok(seeds)
}

/// The metadata alone; and its length, itself and each stream as one input.
fn ctf(name: &str, directory: &Path) -> std::io::Result<Vec<Seed>> {
    let metadata = std::fs::read(directory.join("metadata"))?;
    // A record separator begins CTF 2.
    let target = if metadata.first() == Some(&0x1e) { "ctf2_metadata" } else { "ctf_metadata" };
    let mut seeds = vec![Seed::new(target, name, metadata.clone())];
    let mut files: Vec<_> = std::fs::read_dir(directory)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.retain(|file| file.is_file() && !file.ends_with("metadata"));
    for file in files {
        let stream = std::fs::read(&file)?;
        if stream.is_empty() {
            continue;
        }
        let length = u32::try_from(metadata.len()).map_err(std::io::Error::other)?;
        let bytes = [&length.to_le_bytes(), &metadata[..], &stream[..stream.len().min(STREAM_BYTES)]].concat();
        let stream = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        seeds.push(Seed::new("ctf_stream", format!("{name}-{stream}"), bytes));
    }
    Ok(seeds)
}
