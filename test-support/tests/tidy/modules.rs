//! How the modules of a crate know one another.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{files, read};
use crate::sources::{is_test, own_lines};

/// Crates whose modules stand one above the other, so that each can be read without those above it. One that has been
/// sorted out belongs here.
const SORTED: [&str; 3] = ["realizer", "submission", "template-language"];

/// By module, the other modules of its crate that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// What a name at the root of a crate stands for.
#[derive(Default)]
struct Root {
    modules: BTreeSet<String>,
    /// By name that the root exports, the module it comes from.
    exported: BTreeMap<String, String>,
    /// Modules of which the root exports everything.
    whole: BTreeSet<String>,
}

impl Root {
    fn of(lib: &str) -> Self {
        let mut root = Self::default();
        let code = code(lib);
        for line in code.lines() {
            let declared = line.trim_start_matches("pub(crate) ");
            let declared = declared.trim_start_matches("pub ").strip_prefix("mod ");
            root.modules.extend(
                declared
                    .and_then(|rest| rest.strip_suffix(';'))
                    .map(str::to_owned),
            );
        }
        for export in code.split("\npub use ").skip(1) {
            let path = export.split(';').next().unwrap();
            let (_, names) = path
                .rsplit_once("::{")
                .or_else(|| path.rsplit_once("::"))
                .unwrap();
            let module = word(path).to_owned();
            if names == "*" {
                root.whole.insert(module);
                continue;
            }
            for name in names.trim_end_matches('}').split(',') {
                root.exported.insert(name.trim().to_owned(), module.clone());
            }
        }
        root
    }

    /// The modules that a name may come from.
    fn modules_of(&self, name: &str) -> Vec<&String> {
        match (self.modules.get(name), self.exported.get(name)) {
            (Some(module), _) | (None, Some(module)) => vec![module],
            (None, None) => self.whole.iter().collect(),
        }
    }
}

/// Without comments, and without the tests at the end.
fn code(text: &str) -> String {
    let lines = text.lines().take(own_lines(text));
    let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn word(text: &str) -> &str {
    let end = text.find(|next: char| !next.is_alphanumeric() && next != '_');
    &text[..end.unwrap_or(text.len())]
}

/// What is named at the root of the crate: `crate::name`, and each name of `crate::{…}`.
fn names(code: &str) -> Vec<&str> {
    let paths = code.split("crate::").skip(1);
    paths
        .flat_map(|path| match path.strip_prefix('{') {
            Some(group) => heads(group),
            None => vec![word(path)],
        })
        .filter(|name| !name.is_empty())
        .collect()
}

/// The first name of each path in a group, up to the brace that ends it.
fn heads(group: &str) -> Vec<&str> {
    let mut heads = vec![word(group.trim_start())];
    let mut depth = 0_i32;
    for (at, next) in group.char_indices() {
        match next {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.push(word(group[at + 1..].trim_start())),
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    heads
}

/// `sources` by their path below `src/`.
fn uses<'t>(lib: &str, sources: impl Iterator<Item = (&'t str, &'t str)>) -> Uses {
    let root = Root::of(lib);
    let mut uses = Uses::new();
    for (path, text) in sources.filter(|(path, _)| *path != "lib.rs" && !is_test(path)) {
        let module = word(path);
        let code = code(text);
        let used = names(&code).into_iter();
        let used = used.flat_map(|name| root.modules_of(name));
        let others = used.filter(|other| *other != module).cloned();
        uses.entry(module.to_owned()).or_default().extend(others);
    }
    uses
}

/// The modules that use one another in a circle, and what lies between such circles: those that are left when nobody is
/// taken away any more who uses nobody, or whom nobody uses.
fn knotted(uses: &Uses) -> Uses {
    let mut rest = uses.clone();
    loop {
        let used: BTreeSet<String> = rest.values().flatten().cloned().collect();
        let before = rest.len();
        let left: BTreeSet<String> = rest.keys().cloned().collect();
        rest.retain(|module, uses| used.contains(module) && !uses.is_disjoint(&left));
        if rest.len() == before {
            return rest;
        }
    }
}

#[test]
fn no_modules_of_a_sorted_crate_use_one_another_in_a_circle() {
    let sources = files(&[".rs"]);
    for member in SORTED {
        let below = format!("{member}/src/");
        let own = sources
            .iter()
            .filter_map(|(path, text)| Some((path.strip_prefix(&below)?, text.as_str())));
        let uses = uses(&read(&format!("{below}lib.rs")), own);
        assert!(uses.values().any(|used| !used.is_empty()), "{member}");
        assert_eq!(knotted(&uses), Uses::new(), "{member}");
    }
}

#[test]
fn a_circle_of_modules_is_found_behind_what_the_root_exports() {
    let lib = "mod low;\nmod high;\npub mod top;\n\npub use high::deep::{High, Other};\npub use low::*;\n";
    let low = "// crate::high::Not\nuse crate::Low;\n";
    let high = "use crate::{Low, low::{A, B}};\n";
    let top = "use crate::{\n    Low,\n    high::deep,\n};\nfn f() { crate::low::g() }\n";
    let of = |low| {
        let sources = [
            ("low.rs", low),
            ("high/deep.rs", high),
            ("top.rs", top),
            ("low/tests.rs", "use crate::top;\n"),
        ];
        uses(lib, sources.into_iter())
    };
    let sorted = of(low);
    assert_eq!(
        sorted["top"].iter().collect::<Vec<_>>(),
        ["high", "low"],
        "{sorted:?}"
    );
    assert_eq!(knotted(&sorted), Uses::new());
    let circle = of("use crate::High;\n");
    assert_eq!(knotted(&circle).keys().collect::<Vec<_>>(), ["high", "low"]);
}
