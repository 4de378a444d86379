//! `kvmscope report --html`: the page of every bundled recording against what `--json` says, and in a browser.

use crate::program::fixture;
use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

/// The page and the JSON of one run.
fn page_and_json(of: &Path) -> (String, Value) {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("out.html");
    let mut command = Command::cargo_bin("kvmscope").unwrap();
    let output = command.args(["report", "--json", "--html"]).args([&page, of]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (std::fs::read_to_string(&page).unwrap(), serde_json::from_slice(&output.stdout).unwrap())
}

/// What stands between the first `from` and the next `to`, for every `from`.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    text.split(from).skip(1).filter_map(|rest| rest.split_once(to).map(|(found, _)| found)).collect()
}

/// Compares the numbers of all tables on the page with the same cells of the JSON; returns how many there were.
fn same_numbers(page: &str, sections: &[Value]) -> usize {
    let mut compared = 0;
    for table in between(page, "<table data-table=\"", "</table>") {
        let (name, rest) = table.split_once('"').unwrap();
        let (section, name) = name.split_once('.').unwrap();
        let section = sections.iter().find(|one| one["id"] == section).unwrap();
        let json = &section["tables"][name];
        let names: Vec<&str> =
            json["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        let shown = between(rest, "data-column=\"", "\"");
        for (place, cells) in between(rest, "<tr", "</tr>").into_iter().skip(1).enumerate() {
            // People see ranked tables in another order; such a row carries its place in the JSON.
            let (attributes, _) = cells.split_once('>').unwrap();
            let ranked = attributes.split_once("data-row=\"").and_then(|(_, rest)| rest.split_once('"'));
            let row = ranked.map_or(place, |(row, _)| row.parse().unwrap());
            for (cell, column) in between(cells, "<td", "</td>").into_iter().zip(&shown) {
                let place = names.iter().position(|name| name == column).unwrap();
                let wanted = &json["rows"][row][place];
                match cell.split_once("data-v=\"").and_then(|(_, rest)| rest.split_once('"')) {
                    Some((exact, _)) => {
                        // Reading JSON back costs a fraction's last digit; whole numbers are the same.
                        let (exact, wanted): (f64, f64) = (exact.parse().unwrap(), wanted.as_f64().unwrap());
                        let same = (exact - wanted).abs() <= wanted.abs() * 1e-15;
                        assert!(same, "{name}.{column}, row {row}: {exact} and {wanted}");
                        compared += 1;
                    }
                    None => assert!(!wanted.is_number(), "{name}.{column}, row {row} has no number: {cell}"),
                }
            }
        }
    }
    compared
}

#[test]
fn a_page_on_stdout_is_the_page_alone() {
    let run = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        command.arg("report").args(arguments).arg(fixture("nested-svm-toy")).output().unwrap()
    };
    let output = run(&["--html", "-"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out.html");
    assert!(run(&["--html", file.to_str().unwrap()]).status.success());
    assert!(output.stdout == std::fs::read(&file).unwrap(), "no text before it or behind it");
    let both = run(&["--html", "-", "--json"]);
    assert_eq!((both.status.code(), both.stdout.is_empty()), (Some(2), true));
}

#[test]
fn every_bundled_recording_fits_a_mail_and_says_what_the_json_says() {
    let mut seen = 0;
    for entry in std::fs::read_dir(fixture("")).unwrap() {
        let path = entry.unwrap().path();
        if !path.join("recording.json").exists() {
            continue;
        }
        let (page, json) = page_and_json(&path);
        let name = path.display();
        assert!(page.len() < 8_000_000, "{name}: {} bytes", page.len());
        // Names of XML dialects are addresses by their form, which nobody asks.
        let asked = page.replace("http://www.w3.org/", "").contains("http://");
        assert!(page.contains("default-src 'none'") && !asked, "{name} asks nobody for anything");
        let section = &json["sections"][0];
        let compared = same_numbers(&page, json["sections"].as_array().unwrap());
        // A recording of snapshots alone answers in words.
        assert!(compared > 20 || section["id"] == "nesting", "{name}: {compared} numbers compared");
        for finding in section["findings"].as_array().unwrap() {
            let id = finding["id"].as_str().unwrap().replace('\'', "&#39;");
            assert!(page.contains(&format!("id=\"{id}\"")), "{name}: {id}");
        }
        // The legend's amounts are the ledger's: each state's time over all vCPUs of the recorded machine.
        if json["recording"]["machines"].as_array().unwrap().len() == 1 {
            for state in between(&page, "<li data-state=\"", ">") {
                let (state, ns) = state.split_once("\" data-v=\"").unwrap();
                let table = &section["tables"]["vcpus"];
                let column = format!("{state}_ns");
                let columns = table["columns"].as_array().unwrap();
                let place = columns.iter().position(|found| found["name"] == column.as_str()).unwrap();
                let rows = table["rows"].as_array().unwrap();
                let sum: u64 = rows.iter().map(|row| row[place].as_u64().unwrap()).sum();
                assert_eq!(ns.trim_end_matches('"').parse::<u64>().unwrap(), sum, "{name}: {state}");
            }
        }
        seen += 1;
    }
    assert!(seen >= 6, "{seen} recordings");
}

#[test]
fn a_process_named_like_markup_is_text() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.txt");
    let text = std::fs::read_to_string(fixture("text/trace-cmd-svm-6.1.txt")).unwrap();
    std::fs::write(&trace, text.replace("            nest-98", "        <script>-98")).unwrap();
    let (page, json) = page_and_json(&trace);
    assert!(json["sections"][0]["tables"]["vcpus"]["rows"][0][1].as_str().unwrap().contains("<script>"));
    assert!(page.contains("&lt;script&gt;-98"));
    let before_data = page.split("id=\"kvmscope-data\"").next().unwrap();
    assert_eq!(before_data.matches("<script").count(), 1, "only the data's own element");
}

