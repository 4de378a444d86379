//! What others measured, and what the model says of the same.
//!
//! A result to which a constant was fitted never counts as evidence for the model.

mod arithmetic;

use super::model::design::Datapath;
use base::datapath::Traffic;
use base::number::many;
use facts::published::{DatapathResult, RateUnit, Standing, datapaths, source};
use facts::validation::{Band, Comparison, Worth, chapter};
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Counted {
    /// Frames of so many bytes with their check sequence.
    Frames(f64),
    /// Messages of a stream socket, of which a frame holds many or a part: never frames.
    Messages,
    /// Something else, such as a length.
    Other,
}

#[derive(Debug)]
pub(super) struct Point {
    pub id: &'static str,
    /// What was measured, where one design was.
    pub of: Option<(Datapath, Traffic)>,
    pub vnfs: Option<u32>,
    counted: Counted,
    published: f64,
    /// Its unit.
    unit: RateUnit,
    /// What the model says; `None` where it says nothing.
    model: Option<Band>,
    /// What the comparison is worth; `None` where there is none.
    pub standing: Option<Standing>,
    pub source: &'static str,
    record: &'static DatapathResult,
}

/// Every point, in reading order.
pub(super) fn points() -> impl Iterator<Item = &'static Point> {
    static POINTS: OnceLock<Vec<Point>> = OnceLock::new();
    POINTS.get_or_init(|| datapaths().iter().map(Point::of_record).collect()).iter()
}

impl Point {
    fn of_record(record: &'static DatapathResult) -> Self {
        let path = record.design.as_deref().and_then(Datapath::named);
        let counted = match (record.frame_bytes, record.message_bytes) {
            (Some(bytes), _) => Counted::Frames(f64::from(bytes)),
            (None, Some(_)) => Counted::Messages,
            (None, None) => Counted::Other,
        };
        let bytes = f64::from(record.frame_bytes.unwrap_or_default());
        let (unit, published) = match record.amount() {
            (RateUnit::Gbps, gbps) if record.is_compared_in_mpps => (RateUnit::Mpps, gbps / (bytes * 8.0) * 1e3),
            (RateUnit::GbpsWithoutFcs, gbps) if record.is_compared_in_mpps => {
                (RateUnit::Mpps, gbps / ((bytes - 4.0) * 8.0) * 1e3)
            }
            amount => amount,
        };
        Self {
            id: &record.id,
            of: path.zip(record.pattern.as_deref().and_then(Traffic::named)),
            vnfs: record.vnfs,
            counted,
            published,
            unit,
            model: arithmetic::predicted(record, unit),
            standing: record.standing,
            source: &source(&record.source).title,
            record,
        }
    }

    /// The size of its frames; messages have none.
    pub(super) fn frame_bytes(&self) -> Option<f64> {
        match self.counted {
            Counted::Frames(bytes) => Some(bytes),
            Counted::Messages | Counted::Other => None,
        }
    }

    /// The number as Mpps of all VMs together, where it is a rate of so many.
    pub(super) fn system_mpps(&self) -> Option<f64> {
        let (bytes, vnfs) = (self.frame_bytes()?, f64::from(self.vnfs?));
        match self.unit {
            RateUnit::Mpps => Some(self.published),
            RateUnit::MppsOfEachVm => Some(self.published * vnfs),
            RateUnit::Gbps => Some(self.published * 1e3 / 8.0 / bytes),
            RateUnit::GbpsWithoutFcs => Some(self.published * 1e3 / 8.0 / (bytes - 4.0)),
            RateUnit::TimesTheRateOf4Vnfs | RateUnit::Vnfs => None,
        }
    }

    /// Model against publication, as a share.
    pub(super) fn error(&self) -> Option<f64> {
        Some(self.model?.likely / self.published - 1.0)
    }

