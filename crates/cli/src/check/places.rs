//! Which machines are meant: this one, or trees that hold copies of their files.

use crate::arguments::{Stdin, brought, is_dash, machine_level};
use anyhow::{anyhow, bail};
use archive::{Links, Unpacked};
use base::recording::{Machine, Part, PartKind, PartState, Recording, Shown};
use base::{Level, Problem, Utc};
use lab::snapshot::{More, monotonic_ns, take_more};
use process::exit::{WrongUse, as_named};
use process::interrupt::Interrupt;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Time between two looks at this host: rates settle, and nobody has to wait long.
pub(crate) const SPAN: Duration = Duration::from_secs(2);

/// A tree, and the level of the machine if it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    level: Option<u8>,
    path: PathBuf,
    /// Of one machine among several its name.
    name: Option<String>,
    /// What the user named, where that was unpacked.
    shown: Vec<Shown>,
    problems: Vec<Problem>,
}

impl Root {
    /// A tree of a machine whose level nobody said.
    pub(crate) fn at(path: &Path) -> Self {
        Self { level: None, path: path.to_owned(), name: None, shown: Vec::new(), problems: Vec::new() }
    }

    /// True for this host's own files, of which a snapshot knows more: CPUID and KVM.
    pub(crate) fn is_this_host(&self) -> bool {
        self.path.canonicalize().is_ok_and(|path| path == Path::new("/"))
    }

    /// True for an archive that comes from stdin.
    pub(crate) fn is_stdin(&self) -> bool {
        is_dash(&self.path)
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.level.map_or(Ok(()), |level| write!(f, "L{level}="))?;
        write!(f, "{}", self.path.display())
    }
}

/// `L1=DIR`, or `DIR`. What stands before a `=` and is no level is part of the directory's name.
pub(crate) fn root(text: &str) -> Result<Root, String> {
    if let Some((level, path)) = text.split_once('=')
        && level.parse::<Level>().is_ok()
    {
        return Ok(Root { level: Some(machine_level(level)?), ..Root::at(Path::new(path)) });
    }
    if text.is_empty() {
        Err("name a directory that has proc and sys".to_owned())
    } else {
        Ok(Root::at(Path::new(text)))
    }
}

