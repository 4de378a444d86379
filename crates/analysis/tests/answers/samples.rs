//! Files of programs that measure latencies: all their shapes, held against what the same run said in another shape, against
//! what is known of them, and cut off anywhere.

use base::Problem;
use base::recording::{ClockPair, Moment, Named, Recording};
use kvmscope_analysis::facts::samples::{ResultFiles, Samples, Source, Timed};
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/samples").join(name)
}

fn read(path: &Path) -> (ResultFiles, Vec<Problem>) {
    let recording = Recording::of_files(&[Named::at_l0(path)], None).unwrap();
    let input = kvmscope_analysis::open(recording).unwrap();
    (input.results, input.problems)
}

fn samples(name: &str) -> Vec<Samples> {
    let (results, problems) = read(&fixture(name));
    assert!(problems.is_empty(), "{name}: {problems:?}");
    results.each().map(|(_, samples)| samples.clone()).collect()
}

/// Count, overflow, and the extremes in us, of each thread.
fn told(samples: &[Samples]) -> Vec<(u64, u64, Option<u64>, Option<u64>)> {
    let us = |ns: Option<u64>| ns.map(|ns| ns / 1_000);
    let one = |one: &Samples| {
        let (min, max) = one.extremes_ns();
        (one.count, one.overflow, us(min), us(max))
    };
    samples.iter().map(one).collect()
}

/// All lengths in the buckets, where every bucket is one unit wide.
fn means(samples: &[Samples]) -> Vec<i64> {
    samples.iter().map(|one| one.mean_ns.unwrap().round() as i64).collect()
}

#[test]
fn json_and_text_of_one_run_of_cyclictest_say_the_same() {
    let (json, text) = (samples("cyclictest.json"), samples("cyclictest-histogram.txt"));
    assert_eq!(told(&json), told(&text));
    assert_eq!(json.iter().map(|one| (one.count, one.overflow)).collect::<Vec<_>>(), [(1_500, 37), (1_500, 79)]);
    for (json, text) in json.iter().zip(&text) {
        assert_eq!(json.buckets, text.buckets, "the overflow, which JSON does not have, too");
        assert_eq!((json.over(20_000), json.quantile_ns(0.99)), (text.over(20_000), text.quantile_ns(0.99)));
    }
    assert_eq!((json[1].cpu, text[1].cpu), (Some(1), None));
}

#[test]
fn without_a_histogram_the_extremes_are_all() {
    let json = samples("cyclictest-extremes.json");
    assert_eq!(told(&json), [(1_000, 0, Some(68), Some(93)), (667, 0, Some(62), Some(862))]);
    assert_eq!(json[1].over(500_000), (1, 667), "one is the maximum; of the others nothing is known");
    assert_eq!((json[1].over(862_999), json[1].over(61_000), json[1].quantile_ns(0.99)), ((0, 0), (667, 667), None));
    let live = samples("cyclictest-live.txt");
    assert_eq!((live.len(), live[0].tid.is_some(), live[0].buckets.len()), (2, true, 1));
    let fifo = samples("cyclictest-fifo.txt");
    assert_eq!(told(&fifo), [(484, 0, Some(68), Some(5_473)), (328, 0, Some(54), Some(4_564))]);
}

#[test]
fn nanoseconds_are_told_by_their_own_field() {
    let json = samples("cyclictest-ns.json");
    assert_eq!(json[0].unit_ns, 1);
    assert!(json[0].buckets.iter().all(|bucket| bucket.to_ns == bucket.from_ns + 1), "{:?}", json[0].buckets);
    assert_eq!((json[0].count, json[0].overflow), (60, 0));
    let (results, problems) = read(&fixture("cyclictest-break.txt"));
    let text = &results.list[0];
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((text.samples[0].unit_ns, text.samples[0].mean_ns), (1, Some(71_969.0)));
    assert_eq!(text.breach.as_ref().unwrap().length_ns, 71_969, "printed text tells it by how wide a field is");
}

#[test]
fn the_column_of_sums_is_no_thread() {
    let text = samples("cyclictest-histofall.txt");
    assert_eq!(told(&text), [(400, 1, Some(18), Some(200)), (400, 0, Some(16), Some(92))]);
    assert_eq!(text[0].over(199_999), (1, 1));
}

#[test]
fn printed_samples_are_counted_one_by_one() {
    let text = samples("cyclictest-verbose.txt");
    let lines = std::fs::read_to_string(fixture("cyclictest-verbose.txt")).unwrap();
    let of = |thread: &str| lines.lines().filter(|line| line.trim().starts_with(&format!("{thread}:"))).count() as u64;
    assert_eq!(text.iter().map(|one| one.count).collect::<Vec<_>>(), [of("0"), of("1")]);
}

