//! `kvm_stat -1` and its screen, of tracepoints or of debugfs:
//!
//! ```text
//! kvm statistics - summary
//!  Event                                         Total %Total CurAvg/s
//!  kvm_fpu                                      331506   26.6    16575
//!    HLT                                         10000    0.8      500
//!  Total                                       1114522           55725
//! ```
//! A row inside of another (`HLT`, or `kvm_exit(HLT)`) has its share of that one, never of all (`_refresh_body` in
//! tools/kvm/kvm_stat/kvm_stat, Linux 6.12).
//!
//! `-1` prints no head: `kvm_exit(HLT)   912300   9215`. The rows of `-d` are debugfs's counters, of which each counts something of its own: their shares mean nothing, and are left out.

use super::{Row, count};

pub(super) fn read(text: &str) -> (Vec<Row>, Option<f64>) {
    if let Some(read) = csv(text) {
        return read;
    }
    let lines = || text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let has_header = lines().any(|words| words.contains(&"%Total") && words.first() == Some(&"Event"));
    if !has_header {
        let rows: Vec<Row> = lines().filter_map(|words| batch(&words)).collect();
        let seconds = (!rows.is_empty()).then_some(1.0);
        return (rows, seconds);
    }
    let (mut rows, mut outer): (Vec<Row>, Vec<(String, u64)>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let Some(row) = row(&words, &outer) else { continue };
        if row.share_of.is_none() {
            outer.push((row.name.clone(), row.count));
        }
        rows.push(row);
    }
    (rows, None)
}

/// `kvm_stat -l -c`: a column for each counter, a row for each interval with what came in it (`CSVFormat` in tools/kvm/kvm_stat/kvm_stat, Linux
/// 6.12). How long an interval is the times say; of one row nobody knows.
fn csv(text: &str) -> Option<(Vec<Row>, Option<f64>)> {
    let cells = |line: &str| -> Vec<String> { line.split(',').map(|cell| cell.trim().to_owned()).collect() };
    let mut lines = text.lines().map(cells).skip_while(|cells| !cells[0].eq_ignore_ascii_case("timestamp"));
    let header = lines.next().filter(|header| header.len() > 1)?;
    let intervals: Vec<(Option<u64>, Vec<u64>)> = lines
        .map_while(|cells| {
            let counts: Option<Vec<u64>> = cells[1..].iter().map(|cell| cell.parse().ok()).collect();
            Some((second_of_day(&cells[0]), counts.filter(|counts| counts.len() + 1 == header.len())?))
        })
        .collect();
    let span = intervals.first()?.0.zip(intervals.last()?.0).and_then(|(first, last)| last.checked_sub(first));
    let span = span.filter(|span| *span > 0 && intervals.len() > 1).map(|span| span as f64);
    let seconds = span.map(|span| span / (intervals.len() - 1) as f64 * intervals.len() as f64);
    let rows = header.iter().skip(1).enumerate().map(|(column, name)| {
        let count = intervals.iter().map(|(_, counts)| counts[column]).fold(0, u64::saturating_add);
        Row { name: name.clone(), count, per_second: seconds.map(|seconds| count as f64 / seconds), ..Row::default() }
    });
    let mut rows: Vec<Row> = rows.filter(|row| row.count > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    Some((rows, seconds))
}

/// `2026-01-20 09:00:01`.
fn second_of_day(text: &str) -> Option<u64> {
    let time: Vec<u64> = text.rsplit(' ').next()?.split(':').map_while(|part| part.parse().ok()).collect();
    let [hours, minutes, seconds] = time[..] else { return None };
    Some((hours.min(24) * 60 + minutes.min(60)) * 60 + seconds.min(60))
}

/// A row of `kvm_stat -1`: the name, all since the start, and what came in one second (`batch` in tools/kvm/kvm_stat/kvm_stat, Linux 6.12).
fn batch(words: &[&str]) -> Option<Row> {
    let [name, total, more] = words else { return None };
    let (total, more) = (count(total)?, count(more)?);
    let name = name.strip_prefix("kvm_exit(").and_then(|name| name.strip_suffix(')')).unwrap_or(name);
    Some(Row { name: name.to_owned(), count: total, per_second: Some(more as f64), ..Row::default() })
}

/// A row of the screen; `outer` has those before it that are no part of another.
fn row(words: &[&str], outer: &[(String, u64)]) -> Option<Row> {
    let [name, total, rest @ ..] = words else { return None };
    // The sum has no share, and its average stands in that column.
    if *name == "Total" || rest.len() > 2 {
        return None;
    }
    let total = count(total)?;
    // Shares have a point, averages none; either may be missing.
    let is_share = |word: &&&str| word.contains(['.', ',']);
    let share = rest.first().filter(is_share).and_then(|share| share.replace(',', ".").parse::<f64>().ok());
    let average = rest.last().filter(|word| !is_share(word));
    if rest.is_empty() || share.is_none() && average.is_none() {
        return None;
    }
    let is_tracepoint = name.starts_with("kvm_");
    let within = match name.split_once('(') {
        Some((within, _)) => Some(within),
        None if !is_tracepoint => outer.last().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("kvm_")),
        None => None,
    };
    let of_outer = outer.iter().find(|(name, all)| within == Some(name.as_str()) && *all >= total);
    let share = match within {
        Some(_) => of_outer.map(|(_, all)| total as f64 / *all as f64),
        None => share.map(|share| share / 100.0).filter(|share| is_tracepoint && *share <= 1.0),
    };
    Some(Row {
        name: (*name).to_owned(),
        count: total,
        count_share: share,
        share_of: within.map(str::to_owned),
        per_second: average.and_then(|word| count(word)).map(|average| average as f64),
        ..Row::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_columns_has_rates_by_its_times() {
        let text = "timestamp,exits,io_exits,nmi_exits\n2026-01-20 09:00:01,100,70,0\n2026-01-20 09:00:03,300,130,0\n";
        let (rows, seconds) = read(text);
        assert_eq!(seconds, Some(4.0));
        let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.count, row.per_second)).collect();
        assert_eq!(told, [("exits", 400, Some(100.0)), ("io_exits", 200, Some(50.0))]);
        let one: String = text.split_inclusive('\n').take(2).collect();
        assert_eq!(read(&one).0[0].per_second, None);
    }
}
