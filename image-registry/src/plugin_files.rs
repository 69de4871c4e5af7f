//! What is read of credential plugins: the kubelet's configuration of them, and their answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use conventions::credentials::{Keyring, SecretKind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::watched::read_bounded;

/// The most bytes of the configuration.
const CONFIG_BYTES: u64 = 1 << 20;
/// The longest that an answer is remembered.
const LONGEST_LIFE: Duration = Duration::from_hours(30 * 24);
/// The versions of the protocol; they differ in their names only.
const PROTOCOLS: [&str; 3] = [
    "credentialprovider.kubelet.k8s.io/v1",
    "credentialprovider.kubelet.k8s.io/v1beta1",
    "credentialprovider.kubelet.k8s.io/v1alpha1",
];
const CONFIGS: [&str; 3] = [
    "kubelet.config.k8s.io/v1",
    "kubelet.config.k8s.io/v1beta1",
    "kubelet.config.k8s.io/v1alpha1",
];

/// A program.
#[derive(Debug)]
pub(crate) struct Provider {
    /// Its file's.
    pub(crate) name: String,
    pub(crate) api_version: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<Variable>,
    life: Duration,
    /// Has an entry for each pattern.
    patterns: Keyring,
}

/// A variable of its environment.
#[derive(Debug, Deserialize)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// For what an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum KeyKind {
    /// The one image.
    Image,
    /// All of the registry.
    Registry,
    /// All that the program is asked for.
    Global,
}

