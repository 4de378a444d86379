use super::*;
use crate::journal::{Journal, Owner, Reverted};
use crate::setting::thread;
use base::setting::ThreadId;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A thread that does nothing until it is let go.
struct Sleeper {
    tid: i32,
    go: Sender<()>,
    thread: JoinHandle<()>,
}

fn sleeper() -> Sleeper {
    let (tell, told) = channel();
    let (go, gone) = channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let _ = gone.recv();
    });
    Sleeper { tid: told.recv().unwrap(), go, thread }
}

/// Lets it go, and waits until the kernel has forgotten it.
fn end(sleeper: Sleeper) {
    drop(sleeper.go);
    sleeper.thread.join().unwrap();
    while Path::new("/proc").join(sleeper.tid.to_string()).exists() {
        std::thread::yield_now();
    }
}

fn affinity(tid: i32, cpus: &str, from: Option<&str>) -> Change {
    Setting::TaskAffinity(known(tid)).change(cpus, from.map(str::to_owned))
}

/// A thread of this machine as a snapshot knows it.
fn known(tid: i32) -> ThreadId {
    let proc = Path::new("/proc");
    let comm = fs::read_to_string(proc.join(tid.to_string()).join("comm")).unwrap().trim_end().to_owned();
    let start_ticks = Owner::of(proc, tid as u32).unwrap().start_ticks;
    ThreadId { tid, start_ticks: Some(start_ticks), comm: Some(comm) }
}

fn altered(prepared: Prepared) -> Vec<Altered> {
    match prepared {
        Prepared::Altered(altered) => altered,
        Prepared::PassedOver(why) => panic!("passed over: {why}"),
    }
}

#[test]
fn a_thread_is_moved_and_moved_back_by_whoever_finds_the_entry() {
    let host = Host::at(Path::new("/"));
    let sleeper = sleeper();
    let all = thread::affinity(sleeper.tid as u32).unwrap();
    let Some(first) = all.iter().next().filter(|_| all.len() > 1) else {
        return println!("skipped: moving a thread: this machine lets us use one CPU");
    };
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::new(directory.path().join("journal"), "/proc");
    let change = affinity(sleeper.tid, &first.to_string(), Some(&all.to_string()));
    let planned = altered(host.prepare(&change).unwrap());
    let mut entry = journal.begin("apply").unwrap();
    assert!(make(&mut entry, &planned, &host).unwrap().is_empty());
    assert_eq!(thread::affinity(sleeper.tid as u32).unwrap().to_string(), first.to_string());
    assert!(matches!(host.prepare(&change).unwrap(), Prepared::PassedOver(why) if why.contains("already")));
    drop(entry); // as if killed here
    let found = journal.entries().unwrap().remove(0).unwrap();
    assert!(found.finish(&host.proc).unwrap().iter().all(|(_, reverted)| *reverted == Reverted::Done));
    assert_eq!(thread::affinity(sleeper.tid as u32).unwrap(), all);
    end(sleeper);
}

#[test]
fn a_thread_that_ended_is_said_and_one_of_the_same_number_is_left_alone() {
    let host = Host::at(Path::new("/"));
    let living = sleeper();
    let all = thread::affinity(living.tid as u32).unwrap().to_string();
    let other = Setting::TaskAffinity(ThreadId { start_ticks: Some(1), ..known(living.tid) });
    let other = Altered { setting: other, old: "0".into(), new: all.clone(), was_unset: false };
    assert!(other.make(&host).is_err(), "another thread of that number was touched");
    assert!(matches!(other.put_back(&host), Reverted::LeftAlone(why) if why.contains("ended")));
    assert_eq!(thread::affinity(living.tid as u32).unwrap().to_string(), all);
    let meant = known(living.tid);
    let prepare = |thread: ThreadId| host.prepare(&Setting::TaskAffinity(thread).change("0", None));
    let earlier = ThreadId { start_ticks: Some(1), ..meant.clone() };
    let renamed = ThreadId { comm: Some("other".into()), ..meant.clone() };
    for another in [earlier, renamed] {
        let prepared = prepare(another).unwrap();
        assert!(matches!(prepared, Prepared::PassedOver(why) if why.contains("another thread")));
    }
    let unknown = prepare(living.tid.into()).unwrap_err().to_string();
    assert!(unknown.contains("it is not changed"), "{unknown}");
    end(living);
    let prepared = prepare(meant).unwrap();
    assert!(matches!(prepared, Prepared::PassedOver(why) if why.contains("has ended")));
}

#[test]
fn a_thread_that_ends_on_the_way_does_not_cost_the_other_steps() {
    let host = Host::at(Path::new("/"));
    let directory = tempfile::tempdir().unwrap();
    let knob = directory.path().join("sys/knob");
    fs::create_dir(directory.path().join("sys")).unwrap();
    fs::write(&knob, "1").unwrap();
    let sleeper = sleeper();
    let thread = Setting::TaskAffinity(known(sleeper.tid));
    end(sleeper);
    let gone = Altered { setting: thread, old: "0".into(), new: "0".into(), was_unset: false };
    let knob_of_host = Setting::SysfsWrite { path: "knob".into() };
    let write = Altered { setting: knob_of_host, old: "1".into(), new: "2".into(), was_unset: false };
    let host = Host { sys: directory.path().join("sys"), ..host };
    let journal = Journal::new(directory.path().join("journal"), "/proc").of_host(directory.path());
    let mut entry = journal.begin("apply").unwrap();
    assert_eq!(make(&mut entry, &[gone, write], &host).unwrap().len(), 1);
    assert_eq!(fs::read_to_string(&knob).unwrap(), "2");
    entry.finish(&host.proc).unwrap();
    assert_eq!(fs::read_to_string(&knob).unwrap(), "1");
}

