//! Where was a piece printed: on the host, in a guest, or does nobody tell?
//!
//! ```text
//! Guest:                          -> what follows is of the guest           Host, with no guest running:  -> of the host
//! top -H on the VM host meanwhile:-> of the host                            VM to the other host:         -> of the guest
//! [root@pve3 ~]# lscpu            -> of the host, by the prompt's name      ## Steps to reproduce         -> nobody tells any more
//! ```
//! The nearest heading before a piece counts. A definition of a VM, or threads of VMs, are of the host wherever they stand, unless
//! somebody nests guests.

use crate::commands::{PROGRAMS, typed};
use crate::normal::Line;
use std::collections::BTreeMap;

/// Where something was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Origin {
    /// On the machine that runs the VMs.
    Host,
    /// In a guest of that level, 1 for a guest of the host.
    Guest(u8),
    /// Nobody tells.
    #[default]
    Unknown,
}

impl Origin {
    /// What stands behind the words for a piece.
    pub fn words(self) -> String {
        match self {
            Origin::Host => ", of the host".to_owned(),
            Origin::Guest(level) => format!(", of a guest, L{level}"),
            Origin::Unknown => String::new(),
        }
    }
}

/// A line from which on a place holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sign {
    /// The number of the line.
    pub(crate) line: u32,
    pub(crate) origin: Origin,
}

/// What whoever writes calls a guest.
const GUESTS: &str = "guest guests vm vms vps l1 l2 l3 instance droplet domu gast invité";

/// What is called so is rented: what runs VMs on it nests them.
const RENTED: &[&str] = &["vps", "instance", "droplet"];

/// Words of whoever runs VMs on a rented machine.
const NESTS: &str = "nested qemu libvirt virsh minikube kvm2 virt-manager vagrant";

/// What whoever writes calls the machine below.
const HOSTS: &str = "host hosts hypervisor hypervisors dom0 l0 node pve hôte wirt baremetal proxmox";

/// What stands before a place; `of the host`, yet `of the VM` may be printed anywhere.
const BEFORE: &[&str] =
    &["in", "on", "from", "inside", "within", "at", "between", "of", "im", "auf", "in", "dans", "sur", "vom"];

/// Behind these stands what else happened meanwhile.
const MEANWHILE: &[&str] = &["while", "when", "with", "during", "whilst", "without", "until", "as", "während"];

/// What a guest is made of, and what becomes of it, which is printed on its host.
const MADE_OF: &str = "config configuration definition xml conf settings yaml domain process processes threads vcpu vcpus disk image migration live";

/// What may stand behind a place that leads a heading: `VM to the other host:`, `Guest side:`; else the line is about it, and printed anywhere.
const BEHIND: &str = "to from side itself output outputs result results dmesg log kernel environment os system cpu";

/// What a sentence ends with that leads to what a program printed, besides a colon.
const LEADS: &[&str] = &["shows", "show", "says", "gives", "prints", "reports", "returns", "meanwhile", "here"];

