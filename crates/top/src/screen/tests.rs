//! The screen as somebody meets it who presses keys.

use super::*;
use analysis::flow::live::{Exits, Preemptor};
use proptest::prelude::*;

fn vcpu(vm: &str, number: u32, ready_ns: u64) -> Vcpu {
    let exits = |reason: &str, count: u64, total_ns| Exits {
        reason: reason.to_owned(),
        count,
        clipped: 0,
        total_ns,
        p50_ns: None,
        p90_ns: None,
        p99_ns: None,
        max_ns: Some(9_000),
        bins: Vec::new(),
    };
    let by = Preemptor { by: "vhost-4120".to_owned(), tid: Some(4121), count: 3, total_ns: ready_ns, max_ns: None };
    Vcpu {
        vm: vm.to_owned(),
        vcpu: number,
        wall_ns: 1_000_000_000,
        guest_ns: Some(700_000_000),
        handling_ns: Some(41_000_000),
        ready_ns: Some(ready_ns),
        exits: Some(vec![exits("MSR", 21_000, 32_000_000), exits("HLT", 40, 100_000)]),
        preemptors: Some(if ready_ns > 0 { vec![by] } else { Vec::new() }),
        ..Vcpu::default()
    }
}

fn frame(vcpus: &[Vcpu]) -> Frame {
    Frame { floor: vec!["a floor".to_owned(), "own cost: 3 ms".to_owned()], vcpus: vcpus.to_vec(), ..Frame::default() }
}

/// Two VMs, one of which waits; the second interval is worse.
fn screen() -> Screen {
    let mut screen = Screen::new(Duration::from_secs(1), false, false);
    for (ready_ns, time) in [(10_000_000, "12:00:01"), (118_000_000, "12:00:02")] {
        let vcpus = [vcpu("db", 0, 0), vcpu("web-1", 0, 0), vcpu("web-1", 1, ready_ns)];
        screen.push(frame(&vcpus), time.to_owned());
    }
    screen
}

fn shown(screen: &mut Screen, width: usize) -> Vec<String> {
    screen.lines(width, 10).into_iter().map(|line| line.text.trim_end().to_owned()).collect()
}

fn press(screen: &mut Screen, keys: &str) -> Option<Action> {
    keys.chars().fold(None, |_, letter| screen.key(if letter == '\n' { Key::Enter } else { Key::Letter(letter) }))
}

#[test]
fn who_waits_most_stands_first_and_is_said_in_words() {
    let mut screen = screen();
    let lines = shown(&mut screen, 99);
    assert!(lines[1].starts_with("[1 VMs]  2 vCPUs"), "{lines:#?}");
    assert!(lines[2].contains("RDY%*") && lines[2].contains("COSTLIEST"), "{lines:#?}");
    assert!(lines[3].starts_with("!web-1         2   70.0   4.1     -   5.9"), "{lines:#?}");
    assert!(lines[3].contains("MSR 1.5 us 3.2%") && lines[4].starts_with(" db "), "{lines:#?}");
    assert_eq!(lines[8], "! web-1 was ready without a CPU for 5.9 % of its time; vhost-4120 took 5.9 %");
    assert_eq!(lines[9], "? help  q quit  a floor");
    assert!(shown(&mut screen, 200)[3].contains("▁▃") && !shown(&mut screen, 120)[3].contains('▃'));
}

#[test]
fn a_vm_is_entered_and_left_and_its_reasons_and_takers_are_its_own() {
    let mut screen = screen();
    press(&mut screen, "\n");
    let lines = shown(&mut screen, 80);
    assert!(lines[1].ends_with("of web-1") && lines[3].starts_with("!web-1         1"), "{lines:#?}");
    assert!(lines[4].starts_with(" web-1         0") && lines[5].is_empty(), "{lines:#?}");
    press(&mut screen, "3");
    let lines = shown(&mut screen, 99);
    assert!(
        lines[3].starts_with(" web-1       MSR ") && lines[3].contains("42.0k") && lines[3].ends_with("3.2"),
        "{lines:#?}"
    );
    press(&mut screen, "4");
    let lines = shown(&mut screen, 99);
    assert!(lines[3].contains("vhost-4120") && lines[3].contains("4121") && lines[3].ends_with("5.9"), "{lines:#?}");
    screen.key(Key::Escape);
    assert!(shown(&mut screen, 80)[1].starts_with("[1 VMs]"));
}

