//! A fleet with known truth: the answer names what is worse, and nothing else.

use analysis::fleet::Fleet;
use analysis::{Case, Given};
use base::{Cell, Histogram, Section, parallel};
use generate::fleet::{Fleet as Generated, FleetTruth};
use kvmscope_fleet::{Added, Local, added, answer, identity, opened};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn case(path: &Path) -> Case {
    Case::new(analysis::open(opened(path).unwrap().recording).unwrap(), Given::default())
}

/// What a data set gets of the recording at `path`.
fn files(path: &Path) -> Added {
    let (_, digest) = identity(&opened(path).unwrap().recording, &Given::default()).unwrap();
    added(&case(path), &digest).unwrap()
}

/// Every distribution of costs in a recording, with its level and reason.
fn exits(case: &Case) -> impl Iterator<Item = (String, String, &Histogram)> {
    let vcpus = case.ledger().parts.iter().flat_map(|part| part.vcpus.iter().map(move |vcpu| (part, vcpu)));
    vcpus.flat_map(|(part, vcpu)| {
        vcpu.sums
            .exits
            .iter()
            .map(|((level, reason), sums)| (part.level_of(*level).to_string(), reason.name(), &sums.cost_ns))
            .collect::<Vec<_>>()
    })
}

/// The recordings of a generated fleet.
fn recordings(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    all.sort();
    all
}

/// A data set of a generated fleet.
fn dataset(generated: Generated, place: &Path) -> Local {
    generated.write(&place.join("recordings")).unwrap();
    let local = Local::create(&place.join("dataset")).unwrap();
    let all = recordings(&place.join("recordings"));
    parallel::map(all.len(), |number| local.add(&files(&all[number]), "x").unwrap());
    local
}

fn section(fleet: Fleet) -> Section {
    answer(fleet).unwrap().1.sections.remove(0)
}

fn texts<'s>(section: &'s Section, table: &str, column: &str) -> BTreeSet<&'s str> {
    section.table(table).into_iter().flat_map(|table| table.rows()).filter_map(|row| row.text(column)).collect()
}

fn subjects<'s>(section: &'s Section, rule: &str) -> Vec<&'s str> {
    section.findings.iter().filter(|finding| finding.rule == rule).map(|finding| finding.subject.as_str()).collect()
}

#[test]
fn exactly_what_is_worse_is_named() {
    for seed in [1, 7] {
        let place = tempfile::tempdir().unwrap();
        let generated = Generated { recordings: 60, hosts: 60, seed, alike: false };
        let FleetTruth { shadowing_off, hog, kernel } = generated.truth();
        let section = section(dataset(generated, place.path()).fleet().unwrap());
        let worse: BTreeSet<&str> = shadowing_off.iter().chain(&hog).map(String::as_str).collect();
        assert_eq!(worse.len(), 7);
        assert_eq!(texts(&section, "outliers", "host"), worse, "seed {seed}: {:#?}", section.table("outliers"));
        assert_eq!(subjects(&section, "FLT-OUTLIER").into_iter().collect::<BTreeSet<_>>(), worse);
        for row in section.table("outliers").unwrap().rows() {
            let (host, what) = (row.text("host").unwrap(), row.text("what").unwrap());
            let by_hog = what == "waiting for a CPU";
            assert!(hog.contains(host) == by_hog || shadowing_off.contains(host), "{host} by {what}");
            let why = row.text("why").unwrap();
            assert_eq!(why.contains("SHADOW"), shadowing_off.contains(host), "{host}: {why}");
        }
        let kernels = subjects(&section, "FLT-KERNEL");
        assert!(kernels.len() == 2 && kernels.iter().all(|one| one.starts_with(kernel.unwrap())), "{kernels:?}");
        assert!(subjects(&section, "FLT-DRIFT").is_empty() && subjects(&section, "FLT-BUDGET").is_empty());
        let helped: BTreeMap<&str, f64> = section
            .table("ranked")
            .unwrap()
            .rows()
            .map(|row| (row.text("rule").unwrap(), row.number("hosts").unwrap()))
            .collect();
        assert!(helped.iter().any(|(rule, hosts)| rule.contains("SHADOW") && *hosts == 5.0), "{helped:?}");
    }
}

#[test]
fn a_fleet_of_hosts_alike_names_none() {
    for seed in [1, 7] {
        let place = tempfile::tempdir().unwrap();
        let generated = Generated { recordings: 72, hosts: 72, seed, alike: true };
        let section = section(dataset(generated, place.path()).fleet().unwrap());
        assert!(section.findings.is_empty(), "seed {seed}: {:#?}", section.findings);
        assert!(section.summary.contains(" None of 72 hosts stands out."), "{}", section.summary);
    }
}