/// What a program says.
#[derive(Debug)]
pub(crate) struct PluginAnswer {
    pub(crate) keyring: Keyring,
    pub(crate) kind: KeyKind,
    pub(crate) life: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Config {
    api_version: String,
    kind: String,
    providers: Vec<ConfigEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigEntry {
    name: String,
    match_images: Vec<String>,
    default_cache_duration: String,
    api_version: String,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    api_version: String,
    kind: String,
    cache_key_type: KeyKind,
    cache_duration: Option<String>,
    auth: Option<BTreeMap<String, Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

impl Provider {
    /// Whether it may be asked for an image (registry and repository).
    pub(crate) fn matches(&self, image: &str) -> bool {
        !self.patterns.lookup_on_host(image).is_empty()
    }
}

/// The programs that a configuration names.
///
/// # Errors
///
/// If it is none of the kubelet, or asks for what is not done here.
pub(crate) fn read_config(file: &Path) -> Result<Vec<Provider>, String> {
    let bytes = read_bounded(file, CONFIG_BYTES).map_err(|error| error.to_string())?;
    parse_config(&String::from_utf8_lossy(&bytes))
}

fn parse_config(text: &str) -> Result<Vec<Provider>, String> {
    let config: Config = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    if config.kind != "CredentialProviderConfig" || !CONFIGS.contains(&config.api_version.as_str())
    {
        return Err("it is no CredentialProviderConfig of a known version".to_owned());
    }
    config.providers.into_iter().map(provider).collect()
}

fn provider(entry: ConfigEntry) -> Result<Provider, String> {
    let name = entry.name;
    if name.is_empty() || name.contains(['/', ' ']) || name == "." || name == ".." {
        return Err(format!("{name:?} is no name of a program"));
    }
    if !PROTOCOLS.contains(&entry.api_version.as_str()) {
        return Err(format!(
            "{name}: there is no version {:?}",
            entry.api_version
        ));
    }
    let life = duration(&entry.default_cache_duration);
    let life = life.ok_or_else(|| format!("{name}: defaultCacheDuration is no duration"))?;
    let known = |pattern: &String| (pattern.clone(), json!({"username": "matches"}));
    let auths = entry.match_images.iter().map(known).collect();
    let (patterns, faults) = keyring(&auths);
    if faults || entry.match_images.is_empty() {
        return Err(format!(
            "{name}: matchImages has no pattern, or one that is none"
        ));
    }
    Ok(Provider {
        api_version: entry.api_version,
        args: entry.args.unwrap_or_default(),
        env: entry.env.unwrap_or_default(),
        name,
        life,
        patterns,
    })
}

/// What a program wrote.
///
/// # Errors
///
/// If it is no answer, without a word of it: there may be passwords in it.
pub(crate) fn read_answer(bytes: &[u8], provider: &Provider) -> Result<PluginAnswer, String> {
    let answer: Option<Answer> = serde_json::from_slice(bytes).ok();
    let wanted = |answer: &Answer| {
        answer.kind == "CredentialProviderResponse" && answer.api_version == provider.api_version
    };
    let answer = answer.filter(wanted);
    let answer = answer.ok_or("says something that is no CredentialProviderResponse")?;
    let life = match &answer.cache_duration {
        Some(text) => duration(text).ok_or("says a cacheDuration that is none")?,
        None => provider.life,
    };
    let entries = answer.auth.unwrap_or_default().into_iter();
    let known = |entry: Entry| json!({"username": entry.username, "password": entry.password});
    let auths = entries
        .map(|(pattern, entry)| (pattern, known(entry)))
        .collect();
    let (keyring, _) = keyring(&auths);
    Ok(PluginAnswer {
        keyring,
        kind: answer.cache_key_type,
        life,
    })
}

/// Entries by what they are for, with the kubelet's rules; and whether some were left out.
fn keyring(auths: &serde_json::Map<String, Value>) -> (Keyring, bool) {
    let mut keyring = Keyring::default();
    let config = json!({"auths": auths}).to_string();
    let faults = keyring.add(SecretKind::DockerConfigJson, config.as_bytes());
    (keyring, !faults.is_empty())
}

/// A duration as Go writes it, no longer than an answer is remembered. Nothing for a negative one.
fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let parsed: jiff::SignedDuration = text.parse().ok()?;
    let duration = Duration::try_from(parsed).ok()?;
    Some(duration.min(LONGEST_LIFE))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONFIG: &str = r#"
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: cloud-provider
  matchImages: ["*.registry.example", "registry.example:8443/team"]
  defaultCacheDuration: "12h0m0s"
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get-credentials]
  env: [{name: PROFILE, value: pods}]
"#;

    fn cloud() -> Provider {
        parse_config(CONFIG).unwrap().remove(0)
    }

    #[test]
    fn a_configuration_of_the_kubelet_is_read() {
        let provider = cloud();
        assert_eq!(
            (provider.name.as_str(), provider.life),
            ("cloud-provider", Duration::from_hours(12))
        );
        assert_eq!(
            (provider.args.len(), provider.env[0].value.as_str()),
            (1, "pods")
        );
        for (image, matches) in [
            ("a.registry.example/app", true),
            ("registry.example/app", false),
            ("registry.example:8443/team/app", true),
            ("registry.example:8443/other", false),
            ("elsewhere.example/app", false),
        ] {
            assert_eq!(provider.matches(image), matches, "{image}");
        }
    }

    #[test]
    fn what_is_not_done_here_is_told() {
        for (from, to) in [
            ("kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v9"),
            ("CredentialProviderConfig", "KubeletConfiguration"),
            ("name: cloud-provider", "name: ../cloud-provider"),
            ("\"12h0m0s\"", "soon"),
            ("\"12h0m0s\"", "\"-5s\""),
            (
                "credentialprovider.kubelet.k8s.io/v1",
                "credentialprovider.kubelet.k8s.io/v9",
            ),
            (
                "[\"*.registry.example\", \"registry.example:8443/team\"]",
                "[]",
            ),
            ("[\"*.registry.example\"", "[\"a b\""),
            ("  args:", "  tokenAttributes: {}\n  args:"),
        ] {
            assert!(CONFIG.contains(from), "{from}");
            assert!(parse_config(&CONFIG.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn an_answer_has_credentials_their_life_and_for_what_they_count() {
        let answer = |more: &str| {
            let text = format!(
                r#"{{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse", {more}}}"#
            );
            read_answer(text.as_bytes(), &cloud())
        };
        let auth = r#""auth": {"*.registry.example": {"username": "u", "password": "hunter2"}}"#;
        let read = answer(&format!(
            r#""cacheKeyType": "Registry", "cacheDuration": "5m0s", {auth}"#
        ))
        .unwrap();
        assert_eq!(
            (read.kind, read.life),
            (KeyKind::Registry, Duration::from_mins(5))
        );
        assert_eq!(read.keyring.lookup("a.registry.example/app").len(), 1);
        let read = answer(r#""cacheKeyType": "Global", "auth": null"#).unwrap();
        assert_eq!(
            (read.kind, read.life),
            (KeyKind::Global, Duration::from_hours(12))
        );
        assert_eq!(
            answer(r#""cacheKeyType": "Image", "cacheDuration": "0s""#)
                .unwrap()
                .life,
            Duration::ZERO
        );
        for broken in [
            r#""cacheKeyType": "Node""#.to_owned(),
            format!(r#""cacheKeyType": "Image", "cacheDuration": "hunter2", {auth}"#),
            r#""cacheKeyType": "Image", "auth": {"a": "hunter2"}"#.to_owned(),
            r#""cacheKeyType": "Image", "kind": "hunter2""#.to_owned(),
        ] {
            let told = answer(&broken).unwrap_err();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_and_no_configuration_makes_it_panic(text in "\\PC{0,200}", cut in 0..400_usize) {
            let _ = read_answer(text.as_bytes(), &cloud());
            let _ = parse_config(&text);
            let _ = parse_config(CONFIG.get(..cut).unwrap_or_default());
            let _ = duration(&text);
        }

        #[test]
        fn no_duration_is_endless(count in any::<u64>(), unit in "[hms]|ms|us|ns") {
            let life = duration(&format!("{count}{unit}")).unwrap_or_default();
            prop_assert!(life <= LONGEST_LIFE);
        }
    }
}
