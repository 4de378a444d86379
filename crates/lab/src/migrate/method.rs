//! How a guest's memory goes over, and what QEMU has to be told for that.
//!
//! What a QEMU lacks is found out from its own schema, before a guest is booted: a program without a machine is asked.

use super::qemu::ANSWER;
use crate::Error;
use crate::program::{Program, tie, untranslated};
use crate::qmp::{Abilities, Qmp};
use rustix::process::Signal;
use serde_json::{Map, Value};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Pass after pass over one connection, until what is left can be sent while the guest stands still.
    Precopy,
    /// The same for one pass; then the guest goes on over there, and its pages come as it asks for them.
    Postcopy,
    /// Pre-copy over several connections.
    Multifd,
    /// The same, compressed.
    Zstd,
    /// Pre-copy; of a page that was sent before, what has changed.
    Xbzrle,
    /// Pre-copy that takes more and more time from the guest.
    AutoConverge,
    /// Through a file, in which each page has its place.
    MappedRam,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Precopy, Self::Postcopy, Self::Multifd, Self::Zstd, Self::Xbzrle, Self::AutoConverge, Self::MappedRam];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Precopy => "precopy",
            Self::Postcopy => "postcopy",
            Self::Multifd => "multifd",
            Self::Zstd => "zstd",
            Self::Xbzrle => "xbzrle",
            Self::AutoConverge => "auto-converge",
            Self::MappedRam => "mapped-ram",
        }
    }

    /// The capability that it takes on both sides, and since when QEMU has it (`Since` in qapi/migration.json); pre-copy takes none.
    fn needs(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Precopy => None,
            Self::Postcopy => Some(("postcopy-ram", "2.6")),
            Self::Multifd | Self::Zstd => Some(("multifd", "4.0")),
            Self::Xbzrle => Some(("xbzrle", "1.2")),
            Self::AutoConverge => Some(("auto-converge", "1.6")),
            Self::MappedRam => Some(("mapped-ram", "9.0")),
        }
    }

    /// The capability that it takes on both sides.
    pub(super) fn capability(self) -> Option<&'static str> {
        self.needs().map(|(capability, _)| capability)
    }

    /// What else it sets on both sides.
    pub(super) fn parameters(self) -> Map<String, Value> {
        let compression = (self == Self::Zstd).then(|| (COMPRESSION.to_owned(), Value::from("zstd")));
        compression.into_iter().collect()
    }

    /// Whether the target reads a file that the source has written.
    pub(super) fn is_through_a_file(self) -> bool {
        self == Self::MappedRam
    }

    /// What of it a QEMU lacks, and which one has it.
    fn lacks(self, abilities: &Abilities) -> Option<String> {
        let capability = self.needs().filter(|(name, _)| !abilities.has_capability(name));
        let has_zstd = self != Self::Zstd || abilities.accepts("migrate-set-parameters", &[COMPRESSION], "zstd");
        let (lacks, since) = match capability {
            Some((name, since)) => (format!("capability {name}"), since),
            None if has_zstd => return None,
            None => (format!("{COMPRESSION} zstd"), "5.0, where it was built with libzstd"),
        };
        Some(format!("method {} needs {lacks}, which QEMU has since {since}", self.name()))
    }
}

const COMPRESSION: &str = "multifd-compression";
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
    let besides = besides.map(|name| format!("what is to go wrong needs capability {name}"));
    let lacks: Vec<String> = methods.iter().filter_map(|method| method.lacks(abilities)).chain(besides).collect();
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

    #[test]
    fn each_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = Method::ALL.iter().map(|method| method.name()).collect();
        assert_eq!(names.len(), Method::ALL.len());
    }
}
