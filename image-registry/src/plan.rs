//! Where and as whom something is asked for, in which order.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use conventions::credentials::{Credential, Keyring};
use conventions::image::{DOCKER_HUB, Reference};

use crate::answer::Answer;
use crate::endpoints::Endpoint;
use crate::error::{Cause, FaultKind};
use crate::exchange::{Ask, Exchange};
use crate::plugins::Plugins;
use crate::settings::Settings;
use crate::tries::{Tries, Trouble};
use crate::who::{Fingerprint, Who};

/// All ways to a repository. Who was let in is tried first from then on, where that was.
pub(crate) struct Plan {
    endpoints: Vec<Endpoint>,
    ways: Vec<Way>,
    /// That has worked.
    proven: Option<usize>,
    /// Mirrors that failed: they are not asked again for the same image.
    broken: BTreeSet<usize>,
    /// Tells apart those who ask, whatever programs know for them.
    identity: Vec<Fingerprint>,
    plugins: Option<(Arc<Plugins>, Name)>,
}

struct Way {
    endpoint: usize,
    who: Candidate,
}

/// As whom to go a way.
#[derive(Clone)]
enum Candidate {
    Is(Who),
    /// Whoever programs know, which are run when it comes to that.
    AskPlugins,
    /// They were asked.
    Asked,
}

/// Reads an answer. It may be called several times: an answer may break off.
pub(crate) trait Read: Sync {
    /// What is made of it.
    type Output: Send;

    /// # Errors
    ///
    /// If the answer breaks off or is not what it is to be.
    fn read(&self, answer: Answer) -> impl Future<Output = Result<Self::Output, Trouble>> + Send;
}

/// Registry and repository, as credentials for them are looked up.
#[derive(Clone)]
struct Name {
    text: String,
    /// Docker Hub has several addresses; what is for one of them is for no other host.
    hub: bool,
}

impl Name {
    fn of(reference: &Reference) -> Self {
        Self {
            text: reference.credentials_name(),
            hub: reference.registry() == DOCKER_HUB,
        }
    }

    /// The same repository of a mirror, which is another host.
    fn at_mirror(host: &str, reference: &Reference) -> Self {
        Self {
            text: format!("{host}/{}", reference.repository()),
            hub: false,
        }
    }

    fn known<'k>(&self, keyring: &'k Keyring) -> Vec<&'k Credential> {
        if self.hub {
            keyring.lookup(&self.text)
        } else {
            keyring.lookup_on_host(&self.text)
        }
    }
}

/// As whom an image may be asked for, the most specific first, and as nobody last.
fn candidates(name: &Name, keyrings: &[&Keyring]) -> Vec<Who> {
    let mut candidates: Vec<Who> = Vec::new();
    let known = keyrings.iter().flat_map(|keyring| name.known(keyring));
    for who in known.map(Who::of).chain([Who::Nobody]) {
        // An entry without anything is nobody, who comes last.
        if who != Who::Nobody && !candidates.contains(&who) {
            candidates.push(who);
        }
    }
    candidates.push(Who::Nobody);
    candidates
}

impl Plan {
    /// The ways of those who have these credentials.
    pub(crate) fn new(
        endpoints: Vec<Endpoint>,
        reference: &Reference,
        keyrings: &[&Keyring],
        plugins: Option<Arc<Plugins>>,
    ) -> Self {
        let name = Name::of(reference);
        let identity = candidates(&name, keyrings)
            .iter()
            .map(Who::fingerprint)
            .collect();
        let mut plan = Self {
            ways: Vec::new(),
            proven: None,
            broken: BTreeSet::new(),
            identity,
            plugins: plugins.map(|plugins| (plugins, name.clone())),
            endpoints,
        };
        for endpoint in 0..plan.endpoints.len() {
            // A mirror is another host: it is not told the credentials of the registry.
            let at = &plan.endpoints[endpoint];
            let mirror = at.mirror.then(|| Name::at_mirror(&at.host, reference));
            let known = candidates(mirror.as_ref().unwrap_or(&name), keyrings);
            let mut known: Vec<Candidate> = known.into_iter().map(Candidate::Is).collect();
            // Nobody is last.
            let nobody = known.pop();
            if mirror.is_none() {
                known.extend(plan.of_plugins());
            }
            let all = known.into_iter().chain(nobody);
            plan.ways.extend(all.map(|who| Way { endpoint, who }));
        }
        plan
    }