#[test]
fn percentiles_are_those_of_one_histogram_over_all_exits_however_parts_are_merged() {
    let place = tempfile::tempdir().unwrap();
    let local = dataset(Generated { recordings: 24, hosts: 12, seed: 3, alike: false }, place.path());
    let mut whole: BTreeMap<(String, String, String), Histogram> = BTreeMap::new();
    for path in recordings(&place.path().join("recordings")) {
        let case = case(&path);
        let kernel = std::fs::read_to_string(path.join("L0/host/0/proc/sys/kernel/osrelease")).unwrap();
        for (level, reason, cost_ns) in exits(&case) {
            whole.entry((kernel.trim().to_owned(), level, reason)).or_default().merge(cost_ns);
        }
    }
    let ids = local.recordings().unwrap();
    assert_eq!(ids.len(), 24);
    let all = local.fleet().unwrap();
    let section = section(all.clone());
    // Of one kernel on both CPU models together, by hand: counts and sums have to be all there are.
    let mut counted: BTreeMap<(String, String, String), (f64, f64)> = BTreeMap::new();
    for row in section.table("exit_costs").unwrap().rows() {
        let text = |name| row.text(name).unwrap().to_owned();
        let own = counted.entry((text("kernel"), text("level"), text("reason"))).or_default();
        *own = (own.0 + row.number("count").unwrap(), own.1.max(row.number("max_ns").unwrap_or_default()));
    }
    for (key, (_, max_ns)) in &counted {
        assert_eq!(*max_ns, whole[key].max() as f64, "{key:?}");
    }
    // The same through bytes, in parts, in another order.
    let mut merged = Fleet::default();
    for id in ids.iter().rev() {
        let mut part = Fleet::default();
        let files = kvmscope_fleet::stored_paths(id).into_iter().map(|(path, _)| {
            let bytes = std::fs::read(place.path().join("dataset").join(&path)).unwrap();
            (path, bytes)
        });
        kvmscope_fleet::read(&mut part, id, files.collect()).unwrap();
        merged.merge(Fleet::of_bytes(&part.to_bytes().unwrap()).unwrap());
    }
    assert_eq!(merged.to_bytes().unwrap(), all.to_bytes().unwrap());
    assert!(Fleet::of_bytes(b"{}").is_err());
}

#[test]
fn percentiles_of_one_class_are_those_of_its_exits() {
    let place = tempfile::tempdir().unwrap();
    // One host: one class.
    let local = dataset(Generated { recordings: 5, hosts: 1, seed: 3, alike: true }, place.path());
    let mut whole: BTreeMap<(String, String), Histogram> = BTreeMap::new();
    for path in recordings(&place.path().join("recordings")) {
        let case = case(&path);
        for (level, reason, cost_ns) in exits(&case) {
            whole.entry((level, reason)).or_default().merge(cost_ns);
        }
    }
    let section = section(local.fleet().unwrap());
    let table = section.table("exit_costs").unwrap();
    assert_eq!(table.rows.len(), whole.len());
    for row in table.rows() {
        let of = &whole[&(row.text("level").unwrap().to_owned(), row.text("reason").unwrap().to_owned())];
        let expected = of.quantiles([0.5, 0.9, 0.99]).map(|values| values.map(|value| value as f64));
        let found = ["p50_ns", "p90_ns", "p99_ns"].map(|name| row.number(name));
        assert_eq!(found, expected.map_or([None; 3], |values| values.map(Some)));
    }
}

#[test]
fn what_is_there_is_recognized_wherever_it_lies_and_what_has_no_row_is_ignored() {
    let place = tempfile::tempdir().unwrap();
    let local = dataset(Generated { recordings: 12, hosts: 12, seed: 5, alike: true }, place.path());
    let first = &recordings(&place.path().join("recordings"))[0];
    let elsewhere = place.path().join("called otherwise");
    std::fs::rename(first, &elsewhere).unwrap();
    let (id, digest) = identity(&opened(&elsewhere).unwrap().recording, &Given::default()).unwrap();
    assert!(local.has(&id) && digest.starts_with(&id.recording));
    // Killed before its row was written.
    let row = kvmscope_fleet::recordings_path(&id);
    std::fs::remove_file(place.path().join("dataset").join(row)).unwrap();
    let fleet = local.fleet().unwrap();
    assert!(!local.has(&id) && fleet.len() == 11);
    // One byte more is another recording.
    let hostname = elsewhere.join("L0/host/0/proc/sys/kernel/hostname");
    std::fs::write(&hostname, "a/b\n").unwrap();
    let (other, _) = identity(&opened(&elsewhere).unwrap().recording, &Given::default()).unwrap();
    assert!(other.recording != id.recording && other.host == "a/b");
    local.add(&files(&elsewhere), "x").unwrap();
    assert!(local.recordings().unwrap().contains(&other));
}

#[test]
fn a_recording_whose_folder_was_renamed_is_named_and_left_out() {
    let place = tempfile::tempdir().unwrap();
    let local = dataset(Generated { recordings: 12, hosts: 12, seed: 5, alike: true }, place.path());
    let host = local.recordings().unwrap()[0].host.clone();
    let table = place.path().join("dataset/fleet.recordings");
    std::fs::rename(table.join(format!("host={host}")), table.join("host=\u{1b}[2J")).unwrap();
    let section = section(local.fleet().unwrap());
    let failures = &section.table("failures").unwrap().rows;
    assert!(failures[0][1] == Cell::from("its folder was renamed; export the recording again"), "{failures:?}");
    assert!(section.summary.contains("1 recording could not be added"), "{}", section.summary);
}

#[test]
fn failures_are_kept_until_the_recording_is_added() {
    let place = tempfile::tempdir().unwrap();
    let local = dataset(Generated { recordings: 12, hosts: 12, seed: 5, alike: true }, place.path());
    local.fail("nightly/broken", "no events").unwrap();
    let section = section(local.fleet().unwrap());
    let failures = section.table("failures").unwrap();
    assert_eq!(failures.rows, [vec![Cell::from("nightly/broken"), Cell::from("no events")]]);
    assert!(section.summary.contains("1 recording could not be added"), "{}", section.summary);
    let first = &recordings(&place.path().join("recordings"))[0];
    local.add(&files(first), "nightly/broken").unwrap();
    assert!(answer(local.fleet().unwrap()).unwrap().1.sections[0].table("failures").is_none());
    assert!(Local::open(&place.path().join("recordings")).is_err());
}