/// What tells where, line by line; `is_free` says of each whether it may be somebody's own words.
pub(crate) fn signs(lines: &[Line], is_free: impl Fn(usize) -> bool) -> Vec<Sign> {
    let mut signs = Vec::new();
    // Whose prompts they are, and whether a heading came since the last one.
    let (mut owners, mut now, mut is_fresh) = (BTreeMap::<String, Origin>::new(), Origin::Unknown, false);
    let mut is_rented = false;
    let tells =
        |text: &str| of_name(&prompt(text).unwrap_or_default()).or(heading(text).flatten().map(|(place, _)| place));
    let has_host = lines.iter().any(|line| tells(line.text.trim()) == Some(Origin::Host));
    let says_nested = lines.iter().any(|line| NESTS.split(' ').any(|word| line.text.to_lowercase().contains(word)));
    let words =
        |text: &str| text.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase).collect::<Vec<_>>();
    let is_layered = (0..lines.len())
        .any(|at| is_free(at) && words(&lines[at].text).iter().any(|word| is_word_of("nested l1 l2", word)));
    // Where the block ends that an aside leads to, and what held before.
    let mut aside: Option<(usize, Origin)> = None;
    for (at, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        if let Some((_, before)) = aside.filter(|(end, _)| *end == at) {
            (aside, now) = (None, before);
            signs.push(Sign { line: line.number, origin: now });
        }
        let told = match prompt(text) {
            Some(name) => {
                let named = of_name(&name);
                let other = owners.keys().any(|owner| *owner != name);
                let place = match (named, owners.get(&name)) {
                    (Some(place), _) => place,
                    (None, _) if is_fresh => now,
                    (None, Some(known)) => *known,
                    (None, None) => {
                        if other {
                            Origin::Unknown
                        } else {
                            now
                        }
                    }
                };
                owners.insert(name, place);
                is_fresh = false;
                Some(place)
            }
            // Guests have none of these, unless guests are nested.
            None if types_on_host(text) && !is_layered && matches!(now, Origin::Guest(_)) => Some(Origin::Host),
            None if is_free(at) => heading(text).map(|told| {
                is_fresh = true;
                let (place, noun) = told.unwrap_or((Origin::Unknown, ""));
                // What runs on a rented machine is nested if its owner says so, the same by another name beside a host, else nobody knows.
                let place = match is_rented && place == Origin::Guest(1) && !RENTED.contains(&noun) && !has_host {
                    true if says_nested => Origin::Guest(2),
                    true => Origin::Unknown,
                    false => place,
                };
                is_rented |= RENTED.contains(&noun);
                // A sentence within a text is of what it leads to, and of nothing behind it.
                let is_aside = !text.ends_with(':') && text.contains(' ') && !text.starts_with(['#', '*']);
                aside = is_aside.then(|| block_end(lines, at, &is_free)).flatten().map(|end| (end, now));
                place
            }),
            None => None,
        };
        if let Some(place) = told.filter(|place| *place != now) {
            now = place;
            signs.push(Sign { line: line.number, origin: place });
        }
    }
    signs
}

/// Where what a program printed behind a line ends: at somebody's own words, or at what is typed next. Who types goes on where he is.
fn block_end(lines: &[Line], at: usize, is_free: &impl Fn(usize) -> bool) -> Option<usize> {
    let is_blank = |place: &usize| lines[*place].text.trim().is_empty();
    let is_typed = |place: &usize| typed(&lines[*place].text).is_some();
    let first = (at + 1..lines.len()).find(|place| !is_blank(place)).filter(|first| !is_typed(first))?;
    let ends = |place: &usize| is_typed(place) || !is_blank(place) && is_free(*place);
    Some((first + 1..lines.len()).find(ends).unwrap_or(lines.len()))
}

/// Whether a line has a command that is typed where VMs are run.
fn types_on_host(text: &str) -> bool {
    const PROGRAMS: &str = "virsh qm pct pveversion pvesm pveperf kvm_stat virt-top ovs-vsctl ovs-appctl";
    typed(text)
        .and_then(|command| command.split_whitespace().find(|word| *word != "sudo"))
        .is_some_and(|program| is_word_of(PROGRAMS, program))
}

/// The place that holds at a line, and the line that says so.
pub(crate) fn at(signs: &[Sign], line: u32) -> Option<Sign> {
    signs.iter().rev().find(|sign| sign.line <= line).copied()
}

/// The name of the machine in a prompt: `pve3` of `root@pve3:~# lscpu`.
fn prompt(text: &str) -> Option<String> {
    typed(text)?;
    let before = &text[..text.find(['$', '#', '%'])?];
    let before = before.trim_start_matches('[').trim();
    let Some((_, behind)) = before.split_once('@') else {
        let name = before.to_ascii_lowercase();
        return Some(name).filter(|name| of_name(name).is_some());
    };
    let name = behind.split([':', ' ', ']', '~']).next()?.to_ascii_lowercase();
    (!name.is_empty()).then_some(name)
}

/// What a machine's name says: `guest`, `pve3`, `kvm-host2`, `hv-sql`.
fn of_name(name: &str) -> Option<Origin> {
    const RUNS: &[&str] = &["pve", "hv", "host", "kvmhost", "vmhost", "hypervisor", "proxmox"];
    let words = || name.split(|letter: char| !letter.is_ascii_alphabetic());
    let is_guest = |word: &str| matches!(word, "guest" | "vps" | "vm");
    let host = words().any(|word| RUNS.contains(&word)).then_some(Origin::Host);
    host.or_else(|| words().any(is_guest).then_some(Origin::Guest(1)))
}

