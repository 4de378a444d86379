//! Through which monitors may a running QEMU be asked? By its command line.
//!
//! ```text
//! -qmp unix:PATH,server=on,wait=off                                       a socket of ours, if nobody else is connected
//! -chardev socket,id=ID,path=PATH,server=on -mon chardev=ID,mode=control  the same
//! -mon chardev=charmonitor,..                                             libvirt's own: it is connected, and tells of events
//! ```
//! Sources: qemu(1) 7.2, `-qmp`, `-mon`, `-chardev socket`; `charmonitor` is what `qemuProcessPrepareMonitorChr` of libvirt 9.0 calls it.

use crate::Error;
use crate::tracefs::Vm;
use std::path::{Path, PathBuf};

/// What to do where there is no monitor, or it is taken.
pub(super) const ADVICE: &str = "Start QEMU with another monitor (-qmp unix:PATH,server=on,wait=off), or name a VM of libvirt, whose events virsh forwards";

const OF_LIBVIRT: &str = "charmonitor";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Monitor {
    /// A socket that QEMU listens to.
    Socket(PathBuf),
    /// Events that libvirt passes on, of that domain.
    Libvirt(String),
}

/// Those of a VM, the best first.
pub(super) fn of(proc: &Path, vm: &Vm) -> Result<Vec<Monitor>, Error> {
    let directory = proc.join(vm.pid.to_string());
    let line = directory.join("cmdline");
    let words = std::fs::read(&line).map_err(|error| Error::io(&line, error))?;
    let words: Vec<String> = words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into()).collect();
    let name = vm.name.clone().unwrap_or_else(|| vm.pid.to_string());
    let seen = |monitor| match monitor {
        Monitor::Socket(path) => Monitor::Socket(seen_from_here(&directory, path)),
        other => other,
    };
    let found: Vec<Monitor> = in_words(&words, &name).into_iter().map(seen).collect();
    if found.is_empty() {
        return Err(Error::WrongUse(format!("the QEMU of {name} has no QMP monitor. {ADVICE}")));
    }
    Ok(found)
}

/// A path of that process: it may run elsewhere, or in a container.
fn seen_from_here(process: &Path, path: PathBuf) -> PathBuf {
    if path.is_relative() {
        return process.join("cwd").join(path);
    }
    let inside = process.join("root").join(path.strip_prefix("/").unwrap_or(&path));
    if !path.exists() && inside.exists() { inside } else { path }
}

fn in_words(words: &[String], name: &str) -> Vec<Monitor> {
    let options = |wanted: &[&str]| -> Vec<String> {
        let pairs = words.iter().zip(words.iter().skip(1));
        let is_wanted = |option: &str| wanted.contains(&option.trim_start_matches('-')) && option.starts_with('-');
        pairs.filter(|(option, _)| is_wanted(option)).map(|(_, value)| value.clone()).collect()
    };
    let chardevs = options(&["chardev"]);
    let socket_of = |id: &str| {
        let of_id = chardevs.iter().find(|chardev| key(chardev, "id").as_deref() == Some(id))?;
        let is_server = matches!(key(of_id, "server").as_deref(), Some("on" | "yes" | "")) || has(of_id, "server");
        key(of_id, "path").filter(|_| is_server && of_id.starts_with("socket"))
    };
    let mut found: Vec<Monitor> = Vec::new();
    for value in options(&["qmp", "qmp-pretty"]) {
        let path = match (value.strip_prefix("unix:"), value.strip_prefix("chardev:")) {
            (Some(path), _) => path.replace(",,", "\u{1}").split(',').next().map(|path| path.replace('\u{1}', ",")),
            (None, Some(id)) => socket_of(id),
            (None, None) => None,
        };
        found.extend(path.map(|path| Monitor::Socket(PathBuf::from(path))));
    }
    let mut is_libvirts = false;
    for value in options(&["mon"]).iter().filter(|value| key(value, "mode").as_deref() == Some("control")) {
        let id = key(value, "chardev").or_else(|| value.split(',').next().map(str::to_owned)).unwrap_or_default();
        if id == OF_LIBVIRT {
            is_libvirts = true;
        } else {
            found.extend(socket_of(&id).map(|path| Monitor::Socket(PathBuf::from(path))));
        }
    }
    found.extend(is_libvirts.then(|| Monitor::Libvirt(name.to_owned())));
    found
}

/// The value of `name` among `key=value,..`; a comma in a value is doubled.
fn key(options: &str, name: &str) -> Option<String> {
    let options = options.replace(",,", "\u{1}");
    let mut pairs = options.split(',').filter_map(|part| part.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.replace('\u{1}', ","))
}

/// Whether a switch stands there without a value, as older spellings have it.
fn has(options: &str, name: &str) -> bool {
    options.split(',').any(|part| part == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<Monitor> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        in_words(&words, "web")
    }

    #[test]
    fn sockets_that_qemu_listens_to_are_found_in_every_spelling() {
        let socket = |path: &str| vec![Monitor::Socket(PathBuf::from(path))];
        assert_eq!(found("qemu -qmp unix:/a,,b,server=on,wait=off -m 1G"), socket("/a,b"));
        assert_eq!(found("qemu --qmp-pretty unix:/a,server,nowait"), socket("/a"));
        let chardev = "qemu -chardev socket,id=m,path=/run/m,server=on -mon";
        assert_eq!(found(&format!("{chardev} chardev=m,mode=control")), socket("/run/m"));
        assert_eq!(found(&format!("{chardev} m,mode=control")), socket("/run/m"));
        assert_eq!(found(&format!("{chardev} chardev=m,mode=readline")), []);
        assert_eq!(found("qemu -chardev socket,id=m,path=/run/m -mon chardev=m,mode=control"), [], "it is a client");
        assert_eq!(found("qemu -qmp tcp:localhost:4444,server=on"), []);
        assert_eq!(found("qemu -monitor unix:/a,server=on -qmp stdio -qmp"), []);
    }

    #[test]
    fn that_of_libvirt_is_left_to_libvirt_and_a_free_one_goes_before_it() {
        let own = "qemu -chardev socket,id=charmonitor,path=/var/lib/monitor.sock,server=on -mon chardev=charmonitor,id=monitor,mode=control";
        assert_eq!(found(own), [Monitor::Libvirt("web".to_owned())]);
        let [first, second] = &found(&format!("{own} -qmp unix:/a,server=on,wait=off"))[..] else { panic!() };
        assert_eq!((first, second), (&Monitor::Socket("/a".into()), &Monitor::Libvirt("web".to_owned())));
    }
}
