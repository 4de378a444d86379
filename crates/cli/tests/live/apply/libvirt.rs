//! `kvmscope apply` and `undo` against a real libvirtd, with a guest that QEMU emulates.

use serde_json::json;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use testing::{Workspace, wait_for};

/// Daemons that the test started, and its domain; all are gone with it.
struct Bed {
    daemons: Vec<Child>,
    domain: String,
    /// What lies over libvirt's own settings for the daemons.
    settings: tempfile::NamedTempFile,
}

/// Starts `$2` where `$1` lies over the settings of libvirt's driver of QEMU.
const WITH_SETTINGS: &str = r#"mount --bind "$1" /etc/libvirt/qemu.conf && exec "$2""#;

/// Where libvirt's user may not open /dev/kvm, and QEMU under libvirt's capabilities may, libvirt 9 takes what it knows of QEMU
/// for outdated and asks QEMU again at each look, 11 times in a definition.
const SETTINGS: &str = "user = \"root\"\ngroup = \"root\"\n";

impl Drop for Bed {
    fn drop(&mut self) {
        for words in [["destroy", &self.domain], ["undefine", &self.domain]] {
            let _ = virsh(&words);
        }
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn virsh(words: &[&str]) -> std::io::Result<Output> {
    Command::new("virsh").arg("--quiet").args(words).env("LC_ALL", "C").output()
}

/// What virsh prints, which must succeed.
fn said(words: &[&str]) -> String {
    let output = virsh(words).unwrap();
    assert!(output.status.success(), "virsh {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn answers() -> bool {
    virsh(&["version"]).is_ok_and(|output| output.status.success())
}

/// A running guest of two vCPUs and an iothread, or why there is none.
fn bed() -> Result<Bed, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("it needs root".to_owned());
    }
    virsh(&["--version"]).map_err(|error| format!("virsh: {error}; the Debian package libvirt-clients brings it"))?;
    let settings = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let mut bed = Bed { daemons: Vec::new(), domain: format!("kvmscope-test-{}", std::process::id()), settings };
    if !answers() {
        std::fs::write(bed.settings.path(), SETTINGS).map_err(|error| error.to_string())?;
        for daemon in ["virtlogd", "libvirtd"] {
            let quiet = || Stdio::null();
            let child = Command::new("unshare")
                .args(["--mount", "sh", "-c", WITH_SETTINGS, "sh"])
                .args([bed.settings.path().as_os_str(), daemon.as_ref()])
                .stdin(quiet())
                .stdout(quiet())
                .stderr(quiet())
                .spawn();
            let why = |error| format!("{daemon}: {error}; the Debian package libvirt-daemon-system brings it");
            bed.daemons.push(child.map_err(why)?);
        }
        wait_for("an answer of libvirtd", answers);
    }
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(file.path(), xml(&bed.domain)).map_err(|error| error.to_string())?;
    said(&["define", &file.path().display().to_string()]);
    let started = virsh(&["start", &bed.domain]).map_err(|error| error.to_string())?;
    match started.status.success() {
        true => Ok(bed),
        false => Err(format!("no guest starts here: {}", String::from_utf8_lossy(&started.stderr).trim())),
    }
}

/// A guest without a disk: its firmware is all that runs. Its iothread has its number written out, because libvirt writes it
/// out as soon as it is pinned.
fn xml(name: &str) -> String {
    format!(
        "<domain type='qemu'><name>{name}</name><memory unit='MiB'>32</memory><vcpu>2</vcpu>\
         <iothreads>1</iothreads><iothreadids><iothread id='1'/></iothreadids><os><type arch='x86_64' machine='pc'>hvm</type></os>\
         <cputune><vcpupin vcpu='1' cpuset='0-1'/></cputune><devices>\
         <emulator>/usr/bin/qemu-system-x86_64</emulator><controller type='usb' model='none'/>\
         <memballoon model='none'/></devices></domain>"
    )
}

/// The mask in force of the guest's thread whose name starts so.
fn mask(domain: &str, name: &str) -> String {
    let pid = std::fs::read_to_string(format!("/run/libvirt/qemu/{domain}.pid")).unwrap();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", pid.trim())).unwrap();
    let status =
        |task: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(task.unwrap().path().join("status"));
    let found = tasks.filter_map(|task| status(task).ok()).find(|text| text.starts_with(&format!("Name:\t{name}")));
    let found = found.unwrap_or_else(|| panic!("no thread {name}"));
    found.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
}

fn kvmscope(journal: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvmscope"));
    let output = command.args(arguments).env("KVMSCOPE_JOURNAL", journal).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

#[test]
fn pins_of_a_running_domain_are_made_and_undone_exactly() {
    let place = Workspace::alone();
    let bed = match bed() {
        Ok(bed) => bed,
        Err(why) => return println!("skipped: libvirtd: {why}"),
    };
    let domain = bed.domain.as_str();
    if mask(domain, "CPU 0/") != "0-1" {
        return println!("skipped: libvirtd: the test wants a machine of two CPUs");
    }
    let described = || said(&["dumpxml", domain, "--inactive"]);
    let before = described();
    assert!(before.contains("<vcpupin vcpu='1' cpuset='0-1'/>") && !before.contains("vcpupin vcpu='0'"), "{before}");

    let (journal, report) = (place.path().join("journal"), place.path().join("report.json"));
    let pin = |kind: &str, more: serde_json::Value| {
        let mut change = json!({"type": kind, "domain": domain, "cpus": "1", "from": "0-1"});
        change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        change
    };
    let changes = [
        pin("VcpuPin", json!({"vcpu": 0})),
        pin("VcpuPin", json!({"vcpu": 1})),
        pin("EmulatorPin", json!({})),
        pin("IothreadPin", json!({"iothread": 1})),
    ];
    std::fs::write(&report, super::report_of("PLC-TEST@web", &changes).to_string()).unwrap();
    let from = report.display().to_string();

    kvmscope(&journal, &["apply", "PLC-TEST@web", "--from", &from, "--yes"]);
    for thread in ["CPU 0/", "CPU 1/", "qemu-system", "IO iothread1"] {
        assert_eq!(mask(domain, thread), "1", "{thread}");
    }
    let pinned = described();
    for element in
        ["<vcpupin vcpu='0' cpuset='1'/>", "<emulatorpin cpuset='1'/>", "<iothreadpin iothread='1' cpuset='1'/>"]
    {
        assert!(pinned.contains(element), "{element}: {pinned}");
    }

    kvmscope(&journal, &["undo"]);
    for thread in ["CPU 0/", "CPU 1/", "qemu-system", "IO iothread1"] {
        assert_eq!(mask(domain, thread), "0-1", "{thread}");
    }
    assert_eq!(described(), before, "its next start is described as it was, element by element");
    assert_eq!(std::fs::read_dir(&journal).unwrap().count(), 0);

    // A trial watches the threads of the pins; whatever it finds, undo or itself puts all back.
    let tried = kvmscope(&journal, &["apply", "PLC-TEST@web", "--from", &from, "--yes", "--trial", "1"]);
    assert!(tried.contains("modelled: thread") && tried.contains("CPU waiting of"), "{tried}");
    assert_ne!(tried.contains("  kept; "), tried.contains("  undone: "), "{tried}");
    kvmscope(&journal, &["undo"]);
    assert_eq!((mask(domain, "CPU 0/").as_str(), described()), ("0-1", before.clone()), "{tried}");

    // A domain that ended meanwhile is said and passed over; its next start is put back.
    kvmscope(&journal, &["apply", "PLC-TEST@web", "--from", &from, "--yes"]);
    said(&["destroy", domain]);
    let undone = kvmscope(&journal, &["undo"]);
    assert!(undone.contains("left alone") && undone.contains("no longer running"), "{undone}");
    assert_eq!(described(), before);
}
