use super::*;
use crate::setting::Altered;
use base::Setting;
use base::setting::ThreadId;
use std::fs;

/// A journal beside a host whose `/sys` is `directory/sys`.
fn journal(directory: &Path) -> Journal {
    Journal::new(directory.join("journal"), "/proc").of_host(directory)
}

/// A file of that host.
fn knob(directory: &Path, value: &str) -> PathBuf {
    fs::create_dir_all(directory.join("sys")).unwrap();
    let knob = directory.join("sys/knob");
    fs::write(&knob, value).unwrap();
    knob
}

fn write(old: &str, new: &str) -> Step {
    let setting = Setting::SysfsWrite { path: "knob".into() };
    Step::Setting(Altered { setting, old: old.into(), new: new.into(), was_unset: false })
}

fn moved(tid: i32, name: &str) -> Step {
    let setting = Setting::TaskAffinity(ThreadId { tid, start_ticks: Some(1), comm: Some(name.into()) });
    Step::Setting(Altered { setting, old: "0".into(), new: "1".into(), was_unset: false })
}

/// Puts other bytes in the place of the only entry.
fn rewrite(directory: &Path, from: &str, to: &str) {
    let file = fs::read_dir(directory.join("journal")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&file, text.replace(from, to)).unwrap();
}

/// As another process would find it: the entry was dropped without being finished.
fn left_behind(directory: &Path, step: Step) -> Entry {
    let mut entry = journal(directory).begin("record").unwrap();
    entry.intend(step).unwrap();
    drop(entry);
    journal(directory).entries().unwrap().remove(0).unwrap()
}

#[test]
fn an_unfinished_entry_is_found_again_and_reverted_from_last_to_first() {
    let directory = tempfile::tempdir().unwrap();
    let knob = knob(directory.path(), "3\n");
    let mut entry = journal(directory.path()).begin("apply").unwrap();
    for (old, new) in [("1", "2"), ("2", "3")] {
        entry.intend(write(old, new)).unwrap();
    }
    drop(entry);
    let found = journal(directory.path()).entries().unwrap().remove(0).unwrap();
    assert!(journal(directory.path()).is_owned(&found), "this process still runs");
    assert!(found.finish(Path::new("/proc")).unwrap().iter().all(|(_, done)| *done == Reverted::Done));
    assert_eq!(fs::read_to_string(&knob).unwrap(), "1");
    assert!(journal(directory.path()).entries().unwrap().is_empty());
}

#[test]
fn a_value_that_somebody_else_changed_meanwhile_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let knob = knob(directory.path(), "9\n");
    let step = write("1", "2");
    let outcome = left_behind(directory.path(), step).finish(Path::new("/proc")).unwrap();
    assert!(matches!(&outcome[0].1, Reverted::LeftAlone(why) if why.contains('9')), "{outcome:?}");
    assert_eq!(fs::read_to_string(&knob).unwrap(), "9\n");
}

#[test]
fn who_puts_all_back_hears_of_what_stays_and_whether_undo_may_help() {
    let directory = tempfile::tempdir().unwrap();
    let proc = Path::new("/proc");
    let said = |entry: Entry| entry.put_back(proc).map_err(|error| error.to_string());
    let knob = knob(directory.path(), "2\n");
    assert_eq!(said(left_behind(directory.path(), write("1", "2"))), Ok(()));
    fs::write(&knob, "9\n").unwrap();
    let left = said(left_behind(directory.path(), write("1", "2"))).unwrap_err();
    assert!(left.contains("left as it is") && !left.contains("kvmscope undo"), "{left}");
    // A directory that is not empty is no instance that could be removed.
    let path = directory.path().join("instances/kvmscope-1");
    fs::create_dir_all(path.join("full")).unwrap();
    let entry = left_behind(directory.path(), Step::TracefsInstance { path: path.clone() });
    let undo = format!("run `kvmscope undo {}`", entry.id);
    let left = said(entry).unwrap_err();
    assert!(left.contains("could not be put back") && left.ends_with(&undo), "{left}");
    assert_eq!(journal(directory.path()).entries().unwrap().len(), 1, "it can be tried again");
}

