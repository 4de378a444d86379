//! KVM's own counters as files: `/sys/kernel/debug/kvm/exits:123456` of grep, or `==> .../exits <==` of head, and the next line.
//!
//! They are sums since the module was loaded, of all VMs, or of the one whose folder (`PID-FD`) they are in.

use super::{Row, count};

/// Where they lie.
const ROOT: &str = "/sys/kernel/debug/kvm/";

pub(super) fn read(text: &str) -> (Vec<Row>, Option<f64>) {
    let mut rows: Vec<Row> = Vec::new();
    let mut headed: Option<String> = None;
    for line in text.lines() {
        let line = line.trim();
        let inside = line.split_once(ROOT).map(|(_, inside)| inside);
        let told = match inside {
            Some(inside) => match inside.split_once(':') {
                Some((name, value)) => count(value.trim()).map(|count| (name.to_owned(), count)),
                None => {
                    headed = Some(inside.trim_end_matches(" <==").trim().to_owned());
                    None
                }
            },
            None => headed.take().zip(count(line)),
        };
        rows.extend(told.map(|(name, count)| Row { name, count, ..Row::default() }));
    }
    (rows, None)
}
