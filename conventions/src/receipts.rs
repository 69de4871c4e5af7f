//! What was applied to a template, as an annotation of it tells.

use std::collections::HashSet;

use convention_protocol::{APPLIED_CONVENTIONS, PodTemplate};

/// What was applied, in order, each once.
///
/// A convention can neither add a line in the name of another one nor take one away: a line break in what it says is
/// written as `\n`, and the annotation is written anew after each answer.
///
/// ```
/// use conventions::receipts::Receipts;
/// use convention_protocol::PodTemplate;
///
/// let mut receipts = Receipts::default();
/// receipts.add("add-env", &["env".to_owned(), "x\nsecurity/checked".to_owned()]);
/// let mut template = PodTemplate::default();
/// receipts.write(&mut template);
/// let annotation = &template.metadata.annotations["conventions.carto.run/applied-conventions"];
/// assert_eq!(annotation, "add-env/env\nadd-env/x\\nsecurity/checked");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipts {
    lines: Vec<String>,
    /// The same, to find them by.
    known: HashSet<String>,
}

impl Receipts {
    /// What the template says already: a PodIntent may decorate what another one made.
    pub fn of(template: &PodTemplate) -> Self {
        let annotation = template.metadata.annotations.get(APPLIED_CONVENTIONS);
        let lines = annotation.map_or("", String::as_str).split('\n');
        let mut receipts = Self::default();
        for line in lines.filter(|line| !line.is_empty()) {
            receipts.add_line(line.to_owned());
        }
        receipts
    }

    /// Adds what a convention says that it did.
    pub fn add(&mut self, convention: &str, applied: &[String]) {
        for name in applied {
            self.add_line(format!("{convention}/{}", one_line(name)));
        }
    }

    /// Each line, in order.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Writes the annotation over whatever the template has; without any line there is none.
    pub fn write(&self, template: &mut PodTemplate) {
        let annotations = &mut template.metadata.annotations;
        if self.lines.is_empty() {
            annotations.remove(APPLIED_CONVENTIONS);
            return;
        }
        annotations.insert(APPLIED_CONVENTIONS.to_owned(), self.lines.join("\n"));
    }

    fn add_line(&mut self, line: String) {
        if self.known.insert(line.clone()) {
            self.lines.push(line);
        }
    }
}

/// A text without anything that some reader may take for the end of a line, or that a terminal obeys.
fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if breaks(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn annotated(text: &str) -> PodTemplate {
        let mut template = PodTemplate::default();
        let annotations = &mut template.metadata.annotations;
        annotations.insert(APPLIED_CONVENTIONS.to_owned(), text.to_owned());
        template
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn receipts_are_told_in_the_order_of_application_and_once() {
        let mut receipts = Receipts::of(&annotated("earlier/one\n\nearlier/two\nearlier/one\n"));
        receipts.add("b", &texts(&["x", "with/slash", "x"]));
        receipts.add("a", &texts(&["x"]));
        receipts.add("b", &texts(&["x", "y"]));
        assert_eq!(
            receipts.lines(),
            [
                "earlier/one",
                "earlier/two",
                "b/x",
                "b/with/slash",
                "a/x",
                "b/y"
            ]
        );
    }

    #[test]
    fn nothing_that_ends_a_line_is_left_in_a_receipt() {
        for forged in [
            "x\nother/y",
            "x\r\nother/y",
            "x\rother/y",
            "x\u{85}other/y",
            "x\u{2028}other/y",
            "x\u{2029}other/y",
            "x\u{b}other/y",
            "\u{1b}[2Kother/y",
            "\n",
        ] {
            let mut receipts = Receipts::default();
            receipts.add("evil", &texts(&[forged]));
            let mut template = PodTemplate::default();
            receipts.write(&mut template);
            let annotation = &template.metadata.annotations[APPLIED_CONVENTIONS];
            assert!(annotation.starts_with("evil/"), "{annotation:?}");
            assert!(!annotation.contains(char::is_control), "{annotation:?}");
            assert_eq!(Receipts::of(&template), receipts);
        }
    }

    #[test]
    fn without_receipts_there_is_no_annotation() {
        let mut template = annotated("other/forged");
        Receipts::default().write(&mut template);
        assert_eq!(template, PodTemplate::default());
        let mut receipts = Receipts::of(&annotated(""));
        receipts.add("a", &[]);
        assert_eq!(receipts.lines(), Vec::<String>::new());
    }

    #[test]
    fn what_a_template_says_twice_over_is_replaced() {
        let mut receipts = Receipts::default();
        receipts.add("a", &texts(&["b"]));
        let mut template = annotated("other/forged");
        receipts.write(&mut template);
        assert_eq!(template, annotated("a/b"));
    }

    proptest! {
        #[test]
        fn each_line_is_in_the_name_of_the_convention_that_said_it(
            said in proptest::collection::vec(("[a-c]", proptest::collection::vec("(?s).{0,6}|[\\n/a]{0,4}", 0..4)), 0..5)
        ) {
            let mut receipts = Receipts::default();
            let mut expected = Vec::new();
            for (convention, applied) in &said {
                receipts.add(convention, applied);
                expected.extend(applied.iter().map(|_| convention.clone()));
            }
            let mut template = PodTemplate::default();
            receipts.write(&mut template);
            let read = Receipts::of(&template);
            prop_assert_eq!(&read, &receipts);
            for line in read.lines() {
                let (convention, _) = line.split_once('/').unwrap();
                prop_assert!(expected.iter().any(|it| it == convention), "{}", line);
            }
        }
    }
}
