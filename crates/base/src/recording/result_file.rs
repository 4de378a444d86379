//! Is a file the result of a program that measures latencies, and which program's?
//!
//! ```text
//! first 64 KB --signs--> cyclictest, oslat, jitterdebugger, rtla, hwlatdetect, ...    else it may be a trace
//! ```
//! Decided by what the file holds, never by its name. A printed trace is none of these, unless it is one of the kernel's own
//! latency tracers, whose lines carry lengths.

/// Who wrote a result, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResultFile {
    /// `cyclictest --json`.
    CyclictestJson,
    /// What cyclictest prints: a histogram, all samples, or only their extremes.
    CyclictestText,
    /// `oslat --json`.
    OslatJson,
    /// What oslat prints.
    OslatText,
    /// `results.json` of jitterdebugger.
    JitterdebuggerJson,
    /// Its raw samples, as jittersamples prints them.
    JitterdebuggerSamples,
    /// What jitterdebugger prints with `-v`.
    JitterdebuggerText,
    /// `rtla timerlat hist` and `rtla osnoise hist`.
    RtlaHistogram,
    /// `rtla timerlat top` and `rtla osnoise top`.
    RtlaTop,
    /// What hwlatdetect prints, or its report of samples.
    Hwlatdetect,
    /// The serial output of kvm-unit-tests' `tscdeadline_latency.flat`.
    TscDeadline,
    /// The three lines of KVM4NFV's vm-trace.
    VmTrace,
    /// Its `trace.bin`: pages of a ring buffer.
    VmTraceBinary,
    /// A printed trace of the kernel's tracers timerlat and osnoise.
    NoiseTrace,
    /// `pqos -u csv`.
    PqosCsv,
    /// OSADL's "RT Dataset": histograms of cyclictest in JSON.
    Osadl,
    /// What `latency` of Xenomai prints.
    Xenomai,
    /// What the stressor `cyclic` of stress-ng prints.
    StressCyclic,
    /// What `kvmscope bench timer` keeps.
    Gaps,
    /// What `kvmscope bench irq` keeps.
    Interrupts,
}

/// How many bytes of a file [`ResultFile::of`] has to see.
pub const LOOKED_AT: u64 = 64 << 10;

/// What vm-trace writes first, as the little-endian machines it ran on do: `TRACE_SIG` in its source.
const VM_TRACE_SIGNATURE: [u8; 4] = 0xcce9_6d01_u32.to_le_bytes();

/// What a file must hold to be of a kind.
enum Sign {
    /// JSON with all of these in it.
    Json(&'static [&'static str]),
    Text(&'static [&'static str]),
    Line(fn(&str) -> bool),
}

/// In the order in which they are tried.
const SIGNS: &[(ResultFile, Sign)] = &[
    (ResultFile::Gaps, Sign::Json(&["\"kvmscope-gaps/1\""])),
    (ResultFile::Interrupts, Sign::Json(&["\"kvmscope-irq/1\""])),
    (ResultFile::Osadl, Sign::Json(&["\"RT Dataset\""])),
    (ResultFile::CyclictestJson, Sign::Json(&["\"rt_test_version", "cyclictest"])),
    (ResultFile::OslatJson, Sign::Json(&["\"rt_test_version", "oslat"])),
    (ResultFile::CyclictestJson, Sign::Json(&["\"thread\"", "\"cycles\""])),
    (ResultFile::OslatJson, Sign::Json(&["\"thread\"", "\"freq\""])),
    (ResultFile::JitterdebuggerJson, Sign::Json(&["\"cpu\"", "\"histogram\""])),
    (ResultFile::RtlaHistogram, Sign::Text(&["# RTLA ", " histogram"])),
    (ResultFile::RtlaTop, Sign::Text(&["Timer Latency", "IRQ Timer Latency ("])),
    (ResultFile::RtlaTop, Sign::Text(&["Operating System Noise", "% CPU Aval"])),
    (ResultFile::RtlaTop, Sign::Text(&["Hardware-related Noise", "% CPU Aval"])),
    (ResultFile::OslatText, Sign::Text(&["Counter Freq:", "(us):"])),
    // Until rt-tests 1.10.
    (ResultFile::OslatText, Sign::Text(&["CPU Freq:", "(us):"])),
    (ResultFile::Hwlatdetect, Sign::Line(|line| line.starts_with("hwlatdetect:") || is_hwlat_sample(line))),
    (ResultFile::VmTrace, Sign::Text(&["Number of VM events = "])),
    (ResultFile::NoiseTrace, Sign::Line(is_noise)),
    (ResultFile::Xenomai, Sign::Line(|line| line.starts_with("RTD|") || line.starts_with("RTS|"))),
    (ResultFile::StressCyclic, Sign::Line(|line| line.starts_with("stress-ng:") && line.contains("] cyclic:"))),
    (ResultFile::PqosCsv, Sign::Line(|line| line.starts_with("Time,") && line.contains(",IPC,"))),
    (ResultFile::JitterdebuggerSamples, Sign::Line(is_jitterdebugger_sample)),
    (ResultFile::JitterdebuggerText, Sign::Line(is_jitterdebugger)),
    (ResultFile::TscDeadline, Sign::Line(|line| line.strip_prefix("latency: ").is_some_and(is_number))),
    (ResultFile::CyclictestText, Sign::Line(is_cyclictest)),
];

