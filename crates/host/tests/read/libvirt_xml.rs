//! Domain definitions against libvirt: what its test driver understands of them, and the examples of its own manual.

use base::CpuSet;
use kvmscope_host::machine::{Domain, domains_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const MANUAL: &str = "/usr/share/doc/libvirt-doc/html/formatdomain.html";

fn fixtures() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/libvirt-xml");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|kind| kind == "xml")).collect();
    files.sort();
    files
}

fn domain(name: &str) -> Domain {
    let file = fixtures().into_iter().find(|path| path.file_stem().unwrap() == name).unwrap();
    let [domain] = &domains_of(&std::fs::read_to_string(file).unwrap(), "f", 1, "").unwrap()[..] else {
        panic!("{name}: one domain")
    };
    domain.clone()
}

#[test]
fn definitions_say_what_their_authors_meant() {
    let numa = domain("numatune");
    assert_eq!((numa.memory_nodes, numa.memory_bytes), (Some((CpuSet::one(1), "strict".to_owned())), Some(2 << 30)));
    assert!(numa.huge_pages && numa.cpu_mode.unwrap().value == "host-passthrough");
    let shown = numa.topology.unwrap().value;
    assert_eq!((shown.sockets, shown.cores, shown.threads), (1, 2, 2));
    let disks = domain("disks");
    let disk = |at: usize| &disks.disks[at];
    assert_eq!((disks.disks.len(), disk(0).iothread, disk(0).cache.as_deref()), (2, Some(2), Some("none")));
    assert_eq!(
        (disk(0).io.as_deref(), disk(1).throttle.is_some(), disk(1).bus.as_deref()),
        (Some("native"), true, Some("ide"))
    );
    assert_eq!(disks.unused.len(), 2, "a cdrom and a floppy drive: {:?}", disks.unused);
    let interfaces = domain("interfaces");
    let workers: Vec<Option<u32>> = interfaces.interfaces.iter().map(|interface| interface.workers()).collect();
    assert_eq!(workers, [Some(4), None, Some(2), Some(0), Some(0), Some(0)]);
    assert_eq!(interfaces.workers(), (6, 7), "one more where /dev/vhost-net opens");
    assert_eq!(interfaces.interfaces[2].mode.as_deref(), Some("vepa"));
    let given = domain("hostdev");
    assert!(!given.host_devices.is_empty() && given.interfaces[0].workers() == Some(0));
    let ids: Vec<u32> = domain("iothread-ids").iothread_numbers().into_iter().collect();
    assert_eq!((ids, domain("pins").iothread_numbers().len()), (vec![2, 7], 2));
    let fallback = domain("fallback");
    assert_eq!((fallback.vcpus, fallback.emulator_pin().unwrap().value.to_string()), (Some(3), "0-2,4-7".to_owned()));
    assert_eq!((domain("plain").memory_bytes, domain("plain").emulator_pin()), (Some(256 << 20), None));
}

/// What libvirt's test driver says of a definition: pins by who has them.
fn virsh(file: &Path, name: &str) -> Option<BTreeMap<String, CpuSet>> {
    let text = std::fs::read_to_string(file).unwrap().replace("type='kvm'", "type='test'");
    let copy = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(copy.path(), text).unwrap();
    let mut pins = BTreeMap::new();
    for what in ["vcpupin", "emulatorpin", "iothreadinfo"] {
        let script = format!("define {}; {what} {name}", copy.path().display());
        let script = if what == "iothreadinfo" { script + " --config" } else { script };
        let output = Command::new("virsh").args(["-q", "-c", "test:///default", &script]).env("LC_ALL", "C").output();
        let output = output.ok()?;
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (who, list) = match words[..] {
                [list] => ("", list),
                [who, list] => (who, list),
                _ => continue,
            };
            pins.insert(format!("{what} {who}").trim().to_owned(), CpuSet::parse(list).unwrap());
        }
    }
    Some(pins)
}