/// What a heading says of what follows: a place and its noun, or that another part begins. `None`: it is no heading.
fn heading(text: &str) -> Option<Option<(Origin, &'static str)>> {
    let is_part = text.starts_with("## ") || text.starts_with("### ") || text.starts_with("**") && text.len() > 4;
    let bare = text.trim_matches(|letter: char| "#*_=-` ".contains(letter));
    let small = bare.to_lowercase();
    let last = small.trim_end_matches([':', '.', '*']).rsplit(' ').next().unwrap_or_default();
    let leads = small.ends_with(':') || LEADS.contains(&last) || is_part;
    // A name alone is a heading where nothing else is in the line.
    let is_alone = !small.contains(' ') && [GUESTS, HOSTS].iter().any(|list| is_word_of(list, &small));
    if !(leads || is_alone) || small.len() > MOST_LETTERS || is_alone && small.len() < 3 {
        return None;
    }
    match origin_of(&small) {
        Some(place) => Some(Some(place)),
        None if is_part => Some(None),
        None => None,
    }
}

/// Letters of a line that may be a heading: a paragraph may end with one.
const MOST_LETTERS: usize = 240;

/// Which place the words of a heading are about.
fn origin_of(small: &str) -> Option<(Origin, &'static str)> {
    let outside = |(number, part): (usize, &'_ str)| match number {
        0 => part.to_owned(),
        _ => part.split_once(')').map_or(String::new(), |(_, rest)| rest.to_owned()),
    };
    // What stands in brackets is said beside.
    let small: String = small.split('(').enumerate().map(outside).collect();
    let clauses = small.split([',', ';', '.']).flat_map(|clause| clause.split(" but ")).collect::<Vec<_>>();
    // The clause that leads to what follows comes last; one that tells nothing leaves it to those before, and one that speaks of a guest
    // without telling ends the search: `Host fine, guest slow:`.
    let speaks = |clause: &str| words_of(clause).iter().any(|word| is_word_of(GUESTS, word));
    let told = clauses.iter().rev().map(|clause| (of_clause(clause), speaks(clause)));
    told.into_iter().find(|(told, speaks)| told.is_some() || *speaks)?.0
}

/// The words of a clause, without what happened meanwhile.
fn words_of(clause: &str) -> Vec<&str> {
    let words = clause.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take_while(|word| !MEANWHILE.contains(word)).collect()
}

fn of_clause(clause: &str) -> Option<(Origin, &'static str)> {
    let words = words_of(clause);
    let is_nested = words.contains(&"nested");
    let behind = |(at, word): (usize, &&str)| {
        let noun = noun(&words[at + 1..], MOST_BETWEEN).filter(|_| BEFORE.contains(word))?;
        (*word != "of" || noun.0 == Origin::Host).then_some(noun)
    };
    let first = words.iter().enumerate().find_map(behind);
    // `iperf3 inside:`.
    let inside = || (words.last() == Some(&"inside")).then_some((Origin::Guest(1), "guest"));
    // `Guest (4 vCPUs):`, `the host:`, `VM to the other host:`, `Host lscpu:`; nothing else is behind it.
    let article = usize::from(words.first().is_some_and(|word| ["the", "my", "our"].contains(word)));
    let lead = || {
        let rest = words.get(article..)?;
        let nouns = rest.iter().take_while(|word| noun(&[**word], 1).is_some()).count();
        // Who begins with a guest may be saying anything of it; `Host is idle, virsh says:`.
        let is_host = noun(rest, 1).is_some_and(|(place, _)| place == Origin::Host);
        // Of `L1's view` the noun is known already to be where it was seen.
        let leads = |next: &&str| *next == "s" || [BEHIND, PROGRAMS, MADE_OF].iter().any(|list| is_word_of(list, next));
        noun(rest, 1).filter(|_| nouns > 0 && (is_host || rest.get(nouns).is_none_or(leads)))
    };
    first
        .or_else(lead)
        .or_else(inside)
        .map(|(place, noun)| (if is_nested && place == Origin::Guest(1) { Origin::Guest(2) } else { place }, noun))
}