    /// Whoever programs know, as far as that is remembered.
    fn of_plugins(&self) -> Vec<Candidate> {
        let Some((plugins, name)) = &self.plugins else {
            return Vec::new();
        };
        match plugins.remembered(&name.text) {
            Some(keyrings) => known_to(&keyrings, name),
            None => vec![Candidate::AskPlugins],
        }
    }

    /// Those who ask.
    pub(crate) fn identity(&self) -> Vec<Fingerprint> {
        self.identity.clone()
    }

    /// Begins with the first way that is known to work.
    pub(crate) fn prefer(&mut self, works: impl Fn(Fingerprint) -> bool) -> bool {
        let way = self
            .ways
            .iter()
            .position(|way| way.fingerprint().is_some_and(&works));
        self.proven = way.or(self.proven);
        way.is_some()
    }

    /// Who was let in.
    pub(crate) fn proven(&self) -> Option<Fingerprint> {
        self.ways[self.proven?].fingerprint()
    }

    /// Asks one after the other until somebody is let in and what is read is good.
    ///
    /// # Errors
    ///
    /// If nobody is. The registry's own trouble counts more than who is not let in.
    pub(crate) async fn ask<R: Read>(
        &mut self,
        exchange: &Exchange,
        settings: &Settings,
        ask: &Ask<'_>,
        reader: &R,
    ) -> Result<R::Output, Cause> {
        let mut faults = Faults::default();
        let last = self.endpoints.len() - 1;
        let first = self.proven;
        let mut order = self.order();
        while let Some(index) = order.pop_front() {
            let way = &self.ways[index];
            let endpoint = &self.endpoints[way.endpoint];
            let at_last = way.endpoint == last;
            if self.broken.contains(&way.endpoint) || (ask.by_tag && !endpoint.resolves && !at_last)
            {
                continue;
            }
            let who = match &way.who {
                Candidate::Is(who) => who,
                Candidate::Asked => continue,
                Candidate::AskPlugins => {
                    for index in self.ask_plugins(index, &mut faults).await.rev() {
                        order.push_front(index);
                    }
                    continue;
                }
            };
            let tries = if at_last {
                Tries::of(settings)
            } else {
                Tries::once()
            };
            let attempt = attempt(exchange, endpoint, who, ask, tries, reader);
            let result = if at_last {
                attempt.await
            } else {
                in_time(attempt, settings).await
            };
            match result {
                Ok(output) => {
                    self.proven = Some(index);
                    return Ok(output);
                }
                Err(cause) if at_last => {
                    let next = matches!(cause, Cause::Denied { .. } | Cause::Unknown { .. });
                    // Who was let in and does not see it need not ask as somebody else.
                    let absent = ask.optional && matches!(cause, Cause::Unknown { .. });
                    if !next || (absent && first == Some(index)) {
                        return Err(cause);
                    }
                    faults.add(cause, who);
                }
                Err(cause) => {
                    if cause.kind() == FaultKind::Infrastructure {
                        tracing::debug!("mirror: {cause}");
                        self.broken.insert(way.endpoint);
                    }
                }
            }
        }
        Err(faults.into_cause(&self.endpoints[last].host, ask))
    }

    /// The ways in the order of the endpoints: who has worked goes first at its own, and mirrors
    /// stay before the registry.
    fn order(&self) -> VecDeque<usize> {
        let mut order: Vec<usize> = (0..self.ways.len()).collect();
        order.sort_by_key(|way| (self.ways[*way].endpoint, Some(*way) != self.proven));
        order.into()
    }

    /// Has programs say whom they know. Gives the ways of those.
    async fn ask_plugins(&mut self, index: usize, faults: &mut Faults) -> Range<usize> {
        let (start, endpoint) = (self.ways.len(), self.ways[index].endpoint);
        if let Some((plugins, name)) = &self.plugins {
            let given = plugins.ask(&name.text).await;
            faults.plugins.extend(given.faults);
            let known = known_to(&given.keyrings, name).into_iter();
            self.ways.extend(known.map(|who| Way { endpoint, who }));
        }
        self.ways[index].who = Candidate::Asked;
        start..self.ways.len()
    }
}

impl Way {
    fn fingerprint(&self) -> Option<Fingerprint> {
        match &self.who {
            Candidate::Is(who) => Some(who.fingerprint()),
            Candidate::AskPlugins | Candidate::Asked => None,
        }
    }
}

/// Those whom programs know. Nobody is among them elsewhere.
fn known_to(keyrings: &[Arc<Keyring>], name: &Name) -> Vec<Candidate> {
    let keyrings: Vec<&Keyring> = keyrings.iter().map(AsRef::as_ref).collect();
    let mut known = candidates(name, &keyrings);
    known.pop();
    known.into_iter().map(Candidate::Is).collect()
}

