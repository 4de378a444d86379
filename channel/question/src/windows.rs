//! Windows that others published, to swap into a model: nobody has them on an ordinary host.
//!
//! Execution leaves a guest's own view of memory by VMFUNC (Intel, EPTP switching) or by a hypercall; stock KVM gives ordinary guests no list of
//! views, so that none of these is ever measured here.

/// How sure a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Remembered from a publication, and not looked up again.
    Recalled,
}

/// What a window costs for one batch: opening and closing it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Price {
    Ns(f64),
    /// In cycles of the machine that it was measured on; ours has its own rate.
    Cycles(f64),
}

/// A window that others measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Published {
    pub name: &'static str,
    pub price: Price,
    pub known: Known,
    pub source: &'static str,
}

pub(crate) const WINDOWS: &[Published] = &[
    Published {
        name: "vmfunc",
        price: Price::Cycles(396.0),
        known: Known::Recalled,
        source: "SkyBridge, EuroSys'19, a round trip",
    },
    Published {
        name: "vmfunc+trampoline",
        price: Price::Ns(196.0),
        known: Known::Recalled,
        source: "ELISA, ASPLOS'23, doi 10.1145/3582016.3582042, a round trip",
    },
    Published {
        name: "hypercall",
        price: Price::Ns(699.0),
        known: Known::Recalled,
        source: "VMCALL in ELISA, ASPLOS'23, doi 10.1145/3582016.3582042, a round trip",
    },
];

/// A window whose price was given with the bench, by whoever ran it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    pub name: String,
    /// What a batch pays for it.
    pub ns: f64,
}

impl Given {
    /// Each of `vmfunc=196, mine=20`; what is no price of a name is left out.
    pub(crate) fn all(text: &str) -> Vec<Given> {
        let one = |part: &str| {
            let (name, ns) = part.trim().split_once('=')?;
            let ns = ns.parse().ok().filter(|ns: &f64| *ns > 0.0 && ns.is_finite())?;
            Some(Given { name: name.to_owned(), ns })
        };
        text.split(',').filter_map(one).collect()
    }

    pub(crate) fn said(&self) -> String {
        format!("{}, {} ns (given with --window)", self.name, self.ns)
    }
}

/// What is modelled on a machine: published windows and those that were given, which stand for published ones of their names. Name, price
/// in ns, whether it was given, what it stands on.
pub(crate) fn modelled(given: &[Given], ns_per_tick: Option<f64>) -> Vec<(&str, f64, bool, String)> {
    let published = WINDOWS.iter().filter(|window| given.iter().all(|own| own.name != window.name));
    let published = published.filter_map(|window| Some((window.name, window.ns(ns_per_tick)?, false, window.said())));
    published.chain(given.iter().map(|own| (own.name.as_str(), own.ns, true, own.said()))).collect()
}

/// A rate that others published, in Mpps, for context alone.
pub(crate) const SEED_MPPS: f64 = 65.0;
pub(crate) const SEED: &str = "Published for context: 65 Mpps at batch 32, variant not stated (J. Nakajima, 2015)";

impl Published {
    /// In ns, where a tick of the time-stamp counter takes that long.
    pub(crate) fn ns(&self, ns_per_tick: Option<f64>) -> Option<f64> {
        match self.price {
            Price::Ns(ns) => Some(ns),
            Price::Cycles(cycles) => Some(cycles * ns_per_tick.filter(|ns| *ns > 0.0 && ns.is_finite())?),
        }
    }

    pub(crate) fn said(&self) -> String {
        let sure = match self.known {
            Known::Recalled => "recalled, not checked again",
        };
        let price = match self.price {
            Price::Ns(ns) => format!("{ns} ns"),
            Price::Cycles(cycles) => format!("about {cycles} cycles"),
        };
        format!("{}, {price} ({}: {sure})", self.name, self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_become_ns_at_the_rate_of_this_machine_or_stay_unknown() {
        let of = |name: &str| WINDOWS.iter().find(|window| window.name == name).unwrap();
        assert_eq!(of("vmfunc").ns(Some(0.5)), Some(198.0));
        assert_eq!([of("vmfunc").ns(None), of("vmfunc").ns(Some(0.0))], [None, None]);
        assert_eq!(of("vmfunc+trampoline").ns(None), Some(196.0));
    }

    #[test]
    fn what_was_given_is_read_and_the_rest_left_out() {
        let names: Vec<_> = Given::all("vmfunc=196, mine=0.5,none=,x=-1,y").into_iter().map(|one| one.said()).collect();
        assert_eq!(names, ["vmfunc, 196 ns (given with --window)", "mine, 0.5 ns (given with --window)"]);
    }

    #[test]
    fn each_says_where_it_comes_from_and_that_nobody_checked_it_again() {
        assert!(WINDOWS.iter().all(|window| window.said().ends_with(": recalled, not checked again)")));
    }
}
