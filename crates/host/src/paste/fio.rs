//! fio's text: what each job did, how fast, and how long its requests took.
//!
//! ```text
//! randwrite: (g=0): rw=randwrite, bs=(R) 4096B-4096B, .., ioengine=libaio, iodepth=1
//! randwrite: (groupid=0, jobs=1): err= 0: pid=2201: Mon Mar 11 11:20:11 2024
//!   write: IOPS=452, BW=1811KiB/s (1855kB/s)(53.1MiB/30002msec); 0 zone resets
//!     clat (usec): min=811, max=81202, avg=2190.11, stdev=2101.22
//!     clat percentiles (usec):
//!      |  1.00th=[  906],  5.00th=[ 1012], ..
//! ```
//! Source: HOWTO, "Interpreting the output", fio 3.33.

use super::{Pasted, Text};

/// How lines below the head of a job begin: those that are shown, and those that only belong to it.
const SHOWN: &[&str] =
    &["read:", "write:", "trim:", "slat (", "clat (", "lat (", "sync (", "cpu ", "IO depths ", "bw (", "iops "];
const OTHERS: &str = "clat percentiles|lat percentiles|slat percentiles|sync percentiles|fsync/fdatasync/sync_file_range:|submit |complete |\
    issued rwts:|latency |Run status|READ:|WRITE:|TRIM:|Disk stats|Starting |fio-|...";

/// The name in the head of a job.
fn job(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(": (")?;
    (rest.starts_with("g=") && rest.contains("rw=") || rest.starts_with("groupid=")).then_some(name)
}

/// A job, and everything below it that fio prints.
pub(super) fn jobs(text: &Text<'_>, at: usize, pasted: &mut Pasted) -> usize {
    let Some(mut name) = job(text.at(at)) else { return 0 };
    let (mut end, mut last) = (at, at);
    let (mut way, mut in_disks) = (String::new(), false);
    while end < text.lines.len() {
        let line = text.at(end);
        let begins = |known: &&str| line.starts_with(*known);
        if let Some(next) = job(line) {
            (name, in_disks) = (next, false);
            if let Some((_, asked)) = line.split_once("): ").filter(|(_, asked)| asked.contains("rw=")) {
                pasted.quote("fio was asked for", name, asked, text.place(end));
            }
        } else if let Some((head, told)) = line.split_once(':').filter(|_| SHOWN.iter().any(&begins)) {
            let head = head.trim();
            if head.starts_with("sync (") {
                way = "fsync and fdatasync".to_owned();
            }
            if matches!(head, "read" | "write" | "trim") {
                way = head.to_owned();
            }
            // These are of the job as a whole.
            if matches!(head, "cpu" | "IO depths") {
                way.clear();
            }
            let of = if way == head || way.is_empty() { String::new() } else { format!("{way}: ") };
            pasted.quote(&format!("fio, {of}{head}"), name, told.trim(), text.place(end));
        } else if line.contains("th=[") {
            let told = line.trim_start_matches('|').trim().trim_end_matches(',');
            let told = told.split_whitespace().collect::<Vec<_>>().join(" ").replace("[ ", "[");
            pasted.quote(&format!("fio, {way}: percentiles {}", unit(text, end)), name, &told, text.place(end));
        } else if line.starts_with("Disk stats") {
            in_disks = true;
        } else if let Some((disk, told)) = line.split_once(": ").filter(|_| in_disks && line.contains("ios=")) {
            pasted.quote("fio, the disk", disk, told, text.place(end));
        } else if !line.is_empty()
            && !line.starts_with("Jobs: ")
            && !OTHERS.split('|').any(|known| line.starts_with(known))
        {
            break;
        }
        end += 1;
        if !line.is_empty() {
            last = end;
        }
    }
    last - at
}

/// `(usec)` in the line above a row of percentiles.
fn unit(text: &Text<'_>, row: usize) -> String {
    let head = (0..row).rev().map(|line| text.at(line)).find(|line| !line.contains("th=[")).unwrap_or_default();
    head.split_once('(').map_or(String::new(), |(_, unit)| format!("({}", unit.trim_end_matches(':')))
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    #[test]
    fn a_job_says_how_fast_it_was_and_how_long_requests_took() {
        let text = "seqr: (g=0): rw=read, bs=(R) 64.0KiB-64.0KiB, ioengine=io_uring, iodepth=4\nfio-3.33\nStarting 1 process\n\n\
            seqr: (groupid=0, jobs=1): err= 0: pid=7: Tue Mar 11 09:41:22 2025\n  read: IOPS=1500, BW=93.8MiB/s (98.3MB/s)(2813MiB/30001msec)\n\
            \x20   clat (usec): min=80, max=900, avg=120.50, stdev=9.00\n    clat percentiles (usec):\n     | 50.00th=[  118], 99.00th=[  240],\n\
            \x20    | 99.99th=[  880]\n  cpu          : usr=1.00%, sys=2.00%\nDisk stats (read/write):\n  sdb: ios=45000/0, util=97.00%\n\nthat is all\n";
        let machine = read(&[("t".to_owned(), text.to_owned())]);
        assert_eq!(machine.sources[0].2, 1, "{:?}", machine.strange);
        let told: Vec<_> = machine
            .quoted
            .iter()
            .map(|told| (told.what.as_str(), told.subject.as_str(), told.value.as_str()))
            .collect();
        assert_eq!(
            told[0],
            ("fio was asked for", "seqr", "rw=read, bs=(R) 64.0KiB-64.0KiB, ioengine=io_uring, iodepth=4")
        );
        assert_eq!(told[1], ("fio, read", "seqr", "IOPS=1500, BW=93.8MiB/s (98.3MB/s)(2813MiB/30001msec)"));
        assert_eq!(told[2], ("fio, read: clat (usec)", "seqr", "min=80, max=900, avg=120.50, stdev=9.00"));
        assert_eq!(told[3], ("fio, read: percentiles (usec)", "seqr", "50.00th=[118], 99.00th=[240]"));
        assert_eq!(told[4].2, "99.99th=[880]");
        assert_eq!(told[6], ("fio, the disk", "sdb", "ios=45000/0, util=97.00%"));
    }

    #[test]
    fn a_sentence_about_a_job_is_none() {
        let machine = read(&[("t".to_owned(), "the job: (of fio) ran with rw=read\nread: IOPS=5\n".to_owned())]);
        assert!(machine.quoted.is_empty(), "{:?}", machine.quoted);
    }
}
