//! Reads the XML that AWS answers with: elements and their texts, and nothing else of XML.

/// An element without its attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

/// How deep elements may lie in each other; AWS needs ten.
const DEPTH_LIMIT: usize = 64;

impl Element {
    /// The one element of a document; `None` where the text is no such document.
    pub fn parse(document: &str) -> Option<Self> {
        let mut rest = document;
        let mut open: Vec<Element> = Vec::new();
        loop {
            let (text, markup) = rest.split_once('<')?;
            if let Some(parent) = open.last_mut() {
                parent.text.push_str(&unescaped(text.trim())?);
            }
            if let Some(comment) = markup.strip_prefix("!--") {
                rest = comment.split_once("-->")?.1;
                continue;
            }
            let (tag, behind) = markup.split_once('>')?;
            rest = behind;
            let ended = match tag.strip_prefix('/') {
                _ if tag.starts_with(['?', '!']) => continue,
                Some(name) => {
                    let element = open.pop()?;
                    (element.name == name.trim_end()).then_some(element)?
                }
                None => {
                    let name = tag.trim_end_matches('/').split_whitespace().next()?;
                    let element = Element { name: name.to_owned(), ..Element::default() };
                    if open.len() >= DEPTH_LIMIT {
                        return None;
                    }
                    if !tag.ends_with('/') {
                        open.push(element);
                        continue;
                    }
                    element
                }
            };
            match open.last_mut() {
                Some(parent) => parent.children.push(ended),
                None => return rest.trim().is_empty().then_some(ended),
            }
        }
    }

    /// The first element of this name, at any depth.
    pub fn find(&self, name: &str) -> Option<&Element> {
        let mut children = self.children.iter();
        children
            .find_map(|child| (child.name == name).then_some(child).or_else(|| child.find(name)))
    }

    /// The text of the first element of this name; empty where there is none.
    pub fn text_of(&self, name: &str) -> &str {
        self.find(name).map_or("", |element| &element.text)
    }

    /// The members of the first list of this name.
    pub fn members(&self, name: &str) -> &[Element] {
        self.find(name).map_or(&[], |list| &list.children)
    }
}

/// A text with its five names and its numbers resolved.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut found = parts.next()?.to_owned();
    for part in parts {
        let (name, behind) = part.split_once(';')?;
        found.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code)?
            }
        });
        found.push_str(behind);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_texts_and_lists_are_found_at_any_depth() {
        let document = r#"<?xml version="1.0"?>
            <!-- what AWS answers -->
            <Answer xmlns="http://example.com/doc/">
              <Result><Rules>
                <member><Arn>a&amp;b&#47;&#x63;</Arn><Empty/></member>
                <member><Arn>second</Arn></member>
              </Rules></Result>
            </Answer>"#;
        let answer = Element::parse(document).unwrap();
        let arns = answer.members("Rules").iter().map(|member| member.text_of("Arn"));
        assert_eq!(arns.collect::<Vec<_>>(), ["a&b/c", "second"]);
        assert_eq!(answer.text_of("Empty"), "");
        assert_eq!(answer.text_of("Nobody"), "");
        assert_eq!(answer.members("Nobody"), []);
    }

    #[test]
    fn what_is_no_document_is_none() {
        let deep = "<a>".repeat(DEPTH_LIMIT + 1);
        for text in ["", "text", "<a>", "<a></b>", "</a>", "<a/><b/>", "<a>&no;</a>", "<", &deep] {
            assert_eq!(Element::parse(text), None, "{text}");
        }
    }
}
