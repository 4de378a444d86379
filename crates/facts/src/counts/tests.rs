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

#[test]
fn names_of_threads_move_no_column_of_kvmexit() {
    let text = "TGID TID COMM KVM_EXIT_REASON COUNT AVG_TIME\n24877 24901 b'CPU 3/KVM' EC_WFx 7 5000.0\n24877 24900 b'CPU 2/KVM' EC_DABT_LOW 2 11320.0\n";
    let (_, rows, _) = counted(text).unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.count, row.mean_ns)).collect();
    assert_eq!(told, [("DABT_LOW", 2, Some(11_320.0)), ("WFx", 7, Some(5_000.0))]);
}

#[test]
fn perf_of_today_has_times_in_ns_and_the_mean_last() {
    let text = "Event name Samples Sample% Time (ns) Time% Max Time (ns) Min Time (ns) Mean Time (ns)\nHLT 300 75.00% 9000000 90.00% 50000 1000 30000\n";
    let (by, rows, _) = counted(text).unwrap();
    assert_eq!((by, rows[0].count, rows[0].time_share), (Counter::PerfKvmStat, 300, Some(0.9)));
    assert_eq!((rows[0].min_ns, rows[0].max_ns, rows[0].mean_ns), (Some(1e3), Some(5e4), Some(3e4)));
}

#[test]
fn numbers_of_reasons_have_names_where_one_instruction_set_alone_has_them() {
    let script = "# bpftrace -e 'tracepoint:kvm:kvm_exit { @x[args->exit_reason] = count(); } interval:s:10 { exit(); }'\nAttaching 2 probes...\n";
    let of = |rows: &str| {
        let (by, rows, seconds) = counted(&format!("{script}{rows}")).unwrap();
        assert_eq!((by, seconds), (Counter::Bpftrace, Some(10.0)));
        rows.into_iter().map(|row| (row.name, row.per_second)).collect::<Vec<_>>()
    };
    assert_eq!(of("@x[12]: 50\n@x[30]: 100\n"), [("HLT".to_owned(), Some(5.0)), ("IO".to_owned(), Some(10.0))]);
    assert_eq!(of("@x[120]: 50\n")[0].0, "HLT", "0x78 of SVM");
    assert_eq!(of("@x[30]: 50\n")[0].0, "reason 30", "of both");
    let service = "# reason: count sum(us) min(us) avg(us) max(us)\n12: 2 3000 58 1500 2942\n40: 10 1000 0 100 470\n";
    let (_, rows, _) = counted(service).unwrap();
    assert_eq!((rows[0].name.as_str(), rows[0].time_share, rows[0].mean_ns), ("HLT", Some(0.75), Some(1_500_000.0)));
    assert_eq!((rows[1].name.as_str(), rows[1].max_ns), ("PAUSE", Some(470_000.0)));
}

#[test]
fn counters_of_arm_stand_in_the_folder_of_a_vcpu() {
    let text = "# cat vcpu0/exits; grep . vcpu0/*; sleep 10; grep . vcpu0/*\n812044\nvcpu0/exits:812044\nvcpu0/wfi_exit_stat:400117\nvcpu0/exits:1042044\nvcpu0/wfi_exit_stat:430117\n";
    let (by, rows, seconds) = counted(text).unwrap();
    assert_eq!((by, seconds), (Counter::Debugfs, Some(10.0)));
    let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.count, row.per_second)).collect();
    assert_eq!(told, [("vcpu0/exits", 230_000, Some(23_000.0)), ("vcpu0/wfi_exit_stat", 30_000, Some(3_000.0))]);
}
