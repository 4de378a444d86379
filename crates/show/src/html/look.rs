//! How a state looks: a hue for its level, and a pattern, because hue alone is not seen by everybody or in print.
//!
//! The page, with its script and without, is one picture: hues (`style.css` has them as `--s-<state>`, for light and dark),
//! patterns and order are those of the dashboard, `ui/src/draw/tokens.ts` and `patterns.ts`; a test compares them. Hues are
//! near the Okabe-Ito set, which colour-blind readers tell apart (Okabe and Ito, "Color Universal Design", 2008).

/// Strokes over the hue, in a tile of 8 x 8: SVG path data and how wide they are.
type Pattern = (&'static str, &'static str);

const SOLID: Pattern = ("", "0");
const LINES: Pattern = ("M0 1.5h8M0 5.5h8", "1");
const DOTS: Pattern = ("M1 2h2M5 6h2", "2");
const SPARSE: Pattern = ("M3 4h1.5", "1.5");
const DIAGONAL: Pattern = ("M-2 6L6 -2M-2 10L10 -2M2 10L10 2", "1.6");
const BACK: Pattern = ("M-2 2L6 10M-2 -2L10 10M2 -2L10 6", "1.2");
const CROSS: Pattern = ("M0 0L8 8M8 0L0 8", "0.9");
const BARS: Pattern = ("M1.5 0v8M5.5 0v8", "1");
const PLUS: Pattern = ("M4 2v4M2 4h4", "1.2");
const GRID: Pattern = ("M0 4h8M4 0v8", "0.9");
const BRICKS: Pattern = ("M0 0.5h8M0 4.5h8M2 0.5v4M6 4.5v4", "1");
const RINGS: Pattern = ("M6 4A2 2 0 1 1 2 4A2 2 0 1 1 6 4", "0.9");
const HATCH: Pattern = ("M-2 6L6 -2M-2 10L10 -2M2 10L10 2", "0.8");

/// States in the order in which they are stacked, from the top: deep guests first, what nothing tells last.
const LOOKS: [(&str, Pattern); 25] = [
    ("guest_l3", PLUS),
    ("guest_l2", SOLID),
    ("guest_l1", SOLID),
    ("handling_l2_by_l1", LINES),
    ("handling_unknown_level_by_l1", GRID),
    ("guest_unknown_level", CROSS),
    ("handling_l3", BRICKS),
    ("handling_l2", LINES),
    ("handling_l1", SOLID),
    ("handling_unknown_level", GRID),
    ("irq", BARS),
    ("softirq", DOTS),
    ("nmi", CROSS),
    ("halt_poll", SPARSE),
    ("userspace", DOTS),
    ("running", SOLID),
    ("task", BARS),
    ("runnable", BACK),
    ("preempted", DIAGONAL),
    ("wake_delay", BACK),
    ("blocked", RINGS),
    ("halted", SOLID),
    ("idle", SOLID),
    ("sleeping", SPARSE),
    ("unknown", HATCH),
];

/// Levels as rows of figures name them, and the state whose look they have.
const LEVELS: [(&str, &str); 5] =
    [("L3", "guest_l3"), ("L2", "guest_l2"), ("L1", "guest_l1"), ("L0", "handling_l1"), ("VMM", "userspace")];

/// The look of what has no state: bars that count something else.
const PLAIN: &str = "plain";

/// The place of a state, or of a level's own state, in the stack.
fn place(name: &str) -> Option<usize> {
    let of = |state: &str| LOOKS.iter().position(|(known, _)| *known == state);
    let level = || LEVELS.iter().find(|(level, _)| name.starts_with(level)).and_then(|(_, state)| of(state));
    of(name).or_else(level).or_else(|| {
        // Deeper guests than have a look of their own.
        let deep = [("guest_l", "guest_l3"), ("handling_l", "handling_l3")];
        deep.iter().find(|(begins, _)| name.starts_with(begins)).and_then(|(_, state)| of(state))
    })
}

/// What a shape of this state is filled with: the `fill` attribute's value.
pub(super) fn fill(name: &str) -> String {
    format!("url(#p-{})", place(name).map_or(PLAIN, |place| LOOKS[place].0))
}

