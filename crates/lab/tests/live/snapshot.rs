//! Snapshots of trees made for the purpose, and of this machine.

use host::Snapshot;
use host::snapshot::Content;
use kvmscope_lab::snapshot::{More, Taken, take, take_more};
use std::cell::Cell;
use std::fs;
use std::path::Path;

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A clock that tells how often it was asked.
fn counting() -> impl Fn() -> u64 {
    let asked = Cell::new(0);
    move || asked.replace(asked.get() + 1)
}

/// A machine with a VM, a shell, a vhost worker, a NIC and a few things that a snapshot must leave alone.
fn machine(root: &Path) {
    put(root, "proc/stat", "cpu  1 2 3\n");
    put(root, "proc/cmdline", "isolcpus=2 password=hunter2 quiet\n");
    put(root, "proc/20/cmdline", "qemu-system-x86_64\0-object\0secret,id=s,data=hunter2\0-name\0web\0");
    put(root, "proc/20/environ", "PASSWORD=hunter2\0");
    put(root, "proc/20/numa_maps", "7f00 default\n");
    put(root, "proc/20/task/20/stat", "20 (qemu) S\n");
    put(root, "proc/20/task/21/schedstat", "1 2 3\n");
    put(root, "proc/30/cmdline", "mysql\0-phunter2\0");
    put(root, "proc/30/task/30/comm", "mysql\n");
    put(root, "proc/40/cmdline", "");
    put(root, "proc/40/task/40/comm", "vhost-20\n");
    put(root, "proc/self/task/9/comm", "me\n");
    put(root, "sys/devices/pci0/net/eth0/mtu", "1500\n");
    fs::create_dir_all(root.join("sys/class/net")).unwrap();
    std::os::unix::fs::symlink("../../devices/pci0/net/eth0", root.join("sys/class/net/eth0")).unwrap();
    std::os::unix::fs::symlink("../../../pci0", root.join("sys/devices/pci0/net/eth0/device")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("proc/uptime")).unwrap();
}

fn all_text(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        assert!(!entry.file_type().unwrap().is_symlink(), "{:?}", entry.path());
        text += &match entry.file_type().unwrap().is_dir() {
            true => all_text(&entry.path()),
            false => format!("{:?} {}\n", entry.path(), String::from_utf8_lossy(&fs::read(entry.path()).unwrap())),
        };
    }
    text
}