    fn comparison(&self) -> Comparison {
        let worth = match (self.standing, self.model) {
            (None, _) | (_, None) => Worth::Unpredicted,
            (Some(Standing::Fitted), _) => Worth::Fitted,
            (Some(Standing::Bound), _) => Worth::Ceiling,
            (Some(Standing::Control), _) => Worth::Control,
            (Some(Standing::Validated | Standing::Fails), _) => Worth::Held,
        };
        let predicted = match (worth, self.model) {
            (Worth::Ceiling, Some(band)) => Some(Band::up_to(band.likely)),
            (_, band) => band,
        };
        let path = self.of.map(|(path, pattern)| format!("{} {}", path.name(), pattern.name()));
        let size = match (self.record.frame_bytes, self.record.message_bytes) {
            (Some(bytes), _) => Some(format!("{bytes} B")),
            (None, Some(bytes)) => Some(format!("messages of {bytes} B")),
            (None, None) => None,
        };
        let vnfs = self.vnfs.map(|vnfs| many(u64::from(vnfs), "VNF"));
        let inputs = [path, vnfs, size, self.record.model.as_ref().map(arithmetic::assumed)];
        let inputs = inputs.into_iter().flatten().collect::<Vec<_>>().join(", ");
        Comparison {
            id: self.id.to_owned(),
            result: self.record.result.clone().unwrap_or_else(|| self.id.to_owned()),
            source: &self.record.source,
            inputs: if inputs.is_empty() { "not stated".to_owned() } else { inputs },
            unit: self.unit.name(),
            published: self.published,
            predicted,
            worth,
            note: self.record.note.clone(),
        }
    }
}

/// What the model of datapaths predicts of each published result.
pub(super) fn comparisons() -> Vec<Comparison> {
    points().map(Point::comparison).collect()
}

/// The chapter of docs/formats/validation.md about datapaths.
pub fn validation() -> (String, Vec<Comparison>) {
    const ABOUT: &str = "What `plan chain` predicts from what the source states. Bands are those that a plan starts with: nothing where the line \
        binds, 10 % to either side of a calibrated switch, 20 % where PCIe or a card binds. A plan widens them by its nearest misses, which is \
        not done here: a row would excuse itself. Rows that a constant was fitted to are no evidence, a ceiling is only kept, and messages of a \
        stream socket are no frames.";
    let rows = comparisons();
    (chapter("Datapaths: `plan chain`", ABOUT, &rows), rows)
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
            let model = point(id).model.unwrap().likely;
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
    fn each_standing_says_what_it_means() {
        let mut ids: Vec<&str> = points().map(|point| point.id).collect();
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "an id is given twice");
        for point in points() {
            match (point.standing, point.error()) {
                (Some(Standing::Validated), error) => assert!(error.unwrap().abs() <= 0.2, "{}", point.id),
                (Some(Standing::Bound), error) => assert!(error.is_none_or(|error| error > 0.0), "{}", point.id),
                (Some(Standing::Fails | Standing::Control), _) => {
                    assert!(!point.record.note.is_empty(), "{}: nothing stands behind it", point.id);
                }
                (Some(Standing::Fitted), error) => assert!(error.is_some(), "{}", point.id),
                (None, error) => assert_eq!(error, None, "{}", point.id),
            }
        }
    }

    #[test]
    fn messages_of_a_socket_are_no_frames() {
        let netperf: Vec<&Point> = points().filter(|point| matches!(point.counted, Counted::Messages)).collect();
        assert_eq!(netperf.len(), 9);
        for point in netperf {
            assert_eq!((point.frame_bytes(), point.model, point.standing), (None, None, None), "{}", point.id);
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
            (point("vf-ns-512").model.unwrap().likely, point("vf-ns-512-without-fcs").model.unwrap().likely);
        assert!((with / without - 512.0 / 508.0).abs() < 1e-12);
    }

    /// What is known of one pattern never makes a prediction of the other.
    #[test]
    fn patterns_are_calibrated_apart() {
        let level = |id: &str| point(id).model.unwrap().likely;
        assert_eq!((level("ovs-ns-64-8"), level("ovs-chain-64-each-4")), (10.6, 5.25));
        assert!(points().filter(|point| point.of == Some((Datapath::OvsDpdk, Traffic::NorthSouth))).count() >= 6);
    }
}
