//! What all calls have in common.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper_util::client::proxy::matcher::Matcher;

/// Limits, and who we are.
#[derive(Clone)]
pub struct Settings {
    /// What stands in `User-Agent`: name and version of the program.
    pub user_agent: String,
    /// How many bytes an answer may have.
    pub most_answer_bytes: usize,
    /// How many calls to one host and port are under way at a time; others wait within their budget.
    /// Of the connections, as many are kept for later calls.
    pub most_calls_to_one_target: usize,
    /// To how many hosts and ports connections are kept.
    pub most_targets: usize,
    /// How long one try to connect takes, TLS included. It is shorter than the budget, so that another
    /// one may reach another server behind the same service.
    pub connect: Duration,
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
    /// Where connections go through.
    pub proxies: Proxies,
    /// The time of day, by which certificates are valid or not.
    pub now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// A number in 0.0..1.0, by which tries are spread.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            user_agent: format!("carto-convention-client/{}", env!("CARGO_PKG_VERSION")),
            most_answer_bytes: 8 << 20,
            most_calls_to_one_target: 64,
            most_targets: 256,
            connect: Duration::from_secs(10),
            idle: Duration::from_mins(1),
            proxies: Proxies::default(),
            now: Arc::new(time_of_the_machine),
            jitter: Arc::new(fastrand::f64),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what a program without a better clock goes by"
)]
fn time_of_the_machine() -> SystemTime {
    SystemTime::now()
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("user_agent", &self.user_agent)
            .field("most_answer_bytes", &self.most_answer_bytes)
            .field("most_calls_to_one_target", &self.most_calls_to_one_target)
            .field("most_targets", &self.most_targets)
            .field("connect", &self.connect)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

/// Proxies for webhooks that are named by an `https` URL. Those that are services of the cluster are
/// always called directly.
///
/// A proxy is asked for a tunnel (`CONNECT`), so it sees neither what is sent nor what is answered. It is
/// one of http: `http://proxy:3128`, with or without a user and a password.
#[derive(Clone, Default)]
pub struct Proxies(Option<Arc<Matcher>>);

impl Proxies {
    /// Those that the environment names, as curl reads it: `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in
    /// capitals or not.
    pub fn of_the_environment() -> Self {
        Self(Some(Arc::new(Matcher::from_env())))
    }

    /// This one for all but a list of host names, addresses and networks, as `NO_PROXY` has it.
    pub fn new(proxy: &str, except: &str) -> Self {
        let builder = Matcher::builder();
        Self(Some(Arc::new(builder.https(proxy).no(except).build())))
    }

    pub(crate) fn matcher(&self) -> Option<Arc<Matcher>> {
        self.0.clone()
    }
}

/// Nothing of it: an address of a proxy may hold a password.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Proxies(…)"
        } else {
            "Proxies(none)"
        })
    }
}