#[test]
fn what_stays_behind_is_said_with_why_the_work_failed() {
    let directory = tempfile::tempdir().unwrap();
    let proc = Path::new("/proc");
    let knob = knob(directory.path(), "2\n");
    let after = |done: Result<u8, Error>| left_behind(directory.path(), write("1", "2")).put_back_after(done, proc);
    let failed = || Err(Error::Died("the switch ended".to_owned()));
    assert_eq!(after(Ok(7)).unwrap(), 7);
    fs::write(&knob, "2\n").unwrap();
    assert!(matches!(after(failed()), Err(Error::Died(_))));
    fs::write(&knob, "9\n").unwrap();
    assert!(matches!(after(Ok(7)), Err(Error::LeftBehind(_))));
    let Err(Error::LeftBehind(said)) = after(failed()) else { panic!("it does not say that something stays") };
    assert!(said.starts_with("the switch ended; and ") && said.contains("left as it is"), "{said}");
}

#[test]
fn a_command_clears_what_its_killed_runs_left_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let knob = knob(directory.path(), "2\n");
    let boot = boot::boot_id(Path::new("/proc")).unwrap();
    let journal = journal(directory.path());
    drop(left_behind(directory.path(), write("1", "2")));
    journal.clear("record").unwrap();
    assert_eq!(journal.entries().unwrap().len(), 1, "its owner, this process, still runs");
    let pid = format!("\"pid\": {}", std::process::id());
    rewrite(directory.path(), &pid, "\"pid\": 4194303");
    journal.clear("ovs").unwrap();
    assert_eq!(fs::read_to_string(&knob).unwrap(), "2\n", "it is another command's");
    journal.clear("record").unwrap();
    assert_eq!(fs::read_to_string(&knob).unwrap(), "1");
    assert!(journal.entries().unwrap().is_empty());
    // What a reboot has ended stands in nobody's way.
    drop(left_behind(directory.path(), write("1", "2")));
    rewrite(directory.path(), &boot, "0f0f0f0f-0000-4000-8000-000000000000");
    journal.clear("record").unwrap();
    assert!(journal.entries().unwrap().is_empty());
}

#[test]
fn an_owner_with_another_start_time_is_dead() {
    let this = Owner::this(Path::new("/proc")).unwrap();
    assert!(this.is_alive(Path::new("/proc")));
    assert!(!Owner { start_ticks: this.start_ticks + 1, ..this }.is_alive(Path::new("/proc")));
}

#[test]
fn a_process_is_ended_only_if_it_is_the_one_that_was_started() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let owner = Owner::of(Path::new("/proc"), child.id()).unwrap();
    let other = Owner { start_ticks: owner.start_ticks + 1, ..owner };
    let outcome = left_behind(directory.path(), Step::Process(other)).finish(Path::new("/proc")).unwrap();
    assert_eq!(outcome[0].1, Reverted::Done);
    assert!(child.try_wait().unwrap().is_none(), "a process of the same number was spared");
    left_behind(directory.path(), Step::Process(owner)).finish(Path::new("/proc")).unwrap();
    assert!(!child.wait().unwrap().success());
}

#[test]
fn what_is_no_entry_is_said_and_does_not_hide_the_others() {
    let directory = tempfile::tempdir().unwrap();
    left_behind(directory.path(), Step::TracefsInstance { path: directory.path().join("instances/kvmscope-1") });
    let foreign = directory.path().join("journal/0.json");
    fs::write(&foreign, r#"{"id":"0","command":"x","owner":{"pid":1,"start_ticks":1},"steps":[{"run":"rm"}]}"#)
        .unwrap();
    let entries = journal(directory.path()).entries().unwrap();
    assert_eq!(entries.iter().filter(|entry| entry.is_err()).count(), 1);
    assert!(entries.iter().any(|entry| entry.as_ref().is_ok_and(|entry| entry.command == "record")));
}

#[test]
fn an_entry_with_a_step_that_this_version_no_longer_makes_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(left_behind(directory.path(), Step::TracefsInstance { path: directory.path().join("instances/kvmscope-1") }));
    let file = fs::read_dir(directory.path().join("journal")).unwrap().next().unwrap().unwrap().path();
    let mut entry: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    entry["steps"] = serde_json::json!([{"pci_driver": {"address": "0000:3b:00.0", "driver": "i40e"}}]);
    fs::write(&file, entry.to_string()).unwrap();
    let refused = journal(directory.path()).entries().unwrap().remove(0).unwrap_err().to_string();
    assert!(refused.contains("nothing in it was undone; restore by hand what it names"), "{refused}");
    assert!(file.exists());
}

