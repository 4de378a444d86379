//! Options mean what they say: what is not there is refused with the nearest name, what is there is not written over.

use crate::program::{ended, fails, fixture_named};
use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};

const SPAN_OF_HOG: &str = "638.0 ms";

fn kvmscope(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    command.args(arguments).env_remove("COLUMNS").env_remove("LC_ALL").env_remove("LC_CTYPE").env("LANG", "C.UTF-8");
    command
}

fn answers(arguments: &[&str]) -> String {
    let (code, stdout, stderr) = ended(kvmscope(arguments).output().unwrap());
    assert_eq!(code, 0, "{arguments:?}: {stderr}");
    stdout
}

fn directory() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let directory = tempfile::tempdir().unwrap();
    let root: PathBuf = directory.path().to_owned();
    (directory, move |name: &str| root.join(name).to_str().unwrap().to_owned())
}

#[test]
fn names_that_a_recording_does_not_have_are_refused_with_the_nearest() {
    let hog = fixture_named("nested-vmx-shadow-off-hog");
    for command in ["report", "export"] {
        let asks = |option: &str, value: &str, words: &[&str]| {
            let mut arguments = vec![command, hog.as_str(), option, value];
            if command == "export" {
                arguments.extend(["--folded", "-"]);
            }
            fails(&arguments, 2, words);
        };
        asks("--ignore-event", "nosuch", &["--ignore-event nosuch", "no such event"]);
        asks("--ignore-event", "kvm_exti", &["did you mean `kvm_exit`?"]);
        asks("--vm-map", "99999=web", &["thread 99999", "there is 98"]);
        asks("--vm", "nestv-99", &["--vm nestv-99", "did you mean `nestv-98`?"]);
        asks("--vcpu", "7", &["--vcpu 7", "there is 0"]);
        asks("--level", "L9", &["--level L9", "L1 and L2"]);
    }
    fails(&["compare", &hog, &hog, "--vm", "web"], 2, &["--vm web"]);
    // Names that are there are not refused, also of an event that is declared and never fired.
    answers(&[
        "report",
        &hog,
        "--level",
        "L2",
        "--vm",
        "nestv-98",
        "--vcpu",
        "0",
        "--ignore-event",
        "kvm_nested_vmenter",
    ]);
}

#[test]
fn a_window_behind_the_end_is_no_answer_and_says_how_long_the_recording_is() {
    let hog = fixture_named("nested-vmx-shadow-off-hog");
    let (_keep, at) = directory();
    fails(&["report", &hog, "--from", "100"], 1, &[SPAN_OF_HOG, "100.0 s"]);
    fails(&["export", &hog, "--from", "50", "--folded", "-"], 1, &[SPAN_OF_HOG]);
    fails(&["cut", &hog, "--from", "5", "--to", "6", "-o", &at("c")], 1, &[SPAN_OF_HOG]);
    assert!(!Path::new(&at("c")).exists(), "an empty cut leaves nothing");
    let said = answers(&["cut", &hog, "--from", "0.3", "-o", &at("c")]);
    assert!(said.contains(" events; explain it with: kvmscope report "), "{said}");
    answers(&["report", &at("c")]);
}

