//! Any table on any page: aligned, no wider than the page, its numbers whole.

use base::table::Shown;
use base::{Cell, Column, ColumnType, Section, Table};
use kvmscope_show::text::{Page, render};
use proptest::prelude::*;

/// Numbers of up to 12 digits; with unit `count` they print with separators, without one as they are.
fn table(rows: &[(String, u64, u64)], names: usize, most_rows: usize) -> Table {
    let mut columns: Vec<Column> = (0..names).map(|n| Column::key(&format!("name{n}"))).collect();
    columns.push(Column::value("tid", "", ColumnType::U64));
    columns.push(Column::value("count", "count", ColumnType::U64));
    let headings = columns.iter().map(|column| (column.name.clone(), format!("the {} of it", column.name))).collect();
    let mut table = Table::new("t", columns);
    for (name, tid, count) in rows {
        let mut row: Vec<Cell> = (0..names).map(|_| name.as_str().into()).collect();
        row.extend([Cell::U64(*tid), Cell::U64(*count)]);
        table.push(row);
    }
    table.shown = Some(Shown {
        title: "Any table".into(),
        columns: headings,
        most_rows,
        bar: Some("count".into()),
        ..Shown::default()
    });
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
    let texts = |name: &str| Column { key: false, ..Column::key(name) };
    let mut table = Table::new("any", vec![Column::key("name"), texts("a"), texts("b"), texts("c"), texts("d")]);
    let sentence = "what was computed here, and what speaks against it in all that was published";
    for name in ["pci-io-wildcard-eventfd", "pci-io-datamatch-eventfd"] {
        table.push(vec![name.into(), sentence.into(), "x".repeat(14).into(), "y".repeat(14).into(), "z".into()]);
    }
    let columns = ["name", "a", "b", "c", "d"].map(|name| (name.to_owned(), name.to_owned())).into();
    table.shown = Some(Shown { title: "Any table".into(), columns, most_rows: 9, ..Shown::default() });
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
    let rows: Vec<(String, u64, u64)> =
        metrics.into_iter().cycle().take(20).map(|name| (name.to_owned(), 123_456_789_012, 7)).collect();
    let mut table = table(&rows, 1, 30);
    table.columns.push(Column::value("verdict", "", ColumnType::Text));
    table.rows.iter_mut().for_each(|row| row.push("noise could explain it".into()));
    let shown = table.shown.as_mut().unwrap();
    shown.columns.push(("verdict".into(), "verdict".into()));
    shown.whole = vec!["name0".into(), "verdict".into()];
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
    table.shown.as_mut().unwrap().grouped_by = Some("name0".into());
    let mut section = Section::new("flow", "?");
    section.tables.push(table);
    let text = render(&[section], &[], &Page { width: 100, colour: false, ascii: false });
    assert_eq!(text.matches("ANY TABLE").count(), 2, "{text}");
    assert!(text.contains("75.0 %") && text.contains("25.0 %") && text.contains("100 %"), "{text}");
}
