//! No test waits for a time, and none asserts one: both are wrong on a slower machine, and the first costs minutes on every machine.
//!
//! A test waits for a state ([`testing::wait_for`] and, in a browser, `settled`). Between two looks it may sleep for a moment.

use std::path::{Path, PathBuf};

/// The longest pause between two looks.
const MOST_MS: u64 = 50;

/// What asserts, of the tests of Rust.
const ASSERTS: [&str; 3] = ["assert!(", "assert_eq!(", "assert_ne!("];

/// What a browser's steps may not do; timers of the page itself are counted in one place.
const BROWSER: [&str; 2] = ["waitForTimeout", "setTimeout("];

/// Where the page's own timers are counted.
const COUNTS_TIMERS: &str = "settled.mjs";

/// All files below a directory whose names end so.
pub(super) fn files(directory: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

/// Tests of a source: the whole file below `tests`, else what comes behind `#[cfg(test)]`, with the number of lines before it.
pub(super) fn tests_in<'a>(path: &Path, text: &'a str) -> (usize, &'a str) {
    let is_test = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
    if path.iter().any(is_test) || path.starts_with("testing") {
        return (0, text);
    }
    match text.split_once("#[cfg(test)]\nmod tests {") {
        Some((before, tests)) => (before.lines().count() + 1, tests),
        None => (0, ""),
    }
}

/// How long the literal duration is that a line sleeps for, in milliseconds.
fn slept_ms(line: &str) -> Option<u64> {
    let (before, argument) = line.split_once("sleep(")?;
    // A method of that name is what is tested; a script's is not.
    if before.ends_with('.') && !before.ends_with("time.") {
        return None;
    }
    let argument = argument.rsplit("Duration::").next()?;
    let (unit, rest) = argument.split_once('(').unwrap_or(("from_secs", argument));
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '_').filter(|c| *c != '_').collect();
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "from_secs" | "from_secs_f64" | "from_secs_f32" => number * 1_000,
        "from_millis" => number,
        "from_micros" => number / 1_000,
        _ => number / 1_000_000,
    })
}

/// Statements of assertions with the lines they begin at: from the macro to the end of its statement.
fn assertions(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().filter(|(_, line)| ASSERTS.iter().any(|name| line.contains(name))).map(|(at, _)| {
        let mut statement = String::new();
        for line in text.lines().skip(at) {
            statement.push_str(line);
            if line.trim_end().ends_with(';') || line.trim_end().ends_with('}') {
                break;
            }
        }
        (at, statement)
    })
}

/// Whether an assertion is about how long something took. A deadline that ends a wait for a state is none: `Instant::now() < deadline`.
fn asserts_a_time(statement: &str) -> bool {
    let is_deadline = ["Instant::now() < deadline", "Instant::now() < until", "Instant::now() < patience"];
    statement.contains(".elapsed()")
        || statement.contains("Instant::now()") && !is_deadline.iter().any(|deadline| statement.contains(deadline))
}

/// What is wrong in tests of Rust, with the numbers of the lines.
fn wrong_in_rust(text: &str) -> Vec<(usize, String)> {
    let sleeps = text.lines().enumerate().filter(|(_, line)| slept_ms(line).is_some_and(|ms| ms > MOST_MS));
    let sleeps = sleeps.map(|(at, line)| (at, format!("waits for a time: {}", line.trim())));
    let asserts = assertions(text).filter(|(_, statement)| asserts_a_time(statement));
    let asserts = asserts.map(|(at, statement)| (at, format!("asserts a time: {}", statement.trim())));
    sleeps.chain(asserts).collect()
}

fn wrong_in_browser(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate().filter(|(_, line)| BROWSER.iter().any(|wait| line.contains(wait)));
    lines.map(|(at, line)| (at, format!("waits for a time: {}", line.trim()))).collect()
}

#[test]
fn no_test_waits_for_a_time_or_asserts_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut sources, mut steps, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    files(&root.join("crates"), ".rs", &mut sources);
    files(&root.join("ui/e2e"), ".mjs", &mut steps);
    assert!(sources.len() > 500 && steps.len() > 20, "{} {}: where are they?", sources.len(), steps.len());
    // It has examples of what is wrong.
    sources.retain(|path| !path.ends_with("house/patience.rs"));
    steps.retain(|path| !path.ends_with(COUNTS_TIMERS));
    for path in sources {
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, tests) = tests_in(path.strip_prefix(root.join("crates")).unwrap(), &text);
        let said = |(at, what)| format!("{}:{}: {what}", path.display(), before + at + 1);
        wrong.extend(wrong_in_rust(tests).into_iter().map(said));
    }
    for path in steps {
        let text = std::fs::read_to_string(&path).unwrap();
        let said = |(at, what)| format!("{}:{}: {what}", path.display(), at + 1);
        wrong.extend(wrong_in_browser(&text).into_iter().map(said));
    }
    assert!(wrong.is_empty(), "wait for a state, with what is awaited in its words:\n{}", wrong.join("\n"));
}

#[test]
fn each_kind_is_found_and_patience_is_not_meant() {
    let lines = |wrong: Vec<(usize, String)>| wrong.into_iter().map(|(at, _)| at).collect::<Vec<_>>();
    let wrong = [
        "std::thread::sleep(Duration::from_millis(51));",
        "sleep(Duration::from_secs(4)).await;",
        "std::thread::sleep(std::time::Duration::from_millis(1_500));",
        "let script = \"import time; time.sleep(2)\";",
        "assert!(begun.elapsed() < LIMIT, \"too slow\");",
        "assert!(Instant::now() - begun < LIMIT);",
    ];
    for line in wrong {
        assert_eq!(lines(wrong_in_rust(line)), [0], "{line}");
    }
    assert_eq!(lines(wrong_in_rust("f();\nassert!(\n    a && since.elapsed() >= limit,\n    \"x\"\n);\n")), [1]);
    let right = [
        "std::thread::sleep(Duration::from_millis(50));",
        "std::thread::sleep(Duration::from_micros(500));",
        "std::thread::sleep(LOOK_EVERY);",
        "while since.elapsed() < PATIENCE {}",
        "assert!(Instant::now() < deadline, \"awaited in vain\");",
        "bell.sleep(Duration::from_secs(600), None);",
        "fn sleep(random: &mut Random) {",
    ];
    for line in right {
        assert_eq!(wrong_in_rust(line), [], "{line}");
    }
    for line in ["await page.waitForTimeout(5);", "await new Promise((done) => setTimeout(done, 100));"] {
        assert_eq!(lines(wrong_in_browser(line)), [0], "{line}");
    }
    assert_eq!(wrong_in_browser("await settled(page);"), []);
    let source = "fn f() {\n    sleep(Duration::from_secs(9));\n}\n\n#[cfg(test)]\nmod tests {\n    x();\n}\n";
    assert_eq!(wrong_in_rust(tests_in(Path::new("lab/src/watch.rs"), source).1), [], "the product may wait");
}
