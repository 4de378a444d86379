//! Is our text the text that trace-cmd prints of the same events?

use super::support::{oracle, records, schema, write_with_a_loss};
use kvmscope_trace::write::Sink;
use kvmscope_trace::write::layout::Machine;
use kvmscope_trace::write::page::PageStyle;
use kvmscope_trace::write::text::{Form, Text};
use kvmscope_trace::write::tracedat::{Records, TraceDat, Version};

#[test]
fn raw_text_is_letter_by_letter_that_of_trace_cmd() {
    let directory = tempfile::tempdir().unwrap();
    let (dat_path, text_path) = (directory.path().join("trace.dat"), directory.path().join("text"));
    let comms = vec![(170, "CPU 0/KVM".to_owned()), (171, "CPU 1/KVM".to_owned())];
    for nanoseconds in [false, true] {
        let dat = TraceDat { comms: comms.clone(), ..TraceDat::new(Version::V7, Machine::X86_64) };
        let dat = Records::create(&dat_path, &schema(), dat, "mono", 3, PageStyle::default()).unwrap();
        let text = Text::create(&text_path, &schema(), Form::Raw { nanoseconds }, &comms, 3).unwrap();
        let sinks: [Box<dyn Sink>; 2] = [Box::new(dat), Box::new(text)];
        for sink in sinks {
            write_with_a_loss(sink, &records(500));
        }
        let mut arguments = vec!["report", "-R", "-N", "-q", "-i", dat_path.to_str().unwrap()];
        if nanoseconds {
            arguments.push("-t");
        }
        let Some(expected) = oracle("trace-cmd", &arguments) else { return };
        let found = std::fs::read_to_string(&text_path).unwrap();
        for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found.trim_end(), expected.trim_end(), "line {line}");
        }
        assert_eq!(found.lines().count(), expected.lines().count());
    }
}
