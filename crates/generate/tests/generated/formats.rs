//! Do other programs read the stories as they were meant?

use generate::scenario::{self, ALL};
use generate::{Scenario, Story, Target};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use trace::format::Endian;
use trace::write::tracedat::Compression;

/// Output of a program, or `None` with the reason printed if it is not installed.
fn oracle(program: &str, arguments: &[&str], path: &Path) -> Option<String> {
    match Command::new(program).args(arguments).arg(path).env("LC_ALL", "C").output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {}: {errors}", path.display());
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(error) => {
            println!("skipped: {program}: {error}");
            None
        }
    }
}

/// How often each event occurs in a story, by the kernel's names.
fn tally(story: &Story) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for record in &story.records {
        *tally.entry(story.schema.events[record.event].name.clone()).or_default() += 1;
    }
    tally
}

/// How often each of the names in `tally` stands in `text` as `name:`, with anything that is no letter before it.
fn tally_of_text(text: &str, names: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let count = |name: &String| text.lines().filter(|line| line.contains(&format!("{name}: "))).count();
    let exact = |name: &String| {
        let longer: usize =
            names.keys().filter(|other| *other != name && other.ends_with(name.as_str())).map(count).sum();
        count(name) - longer
    };
    names.keys().map(|name| (name.clone(), exact(name))).collect()
}

#[test]
fn trace_cmd_prints_every_story_as_our_own_text() {
    let directory = tempfile::tempdir().unwrap();
    let target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::Zstd };
    let named = ALL.iter().map(|scenario| (scenario.name.to_owned(), scenario.run(3)));
    let random = (0..20).map(|seed| (format!("random {seed}"), scenario::random(seed)));
    for (case, story) in named.chain(random) {
        let path = story.write(target, directory.path()).unwrap();
        let Some(expected) = oracle("trace-cmd", &["report", "-R", "-t", "-q", "-N", "-i"], &path) else { return };
        let text = story.write(Target::TextRaw, directory.path()).unwrap();
        let found = std::fs::read_to_string(text).unwrap();
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found.trim_end(), expected.trim_end(), "{case}");
        }
        assert_eq!(found.lines().count(), expected.lines().count(), "{case}");
    }
}

#[test]
fn every_format_holds_every_event() {
    for name in ["halts", "vmx-refused", "losses"] {
        let directory = tempfile::tempdir().unwrap();
        let story = Scenario::named(name).unwrap().run(3);
        let expected = tally(&story);
        for target in Target::all() {
            let path = story.write(target, directory.path()).unwrap();
            let text = match target {
                // Debian's trace-cmd is built without zlib.
                Target::TraceDat7 { compression: Compression::Zlib, .. } => continue,
                Target::TraceDat6 { .. } | Target::TraceDat7 { .. } => {
                    oracle("trace-cmd", &["report", "-R", "-q", "-N", "-i"], &path)
                }
                Target::Ctf1 { lttng: false, .. } => oracle("babeltrace2", &[], &path),
                // babeltrace2 2.0 reads no CTF 2, and LTTng's names and events are other ones.
                Target::Ctf1 { lttng: true, .. } | Target::Ctf2 { .. } => continue,
                Target::PerfData { .. } => oracle("perf", &["script", "-F", "event,trace", "-i"], &path),
                Target::TextRaw | Target::TextPrinted => Some(std::fs::read_to_string(&path).unwrap()),
            };
            let Some(text) = text else { continue };
            assert_eq!(tally_of_text(&text, &expected), expected, "{name} as {}", target.name());
        }
    }
}

#[test]
fn lttng_has_its_own_names_and_lacks_what_it_has_no_probe_for() {
    let directory = tempfile::tempdir().unwrap();
    for endian in [Endian::Little, Endian::Big] {
        let story = Scenario::named("svm-no-vls-vgif").unwrap().run(3);
        let path = story.write(Target::Ctf1 { endian, lttng: true }, directory.path()).unwrap();
        let Some(text) = oracle("babeltrace2", &[], &path) else { return };
        let count = |name: &str| text.matches(&format!(" {name}: ")).count();
        let expected = tally(&story);
        assert_eq!(count("kvm_x86_exit"), expected["kvm_exit"]);
        assert_eq!(count("kvm_x86_nested_vmexit_inject"), expected["kvm_nested_vmexit_inject"]);
        assert_eq!(count("kvm_x86_nested_vmenter"), 0);
        assert!(text.contains("next_tid = 170"));
        assert!(!text.contains("kvm_x86_entry: { cpu_id = 0 }, { vcpu_id = 0 }"), "the field is stale since 5.10");
        assert!(text.contains("kvm_x86_nested_vmexit: { cpu_id = 0 }, { rip = 1844661"), "a kernel pointer");
        let story = Scenario::named("halts").unwrap().run(3);
        let path = story.write(Target::Ctf1 { endian, lttng: true }, &directory.path().join("halts")).unwrap();
        let Some(text) = oracle("babeltrace2", &[], &path) else { return };
        assert!(text.contains("sched_waking: { cpu_id = 0 }, { comm = \"CPU 0/KVM\", tid = 170"));
        assert!(!text.contains("wakeup"));
    }
}

#[test]
fn a_huge_file_is_one_story_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("huge.dat");
    let story = Scenario::named("vmx-no-shadowing").unwrap().run(1);
    generate::huge::write(&story, 3_000_000, Compression::None, &path).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!((3_000_000..4_500_000).contains(&bytes), "{bytes}");
    let Some(text) = oracle("trace-cmd", &["report", "-R", "-t", "-q", "-N", "-i"], &path) else { return };
    let times: Vec<&str> = text.lines().filter(|line| line.contains("kvm_exit:")).collect();
    assert_eq!(times.len() % tally(&story)["kvm_exit"], 0, "whole rounds");
    assert!(times.len() > 5 * tally(&story)["kvm_exit"]);
}

#[test]
fn a_story_on_a_tsc_has_the_same_nanoseconds() {
    let directory = tempfile::tempdir().unwrap();
    let target = Target::TraceDat7 { endian: Endian::Little, long_bytes: 8, compression: Compression::None };
    let story = Scenario::named("halts").unwrap().run(3);
    let lines = |story: &Story| {
        let path = story.write(target, directory.path()).unwrap();
        oracle("trace-cmd", &["report", "-R", "-t", "-q", "-N", "-i"], &path)
    };
    let (Some(plain), Some(scaled)) = (lines(&story), lines(&story.on_tsc(2_250_000_000, true))) else { return };
    assert_eq!(plain, scaled);
}