#[test]
fn a_proposal_that_is_out_of_date_changes_nothing() {
    let tree = tempfile::tempdir().unwrap();
    let host = Host::at(tree.path());
    let list = tree.path().join("proc/irq/9/smp_affinity_list");
    fs::create_dir_all(list.parent().unwrap()).unwrap();
    fs::write(&list, "0-1\n").unwrap();
    let change = |from: &str| Setting::IrqAffinity { irq: 9 }.change("1", Some(from.into()));
    let error = host.prepare(&change("3")).unwrap_err().to_string();
    assert!(error.contains("interrupt 9 is 0-1") && error.contains("kvmscope check"), "{error}");
    // The same set in another spelling is the same set.
    let planned = altered(host.prepare(&change("0,1")).unwrap());
    planned[0].make(&host).unwrap();
    assert_eq!(fs::read_to_string(&list).unwrap(), "1");
    assert_eq!(planned[0].put_back(&host), Reverted::Done);
    assert_eq!(fs::read_to_string(&list).unwrap(), "0-1");
}

/// A tree with one file below `/sys`, and the host that has it.
fn tree(path: &str, text: &str) -> (tempfile::TempDir, Host, PathBuf) {
    let tree = tempfile::tempdir().unwrap();
    let file = tree.path().join("sys").join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    let host = Host::at(tree.path());
    (tree, host, file)
}

#[test]
fn a_choice_is_read_as_the_word_in_brackets_and_written_back_as_that_word() {
    let path = "kernel/mm/transparent_hugepage/enabled";
    let (_tree, host, file) = tree(path, "always [madvise] never\n");
    let change = |from: &str| Setting::SysfsWrite { path: path.into() }.change("always", Some(from.into()));
    let planned = altered(host.prepare(&change("madvise")).unwrap());
    assert!(host.prepare(&change("never")).is_err(), "neither the old nor the new value");
    fs::write(&file, "[always] madvise never\n").unwrap(); // as the kernel shows it once it is written
    assert!(planned[0].holds(&host));
    assert_eq!(planned[0].put_back(&host), Reverted::Done);
    assert_eq!(fs::read_to_string(&file).unwrap(), "madvise");
}

#[test]
fn nx_huge_pages_reads_as_a_flag_after_auto() {
    let path = "module/kvm/parameters/nx_huge_pages";
    let (_tree, host, file) = tree(path, "Y\n");
    let change = Setting::SysfsWrite { path: path.into() }.change("auto", Some("force".into()));
    let planned = altered(host.prepare(&change).unwrap());
    fs::write(&file, "N\n").unwrap(); // what kvm answers once `auto` was written on a processor that is not affected
    assert!(planned[0].holds(&host));
    assert_eq!(planned[0].put_back(&host), Reverted::Done);
    assert_eq!(fs::read_to_string(&file).unwrap(), "Y");
}

#[test]
fn a_path_out_of_sys_is_refused_and_so_is_what_cannot_be_undone() {
    let host = Host::at(Path::new("/nonexistent"));
    for path in ["../etc/passwd", "/etc/passwd"] {
        let change = Setting::SysfsWrite { path: path.into() }.change("x", None);
        assert!(host.prepare(&change).unwrap_err().to_string().contains("no path below"));
    }
    let module = Setting::ModuleOption { module: "kvm".into(), parameter: "x".into() }.change("1", None);
    assert!(host.prepare(&module).unwrap_err().to_string().contains("modprobe"));
}

#[test]
fn a_policy_is_set_and_put_back() {
    let sleeper = sleeper();
    let host = Host::at(Path::new("/"));
    let change = Setting::TaskPolicy(known(sleeper.tid)).change("batch", Some("other".into()));
    let planned = altered(host.prepare(&change).unwrap());
    planned[0].make(&host).unwrap();
    assert_eq!(thread::policy(sleeper.tid as u32).unwrap(), "batch");
    assert_eq!(planned[0].put_back(&host), Reverted::Done);
    assert_eq!(thread::policy(sleeper.tid as u32).unwrap(), "other");
    end(sleeper);
}

#[test]
fn a_value_below_proc_sys_is_set_and_put_back() {
    let tree = tempfile::tempdir().unwrap();
    let file = tree.path().join("proc/sys/kernel/numa_balancing");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "1\n").unwrap();
    let host = Host::at(tree.path());
    let setting = Setting::Sysctl { path: "kernel/numa_balancing".into() };
    let planned = altered(host.prepare(&setting.change("0", Some("1".into()))).unwrap());
    planned[0].make(&host).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "0");
    assert_eq!(planned[0].to_string(), "/proc/sys/kernel/numa_balancing: 1 -> 0");
    assert_eq!(planned[0].put_back(&host), Reverted::Done);
    assert_eq!(fs::read_to_string(&file).unwrap(), "1");
}