#[test]
fn the_last_bucket_of_oslat_holds_the_overflows_and_it_rounds_up() {
    let (json, text) = (samples("oslat.json"), samples("oslat.txt"));
    assert_eq!(told(&json), [(67_900_942, 194, Some(1), Some(12_034)), (52_207_015, 261, Some(1), Some(19_765))]);
    assert_eq!(told(&json), told(&text));
    for (json, text) in json.iter().zip(&text) {
        assert_eq!((&json.buckets, json.cpu), (&text.buckets, text.cpu));
    }
    // Bucket 32 and what is longer: of lengths over 31 us all, over 32 us nobody knows, but one is the maximum.
    assert_eq!((json[0].over(30_999), json[0].over(100_000)), ((194, 194), (1, 194)));
    let biased = samples("oslat-bias.txt");
    assert_eq!(biased[0].buckets[0].from_ns, 0, "what is shorter than the first bucket is in it");
    assert!(biased.iter().all(|one| one.overflow > 0));
}

#[test]
fn raw_samples_and_the_histogram_of_one_run_say_the_same() {
    let (json, raw) = (samples("jitterdebugger.json"), samples("jitterdebugger-samples.csv"));
    assert_eq!((json.len(), raw.len()), (2, 2));
    for (json, raw) in json.iter().zip(&raw) {
        // The raw file lacks the samples that were still in the program's memory when it ended.
        assert!(raw.count <= json.count && raw.count + 4 > json.count, "{} of {}", raw.count, json.count);
        assert_eq!(raw.timed.len() as u64, raw.count);
        assert!(raw.timed.is_sorted_by_key(|sample| sample.end_ns));
        let in_json = |bucket| json.buckets.iter().filter(|one| **one == bucket).count();
        let strange = raw.buckets.iter().filter(|bucket| in_json(**bucket) == 0).count();
        assert!(strange <= 8, "{strange} buckets differ");
    }
    assert!(json.iter().any(|one| one.overflow > 0), "1,000 buckets do not hold the longest");
    let first = raw[0].timed[0];
    assert_eq!(raw[0].ended(|end_ns| end_ns <= first.end_ns).unwrap().timed, [first]);
}

#[test]
fn extremes_of_noise_are_read_in_colour() {
    let top = samples("rtla-osnoise-top.txt");
    assert_eq!(told(&top), [(2_196, 0, None, Some(24)), (2_231, 0, None, Some(31))]);
    assert_eq!((top[0].source, top[0].thread.as_str(), top[0].cpu), (Source::Osnoise, "CPU-000", Some(0)));
}

#[test]
fn windows_of_hwlatdetect_are_its_longer_times() {
    let hwlat = samples("hwlatdetect.txt");
    assert_eq!(told(&hwlat), [(3, 0, Some(14), Some(27))]);
    assert_eq!(hwlat[0].timed[1], Timed { end_ns: 1_763_913_603_066_152_103, length_ns: 27_000 });
}

#[test]
fn ticks_need_the_clocks_of_a_recording() {
    let (results, problems) = read(&fixture("tscdeadline.txt"));
    assert_eq!(results.each().count(), 0);
    assert!(problems[0].text.contains("201 latencies"), "{problems:?}");
    let mut recording = Recording::of_files(&[Named::at_l0(fixture("tscdeadline.txt"))], None).unwrap();
    let pair = |at, monotonic_ns, tsc| ClockPair {
        machine: "L0".into(),
        at,
        realtime_ns: monotonic_ns,
        monotonic_ns,
        tsc: Some(tsc),
        error_ns: 0,
        utc_error_ns: None,
    };
    recording.clock_pairs = vec![pair(Moment::Begin, 0, 0), pair(Moment::End, 1_000_000, 2_000_000)];
    let input = kvmscope_analysis::open(recording).unwrap();
    let samples: Vec<_> = input.results.each().map(|(_, samples)| samples.clone()).collect();
    assert_eq!(told(&samples), [(201, 0, Some(10), Some(495))], "half a ns a tick");
}

#[test]
fn pairs_of_exit_and_entry_are_read_with_their_times() {
    let (binary, text) = (samples("vm-trace.bin"), samples("vm-trace.txt"));
    assert_eq!((binary[0].count, binary[0].extremes_ns()), (120, (Some(900), Some(812_345))));
    let mut lengths: Vec<u64> = binary[0].timed.iter().map(|sample| sample.length_ns).collect();
    assert_eq!(lengths[..6], [1_200, 2_300, 7_400, 900, 812_345, 1_100]);
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [900, 1_100, 1_200, 2_300, 7_400, 812_345]);
    assert_eq!(told(&text), [(121, 0, None, Some(812))]);
    assert_eq!(means(&text), [137_000]);
}

