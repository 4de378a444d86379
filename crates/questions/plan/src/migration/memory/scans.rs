//! Table `scans`: how fast one core tells which pages are zeros, beside reading them.

use base::bench::READ;
use base::number::{bytes, percent};
use base::{Cell, Table, TableSpec, shown, table};
use facts::benches::{Benches, ns_per_tick};
use facts::statistics::{launches, spread};

/// A page of memory.
const PAGE_BYTES: f64 = 4_096.0;
/// What a scan of memory should reach of what a core reads: with more, reading is what takes the time.
const BAR: f64 = 0.9;

/// Looking for zeros, and reading.
pub(crate) const SCANS: TableSpec = table! {
    migration.scans version 1:
    "How fast one core finds which pages of one content are zeros; `read` is reading them without comparing. `of_read` is the \
          rate to that of reading in the same launch.";
    key scan, key memory, key content, f64("ns") page_ns, f64("bytes/s") rate, f64("bytes/s") rate_low,
    f64("bytes/s") rate_high, f64("") of_read, count launches;
    shown![
        "How fast one core finds zeros", 60;
        scan: "way", memory: "in", content: "pages of", page_ns: "a page", rate, rate_low: "from", rate_high: "to",
        of_read: "of reading",
    ]
};

/// One of them over all launches.
#[derive(Debug, Clone)]
pub(super) struct Row {
    scan: String,
    memory: String,
    content: String,
    page_ns: Vec<f64>,
    launches: Vec<u32>,
    of_read: Option<f64>,
}

impl Row {
    fn page_ns(&self) -> Option<f64> {
        spread::median(&self.page_ns)
    }

    fn rate(&self) -> Option<f64> {
        Some(PAGE_BYTES / self.page_ns()? * 1e9)
    }
}

pub(super) fn rows(benches: &Benches) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for run in benches.runs.iter().filter(|run| run.bench.bench == "zeropages") {
        let Some(ns_per_tick) = ns_per_tick(&run.bench) else { continue };
        for measured in &run.bench.results {
            let params = &measured.params;
            let (Some(memory), Some(content)) = (&params.memory, &params.content) else { continue };
            let Some(cycles) = launches::median(measured) else { continue };
            let is = |row: &Row| row.scan == measured.name && row.memory == *memory && row.content == *content;
            let place = rows.iter().position(is).unwrap_or_else(|| {
                rows.push(Row {
                    scan: measured.name.clone(),
                    memory: memory.clone(),
                    content: content.clone(),
                    page_ns: Vec::new(),
                    launches: Vec::new(),
                    of_read: None,
                });
                rows.len() - 1
            });
            rows[place].page_ns.push(cycles * ns_per_tick);
            rows[place].launches.push(params.launch);
        }
    }
    let reads: Vec<Row> = rows.iter().filter(|row| row.scan == READ).cloned().collect();
    for row in &mut rows {
        let read = reads.iter().find(|read| read.memory == row.memory && read.content == row.content);
        let ratios = read.into_iter().flat_map(|read| {
            let of_launch = |launch: &u32| read.launches.iter().position(|other| other == launch);
            let pairs = row.launches.iter().zip(&row.page_ns);
            pairs.filter_map(move |(launch, page_ns)| Some(read.page_ns[of_launch(launch)?] / page_ns))
        });
        row.of_read = spread::median(&ratios.collect::<Vec<_>>());
    }
    rows
}

/// Table [`SCANS`].
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&SCANS);
    let rounded = |value: Option<f64>, grain: f64| Cell::from(value.map(|value| (value * grain).round() / grain));
    for row in rows {
        let (low, high) = spread::interval(&row.page_ns).unzip();
        let rate = |page_ns: Option<f64>| rounded(page_ns.map(|page_ns| PAGE_BYTES / page_ns * 1e9), 1.0);
        table.push(vec![
            row.scan.as_str().into(),
            row.memory.as_str().into(),
            row.content.as_str().into(),
            rounded(row.page_ns(), 100.0),
            rounded(row.rate(), 1.0),
            rate(high),
            rate(low),
            rounded(row.of_read, 1e4),
            (row.page_ns.len() as u64).into(),
        ]);
    }
    table
}

