//! `kvmscope budget`: the built-in budgets are printed as files that it reads again, and errors have line and column.

use std::process::Command;

fn kvmscope(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kvmscope")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn built_in_budgets_are_listed_and_what_is_printed_reads_again() {
    let directory = tempfile::tempdir().unwrap();
    let (status, list, _) = kvmscope(&["budget"]);
    assert_eq!((status, list.as_str()), (0, "kvm4nfv-2015    5 goals\nkvm4nfv-future  3 goals\n"));
    for name in list.lines().map(|line| line.split(' ').next().unwrap()) {
        let (status, text, _) = kvmscope(&["budget", name]);
        assert!(status == 0 && text.contains("schema = \"kvmscope.budget/1\""), "{text}");
        let file = directory.path().join("mine.toml");
        std::fs::write(&file, text.replace(name, "mine")).unwrap();
        let (status, said, _) = kvmscope(&["budget", file.to_str().unwrap()]);
        assert!(status == 0 && said.contains("budget mine, "), "{said}");
    }
}

#[test]
fn what_is_wrong_with_a_file_has_its_place_and_a_name_its_neighbour() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    let (_, text, _) = kvmscope(&["budget", "kvm4nfv-2015"]);
    let wrong = text.replacen("limit = \"15us\"", "limt = \"15us\"", 1);
    let line = wrong.lines().position(|line| line.starts_with("limt")).unwrap() + 1;
    std::fs::write(&file, wrong).unwrap();
    let name = file.to_str().unwrap();
    let (status, said, complaint) = kvmscope(&["budget", name]);
    assert_eq!((status, said.as_str()), (2, ""));
    assert_eq!(complaint, format!("kvmscope: {name}:{line}:1: a goal has no key `limt`; did you mean `limit`?\n"));
    let (status, _, complaint) = kvmscope(&["budget", "kvm4nfv-2016"]);
    assert!(status == 2 && complaint.contains("did you mean `kvm4nfv-2015`?"), "{complaint}");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    assert_eq!(kvmscope(&["budget", name]).0, 2);
    assert_eq!(kvmscope(&["budget", directory.path().to_str().unwrap()]).0, 2);
}

#[test]
fn the_file_of_the_documentation_is_a_budget() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/budgets.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, example).unwrap();
    let (status, said, complaint) = kvmscope(&["budget", file.to_str().unwrap()]);
    assert!(status == 0 && said.ends_with("budget mine, 2 goals\n"), "{said}{complaint}");
}
