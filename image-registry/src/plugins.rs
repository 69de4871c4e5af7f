//! Credentials that programs give, by the kubelet's protocol: a request on their input, the answer
//! on their output.
//!
//! A cloud's own way to credentials is in the cloud's own program; nodes have these programs and
//! their configuration.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use conventions::credentials::Keyring;
use quick_cache::sync::Cache;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::contents::Flights;
use crate::plugin_files::{KeyKind, Provider, read_answer, read_config};
use crate::settings::SettingsError;

/// The most bytes of an answer.
const ANSWER_BYTES: u64 = 256 << 10;
/// The time for an answer.
const LIMIT: Duration = Duration::from_secs(15);
/// The time after a fault in which a program is not asked again: images that need it not are not to
/// wait for it.
const PAUSE: Duration = Duration::from_secs(15);
/// Programs that run at the same time.
const AT_ONCE: usize = 4;
/// Answers that are remembered.
const ANSWERS: usize = 1024;

/// All programs that may have credentials.
pub(crate) struct Plugins {
    providers: Vec<Provider>,
    folder: PathBuf,
    answers: Cache<(usize, String), Remembered>,
    /// What went wrong a moment ago, by registry.
    faults: Cache<(usize, String), (Instant, String)>,
    flights: Flights<(usize, String)>,
    running: Arc<Semaphore>,
}

#[derive(Clone)]
struct Remembered {
    keyring: Arc<Keyring>,
    until: Instant,
}

/// What programs say of an image.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) keyrings: Vec<Arc<Keyring>>,
    /// Those that said nothing, and why.
    pub(crate) faults: Vec<String>,
}

impl Plugins {
    /// # Errors
    ///
    /// If the configuration is not what the kubelet reads.
    pub(crate) fn new(config: &Path, folder: &Path) -> Result<Self, SettingsError> {
        let providers = read_config(config).map_err(|cause| SettingsError::File {
            file: config.to_owned(),
            cause,
        })?;
        Ok(Self {
            providers,
            folder: folder.to_owned(),
            answers: Cache::new(ANSWERS),
            faults: Cache::new(ANSWERS),
            flights: Flights::new(),
            running: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// What was said of an image (registry and repository), if all that may be asked have said it.
    pub(crate) fn remembered(&self, image: &str) -> Option<Vec<Arc<Keyring>>> {
        let mut asked = self.asked(image);
        asked.try_fold(Vec::new(), |mut all, (index, _)| {
            all.push(self.recall(index, image)?);
            Some(all)
        })
    }

    /// What is said of an image.
    pub(crate) async fn ask(&self, image: &str) -> Given {
        let mut given = Given::default();
        for (index, provider) in self.asked(image) {
            // One at a time for a registry: most answers are for all of it.
            let key = (index, registry_of(image).to_owned());
            let _alone = self.flights.enter(key.clone()).await;
            if let Some(keyring) = self.recall(index, image) {
                given.keyrings.push(keyring);
                continue;
            }
            if let Some((_, fault)) = self.faults.get(&key).filter(|it| it.0.elapsed() < PAUSE) {
                given.faults.push(fault);
                continue;
            }
            match self.run(index, provider, image).await {
                Ok(keyring) => given.keyrings.push(keyring),
                Err(fault) => {
                    let fault = format!("credential plugin {} {fault}", provider.name);
                    self.faults.insert(key, (Instant::now(), fault.clone()));
                    given.faults.push(fault);
                }
            }
        }
        given
    }

    fn asked<'p>(&'p self, image: &'p str) -> impl Iterator<Item = (usize, &'p Provider)> {
        let all = self.providers.iter().enumerate();
        all.filter(move |(_, provider)| provider.matches(image))
    }

    fn recall(&self, index: usize, image: &str) -> Option<Arc<Keyring>> {
        let keys = [KeyKind::Image, KeyKind::Registry, KeyKind::Global];
        let mut found = keys
            .iter()
            .filter_map(|kind| self.answers.get(&(index, key(*kind, image))));
        found
            .find(|it| it.until > Instant::now())
            .map(|it| it.keyring)
    }

    async fn run(
        &self,
        index: usize,
        provider: &Provider,
        image: &str,
    ) -> Result<Arc<Keyring>, String> {
        let _place = self.running.acquire().await;
        let output = tokio::time::timeout(LIMIT, self.output(provider, image)).await;
        let output = output.map_err(|_| format!("says nothing within {} s", LIMIT.as_secs()))?;
        let output = output.map_err(|error| format!("cannot be asked: {error}"))?;
        let answer = read_answer(&output, provider)?;
        let keyring = Arc::new(answer.keyring);
        if !answer.life.is_zero() {
            let until = Instant::now() + answer.life;
            let remembered = Remembered {
                keyring: keyring.clone(),
                until,
            };
            self.answers
                .insert((index, key(answer.kind, image)), remembered);
        }
        Ok(keyring)
    }

    /// What a program writes. It ends when nobody waits for it any more.
    async fn output(&self, provider: &Provider, image: &str) -> std::io::Result<Vec<u8>> {
        let mut child = Command::new(self.folder.join(&provider.name))
            .args(&provider.args)
            .envs(provider.env.iter().map(|it| (&it.name, &it.value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It may have secrets.
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let request = json!({
            "apiVersion": provider.api_version,
            "kind": "CredentialProviderRequest",
            "image": image,
        });
        let answer = exchange(&mut child, request.to_string().as_bytes()).await?;
        let status = child.wait().await?;
        if !status.success() {
            return Err(std::io::Error::other(format!("it ends with {status}")));
        }
        Ok(answer)
    }
}

/// Writes the request and reads the answer, at the same time: a program may do either first.
async fn exchange(child: &mut Child, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let write = async {
        if let Some(mut input) = input {
            // Who does not read it knows what to say without it.
            let _ = input.write_all(request).await;
        }
    };
    let read = async {
        let mut answer = Vec::new();
        if let Some(output) = output {
            output
                .take(ANSWER_BYTES + 1)
                .read_to_end(&mut answer)
                .await?;
        }
        if answer.len() as u64 > ANSWER_BYTES {
            return Err(std::io::Error::other(format!(
                "it says more than {ANSWER_BYTES} bytes"
            )));
        }
        Ok(answer)
    };
    let (answer, ()) = tokio::join!(read, write);
    answer
}

fn registry_of(image: &str) -> &str {
    image.split('/').next().unwrap_or_default()
}

fn key(kind: KeyKind, image: &str) -> String {
    match kind {
        KeyKind::Image => format!("image {image}"),
        KeyKind::Registry => format!("registry {}", registry_of(image)),
        KeyKind::Global => "global".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_program_has_its_time_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/bin/sh", folder.path().join("plugin")).unwrap();
        let config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1",
            "kind": "CredentialProviderConfig",
            "providers": [{
                "name": "plugin",
                "matchImages": ["registry.example"],
                "defaultCacheDuration": "1h",
                "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
                "args": ["-c", "exec sleep 1000"],
            }],
        });
        let file = folder.path().join("config.yaml");
        fs::write(&file, config.to_string()).unwrap();
        let plugins = Plugins::new(&file, folder.path()).unwrap();
        let begun = Instant::now();
        let given = plugins.ask("registry.example/app").await;
        let fault = "credential plugin plugin says nothing within 15 s";
        assert_eq!(
            (given.keyrings.len(), given.faults),
            (0, vec![fault.to_owned()])
        );
        assert!(begun.elapsed() >= LIMIT);
    }
}
