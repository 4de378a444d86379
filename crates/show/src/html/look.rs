//! How a state looks: a hue for its level, and a pattern, because hue alone is not seen by everybody or in print.
//!
//! Hues are the Okabe-Ito set, which colour-blind readers tell apart (Okabe and Ito, "Color Universal Design", 2008);
//! `style.css` has them as `--s-<key>`, for light and dark. What is not known has the colour of the page, hatched.

/// What lies over the hue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Solid,
    /// Fine horizontal lines.
    Rows,
    /// Vertical lines.
    Bars,
    Dots,
    FewDots,
    /// Diagonal lines.
    Slanted,
    /// Both diagonals.
    Hatched,
}

/// One look.
struct Look {
    /// How names of states and lanes begin that look like this.
    names: &'static [&'static str],
    key: &'static str,
    pattern: Pattern,
}

/// In the order in which states are stacked, from below: deep guests first, what nobody used last.
const LOOKS: &[Look] = &[
    Look { names: &["guest_l2", "L2"], key: "l2", pattern: Pattern::Solid },
    Look { names: &["guest_l3", "guest_l4", "L3", "L4"], key: "l3", pattern: Pattern::Bars },
    Look { names: &["guest_l1", "L1"], key: "l1", pattern: Pattern::Solid },
    Look { names: &["guest_"], key: "guest", pattern: Pattern::Slanted },
    Look { names: &["handling_l2_by", "handling_l3_by"], key: "by-guest", pattern: Pattern::Rows },
    Look { names: &["handling_l1", "L0"], key: "for-l1", pattern: Pattern::Solid },
    Look { names: &["handling_l2", "handling_l3"], key: "for-l2", pattern: Pattern::Rows },
    Look { names: &["handling_"], key: "for-any", pattern: Pattern::Slanted },
    Look { names: &["userspace", "VMM"], key: "vmm", pattern: Pattern::Dots },
    Look { names: &["irq", "softirq", "nmi"], key: "irq", pattern: Pattern::Bars },
    Look { names: &["preempted", "runnable"], key: "preempted", pattern: Pattern::Slanted },
    Look { names: &["wake_delay"], key: "wake", pattern: Pattern::Bars },
    Look { names: &["halt_poll"], key: "poll", pattern: Pattern::FewDots },
    Look { names: &["blocked"], key: "blocked", pattern: Pattern::Rows },
    Look { names: &["halted", "sleeping"], key: "halted", pattern: Pattern::Solid },
    Look { names: &["running"], key: "running", pattern: Pattern::Solid },
    Look { names: &["task"], key: "task", pattern: Pattern::Rows },
    Look { names: &["idle"], key: "idle", pattern: Pattern::Solid },
    Look { names: &["unknown"], key: "unknown", pattern: Pattern::Hatched },
];

/// The look of what has no state: bars that count something else.
const PLAIN: Look = Look { names: &[], key: "plain", pattern: Pattern::Solid };

fn place(name: &str) -> Option<usize> {
    LOOKS.iter().position(|look| look.names.iter().any(|begins| name.starts_with(begins)))
}

/// What a shape of this state is filled with: the `fill` attribute's value.
pub fn fill(name: &str) -> String {
    format!("url(#p-{})", place(name).map_or(&PLAIN, |place| &LOOKS[place]).key)
}

/// Where the state stands in a stack, counted from below.
pub fn rank(name: &str) -> usize {
    place(name).unwrap_or(LOOKS.len())
}

/// All fills, to stand once on the page in front of what uses them.
pub fn definitions() -> String {
    let mut out = String::from("<svg class=\"defs\" aria-hidden=\"true\" width=\"0\" height=\"0\"><defs>");
    for look in LOOKS.iter().chain([&PLAIN]) {
        let (size, marks) = look.pattern.marks();
        let key = look.key;
        out.push_str(&format!(
            "<pattern id=\"p-{key}\" width=\"{size}\" height=\"{size}\" patternUnits=\"userSpaceOnUse\">\
             <rect class=\"s-{key}\" width=\"{size}\" height=\"{size}\"/>{marks}</pattern>"
        ));
    }
    out.push_str("</defs></svg>\n");
    out
}

impl Pattern {
    /// The tile's size, and what is drawn over its ground.
    fn marks(self) -> (u32, &'static str) {
        match self {
            Pattern::Solid => (8, ""),
            Pattern::Rows => (4, "<path class=\"m\" d=\"M0 .5h4\"/>"),
            Pattern::Bars => (4, "<path class=\"m\" d=\"M.5 0v4\"/>"),
            Pattern::Dots => (
                6,
                "<circle class=\"d\" cx=\"1.5\" cy=\"1.5\" r=\"1\"/><circle class=\"d\" cx=\"4.5\" cy=\"4.5\" r=\"1\"/>",
            ),
            Pattern::FewDots => (8, "<circle class=\"d\" cx=\"4\" cy=\"4\" r=\"1\"/>"),
            Pattern::Slanted => (6, "<path class=\"m\" d=\"M-1 1l2-2M0 6l6-6M5 7l2-2\"/>"),
            Pattern::Hatched => (8, "<path class=\"m\" d=\"M0 8l8-8M0 0l8 8\"/>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_of_the_ledger_has_a_look_and_neighbours_differ() {
        let states = [
            "guest_l1",
            "guest_l2",
            "guest_l3",
            "guest_unknown_level",
            "handling_l1",
            "handling_l2",
            "handling_unknown_level",
            "handling_l2_by_l1",
            "userspace",
            "irq",
            "softirq",
            "nmi",
            "halt_poll",
            "halted",
            "wake_delay",
            "preempted",
            "blocked",
            "unknown",
            "task",
            "idle",
            "running",
            "runnable",
            "sleeping",
        ];
        for state in states {
            assert!(place(state).is_some(), "{state}");
            assert!(definitions().contains(&format!("id=\"{}\"", &fill(state)[5..fill(state).len() - 1])), "{state}");
        }
        assert_eq!(fill("frames"), "url(#p-plain)");
        assert!(rank("guest_l2") < rank("guest_l1") && rank("guest_l1") < rank("handling_l1"));
        assert!(rank("unknown") > rank("halted"));
    }
}