/// The same tree, or the one that is in the archive which was named.
pub(crate) fn unpacked(root: &Root, stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Root> {
    let path = stdin.path(&root.path)?;
    if archive::format_of(&path).is_none() {
        return Ok(Root { path, ..root.clone() });
    }
    let read = |unpacked: &Unpacked| {
        let shown = vec![unpacked.shown(), Shown { place: path.clone(), name: root.path.clone() }];
        Ok(Root { path: unpacked.root(), shown, problems: unpacked.problems.clone(), ..root.clone() })
    };
    stdin.unpacked(&path, Links::Inside, interrupt, read)
}

/// Whether a directory holds the files of a machine, or those of several, as a must-gather does.
pub(crate) fn is_tree(path: &Path) -> bool {
    !host::snapshot::trees_in(path).is_empty()
}

/// The trees below a root, each a machine; the root itself where none are below it.
fn each(root: &Root) -> Vec<Root> {
    let trees = host::snapshot::trees_in(&root.path);
    if trees.iter().all(|tree| *tree == root.path) {
        return vec![root.clone()];
    }
    if let [only] = trees.as_slice()
        && only.join("sos_commands").is_dir()
    {
        // The top directory of a sosreport's archive names no machine among several.
        return vec![Root { path: only.clone(), ..root.clone() }];
    }
    let name = |tree: &Path| tree.file_name().map(|name| name.to_string_lossy().into_owned());
    trees.into_iter().map(|path| Root { name: name(&path), path, ..root.clone() }).collect()
}

/// Trees as the machines of one recording. Levels count from the only one, unless the user gives its level.
pub(crate) fn trees(roots: &[Root]) -> anyhow::Result<Recording> {
    if roots.len() > 1 && roots.iter().any(|root| root.level.is_none()) {
        let how = "with several directories, give the level of each: --root L0=host --root L1=guest";
        return Err(WrongUse(how.to_owned()).into());
    }
    let (mut machines, mut parts): (Vec<Machine>, Vec<Part>) = (Vec::new(), Vec::new());
    for root in roots.iter().flat_map(each) {
        let path = std::path::absolute(&root.path)?;
        if let Err(error) = host::Snapshot::open(&path) {
            let error = if Recording::open(&path).is_ok() {
                let path = path.display();
                WrongUse(format!(
                    "{path} is a recording, no tree of a host: leave out --root, as in kvmscope check {path}"
                ))
                .into()
            } else {
                error.into()
            };
            return Err(as_named(error, &root.shown));
        }
        let level = root.level.unwrap_or(Machine::default().level);
        let twins = machines.iter().filter(|machine| machine.level == level).count();
        let id = match (&root.name, twins) {
            (Some(name), _) => format!("L{level}-{name}"),
            (None, 0) => format!("L{level}"),
            (None, _) => format!("L{level}-{}", twins + 1),
        };
        let below = |machine: &&Machine| machine.level + 1 == level;
        let parent = machines.iter().find(below).map(|machine| machine.id.clone());
        machines.push(Machine { id: id.clone(), level, parent, name: root.name, identity: host::identity(&path) });
        parts.push(Part { path, machine: id, kind: PartKind::Host, clock: None, state: PartState::Complete });
    }
    Ok(Recording {
        clock_pairs: Vec::new(),
        ended: None,
        root: PathBuf::new(),
        created: None,
        tool: Some(concat!("kvmscope check ", env!("CARGO_PKG_VERSION")).to_owned()),
        emulated: None,
        machines,
        parts,
        problems: roots.iter().flat_map(|root| root.problems.clone()).collect(),
        shown: roots.iter().flat_map(|root| root.shown.clone()).collect(),
    })
}

/// The same recording, in which a bare file of text that is no trace is what people paste.
pub(crate) fn with_notes(mut recording: Recording) -> Recording {
    let is_bare = recording.root.as_os_str().is_empty();
    for part in recording.parts.iter_mut().filter(|part| is_bare && part.kind == PartKind::Text) {
        let is_no_trace = matches!(trace::open(&part.path), Err(trace::Error::UnknownFormat { .. }));
        if is_no_trace && is_plain(&part.path) {
            part.kind = PartKind::Notes;
        }
    }
    recording
}

/// Whether a file begins as text does: with letters, and without zero bytes.
fn is_plain(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = base::files::open(path).and_then(|file| file.take(4_096).read_to_end(&mut first));
    read.is_ok() && !first.is_empty() && !first.contains(&0)
}

/// Pasted texts: what they tell of the machine, of all files together, and the runs that are in them, each by itself.
pub(crate) fn pasted(files: &[PathBuf], stdin: &Stdin, interrupt: &Interrupt) -> anyhow::Result<Vec<Recording>> {
    let mut recordings = Vec::new();
    for file in files {
        if file.is_dir() {
            bail!("{} is a directory; --paste takes files, --root a directory", file.display());
        }
        let brought = brought(file, stdin, interrupt).map_err(|error| match error.to_string() {
            text if text.starts_with(&*file.to_string_lossy()) => error,
            text => anyhow!("{}: {text}", file.display()),
        })?;
        recordings.extend(brought.into_iter().map(with_notes));
    }
    Ok(with_one_machine(recordings))
}

/// The same recordings, in which all that is known of the machine is part of the first.
fn with_one_machine(recordings: Vec<Recording>) -> Vec<Recording> {
    let is_note = |part: &Part| part.kind == PartKind::Notes;
    let (mut all, mut of_first): (Vec<Recording>, Vec<(Part, Recording)>) = (Vec::new(), Vec::new());
    for mut recording in recordings {
        let (notes, others): (Vec<Part>, Vec<Part>) =
            std::mem::take(&mut recording.parts).into_iter().partition(is_note);
        recording.parts = others;
        of_first.extend(notes.into_iter().map(|part| (part, recording.clone())));
        if !recording.parts.is_empty() {
            all.push(recording);
        }
    }
    let Some((_, first)) = of_first.first() else { return all };
    if all.is_empty() {
        all.push(Recording { parts: Vec::new(), ..first.clone() });
    }
    for (part, from) in of_first {
        let first = &mut all[0];
        let is_known = |shown: &Shown| first.shown.contains(shown);
        let more: Vec<Shown> = from.shown.iter().filter(|shown| !is_known(shown)).cloned().collect();
        first.shown.extend(more);
        let missing: Vec<Problem> =
            from.problems.iter().filter(|problem| !first.problems.contains(problem)).cloned().collect();
        first.problems.extend(missing);
        first.parts.push(part);
    }
    all
}

/// This host, at the level that `said` gives it: snapshots taken now into the directory `scratch`, two of them `span` apart
/// unless that is zero; the last stands last.
pub(crate) fn this_host(scratch: &Path, said: Option<&Root>, span: Duration) -> anyhow::Result<Recording> {
    let root = Path::new("/");
    let (first, last) = (scratch.join("0"), scratch.join("1"));
    if !span.is_zero() {
        std::fs::create_dir(&first)?;
        take_more(root, &first, &More::default(), &monotonic_ns)?;
        // From the end of the first: on a busy host it takes long, and what it read last would be read again too soon.
        std::thread::sleep(span);
    }
    std::fs::create_dir(&last)?;
    take_more(root, &last, &More::of(root), &monotonic_ns)?;
    let mut recording = trees(&[Root { level: said.and_then(|root| root.level), ..Root::at(&last) }])?;
    recording.created = Some(Utc::of(SystemTime::now()).stamp());
    recording.machines.iter_mut().for_each(|machine| machine.identity = host::identity(root));
    if !span.is_zero() {
        let earlier = Part { path: first, ..recording.parts[0].clone() };
        recording.parts.insert(0, earlier);
    }
    Ok(recording)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_stands_before_the_directory_or_not_at_all() {
        assert_eq!(root("L1=a=b"), Ok(Root { level: Some(1), ..Root::at(Path::new("a=b")) }));
        assert_eq!(["L1=a=b", "host=x"].map(|text| root(text).unwrap().to_string()), ["L1=a=b", "host=x"]);
        assert_eq!(root("host"), Ok(Root::at(Path::new("host"))));
        assert_eq!(root("host=x"), Ok(Root::at(Path::new("host=x"))));
        assert!(["L?=x", "L9=x", ""].iter().all(|text| root(text).is_err()));
    }

    #[test]
    fn several_trees_need_their_levels() {
        let error = trees(&[Root::at(Path::new("a")), Root::at(Path::new("b"))]).unwrap_err();
        assert!(error.is::<WrongUse>(), "{error}");
    }
}