/// Where the state stands in a stack, counted from the top.
pub(super) fn rank(name: &str) -> usize {
    place(name).unwrap_or(LOOKS.len())
}

/// All fills, to stand once on the page in front of what uses them.
pub(super) fn definitions() -> String {
    let mut out = String::from("<svg class=\"defs\" aria-hidden=\"true\" width=\"0\" height=\"0\"><defs>");
    for (name, (path, width)) in LOOKS.into_iter().chain([(PLAIN, SOLID)]) {
        let strokes = match path {
            "" => String::new(),
            path => format!("<path d=\"{path}\" fill=\"none\" stroke=\"var(--k-{name})\" stroke-width=\"{width}\"/>"),
        };
        out.push_str(&format!(
            "<pattern id=\"p-{name}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
             <rect fill=\"var(--s-{name})\" width=\"8\" height=\"8\"/>{strokes}</pattern>"
        ));
    }
    out.push_str("</defs></svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: &str = include_str!("style.css");

    /// What stands between `before` and the next `after`.
    fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
        text.split_once(before).and_then(|(_, rest)| rest.split_once(after)).map_or("", |(found, _)| found)
    }

    #[test]
    fn the_static_page_and_the_dashboard_are_one_picture() {
        let drawing = |file: &str| std::fs::read_to_string(crate::witness::root().join("ui/src/draw").join(file));
        let (Ok(tokens), Ok(patterns)) = (drawing("tokens.ts"), drawing("patterns.ts")) else {
            return println!("skipped: dashboard: there is no ui/ here");
        };
        let mut last = -1.0;
        let dark = between(STYLE, "prefers-color-scheme: dark", "* { box-sizing");
        for (name, (path, width)) in LOOKS {
            let token = between(&tokens, &format!("\n  {name}: {{"), "}");
            let rank: f64 = between(token, "rank: ", ",").parse().unwrap();
            assert!(rank > last, "{name} stands below what is above it");
            last = rank;
            let hue = |theme: &str| between(token, &format!("{theme}: \""), "\"").to_owned();
            assert_eq!(between(STYLE, &format!("--s-{name}: "), ";"), hue("light"));
            assert_eq!(between(dark, &format!("--s-{name}: "), ";"), hue("dark"));
            let pattern = between(token, "pattern: \"", "\"");
            let drawn = between(&patterns, &format!("\n  {pattern}: {{ "), " }");
            assert_eq!(drawn, format!("path: \"{path}\", width: {width}"), "{name}");
            assert!(path.is_empty() || STYLE.matches(&format!("--k-{name}: ")).count() == 2, "{name} has strokes");
        }
        assert_eq!(tokens.matches("step: \"").count(), LOOKS.len(), "no state is missing here");
        for severity in ["high", "medium", "low", "info"] {
            let hues = between(&tokens, &format!("[\"{severity}\", "), "]").replace('"', "");
            let page = [STYLE, dark].map(|sheet| between(sheet, &format!("--{severity}: "), ";"));
            assert_eq!(hues, page.join(", "), "{severity}");
        }
        let dashes = between(&tokens, "CURVE_DASHES = [", "]").split(", ").map(|dash| dash.trim_matches('"'));
        assert_eq!(dashes.clone().count(), super::super::curves::DASHES);
        for (place, dash) in dashes.enumerate().filter(|(_, dash)| !dash.is_empty()) {
            assert!(STYLE.contains(&format!(".curve.c{place} {{ stroke-dasharray: {dash}; }}")), "{place}: {dash}");
        }
    }

    #[test]
    fn every_name_has_a_look_and_the_deepest_guest_is_on_top() {
        for name in ["guest_l4", "handling_l4", "L2", "VMM", "L0"] {
            assert!(place(name).is_some(), "{name}");
        }
        assert!(LOOKS.iter().all(|(name, _)| definitions().contains(&format!("id=\"p-{name}\""))));
        assert_eq!(fill("frames"), "url(#p-plain)");
        assert!(rank("guest_l2") < rank("guest_l1") && rank("guest_l1") < rank("handling_l1"));
        assert!(rank("unknown") > rank("halted"));
    }
}