/// The answer in sentences: from memory, and from the cache.
pub(super) fn summary(rows: &[Row]) -> Vec<String> {
    let zeros = |memory: &str| {
        let row = rows.iter().find(|row| row.memory == memory && row.content == "zeros" && row.scan != READ)?;
        Some((row, row.rate()?))
    };
    let mut sentences = Vec::new();
    for (memory, from) in [("memory", "memory"), ("cache", "the cache")] {
        let Some((row, rate)) = zeros(memory) else { continue };
        let bar = match row.of_read.filter(|_| memory == "memory") {
            // The reading it is held against was slower still: a program without optimization.
            Some(of_read) if of_read > 2.0 - BAR => "",
            Some(of_read) if of_read >= BAR => ": reading is what takes the time",
            Some(_) => ": looking takes time as well",
            None => "",
        };
        let of_read =
            row.of_read.map_or(String::new(), |of_read| format!(", {} of what it reads{bar}", percent(of_read)));
        sentences.push(format!("From {from} one core finds zeros at {}/s{of_read}.", bytes(rate)));
    }
    if let Some((_, rate)) = zeros("memory") {
        // What a migration has to look at even if nothing is sent.
        sentences.push(format!(
            "To look through 8 GiB of zeros takes one core {}.",
            base::number::duration(8.0 * 1_073_741_824.0 / rate * 1e9)
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::bench::{Bench, Measured, NS_PER_TICK, Params};
    use base::{Histogram, Level};
    use facts::benches::BenchRun;
    use std::collections::BTreeMap;

    fn measured(name: &str, launch: u32, page_cycles: u64) -> Measured {
        let params = Params {
            launch,
            operations: Some(256),
            memory: Some("memory".into()),
            content: Some("zeros".into()),
            ..Params::default()
        };
        let mut all = Histogram::new();
        (0..9).for_each(|_| all.record(page_cycles * 256));
        Measured { name: name.into(), params, unit: "cycles".into(), hdr: all.buckets(), ..Measured::default() }
    }

    fn rows_of(results: Vec<Measured>) -> Vec<Row> {
        let environment = BTreeMap::from([(NS_PER_TICK.to_owned(), "0.5".to_owned())]);
        let bench = Bench { results, ..Bench::new("zeropages", environment) };
        let run = BenchRun { machine: "L0".into(), level: Level::L0, bench };
        rows(&Benches { runs: vec![run], ..Benches::default() })
    }

    #[test]
    fn a_rate_is_held_against_reading_in_the_same_launch() {
        // The machine was half as fast in each launch as in the one before: for both. So no other launch beside gives the same median.
        let results = [(0, 1_000), (1, 2_000), (2, 4_000)];
        let both = results
            .into_iter()
            .flat_map(|(launch, cycles)| [measured("words", launch, cycles * 10 / 8), measured(READ, launch, cycles)]);
        let rows = rows_of(both.collect());
        let table = table(&rows);
        let row = table.rows().find(|row| row.text("scan") == Some("words")).unwrap();
        // Histograms round to 0.1 %.
        assert!((row.number("of_read").unwrap() - 0.8).abs() < 0.002, "{row:?}");
        assert!((row.number("page_ns").unwrap() - 1_250.0).abs() < 2.0);
        assert!((row.number("rate").unwrap() / (4_096.0 / 1_250e-9) - 1.0).abs() < 0.002);
        assert!(
            summary(&rows)[0].contains("80.0 % of what it reads: looking takes time as well"),
            "{:?}",
            summary(&rows)
        );
    }

    #[test]
    fn what_was_not_read_beside_has_no_ratio() {
        let rows = rows_of(vec![measured("words", 0, 1_000)]);
        assert_eq!(table(&rows).cell(0, "of_read"), Some(&Cell::Missing));
        assert!(summary(&rows)[0].ends_with("/s."), "{:?}", summary(&rows));
    }
}
