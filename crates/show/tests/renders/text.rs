//! What people read: whole, aligned, no wider than the page, and the same words in every width.

use crate::sample;
use base::{Problem, Section};
use kvmscope_show::text::{Page, render};

fn page(width: usize) -> String {
    render(&[sample::section()], &sample::problems(), &Page { width, colour: false, ascii: false })
}

/// Columns of a line, as these pages contain no character that is wider than one.
fn columns(line: &str) -> usize {
    line.chars().count()
}

#[test]
fn pages_of_four_widths_look_as_they_should() {
    for width in [60, 80, 100, 200] {
        insta::assert_snapshot!(format!("page_{width}"), page(width));
    }
}

#[test]
fn no_line_is_wider_than_the_page_except_what_is_to_be_pasted() {
    let section = sample::section();
    let commands: Vec<&String> = section.findings.iter().flat_map(|f| f.fix.iter().chain(&f.undo)).collect();
    for width in 50..=210 {
        for line in page(width).lines() {
            let pasted =
                commands.iter().any(|command| line.ends_with(command.as_str())) || line.contains("kvmscope compare");
            let path = !line.trim().contains(' ') && line.contains('/');
            assert!(pasted || path || columns(line) <= width, "{width} columns: {line}");
        }
    }
}

#[test]
fn titles_and_whole_commands_stand_in_every_width() {
    let section = sample::section();
    for width in [50, 60, 80, 100, 200] {
        let text = page(width);
        let words: Vec<&str> = text.split_whitespace().collect();
        let words = words.join(" ");
        for finding in &section.findings {
            assert!(words.contains(&finding.title), "{width}: {}", finding.title);
            for command in finding.fix.iter().chain(&finding.undo) {
                assert!(text.lines().any(|line| line.ends_with(command.as_str())), "{width}: {command}");
            }
        }
        assert!(words.contains(&section.summary), "{width}");
    }
}

#[test]
fn a_cut_table_says_how_much_is_missing() {
    assert!(page(100).contains("+ 1 more row, see --json or --csv"));
    let narrow = page(60);
    assert!(narrow.contains("+ 1 more row, column longest"), "{narrow}");
}

#[test]
fn colour_adds_nothing_but_colour() {
    let coloured = render(&[sample::section()], &sample::problems(), &Page { width: 100, colour: true, ascii: false });
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trimmed: Vec<&str> = plain.lines().map(str::trim_end).collect();
    let expected = page(100);
    assert_eq!(trimmed, expected.lines().collect::<Vec<_>>());
    assert!(coloured.contains("\x1b[1;31mhigh"), "the worst severity is red");
}

#[test]
fn names_from_the_traced_machine_cannot_command_the_terminal() {
    let mut section = sample::section();
    let evil = "\x1b]0;owned\x07\x1b[2J";
    section.summary = format!("summary {evil}");
    section.about.push(evil.into());
    section.next.push(evil.into());
    section.findings[0].title = evil.into();
    section.findings[0].fix.push(evil.into());
    section.tables[0].rows[0][0] = evil.into();
    section.tables[0].rows[1][3] = evil.into();
    let base::figure::Drawing::Bars(groups) = &mut section.figures[0].drawing else { unreachable!() };
    groups[0].title = evil.into();
    groups[0].bars[0].label = evil.into();
    groups[0].bars[0].note = evil.into();
    let problems = [Problem::at(evil, None, evil, evil, 0, evil)];
    let text = render(&[section], &problems, &Page::default());
    let control = text.chars().find(|character| character.is_control() && *character != '\n');
    assert_eq!(control, None, "{text:?}");
}

#[test]
fn an_empty_answer_is_an_empty_page() {
    assert_eq!(render(&[Section::new("flow", "?")], &[], &Page::default()), "");
}

#[test]
fn several_groups_share_one_scale_and_too_many_are_counted() {
    let mut section = Section::new("flow", "?");
    let mut figure = sample::section().figures.remove(0);
    let base::figure::Drawing::Bars(groups) = &mut figure.drawing else { unreachable!() };
    groups[0].bars.truncate(2);
    for vcpu in 1..10 {
        let mut group = groups[0].clone();
        group.title = format!("vm nestv-98 (assumed)   vCPU {vcpu}   tid {}", 98 + vcpu);
        group.bars[0].value /= 2.0;
        groups.push(group);
    }
    section.figures.push(figure);
    let text = render(&[section], &[], &Page { width: 80, colour: false, ascii: false });
    insta::assert_snapshot!("groups", text);
    assert!(text.contains("+ 2 more like these"));
}

#[test]
fn shares_of_different_things_are_said_once_and_add_up_to_nothing() {
    let mut section = Section::new("datapath", "?");
    let mut figure = sample::section().figures.remove(0);
    let base::figure::Drawing::Bars(groups) = &mut figure.drawing else { unreachable!() };
    (groups[0].unit, groups[0].total) = ("share", 1.0);
    groups[0].bars.truncate(2);
    (groups[0].bars[0].value, groups[0].bars[1].value) = (1.0, 0.625);
    section.figures.push(figure);
    let text = render(&[section.clone()], &[], &Page { width: 80, colour: false, ascii: false });
    assert_eq!((text.matches("100 %").count(), text.matches("62.5 %").count()), (1, 1), "{text}");
}

#[test]
fn several_sections_are_told_apart_and_say_what_is_next_once() {
    let text = render(&[sample::section(), sample::section()], &[], &Page::default());
    // Each question stands above its answer; its figures and tables have a short heading.
    assert_eq!(text.matches("Where did each vCPU's time go, by level?").count(), 2);
    assert_eq!(text.matches(" FLOW IN DETAIL").count(), 2);
    assert_eq!(text.matches("Next:").count(), 1);
    assert_eq!(text.matches("kvmscope compare").count(), 1);
}

#[test]
fn findings_of_all_sections_are_one_list_worst_first() {
    let (mut first, mut second) = (sample::section(), sample::section());
    first.findings.truncate(2);
    second.findings.truncate(1);
    (first.findings[0].severity, first.findings[0].title) = (base::Severity::Medium, "the medium one".into());
    (first.findings[1].severity, first.findings[1].title) = (base::Severity::Info, "one to know".into());
    (second.findings[0].severity, second.findings[0].title) = (base::Severity::High, "the worst".into());
    second.findings[0].rule = "PLC-OVERCOMMIT";
    let text = render(&[first, second], &[], &Page::default());
    assert_eq!(text.matches(" FINDINGS\n").count(), 1);
    let at = |title: &str| text.find(title).unwrap();
    assert!(at("the worst") < at("the medium one") && at("the medium one") < at("one to know"), "{text}");
    let column = |title: &str| text.lines().find_map(|line| line.find(title)).unwrap();
    assert_eq!(column("the worst"), column("the medium one"), "a long name of a rule moves the titles of all");
}
