//! `mpstat -o JSON`: how each CPU was used; of several intervals the last counts.
//!
//! Source: sysstat 12.6, mpstat.c (`write_json_cpu_stats`).

use super::{Pasted, Text, json, totals};

/// `{"sysstat": {"hosts": [{.. "statistics": [{"cpu-load": [{"cpu": "all", "usr": 2.01, ..`.
pub(super) fn mpstat(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some((value, lines)) = json::object(text, at, "sysstat", pasted) else { return 0 };
    for host in value["sysstat"]["hosts"].as_array().into_iter().flatten() {
        if let Some(count) = host["number-of-cpus"].as_u64().and_then(|count| u32::try_from(count).ok()) {
            pasted.count_cpus(count, text.place(at));
        }
        for interval in host["statistics"].as_array().into_iter().flatten() {
            for row in interval["cpu-load"].as_array().into_iter().flatten() {
                // mpstat calls them as its table does, without the sign of percent.
                let told = totals::of_percents(|names| row[names[1].trim_start_matches('%')].as_f64());
                let (Some(told), Some(cpu)) = (told, row["cpu"].as_str()) else { continue };
                match cpu.parse::<u32>() {
                    Ok(cpu) if cpu < base::cpus::MOST_CPUS => {
                        pasted.machine.cpu_use.insert(cpu, told.shares);
                        pasted.uses = text.place(at);
                    }
                    Ok(_) => {}
                    Err(_) if cpu == "all" => pasted.total(text.fact(told, at)),
                    Err(_) => {}
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn every_cpu_is_told() {
        let row = |cpu: &str, soft: f64, idle: f64| {
            format!(
                "{{\"cpu\": \"{cpu}\", \"usr\": 1.00, \"sys\": 4.00, \"iowait\": 0.00, \"irq\": 1.00, \"soft\": {soft}, \"steal\": 0.00, \"guest\": 9.00, \"idle\": {idle}}}"
            )
        };
        let text = format!(
            "{{\"sysstat\": {{\n\"hosts\": [\n{{\"nodename\": \"h\", \"number-of-cpus\": 2,\n\"statistics\": [\n{{\"timestamp\": \"10:11:02\",\n\"cpu-load\": [\n{},\n{},\n{}\n]}}]}}]}}}}\n",
            row("all", 40.0, 45.0),
            row("0", 71.0, 1.0),
            row("1", 2.0, 80.0)
        );
        let machine = read(&[("t".to_owned(), text)]);
        assert_eq!(machine.sources[0].2, 0, "{:?}", machine.strange);
        assert_eq!((machine.cpu_use[&0].softirq, machine.total_use[0].value.shares.softirq), (0.71, 0.4));
    }
}