#[test]
fn wrong_use_is_said() {
    let run = |arguments: &[&str]| {
        let output = Command::cargo_bin("kvmscope").unwrap().arg("report").args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&["--html", "out.html", "a", "b"]);
    assert!(code == 2 && said.contains("one PATH"), "{said}");
    let (code, said) = run(&["--html", "out.html", "--html-max", "tiny", "a"]);
    assert!(code == 2 && said.contains("8MB"), "{said}");
    assert_eq!(run(&["--html-max", "1MB", "a"]).0, 2);
    let directory = tempfile::tempdir().unwrap();
    let (page, of) = (directory.path().join("out.html"), fixture("nested-vmx-shadow-on"));
    let (code, said) = run(&["--html", page.to_str().unwrap(), "--html-max", "9kB", of.to_str().unwrap()]);
    assert!(code == 1 && said.contains("--html-max") && !page.exists(), "{said}");
}

#[test]
fn a_page_is_written_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let (page, of) = (directory.path().join("out.html"), fixture("nested-vmx-shadow-on"));
    let write = |page: &Path, more: &[&str]| {
        let mut command = Command::cargo_bin("kvmscope").unwrap();
        let output = command.args(["report", "--html"]).arg(page).arg(&of).args(more).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    std::fs::write(&page, "an older page").unwrap();
    let (code, said) = write(&page, &["--html-max", "9kB", "--force"]);
    assert!(code == 1 && said.contains("--html-max"), "{said}");
    let (code, said) = write(&page, &[]);
    assert!(code == 2 && said.contains("already exists; --force replaces it"), "{said}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "an older page", "what was there stays");
    assert_eq!(write(&page, &["--force"]).0, 0);
    assert!(std::fs::read_to_string(&page).unwrap().ends_with("</html>\n"), "what was there is replaced");
    let (code, said) = write(directory.path(), &[]);
    assert!(code == 2 && said.contains("not a regular file"), "{said}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing half written is left");
}

#[test]
fn a_browser_opens_the_page_without_complaint() {
    let Some(browser) = ["chromium", "chromium-browser"].into_iter().find(|name| which(name)) else {
        return println!("skipped: chromium: the page in a browser: it is not installed");
    };
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    let (text, _) = page_and_json(&fixture("nested-vmx-shadow-off-hog"));
    std::fs::write(&page, text).unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", directory.path().join("profile").display()));
    let output = command.arg(format!("file://{}", page.display())).timeout(std::time::Duration::from_secs(50)).output();
    let output = output.unwrap();
    let (dom, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(dom.contains("FLW-SHADOW") && dom.contains("1 L2 exit = 15 L1 exits, 8 of them VMREAD"), "{said}");
    assert!(!said.contains("CONSOLE") && !said.contains("Refused"), "{said}");
    if let Some(pictures) = std::env::var_os("KVMSCOPE_PICTURES") {
        let picture = Path::new(&pictures).join("report.png");
        let mut command = Command::new(browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,1640"]);
        command.arg(format!("--user-data-dir={}", directory.path().join("profile").display()));
        command.arg(format!("--screenshot={}", picture.display())).arg(format!("file://{}", page.display()));
        command.timeout(std::time::Duration::from_secs(50)).assert().success();
    }
}

fn which(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|place| place.join(program).is_file()))
}
