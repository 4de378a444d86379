//! Every target meets its seeds, whole and damaged, on any machine and without libFuzzer.
//!
//! The damage is the same each time. Coverage finds more: `make fuzz`.

use fuzzed::{Room, Seed};
use generate::Random;
use std::path::Path;
use std::sync::LazyLock;

/// Damaged inputs of a target, beside its whole seeds: a few seconds for all targets together, unoptimized.
const DAMAGED: usize = 40;

static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    fuzzed::seeds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("fixtures that can be read")
});

/// Cut short, or with some bytes changed, or with a piece of itself in another place.
fn damaged(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let length = bytes.len() as u64;
    match random.between(0, 4) {
        0 => bytes.truncate(random.between(0, length) as usize),
        1 => {
            let (from, to) = (random.between(0, length) as usize, random.between(0, length) as usize);
            let piece = &whole[from..(from + 16).min(whole.len())];
            bytes.splice(to..to, piece.iter().copied());
        }
        _ => {
            for _ in 0..random.between(1, 9) {
                let any = random.word() as u8;
                bytes[random.between(0, length) as usize] = random.pick(&[0, 0x7f, 0x80, 0xff, any]);
            }
        }
    }
    bytes
}

/// Says which input it was, should the target panic.
struct Running<'a>(&'a str, &'a [u8]);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let path = std::env::temp_dir().join(format!("kvmscope-{}", self.0));
            let kept = std::fs::write(&path, self.1);
            println!("the input is {} bytes of {}, kept in {}: {kept:?}", self.1.len(), self.0, path.display());
        }
    }
}

fn replay(target: &str, run: impl Fn(&Room, &[u8])) {
    let room = Room::empty();
    let own: Vec<&Seed> = SEEDS.iter().filter(|seed| seed.target == target).collect();
    assert!(!own.is_empty(), "no seed");
    for seed in &own {
        let _running = Running(&seed.name, &seed.bytes);
        run(&room, &seed.bytes);
    }
    let mut random = Random::new(1);
    for turn in 0..DAMAGED {
        let seed = own[turn % own.len()];
        if seed.bytes.is_empty() {
            continue;
        }
        let bytes = damaged(&seed.bytes, &mut random);
        let _running = Running(&format!("{target}-damaged"), &bytes);
        run(&room, &bytes);
    }
}

macro_rules! replayed {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target), |room, bytes| {
                let _ = fuzzed::$target(room, bytes);
            });
        })*

        #[test]
        fn every_seed_has_a_target_and_every_target_is_fuzzed() {
            let targets = [$(stringify!($target)),*];
            assert!(SEEDS.iter().all(|seed| targets.contains(&seed.target.as_str())));
            let fuzzed = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/targets")).unwrap();
            let mut fuzzed: Vec<_> = fuzzed.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            fuzzed.sort();
            assert_eq!(fuzzed, targets.map(|target| format!("{target}.rs")));
        }
    };
}

replayed! {
    answer archive bench brought budget chain ctf2_metadata ctf_metadata ctf_stream cut_from domain_xml event_format http journal live
    manifest moved ovsdb parquet paste perfdata polled qmp samples sosreport symbols text tracedat
}