impl ResultFile {
    /// Whether a line is a row of the tracer timerlat: `<idle>-0 [002] d.h1. 900.000100: #5001 context irq timer_latency 12045 ns`;
    /// or a period of osnoise: `osnoise/2-861 [002] .... 81.638193: 1000000 5675 99.43250 202 6 0 1013 25 21` (`trace_timerlat_print` and
    /// `trace_osnoise_print` in kernel/trace/trace_output.c, Linux 6.12).
    pub fn is_noise_row(line: &str) -> bool {
        let is_period = || {
            let Some((head, numbers)) = line.rsplit_once(": ").filter(|(head, _)| head.contains(" [")) else {
                return false;
            };
            let numbers: Vec<&str> = numbers.split_whitespace().collect();
            let is_number = |(place, number): (usize, &&str)| match place {
                2 => number.contains('.') && number.parse::<f64>().is_ok(),
                _ => number.bytes().all(|byte| byte.is_ascii_digit()),
            };
            head.ends_with(|last: char| last.is_ascii_digit())
                && numbers.len() == 9
                && numbers.iter().enumerate().all(is_number)
        };
        line.contains(": #") && line.contains(" context ") && line.contains(" timer_latency ") || is_period()
    }

    /// What a file that begins with `first` is; `None` if it is no result. Give at least [`LOOKED_AT`] bytes of a longer file.
    pub fn of(first: &[u8]) -> Option<Self> {
        if first.starts_with(&VM_TRACE_SIGNATURE) {
            return Some(ResultFile::VmTraceBinary);
        }
        if first.contains(&0) {
            return None;
        }
        let text = String::from_utf8_lossy(first);
        let is_json = text.trim_start().starts_with('{');
        let holds = |sign: &Sign| match sign {
            Sign::Json(words) => is_json && words.iter().all(|word| text.contains(word)),
            Sign::Text(words) => !is_json && words.iter().all(|word| text.contains(word)),
            Sign::Line(shape) => !is_json && text.lines().any(|line| shape(line.trim())),
        };
        SIGNS.iter().find(|(_, sign)| holds(sign)).map(|(file, _)| *file)
    }
}

fn is_number(text: &str) -> bool {
    !text.trim().is_empty() && text.trim().bytes().all(|byte| byte.is_ascii_digit())
}

/// `ts: 1499801089.066141940, inner:12, outer:14`, or the line of the tracer that it was made from.
fn is_hwlat_sample(line: &str) -> bool {
    (line.starts_with("ts: ") && line.contains(", inner:")) || line.contains(" inner/outer(us): ")
}

/// A line of the tracers timerlat and osnoise; in a recording of other events too it is that of an event of a trace.
fn is_noise(line: &str) -> bool {
    line.strip_prefix("# tracer:").is_some_and(|tracer| matches!(tracer.trim(), "timerlat" | "osnoise"))
        || ResultFile::is_noise_row(line)
}

/// `T: 2 (  616) A: 4 C:    599911 Min:         2 Avg:    3.31 Max:       187`; cyclictest has `P:` and `Act:`.
fn is_jitterdebugger(line: &str) -> bool {
    line.starts_with("T:") && [" A:", " C:", " Avg:", " Max:"].iter().all(|name| line.contains(name))
}

/// `0;49717.680885282;26`.
fn is_jitterdebugger_sample(line: &str) -> bool {
    let mut fields = line.split(';');
    let (thread, time, value) = (fields.next(), fields.next(), fields.next());
    let is_time =
        |time: &str| time.split_once('.').is_some_and(|(seconds, part)| is_number(seconds) && part.len() == 9);
    fields.next().is_none()
        && thread.is_some_and(is_number)
        && time.is_some_and(is_time)
        && value.is_some_and(is_number)
}

