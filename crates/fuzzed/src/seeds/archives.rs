//! A small recording and a tree as archives: as they are (way 0), and packed by the target (way 1).

use super::Seed;
use std::io::Write;
use std::path::Path;

pub(super) fn seeds(root: &Path) -> std::io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for name in ["hosts-must-gather", "seed-vhost"] {
        let mut archive = tar::Builder::new(Vec::new());
        archive.mode(tar::HeaderMode::Deterministic);
        archive.append_dir_all(name, root.join("fixtures").join(name))?;
        let tree = archive.into_inner()?;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&tree)?;
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
        xz.write_all(&tree)?;
        let ways = [("gz", 0, gzip.finish()?), ("xz", 0, xz.finish()?), ("gzip", 1, tree.clone()), ("plain", 0, tree)];
        seeds.extend(ways.map(|(way, first, bytes)| {
            Seed::new("archive", format!("{name}-{way}"), [&[first][..], &bytes[..]].concat())
        }));
    }
    Ok(seeds)
}
