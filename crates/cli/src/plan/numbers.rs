//! Numbers that a user gives to a plan: rates, costs, ranges.

use analysis::facts::estimate::Estimate;
use analysis::facts::events::reasons::Reason;
use analysis::nesting::plan::Rate;
use base::nearest::instead;

/// `16400`, or `15000..18000`.
pub(crate) fn cycles(text: &str) -> Result<Estimate, String> {
    const HOW: &str = "write cycles, such as 16400, or a range, such as 15000..18000";
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    let estimate = match text.split_once("..") {
        None => number(text).map(Estimate::exact),
        Some((low, high)) => number(low)
            .zip(number(high))
            .filter(|(low, high)| low <= high)
            .map(|(low, high)| Estimate { low, mid: f64::midpoint(low, high), high }),
    };
    estimate.ok_or_else(|| HOW.to_owned())
}

/// `CPUID=5000`, `CPUID=5000/s`, `IO@user=300`, `L1:MSR=2000`.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    const HOW: &str = "write REASON=N per second, such as CPUID=5000; IO@user=300 for exits that the VMM handles, \
                       L1:MSR=2000 for exits of L1";
    let (name, number) = text.split_once('=').ok_or(HOW)?;
    let per_second: f64 = number.strip_suffix("/s").unwrap_or(number).parse().map_err(|_| HOW)?;
    let (level, name) = match name.split_once(':') {
        Some(("L1" | "l1", name)) => (1, name),
        Some(("L2" | "l2", name)) => (2, name),
        Some(_) => return Err(HOW.to_owned()),
        None => (2, name),
    };
    let (reason, userspace) = name.strip_suffix("@user").map_or((name, false), |reason| (reason, true));
    if reason.is_empty() || !per_second.is_finite() || per_second < 0.0 {
        return Err(HOW.to_owned());
    }
    Ok(Rate { level, reason: known(&reason.to_uppercase())?, per_second, userspace })
}

/// What the model knows beside the reasons of the tables: one register of MSR, which has remedies of its own.
const EXTRA: &[&str] = &["TSC_DEADLINE"];

/// The reason as the tables call it, from a name under which the kernel or these tables print it.
fn known(reason: &str) -> Result<String, String> {
    let aliases = [
        ("MSR_READ", "MSR"),
        ("MSR_WRITE", "MSR"),
        ("IO_INSTRUCTION", "IO"),
        ("PENDING_INTERRUPT", "INTERRUPT_WINDOW"),
        ("CR_ACCESS", "CR"),
        ("DR_ACCESS", "DR"),
        ("PAUSE_INSTRUCTION", "PAUSE"),
        ("MWAIT_INSTRUCTION", "MWAIT"),
    ];
    let name = aliases.iter().find(|(alias, _)| *alias == reason).map_or(reason, |(_, name)| name);
    let priced = EXTRA.contains(&name) || Reason::names().any(|known| known == name);
    if priced {
        Ok(name.to_owned())
    } else {
        Err(format!("`{reason}` is not an exit reason; {}", instead(reason, Reason::names())))
    }
}

/// `MSR=2000`, or a range.
pub(crate) fn cost(text: &str) -> Result<(String, Estimate), String> {
    let (reason, cost) = text.split_once('=').ok_or("write REASON=CYCLES, such as MSR=2000")?;
    Ok((known(&reason.to_uppercase())?, cycles(cost)?))
}

/// `2.4` GHz as ticks a second.
pub(crate) fn ghz(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok().filter(|value: &f64| (0.1..100.0).contains(value));
    value.map(|value| value * 1e9).ok_or_else(|| "write the TSC frequency in GHz, such as 2.4".to_owned())
}

/// `0.1`, or `10%`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let value: Option<f64> = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|value| value / 100.0),
        None => text.parse().ok(),
    };
    value.filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| "write a share, such as 0.1 or 10%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_a_reason_a_number_and_perhaps_a_level_and_an_end() {
        let read = |text| rate(text).map(|rate| (rate.level, rate.reason, rate.per_second, rate.userspace));
        assert_eq!(read("CPUID=5000/s"), Ok((2, "CPUID".into(), 5_000.0, false)));
        assert_eq!(read("io_instruction@user=3"), Ok((2, "IO".into(), 3.0, true)));
        assert_eq!(read("L1:MSR_WRITE=2.5"), Ok((1, "MSR".into(), 2.5, false)));
        for text in ["CPUID", "=5", "CPUID=x", "L9:CPUID=1", "CPUID=-1", "CPUID=NaN"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cycles_may_be_a_range() {
        assert_eq!(cycles("16400"), Ok(Estimate::exact(16_400.0)));
        assert_eq!(cycles("10..20"), Ok(Estimate { low: 10.0, mid: 15.0, high: 20.0 }));
        assert!(cycles("20..10").is_err() && cycles("-1").is_err() && cycles("").is_err());
        assert_eq!((share("10%"), share("0.5"), ghz("2.4")), (Ok(0.1), Ok(0.5), Ok(2.4e9)));
        assert!(share("2").is_err() && ghz("0").is_err());
    }
}
