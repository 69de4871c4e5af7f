//! Which request an event becomes. Pure: the time stands in the event.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use template_language::digest::hex;

use super::memory::Memory;
use super::{EventSettings, PendingEvent};

/// Series and owners remembered. Namespaces with few of them lose none to one with thousands.
const REMEMBERED: usize = 4096;
/// Longest message. What a tenant's manifest makes us say must not fill etcd.
const MESSAGE_BYTES: usize = 8 * 1024;
/// Longest object name.
const NAME_BYTES: usize = 253;

/// Identity of repeated events: digest of owner, teller, type, reason and message.
type SeriesKey = [u8; 32];

#[derive(Debug, PartialEq)]
pub(super) enum Request {
    /// POST this event.
    Create(Created),
    /// PATCH: it happened again.
    Count(Counted),
    /// Its owner sends too many.
    RateLimited,
}

#[derive(Debug, PartialEq)]
pub(super) struct Created {
    pub(super) namespace: String,
    pub(super) event: Value,
    pub(super) key: SeriesKey,
}

#[derive(Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) patch: Value,
    pub(super) key: SeriesKey,
}

/// What was sent recently.
pub(super) struct Series {
    window: SignedDuration,
    burst: f64,
    refill_seconds: f64,
    sent: Memory<SeriesKey, Sent>,
    owners: Memory<String, Allowance>,
}

struct Sent {
    name: String,
    count: i32,
    last: Timestamp,
}

/// A token bucket.
struct Allowance {
    left: f64,
    at: Timestamp,
}

impl Series {
    pub(super) fn new(settings: &EventSettings) -> Self {
        Self {
            window: SignedDuration::try_from(settings.window).unwrap_or(SignedDuration::MAX),
            burst: f64::from(settings.burst.max(1)),
            refill_seconds: settings.refill.as_secs_f64().max(0.001),
            sent: Memory::new(REMEMBERED),
            owners: Memory::new(REMEMBERED),
        }
    }

    pub(super) fn admit(&mut self, happening: &PendingEvent) -> Request {
        if !self.spend(happening) {
            return Request::RateLimited;
        }
        let key = key_of(happening);
        let known = self.sent.take(&key);
        match known.filter(|sent| happening.at.duration_since(sent.last) <= self.window) {
            Some(sent) => Request::Count(self.again(happening, key, sent)),
            None => Request::Create(self.anew(happening, key)),
        }
    }

    fn again(&mut self, happening: &PendingEvent, key: SeriesKey, mut sent: Sent) -> Counted {
        sent.count = sent.count.saturating_add(happening.count);
        sent.last = happening.at;
        let counted = Counted {
            namespace: namespace_of(happening).to_owned(),
            name: sent.name.clone(),
            patch: json!({"count": sent.count, "lastTimestamp": seconds(happening.at)}),
            key,
        };
        self.sent.put(&happening.involved.namespace, key, sent);
        counted
    }

    fn anew(&mut self, happening: &PendingEvent, key: SeriesKey) -> Created {
        let name = name_of(happening, &key);
        let event = event(happening, &name);
        let sent = Sent {
            name,
            count: happening.count,
            last: happening.at,
        };
        self.sent.put(&happening.involved.namespace, key, sent);
        Created {
            namespace: namespace_of(happening).to_owned(),
            event,
            key,
        }
    }

    /// The event object is not there: the next occurrence is sent anew.
    pub(super) fn forget(&mut self, key: &SeriesKey) {
        self.sent.take(key);
    }

    fn spend(&mut self, happening: &PendingEvent) -> bool {
        // An owner that moves a lot spends its allowance on good news; the bad ones must not be missing then.
        let account = format!("{} {}", kind_of(happening), happening.involved.identity());
        let mut left = match self.owners.take(&account) {
            Some(allowance) => {
                let passed = happening.at.duration_since(allowance.at).as_secs_f64();
                let gained = passed.max(0.0) / self.refill_seconds;
                (allowance.left + gained).min(self.burst)
            }
            None => self.burst,
        };
        let allowed = left >= 1.0;
        if allowed {
            left -= 1.0;
        }
        let at = happening.at;
        let namespace = &happening.involved.namespace;
        self.owners.put(namespace, account, Allowance { left, at });
        allowed
    }
}

fn key_of(happening: &PendingEvent) -> SeriesKey {
    let mut hasher = Sha256::new();
    for part in [
        &*happening.involved.identity(),
        component_of(happening),
        kind_of(happening),
        &happening.reason,
        &happening.message,
    ] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// `<owner>.<hash>`. The time is part of it: after a restart the same event is a new object, which costs
/// no read to find the old one.
fn name_of(happening: &PendingEvent, key: &SeriesKey) -> String {
    let mut hasher = Sha256::new();
    hasher.update(key);
    hasher.update(happening.at.as_nanosecond().to_le_bytes());
    let suffix = format!(".{}", hex(&hasher.finalize()[..8]));
    let owner =
        cut(&happening.involved.name, NAME_BYTES - suffix.len()).trim_end_matches(['.', '-']);
    format!("{owner}{suffix}")
}

fn event(happening: &PendingEvent, name: &str) -> Value {
    let (involved, component) = (&happening.involved, component_of(happening));
    let mut reference = json!({
        "apiVersion": involved.api_version, "kind": involved.kind, "name": involved.name, "uid": involved.uid,
    });
    if !involved.namespace.is_empty() {
        reference["namespace"] = json!(involved.namespace);
    }
    let mut message = cut(&happening.message, MESSAGE_BYTES).to_owned();
    if message.len() < happening.message.len() {
        message.push('…');
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": namespace_of(happening)},
        "involvedObject": reference,
        "type": kind_of(happening), "reason": happening.reason, "message": message,
        "source": {"component": component}, "reportingComponent": component, "reportingInstance": "",
        "firstTimestamp": seconds(happening.since), "lastTimestamp": seconds(happening.at), "count": happening.count,
    })
}

fn component_of(happening: &PendingEvent) -> &str {
    let component = happening.component.as_deref();
    component.unwrap_or(&happening.involved.kind)
}

fn kind_of(happening: &PendingEvent) -> &'static str {
    if happening.warning {
        "Warning"
    } else {
        "Normal"
    }
}

fn namespace_of(happening: &PendingEvent) -> &str {
    let namespace = &*happening.involved.namespace;
    if namespace.is_empty() {
        "default"
    } else {
        namespace
    }
}

/// `metav1.Time` has whole seconds.
fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
impl Series {
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.sent.len(), self.owners.len())
    }
}
