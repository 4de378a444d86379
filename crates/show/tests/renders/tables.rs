//! Any table on any page: aligned, no wider than the page, its numbers whole.

use base::table::{Across, Shown, TableSpec};
use base::{Cell, Column, Section, Table, shown};
use kvmscope_show::text::{Page, render};
use proptest::prelude::*;

/// A table of these columns; its numbers have up to 12 digits, and print with separators where their unit is `count`.
fn of_columns(columns: Vec<Column>, most_rows: usize) -> Table {
    let heading = |column: &Column| -> &'static str { format!("the {} of it", column.name).leak() };
    let headings: Vec<(&str, &str)> = columns.iter().map(|column| (column.name, heading(column))).collect();
    let shown = Some(Shown { bar: Some("count"), ..Shown::of("Any table", headings.leak(), most_rows) });
    let spec = TableSpec { section: "flow", name: "t", version: 1, row: "Anything.", columns: columns.leak(), shown };
    Table::new(Box::leak(Box::new(spec)))
}

fn table(rows: &[(String, u64, u64)], names: usize, most_rows: usize) -> Table {
    let name = |n: usize| Column::key(["name0", "name1", "name2", "name3"][n]);
    let columns = (0..names).map(name).chain([Column::u64("tid", ""), Column::count("count")]);
    let mut table = of_columns(columns.collect(), most_rows);
    for (name, tid, count) in rows {
        let mut row: Vec<Cell> = (0..names).map(|_| name.as_str().into()).collect();
        row.extend([Cell::U64(*tid), Cell::U64(*count)]);
        table.push(row);
    }
    table
}

proptest! {
    #[test]
    fn fit_the_page_and_keep_their_numbers(
        rows in prop::collection::vec(("[a-z漢\u{7} -]{0,60}", 0..1_000_000_000_000u64, 0..1_000u64), 1..12),
        names in 1..5usize,
        most_rows in 1..14usize,
        width in 50..220usize,
    ) {
        let mut section = Section::new("flow", "?");
        section.tables.push(table(&rows, names, most_rows));
        let text = render(&[section], &[], &Page { width, colour: false, ascii: false });
        let columns = |line: &str| unicode_width::UnicodeWidthStr::width(line);
        for line in text.lines() {
            prop_assert!(columns(line) <= width, "{} columns: {}", width, line);
        }
        // A column that does not fit is named instead.
        let words: Vec<&str> = text.split_whitespace().collect();
        let end = words.join(" ").split_once(" + ").map_or(String::new(), |(_, end)| end.to_owned());
        let left_out = |name: &str| end.contains(&format!("the {name} of it"));
        for (_, tid, count) in rows.iter().take(most_rows) {
            prop_assert!(left_out("tid") || words.contains(&tid.to_string().as_str()), "{}", text);
            prop_assert!(left_out("count") || words.contains(&count.to_string().as_str()), "{}", text);
        }
        let missing = rows.len().saturating_sub(most_rows);
        prop_assert_eq!(text.contains("more row"), missing > 0);
    }
}

#[test]
fn names_stay_whole_before_columns_and_sentences_take_lines() {
    let columns = ["a", "b", "c", "d"].map(Column::text);
    let mut table = of_columns([&[Column::key("name")][..], &columns].concat(), 9);
    let sentence = "what was computed here, and what speaks against it in all that was published";
    for name in ["pci-io-wildcard-eventfd", "pci-io-datamatch-eventfd"] {
        table.push(vec![name.into(), sentence.into(), "x".repeat(14).into(), "y".repeat(14).into(), "z".into()]);
    }
    let columns = &[("name", "name"), ("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")];
    table.shown = Some(Shown::of("Any table", columns, 9));
    let mut section = Section::new("flow", "?");
    section.tables.push(table);
    for width in [72, 80, 100] {
        let text = render(&[section.clone()], &[], &Page { width, colour: false, ascii: false });
        assert!(text.contains("pci-io-wildcard-eventfd ") && text.contains("pci-io-datamatch-eventfd "), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        for word in sentence.split(' ') {
            assert!(words.iter().filter(|one| **one == word).count() >= 2, "{word}: {text}");
        }
    }
}

#[test]
fn columns_that_stay_whole_take_lines_and_others_give_way() {
    let metrics = ["EXTERNAL_INTERRUPT, L1 exits per chain", "L1 CR, exits/s"];
    let columns = [Column::key("name0"), Column::u64("tid", ""), Column::count("count")];
    let mut table = of_columns([&columns[..], &[Column::text("verdict")]].concat(), 30);
    for name in metrics.into_iter().cycle().take(20) {
        table.push(vec![name.into(), 123_456_789_012u64.into(), 7u64.into(), "noise could explain it".into()]);
    }
    table.shown.as_mut().unwrap().whole = &["name0", "verdict"];
    let mut section = Section::new("flow", "?");
    section.tables.push(table);
    for width in [50, 60, 80, 100] {
        let text = render(std::slice::from_ref(&section), &[], &Page { width, colour: false, ascii: false });
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!text.contains('…') && text.contains("verdict"), "{width}: {text}");
        assert!(words.contains("explain it") && words.contains("per chain"), "{width}: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
    }
}

#[test]
fn each_group_is_a_table_of_its_own() {
    let rows = [("L0", 3), ("L1", 9), ("L0", 1)].map(|(name, count)| (name.to_owned(), 5, count));
    let mut table = table(&rows, 1, 14);
    table.shown.as_mut().unwrap().grouped_by = Some("name0");
    let mut section = Section::new("flow", "?");
    section.tables.push(table);
    let text = render(&[section], &[], &Page { width: 100, colour: false, ascii: false });
    assert_eq!(text.matches("ANY TABLE").count(), 2, "{text}");
    assert!(text.contains("75.0 %") && text.contains("25.0 %") && text.contains("100 %"), "{text}");
}

#[test]
fn rows_that_differ_in_one_column_stand_side_by_side_and_empty_columns_are_left_out() {
    let columns = [Column::key("machine"), Column::key("feature"), Column::text("state"), Column::text("note")];
    let mut table = of_columns([&columns[..], &[Column::text("nothing")]].concat(), 9);
    for (machine, feature, state) in
        [(Some("L0"), "ept", "on"), (Some("L0"), "vpid", "on"), (Some("L1"), "vpid", "off"), (None, "vpid", "unknown")]
    {
        table.push(vec![
            machine.into(),
            feature.into(),
            state.into(),
            format!("what {feature} is").into(),
            Cell::Missing,
        ]);
    }
    let shown = shown!["Any table", 9; feature, note, nothing];
    table.shown = Some(Shown { across: Some(Across { by: "machine", cell: "state", after: 1 }), ..shown });
    let mut section = Section::new("flow", "?");
    section.tables.push(table);
    let text = render(&[section], &[], &Page { width: 100, colour: false, ascii: false });
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for line in ["feature L0 L1 note", "ept on - what ept is", "vpid on off what vpid is"] {
        assert!(words.contains(&line.split(' ').collect()), "{line}: {text}");
    }
    assert!(!text.contains("nothing") && !text.contains("unknown"), "{text}");
}
