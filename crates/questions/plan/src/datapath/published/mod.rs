//! What others measured, and what the model says of the same.
//!
//! Each point is a row of data: what was published and where, the model's own arithmetic for it, and what the comparison is worth.
//! A point that a constant was fitted to never counts as evidence for the model.

mod conclusions;
mod models;
mod others;
mod talk;

pub(super) use conclusions::{CONCLUDED, concluded, summary};

use super::model::design::{Datapath, Pattern};
use base::table::{Shown, TableSpec};
use base::{Cell, Column, ColumnType, Table};

/// What a comparison is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// A constant of the model was taken from this very number, or from its bed.
    Fitted,
    /// The model did not know it, and comes near.
    Validated,
    /// The model is a ceiling, and the number lies below it.
    Bound,
    /// The model is wrong there.
    Fails,
}

/// What a point counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Counted {
    /// Frames of so many bytes with their check sequence.
    Frames(f64),
    /// Messages of a stream socket, of which a frame holds many or a part: never frames.
    Messages(f64),
    /// Something else, such as a length.
    Other,
}

/// A published number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// Stable id.
    pub id: &'static str,
    /// What was measured, where one design was.
    pub of: Option<(Datapath, Pattern)>,
    /// VMs that forwarded.
    pub vnfs: Option<u32>,
    /// Of what size.
    pub counted: Counted,
    /// The number.
    pub published: f64,
    /// Its unit.
    pub unit: &'static str,
    /// What the model says; `None` where it says nothing.
    pub model: fn() -> Option<f64>,
    /// What the comparison is worth; `None` where there is none.
    pub status: Option<Status>,
    /// What the comparison rests on, or the question that is open behind it.
    pub note: &'static str,
    /// Where it was published.
    pub source: &'static str,
}

/// Units of rates: of all VMs together, of each, and bits of frames with their check sequence and without.
const MPPS: &str = "Mpps";
const EACH: &str = "Mpps of each VM";
const GBPS: &str = "Gb/s";
const BARE: &str = "Gb/s without FCS";

/// Every point, in reading order.
pub(super) fn points() -> impl Iterator<Item = &'static Point> {
    talk::ROWS.iter().chain(talk::NETPERF).chain(others::ROWS)
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Fitted => "fitted",
            Status::Validated => "validated",
            Status::Bound => "bound",
            Status::Fails => "fails",
        }
    }
}

impl Point {
    /// The size of its frames; messages have none.
    pub fn frame_bytes(&self) -> Option<f64> {
        match self.counted {
            Counted::Frames(bytes) => Some(bytes),
            Counted::Messages(_) | Counted::Other => None,
        }
    }

    /// The number as Mpps of all VMs together, where it is a rate of so many.
    pub fn system_mpps(&self) -> Option<f64> {
        let (bytes, vnfs) = (self.frame_bytes()?, f64::from(self.vnfs?));
        match self.unit {
            MPPS => Some(self.published),
            EACH => Some(self.published * vnfs),
            GBPS => Some(self.published * 1e3 / 8.0 / bytes),
            BARE => Some(self.published * 1e3 / 8.0 / (bytes - 4.0)),
            _ => None,
        }
    }

    /// Model against publication, as a share.
    pub fn error(&self) -> Option<f64> {
        Some((self.model)()? / self.published - 1.0)
    }
}

/// Model against publication.
pub(super) const VALIDATE: TableSpec = TableSpec {
    section: "datapath",
    name: "validate",
    version: 1,
    row: "One number that somebody published, and what the model says of the same.",
    columns: &[
        Column::key("point"),
        Column::value("model", "", ColumnType::F64),
        Column::value("published", "", ColumnType::F64),
        Column::text("unit"),
        Column::share("error"),
        Column::text("status"),
        Column::text("note"),
        Column::text("source"),
    ],
    shown: Some(Shown::of(
        "The model compared with what others measured",
        &[
            ("point", "point"),
            ("model", "model"),
            ("published", "published"),
            ("unit", "unit"),
            ("error", "error"),
            ("status", "status"),
        ],
        100,
    )),
};

