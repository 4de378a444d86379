//! What each way to move the guest would take, and what it costs.

use super::memory::Looked;
use super::model::methods::{Postcopy, Throttled};
use super::model::passes::{Course, Setting};
use super::predict::{Asked, Prediction};
use base::method::Method;
use base::number::{counted, duration, percent};
use base::{Cell, Table, TableSpec, shown, table};

pub(super) const METHODS: TableSpec = table! {
    migration.methods version 1:
    "The prediction for one way to move the guest: the total time, the longest that it is dark, and the most that it loses of its own \
          time, dark time included; null is never. Of compression it knows only what a survey of the guest's memory measured.";
    key method, f64("ns") low_ns, f64("ns") high_ns, f64("ns") dark_ns, f64("ns") lost_ns, text price;
    shown![
        "What each way takes", 10;
        method, low_ns: "in all from", high_ns: "to", dark_ns: "dark up to", lost_ns: "guest loses up to", price,
    ]
};

/// One way; seconds, `None` is never.
struct Way {
    method: Method,
    low_s: Option<f64>,
    high_s: Option<f64>,
    dark_s: Option<f64>,
    lost_s: Option<f64>,
    price: String,
}

/// All ways of which the model knows enough.
pub(super) fn table(asked: &Asked, said: &Prediction, looked: &Looked) -> Table {
    let mut table = Table::new(&METHODS);
    let ways =
        [Some(precopy(said)), Some(postcopy(asked, said)), Some(auto_converge(asked, said)), zstd(asked, looked)];
    for Way { method, low_s, high_s, dark_s, lost_s, price } in ways.into_iter().flatten() {
        let ns = |seconds: Option<f64>| seconds.map_or(Cell::Missing, |seconds| Cell::F64(seconds * 1e9));
        table.push(vec![method.name().into(), ns(low_s), ns(high_s), ns(dark_s), ns(lost_s), price.into()]);
    }
    table
}

fn precopy(said: &Prediction) -> Way {
    let dark_s = said.downtime_s.high;
    Way {
        method: Method::Precopy,
        low_s: said.total_s.low,
        high_s: said.total_s.high,
        dark_s,
        lost_s: dark_s,
        price: match (said.total_s.low, said.total_s.high) {
            (None, _) => "never ends",
            (Some(_), None) => "may never end",
            _ => "",
        }
        .to_owned(),
    }
}

fn postcopy(asked: &Asked, said: &Prediction) -> Way {
    let most = Postcopy::of(&asked.setting, &said.at_sync);
    let least = Postcopy::of(&asked.setting, &said.middle);
    let soonest = Course::cleared_at_sync(&asked.setting, asked.even()[0]);
    let soonest_s = Postcopy::of(&asked.setting, &soonest).total_s;
    let [least_s, most_s] = asked.devices_s.map(|devices_s| devices_s + asked.setup_s);
    let pages = counted(most.pages.ceil() as u64, "page", "pages");
    Way {
        method: Method::Postcopy,
        low_s: Some(least.total_s.min(most.total_s).min(soonest_s) + least_s),
        high_s: Some(most.total_s + most_s),
        dark_s: Some(asked.devices_s[1]),
        // Each page that it lacks is waited for once at most.
        lost_s: Some(most.left_s + asked.devices_s[1]),
        price: format!("waits for up to {pages}; a side or link that fails takes the guest with it; no VFIO"),
    }
}

fn auto_converge(asked: &Asked, said: &Prediction) -> Way {
    let throttled = Throttled::of(&asked.setting, asked.even()[1]);
    let dark_s = throttled.course.last_s().map(|_| asked.setting.limit_s + asked.devices_s[1]);
    let total_s = throttled.course.total_s().map(|total_s| total_s + asked.setup_s + asked.devices_s[1]);
    Way {
        method: Method::AutoConverge,
        low_s: [said.total_s.low, total_s].into_iter().flatten().reduce(f64::min),
        high_s: total_s,
        dark_s,
        lost_s: dark_s.map(|dark_s| dark_s + throttled.taken_s),
        price: match total_s {
            _ if throttled.most == 0.0 => "takes nothing: it ends before".to_owned(),
            Some(_) => format!("takes up to {} of the guest's time", percent(throttled.most)),
            None => format!("takes up to {} of the guest's time, for nothing", percent(throttled.most)),
        },
    }
}

/// What goes over is what so many channels compress, or what the link carries of it compressed, whichever is less.
fn zstd(asked: &Asked, looked: &Looked) -> Option<Way> {
    let (channels, survey) = (looked.compressing_channels?, looked.survey.as_ref()?);
    let compressed = survey.compressed.as_ref()?;
    let cores_bytes_per_s = f64::from(channels) * compressed.bytes_per_s;
    let bytes_per_s = cores_bytes_per_s.min(asked.setting.bytes_per_s * compressed.ratio);
    let setting = Setting { bytes_per_s, ..asked.setting.clone() };
    let said = Prediction::of(&Asked { setting, senders: Vec::new(), ..asked.clone() });
    let cores = counted(channels.into(), "core", "cores");
    let cpu_s = said.bytes.high.map(|bytes| bytes / compressed.bytes_per_s);
    Some(Way {
        method: Method::Zstd,
        price: match cpu_s {
            Some(cpu_s) => format!("up to {} of CPU time on {cores}", duration(cpu_s * 1e9)),
            None => format!("{cores} for as long as it is tried"),
        },
        ..precopy(&said)
    })
}

#[cfg(test)]
mod tests {
    use super::super::model::working_set::WorkingSet;
    use super::super::predict::Order;
    use super::super::predict::tests::asked;
    use super::*;

    #[test]
    fn a_guest_that_never_converges_has_ways_that_end_and_each_says_what_it_takes() {
        let asked = Asked { devices_s: [0.001, 0.004], ..asked(WorkingSet::Cyclic, 60_000.0, Order::Unknown) };
        let table = table(&asked, &Prediction::of(&asked), &Looked::default());
        let of = |row: usize, column: &str| &table.rows[row][table.column(column).unwrap()];
        assert_eq!((of(0, "high_ns"), of(0, "price")), (&Cell::Missing, &"never ends".into()));
        assert_eq!((of(1, "method"), of(1, "dark_ns")), (&"postcopy".into(), &Cell::F64(4e6)));
        let Cell::F64(lost_ns) = of(1, "lost_ns") else { panic!("{table:?}") };
        assert_eq!((lost_ns / 1e5).round(), 3_402.0, "16,384 pages at 200 MB/s, and the devices");
        assert_eq!(of(2, "price"), &"takes up to 30.0 % of the guest's time".into());
        let (Cell::F64(total_ns), Cell::F64(lost_ns)) = (of(2, "high_ns"), of(2, "lost_ns")) else {
            panic!("{table:?}")
        };
        assert!(lost_ns > &0.0 && lost_ns < &(0.3 * total_ns));
        assert_eq!(table.rows.len(), 3, "nobody measured how well its memory compresses");
    }
}