/// The head of a histogram, a row of one without it, `T: 0 (17159) P: 0 I:1000 C: 1000 Min: ..`, or `0:  12:  77`.
fn is_cyclictest(line: &str) -> bool {
    let is_row = |line: &str| {
        let mut columns = line.split_whitespace().peekable();
        let is_latency = columns.next().is_some_and(|latency| latency.len() == 6 && is_number(latency));
        is_latency && columns.peek().is_some() && columns.all(|column| column.len() >= 6 && is_number(column))
    };
    let is_sample = |line: &str| line.split(':').count() == 3 && line.split(':').all(is_number);
    line == "# Histogram"
        || line.starts_with("# Min Latencies:")
        || (line.starts_with("T:") && line.contains(" Act:") && line.contains(" Max:"))
        || is_row(line)
        || is_sample(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_holds_tells_who_wrote_it() {
        let told = [
            (r#"{ "cmdline:": "cyclictest -q", "rt_test_version:": "2.40" }"#, Some(ResultFile::CyclictestJson)),
            (r#"{ "cmdline:": "./oslat -D 2", "rt_test_version:": "2.40" }"#, Some(ResultFile::OslatJson)),
            (r#"{ "thread": {"0": {"histogram": {}, "cycles": 7}}}"#, Some(ResultFile::CyclictestJson)),
            (r#"{ "cpu": { "0": { "histogram": {"#, Some(ResultFile::JitterdebuggerJson)),
            (r#"{"schema":"kvmscope-bench/1","bench":"exits","results":[]}"#, None),
            ("# RTLA timerlat histogram\n# Time unit is", Some(ResultFile::RtlaHistogram)),
            ("# /dev/cpu_dma_latency set to 0us\n# Histogram\n", Some(ResultFile::CyclictestText)),
            ("000007 000003\n000008 11757562\n", Some(ResultFile::CyclictestText)),
            ("Max CPUs = 2\n       0:       0:      77\n", Some(ResultFile::CyclictestText)),
            ("T: 0 (17159) P: 0 I:1000 C: 1000 Min: 68 Act: 77 Avg: 76 Max: 93", Some(ResultFile::CyclictestText)),
            ("0;49717.680885282;26\n", Some(ResultFile::JitterdebuggerSamples)),
            ("0;49717.68;26\n", None),
            ("T: 0 (  9) A: 2 C: 59 Min: 2 Avg: 3.08 Max: 10\n", Some(ResultFile::JitterdebuggerText)),
            ("osnoise/2-8 [002] .... 81.638193: 1000000 56 99.43 202 6 0 1013 25 21\n", Some(ResultFile::NoiseTrace)),
            ("enabling apic\nlatency: 4711\n", Some(ResultFile::TscDeadline)),
            ("Number of VM events = 12\n", Some(ResultFile::VmTrace)),
            ("hwlatdetect:  test duration 2 seconds\n", Some(ResultFile::Hwlatdetect)),
            ("ts: 1499801089.066141940, inner:12, outer:14\n", Some(ResultFile::Hwlatdetect)),
            ("# tracer: timerlat\n", Some(ResultFile::NoiseTrace)),
            (
                " <idle>-0 [002] d.h1. 9.000100: #5001 context    irq timer_latency     12045 ns\n",
                Some(ResultFile::NoiseTrace),
            ),
            ("Core:\t 2\nCPU Freq:\t 2096 (Mhz)\n 001 (us):\t 1000\n", Some(ResultFile::OslatText)),
            (r#"{"format": {"name": "RT Dataset", "version": "1.0"}, "latency""#, Some(ResultFile::Osadl)),
            ("stress-ng: info:  [7] cyclic:   min: 2603 ns, max: 9 ns\n", Some(ResultFile::StressCyclic)),
            ("RTD|      1.256|      1.400|      4.456|       0|\n", Some(ResultFile::Xenomai)),
            ("# tracer: nop\n", None),
            ("Time,Core,IPC,LLC Misses,LLC[KB]\n", Some(ResultFile::PqosCsv)),
            ("qemu-1 [000] 1.000: kvm_entry: vcpu 0, rip 0x0\n", None),
            ("", None),
        ];
        for (text, file) in told {
            assert_eq!(ResultFile::of(text.as_bytes()), file, "{text}");
        }
        assert_eq!(ResultFile::of(b"\x01\x6d\xe9\xcc\x07\x00\x09\x00"), Some(ResultFile::VmTraceBinary));
        assert_eq!(ResultFile::of(b"\x17\x08\x44tracing6\0# Histogram\n"), None);
    }
}
