//! Texts that were cut, doubled and scrambled: whatever people paste, reading ends and does not panic.

use kvmscope_host::paste;
use std::path::{Path, PathBuf};

/// All texts of the fixtures that hold outputs of commands, and the seeds of the fuzzer, of which each is another form.
fn texts() -> Vec<String> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut files = Vec::new();
    for directory in ["seed-vhost/L0/notes", "hosts-sosreport/sos_commands", "hosts-sosreport/run", "hosts-must-gather"]
    {
        walk(&fixtures.join(directory), &mut files);
    }
    walk(&fixtures.join("../fuzz/seeds/paste"), &mut files);
    files.sort();
    files.iter().map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned()).collect()
}

/// A small generator, always the same (Knuth's MMIX constants).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

#[test]
fn damaged_texts_are_read_to_their_end() {
    let texts = texts();
    let mut dice = Dice(7);
    let large =
        ["4294967295", "-1", "99999999999999999999", "0-4294967294", "1e308", "\u{fffd}", "", "é", ":", "{", "[SUM]"];
    for _ in 0..3_000 {
        let mut words: Vec<String> =
            texts[dice.below(texts.len())].split_inclusive([' ', '\n', ':', '\'']).map(str::to_owned).collect();
        for _ in 0..=dice.below(6) {
            let at = dice.below(words.len());
            match dice.below(4) {
                0 => words.truncate(at),
                1 => words.insert(at, large[dice.below(large.len())].to_owned()),
                2 if !words.is_empty() => words[at] = large[dice.below(large.len())].to_owned() + " ",
                _ => words.extend(texts[dice.below(texts.len())].split_inclusive(' ').map(str::to_owned).take(at)),
            }
        }
        let text = words.concat();
        let machine = paste::read(&[("damaged".to_owned(), text.clone())]);
        let (_, understood, lost) = &machine.sources[0];
        let written = text.lines().filter(|line| !line.trim().is_empty()).count() as u64;
        assert_eq!(understood + lost, written, "every line is one of both");
    }
}