#[test]
fn an_entry_of_another_boot_ends_no_process_and_changes_no_value() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, knob) =
        (std::process::Command::new("sleep").arg("60").spawn().unwrap(), knob(directory.path(), "2"));
    let process = Step::Process(Owner::of(Path::new("/proc"), child.id()).unwrap());
    let write = write("1", "2");
    let boot = boot::boot_id(Path::new("/proc")).unwrap();
    for step in [&process, &write] {
        drop(left_behind(directory.path(), step.clone()));
        rewrite(directory.path(), &boot, "0f0f0f0f-0000-4000-8000-000000000000");
        let entry = journal(directory.path()).entries().unwrap().remove(0).unwrap();
        assert!(!journal(directory.path()).is_owned(&entry), "the owner is of another boot");
        let outcome = entry.finish(Path::new("/proc")).unwrap();
        assert!(matches!(&outcome[0].1, Reverted::LeftAlone(why) if why.contains("rebooted")), "{outcome:?}");
    }
    // One that does not say of which boot it is may still put back values, which it compares first.
    for (step, done) in [(process, false), (write, true)] {
        drop(left_behind(directory.path(), step));
        rewrite(directory.path(), &format!("\"{boot}\""), "null");
        let outcome =
            journal(directory.path()).entries().unwrap().remove(0).unwrap().finish(Path::new("/proc")).unwrap();
        assert_eq!(outcome[0].1 == Reverted::Done, done, "{outcome:?}");
    }
    assert_eq!(fs::read_to_string(&knob).unwrap(), "1");
    assert!(child.try_wait().unwrap().is_none(), "a process was ended that may be another's");
    assert!(journal(directory.path()).entries().unwrap().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_journal_that_others_may_write_is_not_obeyed() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("journal");
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let why = |journal: &Journal| journal.entries().unwrap_err().to_string();
    drop(journal(directory.path()).begin("record").unwrap());
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let file = fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    mode(&place, 0o777);
    assert!(why(&journal(directory.path())).contains("is writable by others"));
    assert!(journal(directory.path()).begin("record").is_err());
    mode(&place, 0o755);
    mode(&file, 0o666);
    let entries = journal(directory.path()).entries().unwrap();
    assert!(entries[0].as_ref().is_err_and(|error| error.to_string().contains("is writable by others")));
    mode(&file, 0o600);
    symlink(&place, directory.path().join("link")).unwrap();
    assert!(why(&Journal::new(directory.path().join("link"), "/proc")).contains("not a link"));
    if rustix::process::geteuid().is_root() {
        chown(&file, Some(65_534), None).unwrap();
        let entries = journal(directory.path()).entries().unwrap();
        assert!(entries[0].as_ref().is_err_and(|error| error.to_string().contains("belongs to user 65534")));
        chown(&place, Some(65_534), None).unwrap();
        assert!(why(&journal(directory.path())).contains("belongs to user 65534"));
    } else {
        println!("skipped: files of another owner: only root can make them");
    }
}

#[test]
fn what_is_no_regular_file_is_said_and_keeps_nobody_waiting() {
    let directory = tempfile::tempdir().unwrap();
    drop(journal(directory.path()).begin("record").unwrap());
    let place = directory.path().join("journal");
    let fifo = place.join("record-1-0.json");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/etc/hostname", place.join("record-2-0.json")).unwrap();
    let entries = journal(directory.path()).entries().unwrap();
    let said: Vec<String> = entries.iter().filter_map(|entry| entry.as_ref().err().map(ToString::to_string)).collect();
    assert_eq!((entries.len(), said.len()), (3, 2), "{said:?}");
    assert!(said.iter().any(|error| error.contains("not a regular file")), "{said:?}");
    assert!(said.iter().any(|error| error.contains("is a link")), "{said:?}");
}

