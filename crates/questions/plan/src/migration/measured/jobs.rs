//! Jobs of libvirt that are no migration out of a host: a guest that is saved or dumped to a file, or comes in from another host.
//!
//! A guest that is saved stands still until it is written, one that is dumped too unless it is asked for live; of one that comes in the
//! source alone knows what is still dirtied. Source: virsh(1), save, dump and domjobinfo, libvirt 9.0.

use base::number::{bytes, duration};
use base::{Cell, Table, TableSpec, shown, table};
use host::migrated::Account;

pub(super) const JOBS: TableSpec = table! {
    migration.jobs version 1:
    "A job of libvirt other than a migration out of a host, when it was printed: what it is, what is left, and how fast it runs.";
    key_u64("") number, text job, text status, u64("bytes") left_bytes, u64("bytes") total_bytes, f64("bytes/s") written, ns took_ns;
    shown![
        "Other jobs", 12;
        job, status, left_bytes: "left", total_bytes: "of", written: "per second", took_ns: "so far",
    ]
};

pub(super) fn table(jobs: &[Account]) -> Table {
    let mut table = Table::new(&JOBS);
    for (number, job) in (0_u64..).zip(jobs) {
        let took = job.total_ms.map(|ms| ms.saturating_mul(1_000_000));
        table.push(vec![
            number.into(),
            job.job.clone().into(),
            job.status.as_str().into(),
            job.remaining_bytes.into(),
            job.total_bytes.into(),
            per_second(job).into(),
            took.map_or(Cell::Missing, Cell::U64),
        ]);
    }
    table
}

/// Its own rate, else the mean until now.
fn per_second(job: &Account) -> Option<f64> {
    let mean = || {
        let (done, ms) = (job.transferred_bytes?, job.total_ms.filter(|ms| *ms > 0)?);
        Some(done as f64 * 1e3 / ms as f64)
    };
    job.sent_bytes_per_s.or_else(mean)
}

/// `The job "save" goes on: 3.2 GB of 4.3 GB are left at 419.4 MB/s, 7.7 s at least; the guest stands still meanwhile.`
pub(super) fn sentence(job: &Account) -> String {
    let name = job.job.as_deref().unwrap_or("of libvirt");
    if job.status != "active" {
        let took = job.total_ms.map_or(String::new(), |ms| format!(" after {}", duration(ms as f64 * 1e6)));
        let why = job.error.as_ref().map_or(String::new(), |why| format!(": {why}"));
        return format!("The job \"{name}\" ended as {}{took}{why}.", job.status);
    }
    let mut said = format!("The job \"{name}\" goes on");
    if let Some(left) = job.remaining_bytes {
        let of = job.total_bytes.map_or(String::new(), |all| format!(" of {}", bytes(all as f64)));
        said += &format!(": {}{of} are left", bytes(left as f64));
        if let Some(rate) = per_second(job).filter(|rate| *rate > 0.0) {
            said += &format!(" at {}/s, {} at least", bytes(rate), duration(left as f64 / rate * 1e9));
        }
    }
    said + match name {
        "save" => "; the guest stands still meanwhile.",
        "dump" => "; the guest stands still meanwhile, unless it was asked for with --live.",
        "incoming migration" => "; what the guest still dirties the source alone knows: run virsh domjobinfo there.",
        _ => ".",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::migrated::account;

    #[test]
    fn a_job_says_what_is_left_and_what_it_does_to_the_guest() {
        let of = |what: &str, kind: &str| {
            let text = format!(
                "Job type: {kind}\nOperation: {what}\nTime elapsed: 2000 ms\nMemory processed: 1.000 GiB\nMemory remaining: 3.000 GiB\nMemory total: 4.000 GiB\n"
            );
            sentence(&account::read(&text)[0])
        };
        assert_eq!(
            of("Save", "Unbounded"),
            "The job \"save\" goes on: 3.2 GB of 4.3 GB are left at 536.9 MB/s, 6.0 s at least; the guest stands still meanwhile."
        );
        assert!(of("Incoming migration", "Unbounded").ends_with("run virsh domjobinfo there."));
        assert_eq!(of("Dump", "Completed"), "The job \"dump\" ended as completed after 2.0 s.");
    }
}
