//! Parts of a page for a document that is not ours, such as a notebook: the page's drawings, and its style for them alone.
//!
//! Nothing of it has a script, and no rule of the style reaches what stands around it.

use super::drawing::Drawing;
use super::{Page, STYLE, body, chains, finding, look, mark, table, timeline};
use base::recording::Emulator;
use base::{Finding, Table, in_order};

/// All of a page but what a script needs.
pub fn page(page: &Page<'_>) -> String {
    let beside = page.drawn.is_some_and(Drawing::has_lanes_beside);
    within(&body(page, beside).expect("a String takes all that is written"))
}

/// One table of section `section`, however many rows people want to see; `None` if it is for programs alone. Times of hardware that
/// was emulated are marked.
pub fn of_table(section: &str, of: &Table, emulated: Option<Emulator>) -> Option<String> {
    of.shown.as_ref()?;
    let mut out = look::definitions() + &mark(emulated);
    table::render(section, of, &mut out).expect("a String takes all that is written");
    Some(within(&out))
}

/// Findings as cards, the one to act on first.
pub fn of_findings(findings: &[&Finding]) -> String {
    let mut out = String::from("<div class=\"cards\">\n");
    finding::render(&in_order(findings.to_vec()), &mut out).expect("a String takes all that is written");
    out.push_str("</div>\n");
    within(&out)
}

/// The lanes of a recording, and its chains.
pub fn of_drawing(drawn: &Drawing, emulated: Option<Emulator>) -> String {
    let mut out = look::definitions() + &mark(emulated);
    let lanes = timeline::render(&drawn.overview, drawn.has_lanes_beside(), &mut out);
    lanes.and_then(|()| chains::render(drawn, &mut out)).expect("a String takes all that is written");
    within(&out)
}

/// `html` in a box that has the page's style to itself.
fn within(html: &str) -> String {
    format!("<div class=\"kvmscope\"><style>@scope {{\n{}}}</style>\n{html}</div>\n", scoped())
}

/// The page's style, where what is said of the whole page is said of the box around the style.
fn scoped() -> String {
    STYLE.replace(":root {", ":scope {").replace("html {", ":scope {")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rule_reaches_beyond_the_box() {
        let style = scoped();
        assert!(!style.contains(":root") && !style.contains("html {"), "{style}");
        let box_ = within("<p>x</p>");
        assert!(box_.starts_with("<div class=\"kvmscope\"><style>@scope {") && box_.ends_with("<p>x</p></div>\n"));
        assert_eq!(box_.matches('{').count(), box_.matches('}').count());
    }

    #[test]
    fn times_of_emulated_hardware_are_marked() {
        const SHOWN: base::table::Shown = base::shown!["Any", 9; x_ns: "x"];
        const SPEC: base::table::TableSpec = base::table::TableSpec {
            section: "any",
            name: "any",
            version: 1,
            row: "",
            columns: &[base::Column::ns("x_ns")],
            shown: Some(SHOWN),
        };
        let marked = |emulated| of_table("any", &Table::new(&SPEC), emulated).unwrap().contains("times are not");
        assert!(marked(Some(Emulator::Tcg)) && !marked(None));
    }

    #[test]
    fn a_table_for_programs_alone_has_no_html() {
        const SPEC: base::table::TableSpec =
            base::table::TableSpec { section: "any", name: "raw", version: 1, row: "", columns: &[], shown: None };
        assert_eq!(of_table("any", &Table::new(&SPEC), None), None);
    }
}