#[test]
fn what_a_killed_writer_left_is_removed_once_it_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    drop(journal(directory.path()).begin("record").unwrap());
    let place = directory.path().join("journal");
    let (gone, works) = ("record-999999999-0.0a0a.new", format!("record-{}-7.0b0b.new", std::process::id()));
    for name in [gone, "record-999999999-0.new", &works] {
        fs::write(place.join(name), "{").unwrap();
    }
    assert_eq!(journal(directory.path()).sweep().unwrap(), [gone, "record-999999999-0.new"]);
    assert!(place.join(works).exists() && !place.join(gone).exists());
}

#[test]
fn a_thread_that_was_renamed_is_the_same_thread() {
    assert!(moved(7, "a").is_of_same(&moved(7, "b")));
    assert!(!moved(7, "a").is_of_same(&moved(8, "a")));
}

#[test]
fn names_are_printed_without_their_control_characters() {
    let step = moved(7, "\u{1b}[31mEVIL\u{7}");
    assert_eq!(step.to_string(), "thread 7 (\\u{1b}[31mEVIL\\u{7}): CPUs 0 -> 1");
}

#[test]
fn the_seeds_of_the_fuzz_target_are_entries_but_for_the_one_that_climbs() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/journal");
    let steps = |name: &str| steps_in(&fs::read(seeds.join(name)).unwrap(), "apply-7-0", Path::new("/"));
    for (name, count) in [("values", 4), ("threads", 3), ("pins", 4), ("made", 4), ("settings", 10)] {
        assert_eq!(steps(name).unwrap().len(), count, "{name}");
    }
    assert!(steps("elsewhere").unwrap_err().to_string().contains("/sys/../etc/passwd"));
}

#[test]
fn what_several_programs_share_the_last_of_them_takes_away() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, proc) = (journal(directory.path()), Path::new("/proc"));
    let mount = Step::Mount { path: directory.path().join("sys/kernel/tracing") };
    let begun = || {
        let mut entry = journal.begin("tracefs").unwrap();
        entry.intend(mount.clone()).unwrap();
        entry
    };
    assert!(!journal.is_noted(&mount));
    let (first, last) = (begun(), begun());
    assert!(journal.is_noted(&mount));
    let [(_, Reverted::LeftAlone(why))] = &first.finish(proc).unwrap()[..] else { panic!("it is still needed") };
    assert!(why.contains("another running recording"), "{why}");
    assert!(journal.is_noted(&mount));
    assert_eq!(last.finish(proc).unwrap(), [(mount.clone(), Reverted::Done)]);
    assert!(journal.is_empty().unwrap());
}

#[test]
fn an_entry_of_an_earlier_version_says_the_same_and_is_undone() {
    let directory = tempfile::tempdir().unwrap();
    let knob = knob(directory.path(), "2\n");
    drop(left_behind(directory.path(), write("1", "2")));
    let earlier = |path: &Path| format!(r#"{{"sysfs_write":{{"path":"{}","old":"1","new":"2"}}}}"#, path.display());
    let file = fs::read_dir(directory.path().join("journal")).unwrap().next().unwrap().unwrap().path();
    let mut entry: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(entry["steps"][0]["setting"]["type"], "SysfsWrite", "this version names the setting");
    for (path, undone) in [(directory.path().join("etc/knob"), false), (knob.clone(), true)] {
        entry["steps"][0] = serde_json::from_str(&earlier(&path)).unwrap();
        fs::write(&file, entry.to_string()).unwrap();
        let found = journal(directory.path()).entries().unwrap().remove(0);
        assert_eq!(found.is_ok(), undone, "{path:?}");
        if let Ok(found) = found {
            assert_eq!(found.steps, [write("1", "2")]);
            assert_eq!(found.finish(Path::new("/proc")).unwrap()[0].1, Reverted::Done);
        }
    }
    assert_eq!(fs::read_to_string(&knob).unwrap(), "1");
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/journal");
    let steps = |name| steps_in(&fs::read(seeds.join(name)).unwrap(), "apply-7-0", Path::new("/")).unwrap();
    let mut before = ["values", "threads", "pins"].map(steps).concat();
    before.retain(|step| !matches!(step, Step::Process(_)));
    assert_eq!(before, steps("settings"), "what earlier versions wrote, and the same of this one");
}
