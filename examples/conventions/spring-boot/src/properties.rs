//! System properties in the options of a Java machine.

use std::collections::BTreeMap;
use std::fmt;

/// Options: properties by name, and the others as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Properties {
    others: Vec<String>,
    properties: BTreeMap<String, String>,
}

impl Properties {
    pub(crate) fn read(options: &str) -> Self {
        let mut read = Self::default();
        for option in split(options) {
            match option
                .strip_prefix("-D")
                .and_then(|pair| pair.split_once('='))
            {
                Some((name, value)) if !name.is_empty() => {
                    read.properties.insert(name.to_owned(), value.to_owned());
                }
                _ => read.others.push(option.to_owned()),
            }
        }
        read
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }

    /// The value of a property, which is this one if it had none.
    pub(crate) fn or_default(&mut self, name: &str, value: &str) -> &str {
        let property = self.properties.entry(name.to_owned());
        property.or_insert_with(|| value.to_owned())
    }
}

/// Between blanks that are not in quotes, as the Java machine does.
fn split(options: &str) -> Vec<&str> {
    let mut split = Vec::new();
    let (mut start, mut quote) = (None, None);
    for (at, next) in options.char_indices() {
        match (quote, next) {
            (Some(open), _) if open == next => quote = None,
            (None, '"' | '\'') => quote = Some(next),
            _ => {}
        }
        if quote.is_none() && next.is_whitespace() {
            split.extend(start.take().map(|start| &options[start..at]));
        } else {
            start.get_or_insert(at);
        }
    }
    split.extend(start.map(|start| &options[start..]));
    split
}

/// Options that are no properties come first, properties sorted by their names.
impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let properties = self
            .properties
            .iter()
            .map(|(name, value)| format!("-D{name}={value}"));
        let all: Vec<String> = self.others.iter().cloned().chain(properties).collect();
        f.write_str(&all.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_sorted_behind_the_other_options() {
        let options = "-Dz=1 -Xmx1g  -Da=$(PORT)\t-Dflag '-Dc=a b' -Dd=\"x y\" -D=x";
        let mut properties = Properties::read(options);
        assert_eq!(properties.get("a"), Some("$(PORT)"));
        assert_eq!(properties.get("d"), Some("\"x y\""));
        assert_eq!(properties.or_default("z", "2"), "1");
        assert_eq!(properties.or_default("b", "2"), "2");
        assert_eq!(
            properties.to_string(),
            "-Xmx1g -Dflag '-Dc=a b' -D=x -Da=$(PORT) -Db=2 -Dd=\"x y\" -Dz=1"
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        for options in ["", " ", "-Xmx1g 'a", "-Da=", "-D", "ä\u{a0}b -Dö=ü"] {
            let read = Properties::read(options);
            assert_eq!(Properties::read(&read.to_string()), read, "{options}");
        }
    }
}