#[test]
fn columns_sort_both_ways_and_a_filter_keeps_rows() {
    let mut screen = screen();
    let first = |screen: &mut Screen| shown(screen, 80)[3].clone();
    press(&mut screen, "R");
    assert!(first(&mut screen).starts_with(" db"), "the other way round");
    press(&mut screen, "R<<<<<<<<<");
    assert!(shown(&mut screen, 80)[2].starts_with(" VM*") && first(&mut screen).starts_with(" db"), "by name");
    press(&mut screen, "/WEB\n");
    let lines = shown(&mut screen, 80);
    assert!(lines[1].ends_with("with \"WEB\"") && lines[3].starts_with("!web-1") && lines[4].is_empty(), "{lines:#?}");
    press(&mut screen, "/x\n");
    assert!(first(&mut screen).contains("Escape takes the filter away"));
    screen.key(Key::Escape);
    assert!(first(&mut screen).starts_with(" db"));
}

#[test]
fn an_earlier_interval_stays_while_others_come_and_the_sum_has_all() {
    let mut screen = screen();
    screen.key(Key::Left);
    let ready = |screen: &mut Screen| shown(screen, 80).iter().find(|line| line.contains("web-1")).cloned().unwrap();
    assert!(ready(&mut screen).contains("   0.5"), "{}", ready(&mut screen));
    screen.push(frame(&[vcpu("web-1", 0, 500_000_000)]), "12:00:03".to_owned());
    assert!(shown(&mut screen, 80)[1].ends_with("paused at 12:00:01, 1 of 3") && ready(&mut screen).contains("   0.5"));
    screen.key(Key::Right);
    assert!(shown(&mut screen, 80)[1].ends_with("paused at 12:00:02, 2 of 3"));
    press(&mut screen, " ");
    assert!(ready(&mut screen).contains("  50.0"), "it follows again: {}", ready(&mut screen));
    press(&mut screen, "a");
    // 10, 118 and 500 ms of five seconds.
    assert!(
        shown(&mut screen, 80)[1].ends_with("since the start") && ready(&mut screen).contains("  12.6"),
        "{}",
        ready(&mut screen)
    );
}

#[test]
fn an_interval_is_asked_for_and_one_that_is_none_is_refused() {
    let mut screen = screen();
    assert_eq!(
        (press(&mut screen, "f"), press(&mut screen, "/f\n")),
        (Some(Action::Freeze), None),
        "a letter is a key where nothing is typed"
    );
    screen.key(Key::Escape);
    assert_eq!(press(&mut screen, "d2.5\n"), Some(Action::SetInterval(Duration::from_millis(2_500))));
    assert_eq!(press(&mut screen, "d0\n"), None);
    assert_eq!(shown(&mut screen, 80)[9], "an interval is 0.2 to 60 s");
    press(&mut screen, "?");
    assert!(screen.lines(80, 30).iter().any(|line| line.text == "own cost: 3 ms"));
    assert_eq!(press(&mut screen, "q"), Some(Action::Quit));
    assert_eq!(
        Screen::new(Duration::from_secs(1), false, false).lines(80, 10)[0].text,
        "the first interval is not over yet"
    );
}

proptest! {
    /// Whatever is pressed on a terminal of whatever size, there are as many lines as it is high, and none is wider.
    #[test]
    fn no_key_and_no_size_leaves_the_screen(
        keys in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![Key::Up, Key::Down, Key::Left, Key::Right, Key::PageUp, Key::PageDown, Key::Home, Key::End]),
            prop::sample::select(vec![Key::Enter, Key::Escape, Key::Backspace]),
            any::<char>().prop_map(Key::Letter),
            prop::sample::select("1234<>R/da ?jk".chars().collect::<Vec<_>>()).prop_map(Key::Letter),
        ], 0..60),
        (width, height) in (0_usize..250, 0_usize..60),
        names in prop::collection::vec("\\PC{0,30}", 0..5),
    ) {
        let mut screen = screen();
        screen.push(frame(&names.iter().map(|name| vcpu(name, 0, 60_000_000)).collect::<Vec<_>>()), String::new());
        for key in keys {
            screen.key(key);
            let lines = screen.lines(width, height);
            prop_assert_eq!(lines.len(), height);
            for line in lines {
                prop_assert!(line.text.chars().count() <= width);
                prop_assert!(!line.text.contains(char::is_control));
            }
        }
    }
}
