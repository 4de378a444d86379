//! What a QEMU lacks for a method is found out from its own schema, before a guest is booted: a program without a machine is asked.

use super::qemu::ANSWER;
use base::method::{COMPRESSION, Method};
use lab::Error;
use lab::program::{Program, tie, untranslated};
use lab::qmp::{Abilities, Qmp};
use rustix::process::Signal;
use serde_json::{Map, Value};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What else it sets on both sides.
pub(super) fn parameters(method: Method) -> Map<String, Value> {
    method.compression().into_iter().map(|how| (COMPRESSION.to_owned(), Value::from(how))).collect()
}

/// Whether the target reads a file that the source has written.
pub(super) fn is_through_a_file(method: Method) -> bool {
    method == Method::MappedRam
}

/// What of it a QEMU lacks, and which one has it.
fn lacks(method: Method, abilities: &Abilities) -> Option<String> {
    let capability = method.capability().filter(|(name, _)| !abilities.has_capability(name));
    let compression =
        method.compression().filter(|how| !abilities.accepts("migrate-set-parameters", &[COMPRESSION], how));
    let (lacks, since) = match (capability, compression) {
        (Some((name, since)), _) => (format!("capability {name}"), since),
        (None, None) => return None,
        (None, Some(how)) => (format!("{COMPRESSION} {how}"), "5.0, where it was built with libzstd"),
    };
    Some(format!("method {} needs {lacks}, which QEMU has since {since}", method.name()))
}

/// It listens to its socket at once: there is no machine to make.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks `program` what it can do, without a machine; `place` is where its socket may be.
///
/// # Errors
/// If it is not there, or does not come up.
pub(super) fn abilities(program: &Program, place: &Path) -> Result<(Abilities, String), Error> {
    let socket = place.join("asked.qmp");
    let mut command = std::process::Command::new(&program.path);
    tie(untranslated(&mut command), Signal::KILL);
    command.args(["-M", "none", "-accel", "tcg", "-nodefaults", "-no-user-config", "-display", "none", "-S"]);
    command.args(["-qmp", &format!("unix:{},server=on,wait=off", socket.display())]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = program.start(command)?;
    let until = Instant::now() + PATIENCE;
    let asked = loop {
        match Qmp::connect(&socket, ANSWER, super::qemu::realtime_ns) {
            Ok(mut qmp) => break qmp.abilities(ANSWER).map(|abilities| (abilities, qmp.version().to_owned())),
            Err(error) if Instant::now() > until => break Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
        if let Ok(Some(status)) = child.try_wait() {
            break Err(program.failed(status, ""));
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    asked
}

/// # Errors
/// If that QEMU lacks what one of them needs, or a capability that is wanted besides; the sentence says what, and which has it.
pub(super) fn require(
    methods: &[Method],
    besides: Option<&str>,
    (abilities, version): &(Abilities, String),
    program: &Path,
) -> Result<(), Error> {
    let besides = besides.filter(|name| !abilities.has_capability(name));
    let besides = besides.map(|name| format!("this fault needs capability {name}"));
    let lacks: Vec<String> = methods.iter().filter_map(|method| lacks(*method, abilities)).chain(besides).collect();
    if lacks.is_empty() {
        return Ok(());
    }
    let whose = program.display();
    Err(Error::Absent(format!("{}; {whose} is {version}: name another with --qemu", lacks.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_qemu_lacks_is_told_by_its_schema_with_who_has_it() {
        let schema = json!([
            {"name": "migrate-set-capabilities", "meta-type": "command", "arg-type": "1"},
            {"name": "1", "meta-type": "object", "members": [{"name": "capabilities", "type": "[2]"}]},
            {"name": "[2]", "meta-type": "array", "element-type": "2"},
            {"name": "2", "meta-type": "object", "members": [{"name": "capability", "type": "3"}]},
            {"name": "3", "meta-type": "enum", "values": ["xbzrle", "multifd"]},
            {"name": "migrate-set-parameters", "meta-type": "command", "arg-type": "4"},
            {"name": "4", "meta-type": "object", "members": [{"name": "multifd-compression", "type": "5"}]},
            {"name": "5", "meta-type": "enum", "values": ["none", "zlib"]},
        ]);
        let asked = (Abilities::of_schema(&schema), "7.2.22".to_owned());
        let lacks =
            |methods: &[Method]| require(methods, None, &asked, Path::new("qemu")).map_err(|error| error.to_string());
        assert_eq!(lacks(&[Method::Precopy, Method::Xbzrle, Method::Multifd]), Ok(()));
        let told = lacks(&[Method::Xbzrle, Method::MappedRam]).unwrap_err();
        assert_eq!(
            told,
            "method mapped-ram needs capability mapped-ram, which QEMU has since 9.0; qemu is 7.2.22: name another with --qemu"
        );
        assert!(lacks(&[Method::Zstd]).unwrap_err().contains("needs multifd-compression zstd"));
    }

    /// What a real QEMU said of itself.
    fn recorded(version: &str) -> (Abilities, String) {
        let path = format!("{}/../../fixtures/qmp-schemas/{version}.json.zst", env!("CARGO_MANIFEST_DIR"));
        let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
        (Abilities::of_schema(&serde_json::from_slice(&text).unwrap()), version.to_owned())
    }

    #[test]
    fn two_real_qemus_are_told_apart_by_what_they_have() {
        let (old, new) = (recorded("7.2.22"), recorded("10.0.2"));
        let has = |(abilities, _): &(Abilities, String), name| abilities.has_capability(name);
        for name in ["compress", "block"] {
            assert!(has(&old, name) && !has(&new, name), "{name}");
        }
        for name in ["mapped-ram", "switchover-ack", "dirty-limit"] {
            assert!(!has(&old, name) && has(&new, name), "{name}");
        }
        let may = |asked: &(Abilities, String), method| require(&[method], None, asked, Path::new("qemu")).is_ok();
        for method in Method::ALL {
            assert_eq!(may(&old, method), method != Method::MappedRam, "{}", method.name());
            assert!(may(&new, method), "{}", method.name());
        }
    }
}