#[test]
fn what_the_list_names_is_copied_and_secrets_are_not() {
    let (root, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    machine(root.path());
    let taken = take(root.path(), into.path(), &counting()).unwrap();
    assert_eq!(taken, Taken { files: 8, unreadable: 0, ..taken });
    let copy = Snapshot::open(into.path()).unwrap();
    assert_eq!(copy.read("proc/stat").as_deref(), Some("cpu  1 2 3\n"));
    assert_eq!(copy.line("proc/cmdline").as_deref(), Some("isolcpus=2 password=[redacted] quiet"));
    assert!(copy.read("proc/20/cmdline").unwrap().ends_with("data=[redacted]\0-name\0web\0"));
    assert_eq!(copy.line("proc/40/task/40/comm").as_deref(), Some("vhost-20"));
    assert_eq!(copy.line("sys/class/net/eth0/mtu").as_deref(), Some("1500"));
    assert_eq!(copy.link("sys/class/net/eth0/device").as_deref(), Some("../../../pci0"));
    for absent in ["proc/30/cmdline", "proc/20/environ", "proc/20/numa_maps", "proc/self/task/9/comm", "cpuid.json"] {
        assert_eq!(copy.content(absent), Content::Absent, "{absent}");
    }
    assert_eq!(copy.content("proc/uptime"), Content::Absent);
    let everything = all_text(into.path());
    assert!(!everything.contains("hunter2") && !everything.contains("root:"), "{everything}");
}

#[test]
fn each_file_has_the_time_at_which_it_was_read() {
    let (root, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    machine(root.path());
    take(root.path(), into.path(), &counting()).unwrap();
    let copy = Snapshot::open(into.path()).unwrap();
    let at = |path: &str| copy.read_at_ns(path).unwrap();
    assert_eq!(at("proc/stat"), 0);
    assert!(at("proc/20/task/21/schedstat") < at("sys/class/net/eth0/mtu"), "what counts is read close together");
    assert_eq!(copy.read_at_ns("proc/30/cmdline"), None);
}

#[test]
fn slow_files_come_on_request_and_a_copy_of_a_copy_is_the_same() {
    let (root, first, second) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    machine(root.path());
    put(root.path(), "cpuid.json", "{\"leaves\":[]}");
    let more = More { on_request: ["proc/<vm>/numa_maps"].into(), ..More::default() };
    take_more(root.path(), first.path(), &more, &counting()).unwrap();
    take_more(first.path(), second.path(), &more, &counting()).unwrap();
    let strip = |directory: &Path| {
        let mut lines: Vec<_> =
            all_text(directory).replace(directory.to_str().unwrap(), "").lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert!(first.path().join("proc/20/numa_maps").is_file() && first.path().join("cpuid.json").is_file());
    assert_eq!(strip(first.path()), strip(second.path()));
}

#[test]
fn what_cannot_be_read_is_listed_with_its_reason() {
    let (root, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(root.path(), "proc/stat", "");
    let loops = root.path().join("proc/schedstat");
    std::os::unix::fs::symlink("schedstat", loops).unwrap();
    let taken = take(root.path(), into.path(), &counting()).unwrap();
    assert_eq!((taken.files, taken.unreadable), (1, 1));
    let copy = Snapshot::open(into.path()).unwrap();
    assert!(matches!(copy.content("proc/schedstat"), Content::Unreadable(why) if why.contains("symbolic links")));
}

#[test]
fn this_machine_has_cpus_tasks_and_a_processor() {
    let into = tempfile::tempdir().unwrap();
    let reads = counting();
    let taken = take(Path::new("/"), into.path(), &reads).unwrap();
    println!("{taken:?}");
    print!("{}", fs::read_to_string(into.path().join("unreadable.txt")).unwrap());
    let copy = Snapshot::open(into.path()).unwrap();
    let live = Snapshot::open(Path::new("/")).unwrap();
    for path in ["proc/version", "sys/devices/system/cpu/online", "sys/devices/system/cpu/cpu0/topology/core_id"] {
        assert_eq!(copy.content(path), live.content(path), "{path}");
    }
    let me = std::process::id();
    assert!(copy.read(&format!("proc/{me}/task/{me}/schedstat")).is_some());
    let stat = format!("proc/{me}/task/{me}/stat");
    assert!(copy.read_at_ns(&stat).is_some_and(|at| at > 0 && at < reads()));
    assert_eq!(copy.read(&format!("proc/{me}/cmdline")), None);
    assert!(host::Cpuid::of(&copy).and_then(|cpuid| cpuid.vendor()).is_some());
}

#[test]
fn a_real_qemu_is_a_vm_and_its_secrets_stay_with_it() {
    let options = ["-display", "none", "-S", "-m", "16", "-accel", "tcg", "-name", "guest=web,debug-threads=on"];
    let secret = ["-object", "secret,id=s0,data=hunter2"];
    let mut qemu = std::process::Command::new("qemu-system-x86_64");
    let mut qemu = match qemu.args(options).args(secret).stderr(std::process::Stdio::null()).spawn() {
        Ok(qemu) => qemu,
        Err(error) => return println!("skipped: qemu-system-x86_64: {error}"),
    };
    let pid = qemu.id();
    let vcpu = || {
        let live = Snapshot::open(Path::new("/")).unwrap();
        let comm = |tid: &String| live.line(&format!("proc/{pid}/task/{tid}/comm"));
        live.names(&format!("proc/{pid}/task")).iter().filter_map(comm).any(|comm| comm == "CPU 0/TCG")
    };
    testing::wait_for("a vCPU of QEMU", vcpu);
    let into = tempfile::tempdir().unwrap();
    let taken = take(Path::new("/"), into.path(), &counting());
    qemu.kill().unwrap();
    qemu.wait().unwrap();
    taken.unwrap();
    let copy = Snapshot::open(into.path()).unwrap();
    assert!(copy.vms().contains(&pid.to_string()), "{:?}", copy.vms());
    let command = copy.read(&format!("proc/{pid}/cmdline")).unwrap();
    assert!(command.contains("guest=web,debug-threads=on") && command.contains("data=[redacted]"), "{command}");
    let fds = format!("proc/{pid}/fd");
    assert!(copy.links_below(&fds).any(|(_, target)| target == "/dev/null"));
}

#[test]
fn of_a_process_with_many_threads_the_busy_ones_are_taken_and_the_others_counted() {
    let (root, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    machine(root.path());
    for (process, vm) in [(900, false), (901, true)] {
        let command = if vm { "qemu-system-x86_64\0-name\0guest=big\0" } else { "java\0" };
        put(root.path(), &format!("proc/{process}/cmdline"), command);
        put(root.path(), &format!("proc/{process}/comm"), if vm { "qemu-system-x86\n" } else { "java\n" });
        for thread in 0..100 {
            let ran_ns = if thread == 7 { 5_000_000_000_u64 } else { 1_000 };
            let task = format!("proc/{process}/task/{}", process * 1_000 + thread);
            put(root.path(), &format!("{task}/schedstat"), &format!("{ran_ns} 0 1\n"));
            put(root.path(), &format!("{task}/stat"), "1 (x) S\n");
        }
    }
    take(root.path(), &into.path().join("0"), &counting()).unwrap();
    let threads = |process: u32| {
        let list = fs::read_dir(into.path().join(format!("0/proc/{process}/task"))).unwrap();
        list.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(threads(900), ["900007"]);
    assert_eq!(threads(901).len(), 100, "every thread of a VM may be a vCPU");
    let said = fs::read_to_string(into.path().join("0/unreadable.txt")).unwrap();
    assert!(said.contains("proc/900/task: left out: 99 of its 100 threads"), "{said}");
}
