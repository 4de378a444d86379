//! Is a text XML that a parser can take apart in little time and on a small stack?
//!
//! The parser goes down by recursion, compares each attribute of an element with all before it, and copies namespaces: all
//! of these are counted here first, in one pass and without memory. What is no XML passes; the parser refuses it where it
//! breaks, which is before this count can go wrong (an end without its beginning, a `<` inside of a tag).

use crate::budget::{XML_ATTRIBUTES, XML_BYTES, XML_DEPTH, XML_NAMESPACES};

/// Where a text goes beyond a bound, and how.
pub(crate) fn check(text: &str) -> Result<(), (usize, String)> {
    if text.len() > XML_BYTES {
        return Err((0, format!("has {} bytes, more than {XML_BYTES}", text.len())));
    }
    if let Some((at, _)) = text.match_indices("xmlns").nth(XML_NAMESPACES) {
        return Err((at, format!("declares more than {XML_NAMESPACES} namespaces")));
    }
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(begin) = text[at..].find('<').map(|found| at + found) {
        let rest = &text[begin..];
        let behind = |end: &str| rest.find(end).map_or(text.len(), |found| begin + found + end.len());
        if rest.starts_with("<!--") {
            at = behind("-->");
        } else if rest.starts_with("<![CDATA[") {
            at = behind("]]>");
        } else if rest.starts_with("<?") {
            at = behind("?>");
        } else if rest.starts_with("</") || rest.starts_with("<!") {
            depth = depth.saturating_sub(usize::from(rest.starts_with("</")));
            at = behind(">");
        } else {
            let tag = Tag::of(&bytes[begin..]);
            at = begin + tag.bytes;
            depth += usize::from(!tag.is_empty);
            if tag.attributes > XML_ATTRIBUTES {
                return Err((begin, format!("has an element of more than {XML_ATTRIBUTES} attributes")));
            }
            if depth > XML_DEPTH {
                return Err((begin, format!("nests more than {XML_DEPTH} elements")));
            }
        }
    }
    Ok(())
}

/// The beginning of an element.
struct Tag {
    bytes: usize,
    attributes: usize,
    /// It has no content: `<a/>`.
    is_empty: bool,
}

impl Tag {
    fn of(bytes: &[u8]) -> Self {
        let mut tag = Self { bytes: bytes.len(), attributes: 0, is_empty: false };
        let mut quote = None;
        for (at, byte) in bytes.iter().enumerate() {
            match (quote, byte) {
                (Some(open), byte) if open == byte => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => tag.attributes += 1,
                (None, b'>') => {
                    tag.is_empty = at > 0 && bytes[at - 1] == b'/';
                    tag.bytes = at + 1;
                    break;
                }
                (None, _) => {}
            }
        }
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth))
    }

    #[test]
    fn depth_is_of_elements_alone() {
        assert_eq!(check(&nested(XML_DEPTH)), Ok(()));
        assert_eq!(check(&nested(XML_DEPTH + 1)).unwrap_err().0, 3 * XML_DEPTH);
        let wide = ["<a/>", "<a b='/>' c=\"<\"></a>", "<!-- <a> -->", "<![CDATA[<a>]]>", "<?a <a> ?>"];
        wide.iter().for_each(|text| assert_eq!(check(&text.repeat(2 * XML_DEPTH)), Ok(()), "{text}"));
        assert!(check(&"<a b='/>'>".repeat(XML_DEPTH + 1)).is_err(), "a quoted end ends nothing");
    }

    #[test]
    fn attributes_and_namespaces_are_counted() {
        let with = |count: usize, name: &str| {
            let attributes: String = (0..count).map(|number| format!(" {name}{number}='x=y'")).collect();
            format!("<a{attributes}/>")
        };
        assert_eq!(check(&with(XML_ATTRIBUTES, "b")), Ok(()));
        assert!(check(&with(XML_ATTRIBUTES + 1, "b")).unwrap_err().1.contains("attributes"));
        let spaces = with(XML_NAMESPACES / 2 + 1, "xmlns:b").repeat(2);
        assert!(check(&spaces).unwrap_err().1.contains("namespaces"));
        assert!(check(&" ".repeat(XML_BYTES + 1)).unwrap_err().1.contains("bytes"));
    }
}