/// Words between `in` and what it is in, but for those that say nothing: `in one of our minikube VMs`.
const MOST_BETWEEN: usize = 3;
const FILLERS: &str = "the a an my our this that one of each all two some other another same affected nested";

/// What is printed on the machine whose it is.
const VIEWS: &str = "view side perspective trace console dmesg";

/// Whether a word is one of a list.
fn is_word_of(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// The first of these words that is a place; the last of several names in a row counts (`VM host`), and what a guest is made of is its
/// host's.
fn noun(words: &[&str], most: usize) -> Option<(Origin, &'static str)> {
    let of = |word: &str| {
        let known = |list: &'static str| list.split(' ').find(|known| *known == word);
        let guest = known(GUESTS).map(|noun| {
            let level = match noun {
                "l2" => 2,
                "l3" => 3,
                _ => 1,
            };
            (Origin::Guest(level), noun)
        });
        guest.or_else(|| known(HOSTS).map(|noun| (Origin::Host, noun)))
    };
    let at = words.iter().position(|word| of(word).is_some())?;
    if words[..at].iter().filter(|word| !is_word_of(FILLERS, word)).count() >= most {
        return None;
    }
    let row = words[at..].iter().map_while(|word| of(word)).collect::<Vec<_>>();
    let next = words.get(at + row.len());
    let last = row.last().copied()?;
    // `from the VM's migration`: about it, and printed anywhere; `L1's view`: printed there.
    let is_seen_there = || words.get(at + row.len() + 1).is_some_and(|word| is_word_of(VIEWS, word));
    if next == Some(&"s") && last.0 != Origin::Host && !is_seen_there() {
        return None;
    }
    Some(if next.is_some_and(|next| is_word_of(MADE_OF, next)) { (Origin::Host, "host") } else { last })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Normal;

    fn of(text: &str) -> Option<Origin> {
        heading(text).map(|told| told.map_or(Origin::Unknown, |(place, _)| place))
    }

    #[test]
    fn headings_tell_where() {
        use Origin::{Guest, Host, Unknown};
        for (place, texts) in [
            (
                Guest(1),
                "Guest:|Guest (4 vCPUs):|VM to the other host:|and in the minikube VM:|In the guests dmesg shows|\
                iperf3 from the VM to the host:|Between two VMs on the same host:|VM side:|Inside one of our VMs:|\
                Inside the VM (guest of node1):|L1's view:|**Guest environment**|Im Gast:",
            ),
            (
                Host,
                "Host, with no guest running at all:|Host to host is fine:|top -H on the VM host meanwhile:|\
                on the hypervisor while cyclictest runs in the guest:|In the guest all is well, but on the host:|\
                VM config:|L0's view:|Host lscpu:|Host has 2x 16 cores, and virsh says",
            ),
            (Unknown, "## Steps to reproduce"),
            (Guest(2), "Inside the nested guest:|L2:"),
        ] {
            texts.split('|').for_each(|text| assert_eq!(of(text), Some(place), "{text}"));
        }
        let none = "Host fine, guest slow:|VM 132 dead, no way to stop it:|Log from the VM's migration:|VM performance dropped by half:|\
            The guest is slow.|Without isolation:|host: 10.0.0.1|fio:|# cyclictest -m|";
        for text in none.split('|') {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn prompts_and_rented_machines_tell_as_well() {
        let places = |text: &str| {
            let signs = signs(&Normal::of(text.as_bytes()).lines, |_| true);
            signs.iter().map(|sign| (sign.line, sign.origin)).collect::<Vec<_>>()
        };
        let rented = "On the instance:\nx\nand in the VM:\ny\n";
        assert_eq!(places(rented), [(1, Origin::Guest(1)), (3, Origin::Unknown)]);
        assert_eq!(places(&format!("{rented}it is nested\n"))[1], (3, Origin::Guest(2)));
        assert_eq!(places(&format!("{rented}on the compute host:\n")), [(1, Origin::Guest(1)), (5, Origin::Host)]);
        let prompts = "guest:\nroot@web1:~# top\nroot@pve3:~# top\nroot@web1:~# top\nroot@db:~# top\n";
        let expected = [(1, Origin::Guest(1)), (3, Origin::Host), (4, Origin::Guest(1)), (5, Origin::Unknown)];
        assert_eq!(places(prompts), expected);
    }
}
