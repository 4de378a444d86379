//! Does a cut of a printed trace hold exactly the lines of its window, and what belongs to them?

use base::Span;
use kvmscope_trace::{Event, Listener, Reading, Request, text};
use std::path::{Path, PathBuf};

const PRINTED: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 6/6   #P:2
            qemu-98    [000] d..1.    9.710000: kvm_entry: vcpu 0
            qemu-98    [000] d..1.    9.720000: kvm_exit: reason HLT rip 0x10 info 0 0
 => vcpu_enter_guest
CPU:1 [LOST 5 EVENTS]
##### CPU 1 buffer started ####
          <idle>-0     [001] d..1.    9.730000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=7 next_prio=120
 => __schedule

            qemu-98    [000] d..1.    9.740000: kvm_entry: vcpu 0
CPU:0 [LOST 9 EVENTS]
            qemu-98    [000] d..1.    9.750000: kvm_exit: reason HLT rip 0x10 info 0 0
";

/// The text of `from_ns..to_ns` since the first event of `file`; `None` if no event lies there.
fn cut(file: &Path, from_ns: u64, to_ns: u64) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("cut.txt");
    let problems = text::cut(file, &to, Span { from_ns, to_ns }).unwrap();
    assert_eq!(problems.is_some(), to.exists());
    problems.map(|_| std::fs::read_to_string(to).unwrap())
}

#[test]
fn lines_go_with_the_event_that_they_are_about() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.txt");
    std::fs::write(&file, PRINTED).unwrap();
    let lines: Vec<&str> = PRINTED.split_inclusive('\n').collect();
    let (head, of) = (lines[..3].concat(), |range: std::ops::Range<usize>| lines[range].concat());
    const MS: u64 = 1_000_000;
    assert_eq!(cut(&file, 0, 20 * MS).unwrap(), head.clone() + &of(3..6), "losses belong to what follows them");
    assert_eq!(cut(&file, 20 * MS, 30 * MS).unwrap(), head.clone() + &of(6..11));
    assert_eq!(cut(&file, 30 * MS, 40 * MS).unwrap(), head.clone() + &of(11..12));
    assert_eq!(cut(&file, 40 * MS, u64::MAX).unwrap(), head + &of(12..14));
    assert_eq!(cut(&file, 21 * MS, 22 * MS).as_deref(), None);
}

#[test]
fn a_damaged_line_does_not_make_the_cut_unreadable() {
    // Far from the start, where it does not keep the text from being one.
    let calm = PRINTED.lines().nth(3).unwrap().to_owned() + "\n";
    let (stack, late) = (" => vcpu_enter_guest", "##### CPU 1 buffer started ####");
    // Of the last two all that is in the window begins with a loss.
    for (line, damage, from_ns) in [
        (stack, "\0 what was here is gone".to_owned(), 1_000_000),
        (late, "\0 what was here is gone".to_owned(), 11_000_000),
        (late, "what no trace prints\n".repeat(150), 11_000_000),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (file, to) = (directory.path().join("trace.txt"), directory.path().join("cut.txt"));
        std::fs::write(&file, calm.repeat(2_000) + &PRINTED.replace(line, &damage)).unwrap();
        text::cut(&file, &to, Span { from_ns, to_ns: u64::MAX }).unwrap().unwrap();
        kvmscope_trace::open(&to).unwrap();
        assert!(std::fs::read_to_string(&to).unwrap().contains("CPU:1 [LOST 5 EVENTS]"));
    }
}

/// Number of events, and times of the first and the last.
fn events(file: &Path) -> (u64, (u64, u64)) {
    struct Nobody;
    impl Listener for Nobody {
        fn event(&mut self, _: &Event<'_>) {}
    }
    let trace = text::open(file).unwrap();
    let request = Request::everything(trace.facts());
    let totals = kvmscope_trace::replay(trace.as_ref(), &Reading { request: &request, fitted: None }, &mut Nobody);
    (totals.events(), totals.span_ns.unwrap())
}

#[test]
fn two_halves_of_the_bundled_texts_hold_all_lines() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/text");
    let entries = std::fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    assert!(texts.len() >= 5);
    for file in texts {
        let (all, (first, last)) = events(&file);
        let middle = (last - first) / 2 + 1;
        let directory = tempfile::tempdir().unwrap();
        let halves = [Span { from_ns: 0, to_ns: middle }, Span { from_ns: middle, to_ns: u64::MAX }];
        let mut sum = 0;
        for (half, window) in halves.into_iter().enumerate() {
            let to = directory.path().join(format!("{half}.txt"));
            if text::cut(&file, &to, window).unwrap().is_some() {
                let (count, span) = events(&to);
                assert!(span.0 >= first + window.from_ns && span.1 < first.saturating_add(window.to_ns));
                sum += count;
            }
        }
        assert_eq!(sum, all, "{}", file.display());
    }
}