/// A mirror that hangs leaves time for the others.
async fn in_time<T>(
    attempt: impl Future<Output = Result<T, Cause>>,
    settings: &Settings,
) -> Result<T, Cause> {
    let limit = settings.budget / 3;
    let ended = tokio::time::timeout(limit, attempt).await;
    ended.unwrap_or(Err(Cause::Late { limit }))
}

async fn attempt<R: Read>(
    exchange: &Exchange,
    endpoint: &Endpoint,
    who: &Who,
    ask: &Ask<'_>,
    mut tries: Tries,
    reader: &R,
) -> Result<R::Output, Cause> {
    loop {
        let trouble = match exchange.ask(endpoint, ask, who).await {
            Ok(answer) => match reader.read(answer).await {
                Ok(output) => return Ok(output),
                Err(trouble) => trouble,
            },
            Err(trouble) => trouble,
        };
        tries.after(trouble).await?;
    }
}

/// Why nobody was let in.
#[derive(Default)]
struct Faults {
    unknown: Option<Cause>,
    /// What was said to credentials, and to nobody.
    known: Vec<String>,
    nobody: Option<String>,
    /// Programs that might have known somebody.
    plugins: Vec<String>,
}

impl Faults {
    fn add(&mut self, cause: Cause, who: &Who) {
        match (cause, who) {
            (Cause::Denied { tried, .. }, Who::Known(_)) => self.known.push(tried),
            (Cause::Denied { tried, .. }, Who::Nobody) => self.nobody = Some(tried),
            (cause, _) => self.unknown = self.unknown.take().or(Some(cause)),
        }
    }

    fn into_cause(self, host: &str, ask: &Ask<'_>) -> Cause {
        // Whom they know might have been let in: that is nobody's fault but theirs.
        if let Some(fault) = self.plugins.into_iter().next() {
            return Cause::Installation(fault);
        }
        if let Some(cause) = self.unknown {
            return cause;
        }
        let mut tried = Vec::new();
        match self.known.len() {
            0 => {}
            1 => tried.push(format!(
                "with the only credential for it: {}",
                self.known[0]
            )),
            number => tried.push(format!(
                "with {number} credentials for it: {}",
                self.known[0]
            )),
        }
        tried.extend(
            self.nobody
                .map(|said| format!("without credentials: {said}")),
        );
        Cause::Denied {
            host: host.to_owned(),
            what: ask.what(),
            tried: tried.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use conventions::credentials::SecretKind;

    use super::*;
    use crate::clients::Clients;
    use crate::endpoints::Endpoints;

    /// Hosts that would be told a credential for Docker Hub, of an image whose registry has this
    /// file.
    async fn told(image: &str, folder: &str, text: &str) -> Vec<String> {
        let hosts = tempfile::tempdir().unwrap();
        std::fs::create_dir(hosts.path().join(folder)).unwrap();
        std::fs::write(hosts.path().join(folder).join("hosts.toml"), text).unwrap();
        let clients = Clients::new(&Arc::new(Settings::new("/nowhere"))).unwrap();
        let endpoints = Endpoints::new(Arc::new(clients), Some(hosts.path().to_owned()));
        let reference: Reference = image.parse().unwrap();
        let endpoints = endpoints.of(&reference).await.unwrap();
        let mut keyring = Keyring::default();
        let config = br#"{"auths": {"https://index.docker.io/v1/": {"username": "hub"}}}"#;
        assert_eq!(keyring.add(SecretKind::DockerConfigJson, config), []);
        let plan = Plan::new(endpoints, &reference, &[&keyring], None);
        let known = plan.ways.iter().filter(|way| {
            let nobody = Who::Nobody.fingerprint();
            way.fingerprint() != Some(nobody)
        });
        known
            .map(|way| plan.endpoints[way.endpoint].host.clone())
            .collect()
    }

    #[tokio::test]
    async fn what_is_for_docker_hub_is_told_to_no_other_host() {
        let mirrors = r#"
            server = "https://registry-1.docker.io"
            [host."https://mirror"]
            [host."https://localhost"]
            [host."https://docker.io.example"]
        "#;
        assert_eq!(
            told("ubuntu", "docker.io", mirrors).await,
            ["registry-1.docker.io"],
            "the server is the registry itself"
        );
        let server = "server = \"https://localhost\"";
        assert_eq!(told("localhost/app", "localhost", server).await, [""; 0]);
        let none: [&str; 0] = [];
        assert_eq!(
            told("registry.example/app", "_default", mirrors).await,
            none
        );
    }
}
