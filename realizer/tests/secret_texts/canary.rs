//! Random secrets, how others write them down, and the search for them. Nothing here is shared with the engine.

use std::fmt::Write as _;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use realizer::Outcome;
use serde_json::{Value, json};
use test_support::Dice;

const LETTERS: [&str; 12] = ["a", "k", "Q", "z", "0", "7", "-", "_", "/", "+", ".", "%"];
const QUOTED: [&str; 8] = ["\"", "'", "\\", "<", ">", "&", "`", "$"];
const CONTROL: [&str; 10] = [
    "\n", "\r\n", "\t", "\u{1}", "\u{7}", "\u{8}", "\u{b}", "\u{c}", "\u{1f}", "\u{7f}",
];
const UNICODE: [&str; 9] = [
    "é", "ß", "日", "本", "😀", "\u{a0}", "\u{2028}", "\u{200b}", "\u{e000}",
];

pub(crate) struct Canaries {
    seed: u64,
    pub(crate) secrets: Vec<String>,
    search: AhoCorasick,
}

impl Canaries {
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let mut dice = Dice::new(seed);
        let secrets: Vec<String> = (0..count).map(|_| secret(&mut dice)).collect();
        let search = AhoCorasick::new(secrets.iter().flat_map(|it| spelled(it))).unwrap();
        Self {
            seed,
            secrets,
            search,
        }
    }

    /// The values of a Secret: every other one in base64, as an API server holds them, among them some that are too short to
    /// be searched for.
    pub(crate) fn data(&self) -> Value {
        let mut data = json!({"short": "x1", "tiny": "eQ=="});
        for (index, secret) in self.secrets.iter().enumerate() {
            let value = match index % 2 {
                0 => STANDARD.encode(secret),
                _ => secret.clone(),
            };
            data[format!("entry-{index}")] = json!(value);
        }
        data
    }

    /// What somebody says who quotes all of them, each in another way.
    pub(crate) fn told_by_others(&self) -> String {
        let mut text = Self::harmless();
        for (index, secret) in self.secrets.iter().enumerate() {
            let spelled = spelled(secret);
            // Writing to a String cannot fail.
            let _ = write!(text, " | \"{}\"", spelled[(index / 2) % spelled.len()]);
        }
        text
    }

    /// In each scenario the next one.
    pub(crate) fn one_of<'c, C>(&self, choices: &'c [C]) -> &'c C {
        let index = usize::try_from(self.seed).unwrap() % choices.len();
        &choices[index]
    }

    /// What has to be left of it, or the engine would make it easy for itself.
    pub(crate) fn harmless() -> String {
        "admission denied: Invalid value".to_owned()
    }

    pub(crate) fn each_spelled(&self) -> impl Iterator<Item = String> {
        self.secrets.iter().flat_map(|secret| spelled(secret))
    }

    pub(crate) fn is_told_in(&self, text: &str) -> bool {
        self.search.is_match(text)
    }

    /// Looks at all that is told; what is `harmless` has to be in it.
    pub(crate) fn assert_untold(&self, status: &Value, outcome: &Outcome, place: &str) {
        let mut texts = vec![outcome.reason.clone()];
        for event in &outcome.events {
            texts.extend([event.reason.clone(), event.message.clone()]);
        }
        collect(status, &mut texts);
        for text in &texts {
            let found = self.search.find(text);
            assert!(
                found.is_none(),
                "seed {}: {:?} in {text:?} {place}",
                self.seed,
                found.map(|found| &text[found.range()])
            );
        }
    }
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => {
            for (key, item) in fields {
                texts.push(key.clone());
                collect(item, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// No two are alike, and none is a text that stands in a status anyhow: something in each is never there.
fn secret(dice: &mut Dice) -> String {
    let length = match dice.below(50) {
        0..=4 => 4,
        5..=44 => 6 + dice.below(10),
        45..=48 => 16 + dice.below(60),
        _ => 130 + dice.below(200),
    };
    let length = usize::try_from(length).unwrap();
    let mut text = String::new();
    while text.chars().count() < length {
        let part = match dice.below(12) {
            0..=6 => dice.pick(&LETTERS),
            7 | 8 => dice.pick(&QUOTED),
            9 => dice.pick(&CONTROL),
            _ => dice.pick(&UNICODE),
        };
        text.push_str(part);
    }
    if length < 8 {
        text.push(char::from_u32(0x4e00 + u32::try_from(dice.below(0x5000)).unwrap()).unwrap());
    }
    text
}

/// As API servers, Go programs, encoders of JSON and Secrets write it.
fn spelled(secret: &str) -> Vec<String> {
    let json = json_of(secret);
    let html = html_of(&json);
    let mut spelled = vec![
        secret.to_owned(),
        go_of(secret, false),
        go_of(secret, true),
        go_of(&json, false),
        json_of(&html),
        json,
        html,
        STANDARD.encode(secret),
    ];
    let lines = secret.split(['\n', '\r']).map(str::trim);
    spelled.extend(lines.filter(|line| line.len() >= 8).map(str::to_owned));
    spelled
}

fn json_of(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn html_of(json: &str) -> String {
    let replaced = json.replace('<', "\\u003c").replace('>', "\\u003e");
    let replaced = replaced.replace('&', "\\u0026");
    replaced.replace('\u{2028}', "\\u2028")
}

/// What Go's `%q` and `%+q` write for the characters that there are here.
fn go_of(text: &str, ascii: bool) -> String {
    let named = [
        ('\u{7}', "\\a"),
        ('\u{8}', "\\b"),
        ('\u{c}', "\\f"),
        ('\n', "\\n"),
        ('\r', "\\r"),
        ('\t', "\\t"),
        ('\u{b}', "\\v"),
        ('"', "\\\""),
        ('\\', "\\\\"),
    ];
    let unprintable = ['\u{a0}', '\u{2028}', '\u{200b}', '\u{e000}'];
    let quoted = text.chars().map(|char| {
        let named = named.iter().find(|(named, _)| *named == char);
        let code = u32::from(char);
        match named {
            Some((_, named)) => (*named).to_owned(),
            None if code < 0x20 || code == 0x7f => format!("\\x{code:02x}"),
            None if code > 0x7f && (ascii || unprintable.contains(&char)) => {
                if code > 0xffff {
                    format!("\\U{code:08x}")
                } else {
                    format!("\\u{code:04x}")
                }
            }
            None => char.to_string(),
        }
    });
    quoted.collect()
}
