//! The descriptions of libvirt's running domains: `libvirt/<name>.xml`.

use super::redact;
use crate::program::Program;
use std::time::Duration;

/// libvirtd answers in milliseconds; one that hangs shall not hold up a snapshot for long.
const LIMIT: Duration = Duration::from_secs(10);

/// More domains than this are left out.
const MOST_DOMAINS: usize = 1_000;

/// A domain's file name and its description, or why there is none.
pub(super) type Described = (String, Result<String, String>);

/// Asks `virsh` about all running domains; nothing if it is not installed or no libvirt runs.
///
/// The connection is read-only, which also keeps libvirt from printing passwords.
pub(super) fn domains(virsh: &Program) -> Vec<Described> {
    let ask = |words: &[&str]| {
        let arguments = [&["-r", "-c", "qemu:///system"], words].concat();
        virsh.run(&arguments, LIMIT).map(|ran| ran.stdout)
    };
    let Ok(list) = ask(&["list", "--name"]) else { return Vec::new() };
    let names = list.lines().map(str::trim).filter(|name| !name.is_empty());
    let describe = |name: &str| {
        let described = ask(&["dumpxml", "--domain", name]);
        (file_name(name), described.map(|text| redact::xml(&text)).map_err(|error| error.to_string()))
    };
    names.take(MOST_DOMAINS).map(describe).collect()
}

/// A file's name for a domain's: what could be part of a path is written as `%2f`.
fn file_name(domain: &str) -> String {
    let mut name = String::new();
    for byte in domain.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && !name.is_empty());
        if plain { name.push(byte.into()) } else { name.push_str(&format!("%{byte:02x}")) }
    }
    name + ".xml"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domains_name_stays_in_the_directory() {
        assert_eq!(file_name("web-1.a"), "web-1.a.xml");
        assert_eq!(file_name("../x y"), "%2e.%2fx%20y.xml");
    }

    #[test]
    fn domains_are_asked_one_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let virsh = directory.path().join("virsh");
        let script = "#!/bin/sh\ncase \"$*\" in\n*list*) printf 'web\\ndb\\n\\n' ;;\n\
                      *'--domain web'*) echo \"<domain><graphics passwd='hunter2'/></domain>\" ;;\n\
                      *) echo 'error: gone' >&2; exit 1 ;;\nesac\n";
        std::fs::write(&virsh, script).unwrap();
        std::fs::set_permissions(&virsh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let domains = domains(&Program::new(virsh, "libvirt-clients"));
        assert_eq!(domains[0].0, "web.xml");
        assert_eq!(domains[0].1.as_deref(), Ok("<domain><graphics passwd='[redacted]'/></domain>\n"));
        assert!(domains[1].1.as_ref().is_err_and(|error| error.contains("error: gone")));
    }

    #[test]
    fn without_virsh_there_are_no_domains() {
        assert!(domains(&Program::new("/nonexistent/virsh", "libvirt-clients")).is_empty());
    }
}
