use super::*;

const PERF_KVM: &str = "             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time\n\n\
                 HLT      40833    95.85%    99.69%      1.16us    7968.39us     29.41us ( +-   1.54% )\n\
      EXTERNAL_INTERRUPT    967     2.27%     0.10%      0.86us      25.61us      1.21us ( +-   1.40% )\n\n\
Total Samples:42600, Total events handled time:1204521.56us.\n";

#[test]
fn perf_kvm_stat_is_read_also_wrapped_and_without_its_head() {
    let (by, rows, _) = counted(PERF_KVM).unwrap();
    assert_eq!((by, rows.len()), (Counter::PerfKvmStat, 2));
    let hlt = &rows[0];
    assert_eq!(
        (hlt.name.as_str(), hlt.count, hlt.time_share, hlt.mean_ns),
        ("HLT", 40_833, Some(0.9969), Some(29_410.0))
    );
    let without = PERF_KVM.lines().skip(1).collect::<Vec<_>>().join("\n");
    assert_eq!(counted(&without).unwrap().1, rows);
    let wrapped = PERF_KVM.replace("    99.69%      1.16us", "\n    99.69%\n 1.16us");
    assert_eq!(counted(&wrapped).unwrap().1, rows);
}

#[test]
fn kvm_stat_tells_totals_and_rates() {
    let text = "kvm statistics - summary\n\n Event                                         Total %Total CurAvg/s\n kvm_fpu                                      331506   26.6    16575\n kvm_exit                                     331503   26.6    16575\n Total                                       1114522           55725\n";
    let (by, rows, _) = counted(text).unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.count, row.per_second)).collect();
    assert_eq!(by, Counter::KvmStat);
    assert_eq!(told, [("kvm_fpu", 331_506, Some(16_575.0)), ("kvm_exit", 331_503, Some(16_575.0))]);
    let debugfs = text.replace("kvm_fpu ", "io_exits").replace("kvm_exit", "exits   ");
    assert!(counted(&debugfs).unwrap().1.iter().all(|row| row.count_share.is_none()));
}

#[test]
fn perf_stat_tells_counts_and_for_how_long() {
    let text = " Performance counter stats for 'system wide':\n\n        331,503      kvm:kvm_exit                 [100.00%]\n              0      kvm:kvm_mmio\n\n      10.000000000 seconds time elapsed\n";
    let (by, rows, seconds) = counted(text).unwrap();
    assert_eq!((by, seconds), (Counter::PerfStat, Some(10.0)));
    assert_eq!((rows[0].count, rows[0].per_second, rows[1].count), (331_503, Some(33_150.3), 0));
    assert!(counted("12 of 40 kvm hosts\n").is_none());
    for thousands in [".", "'", " ", "\u{202f}"] {
        let other = text.replace(',', thousands).replace("10.000000000", "10,000000000");
        assert_eq!(counted(&other).unwrap().1, rows, "{other}");
    }
    assert_eq!([count("1.84"), count("1842.309"), count("1.842.309")], [None, None, Some(1_842_309)]);
}

#[test]
fn two_copies_of_debugfs_tell_what_was_added() {
    let one = "exits:100\nhalt_exits:90\nhalt_poll_fail_ns:1000000000\npages_4k:7\n";
    let other = "exits:1100\nhalt_exits:90\nhalt_poll_fail_ns:21000000000\npages_4k:9\n";
    let text = format!("23:59:58.500000000\n{one}# sleep 10\n00:00:08.500000000\n{other}");
    let (by, rows, seconds) = counted(&text).unwrap();
    assert_eq!((by, seconds), (Counter::Debugfs, Some(10.0)));
    let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.count, row.per_second)).collect();
    assert_eq!(
        told,
        [
            ("exits", 1_000, Some(100.0)),
            ("halt_exits", 0, Some(0.0)),
            ("halt_poll_fail_ns", 20_000_000_000, Some(2e9)),
            ("pages_4k", 9, None)
        ]
    );
    assert_eq!(counted(one).unwrap().1[0].count, 100, "one copy has sums since the VM began");
}

#[test]
fn a_part_of_another_row_has_its_share_of_that_one() {
    let head = "kvm statistics - summary\n\n Event                    Total %Total CurAvg/s\n kvm_exit                 2000   50.0      200\n";
    let between = " kvm_entry     1999   49.9      199\n kvm_exit(HLT)   1500      150\n";
    let (_, rows, _) = counted(&format!("{head}{between}")).unwrap();
    assert_eq!(rows[2].count_share, Some(0.75), "whatever stands between");
    for part in [
        "   kvm_exit(HLT)          1500   75.0      150\n",
        " kvm_exit(HLT)            1500             150\n",
        "   HLT   1500   75.0   150\n",
    ] {
        let (_, rows, _) = counted(&format!("{head}{part} kvm_msr  400   10.0   40\n")).unwrap();
        let told: Vec<_> = rows.iter().map(|row| (row.count_share, row.share_of.as_deref(), row.per_second)).collect();
        let expected = [
            (Some(0.5), None, Some(200.0)),
            (Some(0.75), Some("kvm_exit"), Some(150.0)),
            (Some(0.1), None, Some(40.0)),
        ];
        assert_eq!(told, expected, "{part}");
    }
}

#[test]
fn kvmexit_of_bcc_counts_by_thread_and_may_tell_means() {
    let text = "Display kvm exit reasons and statistics for all threads after sleeping 10 secs.\n\
                PID      TID      KVM_EXIT_REASON                     COUNT\n\
                ^C16761  16768    EXIT_REASON_HLT                     5965\n\
                16761    16769    EXIT_REASON_HLT                     35\n\
                16761    16768    EPT_MISCONFIG                       2000\n";
    let (by, rows, seconds) = counted(text).unwrap();
    assert_eq!((by, seconds, rows.len()), (Counter::KvmExit, Some(10.0), 2));
    assert_eq!((rows[1].name.as_str(), rows[1].count, rows[1].count_share), ("HLT", 6_000, Some(0.75)));
    assert_eq!((rows[1].per_second, rows[1].mean_ns), (Some(600.0), None));
    let timed = "KVM_EXIT_REASON COUNT EXIT_TIME_AVG\nMSR_READ 47 1519\nMSR_WRITE 3 519\n";
    let (_, rows, _) = counted(timed).unwrap();
    assert_eq!((rows[0].mean_ns, rows[1].mean_ns), (Some(1_519.0), Some(519.0)));
}
