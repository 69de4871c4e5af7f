//! Versions as people write them.

use semver::{BuildMetadata, Prerelease, Version, VersionReq};

/// Suffixes of Maven that say that a version is finished.
const FINISHED: [&str; 3] = ["final", "ga", "release"];

/// A version by the rules of semantic versions. Numbers that are missing are 0, and a suffix behind
/// a dot is one behind a dash, as of `2.4.0.M1`. One that says that the version is finished
/// (`RELEASE`, `Final`, `GA`), or that is a number, does not make it one that comes before.
///
/// ```
/// use convention_webhook_sdk::read_version;
///
/// let read = |text: &str| read_version(text).map(|version| version.to_string());
/// assert_eq!(read("2.4.0.M1").as_deref(), Some("2.4.0-M1"));
/// assert_eq!(read("2.3.1.RELEASE").as_deref(), Some("2.3.1+RELEASE"));
/// assert_eq!(read("v1.02").as_deref(), Some("1.2.0"));
/// assert_eq!(read("42.2.5.jre7").as_deref(), Some("42.2.5-jre7"));
/// assert_eq!(read("latest"), None);
/// ```
pub fn read_version(text: &str) -> Option<Version> {
    let text = text.trim();
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let (text, build) = text.split_once('+').unwrap_or((text, ""));
    let (numbers, suffix) = split(text);
    let mut numbers = numbers.into_iter();
    let major = numbers.next()?;
    let (minor, patch) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let mut version = Version::new(major, minor, patch);
    version.build = BuildMetadata::new(build).unwrap_or_default();
    if is_finished(suffix) {
        version.build = BuildMetadata::new(suffix).unwrap_or_default();
    } else {
        version.pre = Prerelease::new(&plain(suffix)).ok()?;
    }
    Some(version)
}

/// Up to three numbers between dots, and what is behind them.
fn split(text: &str) -> (Vec<u64>, &str) {
    let mut numbers = Vec::new();
    let mut rest = text;
    while numbers.len() < 3 {
        let end = rest
            .find(|next: char| !next.is_ascii_digit())
            .unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse() else {
            break;
        };
        numbers.push(number);
        rest = &rest[end..];
        match rest.strip_prefix('.') {
            Some(behind) if behind.starts_with(|next: char| next.is_ascii_digit()) => rest = behind,
            _ => break,
        }
    }
    (numbers, rest.trim_start_matches(['.', '-', '_']))
}

fn is_finished(suffix: &str) -> bool {
    let is_number = !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit());
    let said = FINISHED
        .iter()
        .any(|word| suffix.eq_ignore_ascii_case(word));
    is_number || said
}

/// What a pre-release may be made of: no leading zeros in numbers, nothing but letters, digits and
/// dashes.
fn plain(suffix: &str) -> String {
    let parts = suffix.split(['.', '_']).filter(|part| !part.is_empty());
    let parts = parts.map(|part| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        let short = part.trim_start_matches('0');
        match (is_number, short) {
            (true, "") => "0",
            (true, short) => short,
            (false, _) => part,
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

/// Whether a version is in a range, by where it stands among the others. The rules of Cargo, where
/// a pre-release is in no range that does not name one, are for choosing a version; this one was
/// chosen long ago.
pub(super) fn is_in(version: &Version, range: &VersionReq) -> bool {
    if version.pre.is_empty() || range.matches(version) {
        return range.matches(version);
    }
    let finished = Version::new(version.major, version.minor, version.patch);
    let names_it = range.comparators.iter().any(|comparator| {
        let (minor, patch) = (comparator.minor.unwrap_or(0), comparator.patch.unwrap_or(0));
        Version::new(comparator.major, minor, patch) == finished
    });
    !names_it && range.matches(&finished)
}
