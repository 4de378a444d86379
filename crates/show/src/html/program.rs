//! The dashboard on the page, where this build has it: its own script and style, with the page's data as its source.
//!
//! ```text
//! loading   the static page, readable at once       static-style: all      app-style: none
//! mounted   the dashboard takes the screen          static-style: print    app-style: screen
//! ```
//! Paper always gets the static page, and so does a reader whose browser runs no script. The script marks the document
//! with `data-kvmscope="mounted"` when it stands.

/// The dashboard's script and style; empty in a slim build.
const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/report.js"));
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.css"));

/// Hands the screen over.
const SWAP: &str = "\
new MutationObserver(() => {
  const media = (id, words) => { document.getElementById(id).media = words; };
  if (document.documentElement.dataset.kvmscope === \"mounted\") {
    media(\"static-style\", \"print\");
    media(\"app-style\", \"screen\");
    media(\"app-alone\", \"screen\");
  }
}).observe(document.documentElement, { attributes: true });
";

/// What the dashboard stands in place of.
const ALONE: &str = "body > :not(#app) { display: none; }";

/// Scripts that the page runs.
pub(super) fn scripts() -> &'static [&'static str] {
    if SCRIPT.is_empty() { &[] } else { &[SWAP, SCRIPT] }
}

/// Styles beside the page's own.
pub(super) fn styles() -> &'static [&'static str] {
    if SCRIPT.is_empty() { &[] } else { &[STYLE, ALONE] }
}

/// The styles as elements, off until the script stands.
pub(super) fn style_elements() -> String {
    match styles() {
        [] => String::new(),
        _ => format!(
            "<style id=\"app-style\" media=\"not all\">{STYLE}</style>\n\
             <style id=\"app-alone\" media=\"not all\">{ALONE}</style>\n"
        ),
    }
}

/// The scripts as elements, to stand behind the data.
pub(super) fn script_elements() -> String {
    scripts().iter().map(|script| format!("<script>{script}</script>\n")).collect()
}