#[test]
fn pins_are_what_libvirt_understands() {
    let mut compared = 0;
    for file in fixtures() {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let Some(theirs) = virsh(&file, name) else {
            return println!("skipped: definitions against libvirt: no virsh (Debian: libvirt-clients)");
        };
        let domain = domain(name);
        // Where nothing is said, libvirt shows every CPU.
        let same = |who: String, ours: Option<CpuSet>| {
            let theirs = theirs.get(&who).unwrap_or_else(|| panic!("{name}: {who} in {theirs:?}"));
            assert_eq!(ours.as_ref().unwrap_or(theirs), theirs, "{name}: {who}");
            u32::from(ours.is_some())
        };
        for vcpu in 0..domain.vcpu_count() {
            compared += same(format!("vcpupin {vcpu}"), domain.vcpu_pin(vcpu).map(|pin| pin.value.clone()));
        }
        compared += same("emulatorpin".to_owned(), domain.emulator_pin().map(|pin| pin.value.clone()));
        let theirs_too: Vec<u32> =
            theirs.keys().filter_map(|who| who.strip_prefix("iothreadinfo ")?.parse().ok()).collect();
        assert_eq!(theirs_too, domain.iothread_numbers().into_iter().collect::<Vec<_>>(), "{name}: iothreads");
        for (number, pin) in &domain.iothread_pins {
            compared += same(format!("iothreadinfo {number}"), Some(pin.value.clone()));
        }
    }
    assert!(compared >= 12, "only {compared} pins were compared");
}

/// Texts in `<pre>` of a page.
fn examples(page: &str) -> Vec<String> {
    let texts = page.split("<pre").skip(1).filter_map(|rest| rest.split_once('>')?.1.split_once("</pre>"));
    let plain = |text: &str| {
        let mut plain = String::new();
        for (index, part) in text.split('<').enumerate() {
            plain += if index == 0 { part } else { part.split_once('>').map_or("", |(_, after)| after) };
        }
        let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        entities.iter().fold(plain, |text, (entity, sign)| text.replace(entity, sign))
    };
    texts.map(|(text, _)| plain(text)).collect()
}

#[test]
fn the_manuals_examples_are_read() {
    let Ok(page) = std::fs::read_to_string(MANUAL) else {
        return println!("skipped: the examples of libvirt's manual: {MANUAL} is not there (Debian: libvirt-doc)");
    };
    let examples = examples(&page);
    // Dots between elements stand for others; they are text to a parser.
    let xml: Vec<&String> = examples.iter().filter(|text| text.contains("</") || text.contains("/>")).collect();
    let read: Vec<Domain> = xml
        .iter()
        .filter_map(|text| {
            let named = text.replacen("<domain>", "<domain><name>manual</name>", 1);
            domains_of(&named, "formatdomain.html", 1, "manual").ok()
        })
        .flatten()
        .collect();
    // Eleven of libvirt 9.0's own are not well-formed: a closing tag is missing, or dots stand inside of one.
    let refused = xml.iter().filter(|text| domains_of(text, "f", 1, "?").is_err()).count();
    assert!(xml.len() >= 100 && refused * 10 < xml.len(), "{refused} of {} examples are refused", xml.len());
    let any = |wanted: &dyn Fn(&Domain) -> bool| read.iter().any(wanted);
    let pinned = |domain: &Domain| {
        domain.vcpu_pins.get(&0).is_some_and(|pin| pin.value == CpuSet::parse("1,3-4").unwrap())
            && domain.emulator_pin().is_some_and(|pin| pin.value == CpuSet::parse("1-3").unwrap())
            && domain.iothread_pins.len() == 2
    };
    assert!(any(&pinned), "the example of CPU tuning");
    let nodes = CpuSet::parse("1-2,4").unwrap();
    assert!(any(&|domain| domain
        .memory_nodes
        .as_ref()
        .is_some_and(|(known, mode)| *known == nodes && mode == "strict")));
    assert!(any(&|domain| domain.interfaces.iter().any(|one| one.queues == Some(5) && one.workers() == Some(5))));
    assert!(any(&|domain| domain.interfaces.iter().any(|one| one.kind == "vhostuser" && one.workers() == Some(0))));
    assert!(any(&|domain| domain.iothreads == 4));
    assert!(any(&|domain| !domain.host_devices.is_empty()));
}
