//! What traffic generators print while they send: NFVbench's lines of each interval, and the totals of TRex's console.
//!
//! ```text
//! 2020-04-25 12:59:20,645 INFO TX:   1,898,805,769; RX:   1,683,782,636; (Est.) Dropped:    2,514,784; Drop rate:  50.0883%
//! Total-Tx        :       5.00 Gbps        drop-rate       :       1.20 Gbps        Total-PPS       :       7.44 Mpps
//! ```
//! NFVbench's TX and RX are sums since the run began, what was dropped is of one interval and may be below 0, because packets are on
//! the way. Sources: nfvbench/stats_manager.py and docs/user/advanced.rst of NFVbench 4.0; TRex manual 3.0, "Running TRex".

/// What was sent and what came back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traffic {
    /// The time of its line, as it was printed.
    pub at: Option<String>,
    /// Packets since the run began.
    pub tx_packets: Option<u64>,
    pub rx_packets: Option<u64>,
    /// Packets of this interval that did not come back.
    pub dropped: Option<i64>,
    /// The same, of those that were sent in it.
    pub drop_share: Option<f64>,
    /// Packets a second.
    pub tx_pps: Option<f64>,
    /// Bits a second.
    pub tx_bits_per_s: Option<f64>,
    pub dropped_bits_per_s: Option<f64>,
}

/// Every interval, in the order of the text.
pub fn read(text: &str) -> Vec<Traffic> {
    let mut found: Vec<Traffic> = Vec::new();
    for line in text.lines().take(super::MOST) {
        if let Some(interval) = nfvbench(line) {
            found.push(interval);
        } else if let Some((name, value)) = total(line) {
            // A screen has each name once; the next screen begins with the first of them again.
            if name == "total-tx" || found.is_empty() {
                found.push(Traffic::default());
            }
            let Some(last) = found.last_mut() else { continue };
            match name.as_str() {
                "total-tx" => last.tx_bits_per_s = Some(value),
                "total-pps" => last.tx_pps = Some(value),
                "drop-rate" => {
                    last.dropped_bits_per_s = Some(value);
                    last.drop_share = last.tx_bits_per_s.filter(|sent| *sent > 0.0).map(|sent| value / sent);
                }
                _ => {}
            }
        }
    }
    found
}

fn nfvbench(line: &str) -> Option<Traffic> {
    let after = |name: &str| Some(line.split_once(name)?.1.split(';').next()?.trim());
    let count = |name: &str| after(name)?.replace(',', "").parse::<i64>().ok();
    let (tx, rx) = (count("TX:")?, count("RX:")?);
    Some(Traffic {
        at: line.split_once(" INFO ").map(|(at, _)| at.trim().to_owned()),
        tx_packets: u64::try_from(tx).ok(),
        rx_packets: u64::try_from(rx).ok(),
        dropped: Some(count("Dropped:")?),
        drop_share: after("Drop rate:")
            .and_then(|share| share.trim_end_matches('%').parse::<f64>().ok())
            .map(|share| share / 100.0),
        ..Traffic::default()
    })
}

/// `Total-Tx : 5.00 Gbps`: a name in small letters, and bits or packets a second.
fn total(line: &str) -> Option<(String, f64)> {
    let (name, rest) = line.split_once(':')?;
    let name = name.trim().to_ascii_lowercase();
    if !["total-tx", "total-rx", "total-pps", "total-cps", "drop-rate"].contains(&name.as_str()) {
        return None;
    }
    let mut words = rest.split_whitespace();
    let (value, unit) = (words.next()?.parse::<f64>().ok()?, words.next()?);
    let scale = match unit.chars().next()? {
        'K' => 1e3,
        'M' => 1e6,
        'G' => 1e9,
        _ => 1.0,
    };
    Some((name, value * scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nfvbench_tells_every_interval() {
        let text = "2020-04-25 12:59:18,632 INFO TX:   1,888,764,404; RX:   1,676,686,993; (Est.) Dropped:           39; Drop rate:   0.0008%\n\
                    2020-04-25 12:59:20,645 INFO TX:   1,898,805,769; RX:   1,683,782,636; (Est.) Dropped:    2,514,784; Drop rate:  50.0883%\n\
                    2020-04-25 12:59:21,645 INFO TX:   1,898,805,769; RX:   1,683,782,636; (Est.) Dropped:           -4; Drop rate:  -0.0001%\n";
        let found = read(text);
        assert_eq!(found.len(), 3);
        assert_eq!(found[1].at.as_deref(), Some("2020-04-25 12:59:20,645"));
        assert_eq!(
            (found[1].tx_packets, found[1].dropped, found[2].dropped),
            (Some(1_898_805_769), Some(2_514_784), Some(-4))
        );
        assert!((found[1].drop_share.unwrap_or_default() - 0.500_883).abs() < 1e-9);
    }

    #[test]
    fn trex_tells_rates() {
        let text = " Total-Tx        :       5.00 Gbps  \n Total-Rx        :       3.80 Gbps  \n Total-PPS       :       7.44 Mpps  \n drop-rate       :       1.20 Gbps  \n";
        let [found] = &read(text)[..] else { panic!("one screen") };
        assert_eq!((found.tx_bits_per_s, found.tx_pps), (Some(5e9), Some(7.44e6)));
        assert!((found.drop_share.unwrap_or_default() - 0.24).abs() < 1e-9);
        assert_eq!(read("TX: many; RX: some\nport: 5\n"), []);
    }
}