#[test]
fn what_is_there_is_replaced_by_force_alone_whoever_writes_it() {
    let hog = fixture_named("nested-vmx-shadow-off-hog");
    let intel = fixture_named("hosts-intel");
    let (_keep, at) = directory();
    let writes: [(&str, Vec<&str>); 9] = [
        ("page.html", vec!["report", &hog, "--html"]),
        ("tables", vec!["report", &hog, "--csv"]),
        ("checked", vec!["check", &intel, "--csv"]),
        ("planned", vec!["plan", "nested", "--rate", "CPUID=1", "--csv"]),
        ("web.pftrace", vec!["export", &hog, "--perfetto"]),
        ("exported", vec!["export", &hog, "--csv"]),
        ("short", vec!["cut", &hog, "--to", "0.1", "-o"]),
        ("joined", vec!["join", &hog, &intel, "--parent", "L0-hosts-intel=L0", "-o"]),
        ("host", vec!["snapshot", "--span", "0", "-o"]),
    ];
    for (name, arguments) in writes {
        let place = at(&format!("made/on/the/way/{name}"));
        let with = |more: &[&'static str]| [arguments.clone(), vec![place.as_str()], more.to_vec()].concat();
        if name == "joined" && ended(kvmscope(&with(&[])).output().unwrap()).0 != 0 {
            continue;
        }
        if name != "joined" {
            answers(&with(&[]));
        }
        fails(&with(&[]), 2, &[&place, "already exists; --force replaces it"]);
        answers(&with(&["--force"]));
    }
}

#[test]
fn a_directory_that_is_no_recording_is_never_replaced() {
    let hog = fixture_named("nested-vmx-shadow-off-hog");
    let (_keep, at) = directory();
    fs::create_dir(at("letters")).unwrap();
    fs::write(at("letters/a"), "dear").unwrap();
    let place = at("letters");
    for more in [&[][..], &["--force"]] {
        let arguments = [&["cut", &hog, "--to", "0.1", "-o", &place][..], more].concat();
        fails(&arguments, 2, &["already exists", "not a recording"]);
    }
    assert_eq!(fs::read_to_string(at("letters/a")).unwrap(), "dear");
}

#[test]
fn a_dash_is_stdin_where_something_is_read_and_stdout_where_it_is_written() {
    let hog = fixture_named("nested-vmx-shadow-off-hog/L0/trace.dat");
    let piped = |arguments: &[&str], file: &str| {
        let mut command = kvmscope(arguments);
        command.write_stdin(fs::read(file).unwrap());
        ended(command.output().unwrap())
    };
    let (code, stdout, stderr) = piped(&["report", "-"], &hog);
    assert!(code == 0 && stdout.contains("6,644 events"), "{stderr}");
    let (code, stdout, stderr) =
        piped(&["check", "--paste", "-"], &fixture_named("seed-vhost/L0/notes/1-top-before.txt"));
    assert!(code == 0 && stdout.contains("pasted text"), "{stderr}");
    fails(&["compare", "-", "-"], 2, &["only once"]);
    let (_keep, at) = directory();
    let mut command = kvmscope(&["report", &hog, "--html", "-"]);
    command.current_dir(at("."));
    let (code, stdout, _) = ended(command.output().unwrap());
    assert!(code == 0 && stdout.starts_with("<!doctype html>") && stdout.trim_end().ends_with("</html>"));
    assert_eq!(fs::read_dir(at(".")).unwrap().count(), 0, "no file is called -");
    fails(&["report", &hog, "--html", "-", "--json"], 2, &["stdout"]);
    fails(&["report", &hog, "--csv", "-"], 2, &["stdout"]);
    fails(&["cut", &hog, "-o", "-"], 2, &["stdout"]);
    fails(&["snapshot", "-o", "-"], 2, &["stdout"]);
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let seed = fixture_named("seed-vhost");
    fails(&["check", &seed, "--keep", "nosuch"], 2, &["--keep nosuch", "there are"]);
    fails(&["check", &seed, "--keep", "bigip-virtoi"], 2, &["did you mean `bigip-virtio`?"]);
    fails(&["check", &seed, "--reserve", "99"], 2, &["--reserve 99", "no CPU 99"]);
    fails(&["check", &seed, "--span", "5"], 2, &["--span"]);
    fails(&["check", "--root", "L9=/"], 2, &["L9", "L3"]);
    fails(&["check", "--paste", "nosuch"], 1, &["nosuch: No such file or directory\n"]);
    fails(&["record", "--seconds", "0"], 2, &["longer than 0 s"]);
    fails(&["record", "--seconds", "1e99"], 2, &["write seconds, such as"]);
    fails(&["record", "--buffer-size", "1"], 2, &["64K"]);
    #[cfg(feature = "labs")]
    fails(&["bench", "clock", "--seconds", "abc"], 2, &["write seconds, such as"]);
    fn plan<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["plan", "nested", "--ghz", "2.4"], more].concat()
    }
    fails(&plan(&["--c1", "1350", "--c2", "20000", "--rate", "FOO=2000"]), 2, &["FOO"]);
    fails(&plan(&["--c1", "1350", "--c2", "20000", "--rate", "CUPID=2000"]), 2, &["did you mean `CPUID`?"]);
    fails(&plan(&["--c1", "20000", "--c2", "1350", "--rate", "CPUID=2000"]), 2, &["swapped"]);
    fails(
        &plan(&["--c1", "1350", "--d", "1", "--rate", "CPUID=1", "--with", "shadwo"]),
        2,
        &["did you mean `shadow`?"],
    );
    answers(&plan(&["--c1", "1350", "--c2", "20000", "--rate", "EPT_VIOLATION=10", "--rate", "TSC_DEADLINE=5"]));
}

#[test]
fn a_tree_of_a_host_is_answered_by_every_door() {
    let tree = fixture_named("hosts-sosreport");
    for arguments in [&["report", &tree][..], &[&tree], &["check", &tree]] {
        let (code, out, stderr) = ended(kvmscope(arguments).output().unwrap());
        assert!(code == 0 && out.contains("PLC-"), "{arguments:?}: {out}{stderr}");
    }
}

#[test]
fn hidden_names_of_files_being_written_are_not_shown() {
    let (_keep, at) = directory();
    fs::write(at("file"), "x").unwrap();
    let place = at("file/x.pf");
    let (code, _, stderr) = ended(
        kvmscope(&["export", &fixture_named("nested-vmx-shadow-off-hog"), "--perfetto", &place]).output().unwrap(),
    );
    assert!(code != 0 && stderr.contains(&place) && !stderr.contains("partial"), "{stderr}");
    let place = at("file/new");
    let (code, _, stderr) =
        ended(kvmscope(&["cut", &fixture_named("nested-vmx-shadow-off-hog"), "-o", &place]).output().unwrap());
    assert!(code != 0 && stderr.contains(&place) && !stderr.contains(".new"), "{stderr}");
}

#[test]
fn a_terminal_without_utf_8_gets_ascii_and_columns_is_obeyed() {
    let hog = fixture_named("nested-vmx-shadow-off-hog");
    let shown = |variables: &[(&str, &str)]| {
        let mut command = kvmscope(&["report", &hog]);
        command.envs(variables.iter().copied());
        ended(command.output().unwrap()).1
    };
    assert!(shown(&[]).contains('█'));
    for (name, locale) in [("LANG", "C"), ("LC_ALL", "C"), ("LANG", "de_DE.ISO-8859-1")] {
        let text = shown(&[(name, locale)]);
        assert!(text.is_ascii() && text.contains("####"), "{name}={locale}");
    }
    let widest = |columns: &str| {
        let text = shown(&[("COLUMNS", columns)]);
        // Commands stay whole, so that they can be pasted; these stand on lines of their own.
        const COMMANDS: [&str; 4] = ["modprobe ", "echo ", "grep ", "rm "];
        text.lines()
            .filter(|line| !line.contains("L0, run ") && !line.contains(" undo "))
            .filter(|line| !COMMANDS.iter().any(|command| line.trim_start().starts_with(command)))
            .map(|line| line.chars().count())
            .max()
    };
    assert!(widest("60") <= Some(60) && widest("140") > Some(100), "{:?} {:?}", widest("60"), widest("140"));
}