#[test]
fn rows_of_pqos_become_the_use_of_each_group() {
    let (results, problems) = read(&fixture("pqos.csv"));
    assert!(problems.is_empty(), "{problems:?}");
    let [zero, others] = results.list[0].cache_use.as_slice() else { panic!("{:?}", results.list) };
    assert_eq!((zero.cpus.as_str(), others.cpus.as_str(), others.rows), ("0", "1-3", 2));
    assert_eq!((others.ipc, others.llc_misses, others.llc_bytes), (Some(0.75), Some(400.0), Some(2_097_152.0)));
    assert_eq!(others.local_bytes_per_s, Some(12.5 * 1_048_576.0));
}

/// 49 edges in 50 ms: 14 answered, 35 of them merged, between 50,905 and 20,411,608 ns.
#[test]
fn interrupts_are_answered_or_merged() {
    let (results, problems) = read(&fixture("irq.json"));
    assert!(problems.is_empty(), "{problems:?}");
    let edges = results.list[0].edges.unwrap();
    assert_eq!((edges.count, edges.merged, edges.unanswered, edges.lost, edges.extra), (49, 35, 0, 0, 0));
    let [samples] = results.list[0].samples.as_slice() else { panic!("{results:?}") };
    assert_eq!((samples.count, samples.extremes_ns()), (14, (Some(50_905), Some(20_411_608))));
    assert_eq!((samples.through.len(), samples.timed.len()), (2, 14));
}

/// Every fixture, cut off at every byte: it gives what it holds, says what is missing, and never more samples than the whole.
#[test]
fn a_file_that_is_cut_off_gives_what_it_holds() {
    let place = tempfile::tempdir().unwrap();
    let mut names: Vec<_> = std::fs::read_dir(fixture("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for name in names.iter().filter(|path| path.extension().is_some_and(|end| end != "md")) {
        let whole = std::fs::read(name).unwrap();
        let all: u64 = read(name).0.each().map(|(_, samples)| samples.count).sum();
        let step = whole.len() / 60 + 1;
        for length in (0..whole.len()).step_by(step) {
            let path = place.path().join("cut");
            std::fs::write(&path, &whole[..length]).unwrap();
            let Ok(recording) = Recording::of_files(&[Named::at_l0(&path)], None) else { continue };
            let Ok(input) = kvmscope_analysis::open(recording) else { continue };
            for (_, samples) in input.results.each() {
                let in_buckets: u64 = samples.buckets.iter().map(|bucket| bucket.count).sum();
                assert_eq!(in_buckets, samples.count, "{name:?} cut at {length}");
                assert!(samples.count <= all.max(1), "{name:?} cut at {length}: {} of {all}", samples.count);
                let (low, high) = samples.over(15_000);
                assert!(low <= high && high <= samples.count, "{name:?} cut at {length}");
            }
        }
    }
}

#[test]
fn half_a_json_says_where_it_ends() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("half.json");
    let whole = std::fs::read(fixture("cyclictest.json")).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (results, problems) = read(&path);
    assert!(results.each().map(|(_, samples)| samples.count).sum::<u64>() > 0);
    let is_at_end = |problem: &Problem| problem.offset.is_some_and(|at| at + 1 >= whole.len() as u64 / 2);
    assert!(problems.iter().any(is_at_end), "{problems:?}");
}

#[test]
fn columns_of_rtla_are_read_by_their_head_and_buckets_by_their_step() {
    let (timerlat, osnoise) = (samples("rtla-timerlat-hist.txt"), samples("rtla-osnoise-hist.txt"));
    assert_eq!(told(&timerlat), [(393, 0, Some(29), Some(17_552)), (393, 0, Some(104), Some(17_727))]);
    let names: Vec<_> = timerlat.iter().map(|one| (one.thread.as_str(), one.cpu, one.source)).collect();
    assert_eq!(names, [("IRQ-000", Some(0), Source::Timerlat), ("Thr-000", Some(0), Source::Timerlat)]);
    let width = |one: &Samples| one.buckets.iter().map(|bucket| bucket.to_ns - bucket.from_ns).max();
    assert_eq!(width(&timerlat[0]), Some(10_000), "rows step by 10 us");
    // One sample of the first row, of 20 to 30 us, is the shortest: 29 us.
    assert_eq!((timerlat[0].over(28_999), timerlat[0].over(29_999)), ((393, 393), (392, 392)));
    assert_eq!(told(&osnoise), [(92, 0, Some(100), Some(41_080))]);
}
