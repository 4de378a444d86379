//! Pressure stall information: what part of the time tasks waited for the CPU, for memory or for a disk.
//!
//! Source: Documentation/accounting/psi.rst, Linux 6.12.

use super::{Pasted, Text, named};
use crate::machine::GaugeKind;

/// Lines above that may name the file: two kinds of line, a blank one and the command.
const LOOKED_ABOVE: usize = 4;

const RESOURCES: &[&str] = &["cpu", "memory", "io", "irq"];

/// `some avg10=23.91 avg60=12.00 avg300=3.00 total=4071327`, maybe behind the name of its file.
pub(super) fn lines(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let mut end = at;
    while let Some((file, kind, averages)) = told(text.at(end)) {
        let above = (end.saturating_sub(LOOKED_ABOVE)..end).rev().map(|line| text.at(line)).find_map(of_file);
        let subject = file.and_then(of_file).or(above).unwrap_or_else(|| "a resource that is not named".to_owned());
        for (name, value) in averages {
            pasted.gauge(kind, &format!("{subject}, {name}"), value, text.place(end));
        }
        end += 1;
    }
    end - at
}

/// The file's name where it stands before, the kind, and the averages: `10 s`, and the share.
type Told<'a> = (Option<&'a str>, GaugeKind, Vec<(String, f64)>);

fn told(line: &str) -> Option<Told<'_>> {
    let (file, rest) = match named::prefixed(line) {
        Some((file, rest)) => (Some(file), rest),
        None => (None, line),
    };
    let mut words = rest.split_whitespace();
    let kind = match words.next()? {
        "some" => GaugeKind::PressureSome,
        "full" => GaugeKind::PressureFull,
        _ => return None,
    };
    let average = |word: &str| {
        let (seconds, percent) = word.strip_prefix("avg")?.split_once('=')?;
        Some((format!("{seconds} s"), percent.parse::<f64>().ok()? / 100.0))
    };
    let averages: Vec<_> = words.filter_map(average).collect();
    (!averages.is_empty()).then_some((file, kind, averages))
}

/// The resource that a file's name or a command has: `/proc/pressure/io`, `.../memory.pressure`.
fn resource(text: &str) -> Option<&'static str> {
    let has = |name: &&&str| text.contains(&format!("pressure/{name}")) || text.contains(&format!("{name}.pressure"));
    RESOURCES.iter().find(has).copied()
}

/// The resource, and of a group's file whose tasks they are: `cpu of machine-qemu-4-db.scope`. The root group's is the host's.
fn of_file(text: &str) -> Option<String> {
    let resource = resource(text)?;
    let file = format!("/{resource}.pressure");
    let path = text
        .split(|letter: char| letter.is_whitespace() || ";|'\":".contains(letter))
        .find_map(|word| word.strip_suffix(&file));
    // systemd writes a dash within a name as \x2d.
    let group = path.and_then(|path| path.rsplit('/').next()).map(|group| group.replace("\\x2d", "-"));
    let group = group.filter(|group| !group.is_empty() && !["cgroup", "unified"].contains(&group.as_str()));
    Some(group.map_or_else(|| resource.to_owned(), |group| format!("{resource} of {group}")))
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn the_resource_is_named_by_the_file() {
        let text = "# cat /proc/pressure/memory\nsome avg10=23.91 avg60=12.00 avg300=3.00 total=4071327\nfull avg10=12.50 avg60=6.00 avg300=1.00 total=2071327\n\
                    /proc/pressure/io:some avg10=1.00 avg60=0.00 avg300=0.00 total=9\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        let told: Vec<_> = machine.gauges.iter().map(|gauge| (gauge.subject.as_str(), gauge.value)).collect();
        assert_eq!(
            told[..4],
            [("memory, 10 s", 0.2391), ("memory, 60 s", 0.12), ("memory, 300 s", 0.03), ("memory, 10 s", 0.125)]
        );
        assert_eq!(told[6], ("io, 10 s", 0.01));
    }

    #[test]
    fn a_groups_file_is_of_its_tasks_and_that_of_the_root_of_all() {
        let of = |file: &str| {
            let text = format!("# cat {file}\nsome avg10=38.12 avg60=35.90 avg300=30.02 total=88120033211\n");
            read(&[("t".to_owned(), text)]).gauges[0].subject.clone()
        };
        let group = "/sys/fs/cgroup/machine.slice/machine-qemu\\x2d4\\x2ddb.scope/cpu.pressure";
        assert_eq!(of(group), "cpu of machine-qemu-4-db.scope, 10 s");
        assert_eq!(of("/sys/fs/cgroup/memory.pressure"), "memory, 10 s");
    }
}
