//! Where and as whom something is asked for, in which order.

use conventions::credentials::Keyring;
use conventions::image::Reference;

use crate::endpoints::Endpoint;
use crate::error::{Cause, FaultKind};
use crate::exchange::{Answer, Ask, Exchange};
use crate::settings::Settings;
use crate::tries::{Tries, Trouble};
use crate::who::{Fingerprint, Who};

/// All ways to a repository. What has worked is tried first from then on.
pub(crate) struct Plan {
    endpoints: Vec<Endpoint>,
    ways: Vec<Way>,
    /// That has worked.
    proven: Option<usize>,
}

struct Way {
    endpoint: usize,
    who: Who,
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

/// As whom an image may be asked for, the most specific first, and as nobody last.
pub(crate) fn candidates(name: &str, keyrings: &[&Keyring]) -> Vec<Who> {
    let mut candidates: Vec<Who> = Vec::new();
    let known = keyrings.iter().flat_map(|keyring| keyring.lookup(name));
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
    pub(crate) fn new(
        endpoints: Vec<Endpoint>,
        reference: &Reference,
        keyrings: &[&Keyring],
    ) -> Self {
        let mut ways = Vec::new();
        for (endpoint, at) in endpoints.iter().enumerate() {
            // A mirror is another host: it is not told the credentials of the registry.
            let name = if at.mirror {
                format!("{}/{}", at.host, reference.repository())
            } else {
                reference.credentials_name()
            };
            let candidates = candidates(&name, keyrings);
            ways.extend(candidates.into_iter().map(|who| Way { endpoint, who }));
        }
        Self {
            endpoints,
            ways,
            proven: None,
        }
    }

    /// Those who may be let in.
    pub(crate) fn fingerprints(&self) -> Vec<Fingerprint> {
        self.ways.iter().map(|way| way.who.fingerprint()).collect()
    }

    /// Begins with the first way that is known to work.
    pub(crate) fn prefer(&mut self, works: impl Fn(Fingerprint) -> bool) -> bool {
        let way = self
            .ways
            .iter()
            .position(|way| works(way.who.fingerprint()));
        self.proven = way.or(self.proven);
        way.is_some()
    }

    /// Who was let in.
    pub(crate) fn proven(&self) -> Option<Fingerprint> {
        self.proven.map(|way| self.ways[way].who.fingerprint())
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
        let others = (0..self.ways.len()).filter(|way| Some(*way) != first);
        let mut broken = None;
        for index in first.into_iter().chain(others) {
            let way = &self.ways[index];
            if broken == Some(way.endpoint) {
                continue;
            }
            let endpoint = &self.endpoints[way.endpoint];
            if ask.by_tag && !endpoint.resolves && way.endpoint != last {
                continue;
            }
            let at_last = way.endpoint == last;
            let tries = if at_last {
                Tries::of(settings)
            } else {
                Tries::once()
            };
            let attempt = attempt(exchange, endpoint, &way.who, ask, tries, reader);
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
                Err(cause) if way.endpoint == last => {
                    let next = matches!(cause, Cause::Denied { .. } | Cause::Unknown { .. });
                    if !next {
                        return Err(cause);
                    }
                    faults.add(cause, &way.who);
                }
                Err(cause) => {
                    if cause.kind() == FaultKind::Infrastructure {
                        tracing::debug!("mirror: {cause}");
                        broken = Some(way.endpoint);
                    }
                }
            }
        }
        Err(faults.into_cause(&self.endpoints[last].host, ask))
    }
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