/// Table [`VALIDATE`].
pub(super) fn table() -> Table {
    let mut table = Table::new(&VALIDATE);
    for point in points() {
        let note = Some(point.note).filter(|note| !note.is_empty());
        table.push(vec![
            point.id.into(),
            (point.model)().into(),
            Cell::F64(point.published),
            point.unit.into(),
            point.error().into(),
            point.status.map(Status::name).into(),
            note.into(),
            point.source.into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the formulae give, worked out apart from the program, to the digits with which they were handed down.
    const HANDED_DOWN: &[(&str, f64, f64)] = &[
        ("vf-ns-512", 38.5, 0.05),
        ("vf-ns-512-without-fcs", 38.2, 0.05),
        ("ovs-ns-512-steep-mpps", 7.53, 0.005),
        ("ovs-ns-512-flat-mpps", 7.72, 0.005),
        ("ovs-ns-512-steep", 30.6, 0.05),
        ("ovs-ns-512-flat", 31.6, 0.05),
        ("vf-chain-1518-mps128", 43.8, 0.05),
        ("vf-chain-1518-mps256", 48.3, 0.05),
        ("vf-chain-64", 18.5, 0.05),
        ("vf-chain-64-each-8", 2.31, 0.005),
        ("vf-chain-64-each-4", 4.63, 0.006),
        ("xl710-two-ports-1024-mps256", 47.3, 0.05),
        ("xl710-two-ports-1518-mps256", 48.3, 0.05),
        ("xl710-two-ports-1024-mps128", 43.0, 0.05),
        ("xl710-two-ports-1518-mps128", 43.8, 0.05),
        ("ovs-chain-one-pool-6", 0.71, 0.005),
        ("ovs-chain-one-pool-8", 0.56, 0.005),
        ("pcie-write-64", 42.1, 0.05),
        ("pcie-write-128", 48.7, 0.05),
        ("pcie-write-256", 52.9, 0.05),
        ("pcie-write-512", 52.9, 0.05),
        ("pcie-write-1024", 52.9, 0.05),
        ("pcie-both-64", 33.1, 0.05),
        ("pcie-both-128", 42.1, 0.05),
        ("pcie-both-256", 48.7, 0.05),
        ("pcie-both-512", 50.7, 0.05),
        ("pcie-both-1024", 50.7, 0.05),
    ];

    fn point(id: &str) -> &'static Point {
        points().find(|point| point.id == id).unwrap_or_else(|| panic!("no point {id}"))
    }

    #[test]
    fn the_model_gives_the_handed_down_values_to_their_last_digit() {
        for (id, value, within) in HANDED_DOWN {
            let model = (point(id).model)().unwrap();
            assert!((model - value).abs() <= within + 1e-9, "{id}: {model} is not {value}");
        }
    }

    #[test]
    fn errors_of_one_parameter_over_five_rows_are_the_published_ones() {
        let mean_error = |prefix: &str| {
            let errors: Vec<f64> = points()
                .filter(|point| point.id.starts_with(prefix))
                .map(|point| point.error().unwrap().abs())
                .collect();
            assert_eq!(errors.len(), 5);
            errors.iter().sum::<f64>() / 5.0 * 100.0
        };
        assert!((mean_error("cncf-vsc-") - 6.7).abs() <= 0.05, "{}", mean_error("cncf-vsc-"));
        assert!((mean_error("cncf-csc-") - 1.5).abs() <= 0.05, "{}", mean_error("cncf-csc-"));
        let of_both = [43.0, 24.0, 16.0, 19.0, 16.0];
        for (size, error) in [64, 128, 256, 512, 1024].into_iter().zip(of_both) {
            let found = point(&format!("pcie-both-{size}")).error().unwrap() * 100.0;
            assert!((found - error).abs() <= 0.6, "{size}: {found}");
        }
    }

    #[test]
    fn each_status_says_what_it_means() {
        let mut ids: Vec<&str> = points().map(|point| point.id).collect();
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "an id is given twice");
        for point in points() {
            match (point.status, point.error()) {
                (Some(Status::Validated), error) => assert!(error.unwrap().abs() <= 0.2, "{}", point.id),
                (Some(Status::Bound), error) => assert!(error.is_none_or(|error| error > 0.0), "{}", point.id),
                (Some(Status::Fails), _) => assert!(!point.note.is_empty(), "{}: nothing stands behind it", point.id),
                (Some(Status::Fitted), error) => assert!(error.is_some(), "{}", point.id),
                (None, error) => assert_eq!(error, None, "{}", point.id),
            }
        }
    }

    #[test]
    fn messages_of_a_socket_are_no_frames() {
        let netperf: Vec<&Point> = points().filter(|point| matches!(point.counted, Counted::Messages(_))).collect();
        assert_eq!(netperf.len(), 9);
        for point in netperf {
            assert_eq!((point.frame_bytes(), (point.model)(), point.status), (None, None, None), "{}", point.id);
        }
    }

    #[test]
    fn rows_of_64_bytes_count_60() {
        // Gb/s and Mpps that were said of the same run.
        for (gbps, mpps) in [(2.53, 5.258), (5.0, 10.6), (6.0, 12.5), (9.0, 18.5)] {
            let bytes: f64 = gbps * 1e3 / mpps / 8.0;
            assert!((59.0..=61.0).contains(&bytes.round()), "{bytes}");
        }
        let (with, without) =
            ((point("vf-ns-512").model)().unwrap(), (point("vf-ns-512-without-fcs").model)().unwrap());
        assert!((with / without - 512.0 / 508.0).abs() < 1e-12);
    }

    /// What is known of one pattern never makes a prediction of the other.
    #[test]
    fn patterns_are_calibrated_apart() {
        let level = |id: &str| (point(id).model)().unwrap();
        assert_eq!((level("ovs-ns-64-8"), level("ovs-chain-64-each-4")), (10.6, 5.25));
        assert!(points().filter(|point| point.of == Some((Datapath::OvsDpdk, Pattern::NorthSouth))).count() >= 6);
    }
}
