//! A server that answers by a script, byte by byte, over TLS or not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convention_client::{
    CallError, CallErrorKind, Clients, DEFAULT_BUDGET, RequestBody, Settings, Target,
};
use convention_protocol::{PodConventionContext, PodTemplate};
use conventions::answer::Answer;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use rcgen::CertificateParams;
use rustls::ServerConfig;
use test_support::TestAuthority;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// An answer that says that nothing was done.
pub(crate) const GOOD: &str =
    r#"{"status": {"template": {"spec": {"containers": []}}, "appliedConventions": ["env"]}}"#;

/// What a server does about a request.
pub(crate) enum Reply {
    /// Sends this and keeps the connection.
    Send(Vec<u8>),
    /// Sends this and closes the connection.
    Close(Vec<u8>),
    /// Sends this and nothing more, for ever.
    Hang(Vec<u8>),
    /// Sends this, and then this again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// Cuts the connection, unread.
    Reset,
}

impl Reply {
    pub(crate) fn good() -> Self {
        Self::status("200 OK", "", GOOD)
    }

    /// With header lines that each end in a line break.
    pub(crate) fn status(status: &str, headers: &str, body: &str) -> Self {
        Self::Send(answer(status, headers, body.as_bytes()))
    }
}

pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{}content-length: {}\r\n\r\n",
        headers.replace('\n', "\r\n"),
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// What came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// Its lines before the body.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Which connection it came over.
    pub(crate) connection: usize,
}

type Script = dyn Fn(usize, &Received) -> Reply + Send + Sync;

/// What a server has seen.
#[derive(Default)]
pub(crate) struct Seen {
    connections: AtomicUsize,
    /// Requests that were not answered yet, and how many there were at most.
    at_once: (AtomicUsize, AtomicUsize),
    requests: Mutex<Vec<Received>>,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers each request by the script, which is told how many came before.
    pub(crate) async fn start(
        tls: Option<ServerConfig>,
        script: impl Fn(usize, &Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_after(0, tls, script).await
    }

    /// The same, but to so many connections nothing is ever said.
    pub(crate) async fn start_after(
        silent: usize,
        tls: Option<ServerConfig>,
        script: impl Fn(usize, &Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let tls = tls.map(|tls| TlsAcceptor::from(Arc::new(tls)));
        let (script, of_all): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (mut connections, mut held) = (JoinSet::new(), Vec::new());
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let number = of_all.connections.fetch_add(1, Ordering::SeqCst);
                if number < silent {
                    held.push(tcp);
                    continue;
                }
                let (script, seen, tls) = (Arc::clone(&script), Arc::clone(&of_all), tls.clone());
                connections.spawn(async move {
                    match tls {
                        // A client that does not trust us goes.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(tcp).await {
                                serve(stream, number, &seen, &*script).await;
                            }
                        }
                        None => serve(tcp, number, &seen, &*script).await,
                    }
                });
            }
        });
        Self {
            port,
            seen,
            _tasks: tasks,
        }
    }

    pub(crate) async fn plain(
        script: impl Fn(usize, &Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(None, script).await
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many requests there were at a time.
    pub(crate) fn at_once(&self) -> usize {
        self.seen.at_once.1.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(crate) fn http(&self) -> Target {
        target(&format!("http://127.0.0.1:{}/hook", self.port), None)
    }

    pub(crate) fn https(&self, ca_pem: &str) -> Target {
        target(
            &format!("https://localhost:{}/hook", self.port),
            Some(ca_pem),
        )
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    seen: &Seen,
    script: &Script,
) {
    while let Some(mut request) = received(&mut stream).await {
        request.connection = connection;
        let before = {
            let mut requests = seen.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        let at_once = seen.at_once.0.fetch_add(1, Ordering::SeqCst) + 1;
        seen.at_once.1.fetch_max(at_once, Ordering::SeqCst);
        // What others have sent meanwhile is received as well.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        seen.at_once.0.fetch_sub(1, Ordering::SeqCst);
        // A client that has enough goes, which is no fault of this server.
        let goes_on = match script(before, &request) {
            Reply::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
            Reply::Close(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                false
            }
            Reply::Hang(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.flush().await;
                std::future::pending().await
            }
            Reply::Endless(head, again) => {
                let mut bytes = head;
                while stream.write_all(&bytes).await.is_ok() {
                    bytes.clone_from(&again);
                }
                false
            }
            Reply::Reset => false,
        };
        if !goes_on || stream.flush().await.is_err() {
            return;
        }
    }
}

/// A whole request, or nothing at the end of the connection.
pub(crate) async fn received(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut body = vec![0; header(&head, "content-length").map_or(0, |it| it.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(Received {
        head,
        body,
        connection: 0,
    })
}

pub(crate) fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}

pub(crate) fn target(url: &str, ca_pem: Option<&str>) -> Target {
    let config = WebhookClientConfig {
        url: Some(url.to_owned()),
        ..Default::default()
    };
    Target::of(&config, ca_pem.map(str::as_bytes)).unwrap()
}

pub(crate) fn body() -> RequestBody {
    let template = PodTemplate::default();
    let context = PodConventionContext::request("app-env".to_owned(), template, Vec::new());
    RequestBody::new(&context, &BTreeMap::new()).unwrap()
}

pub(crate) fn clients() -> Clients {
    Clients::new(Settings::default()).unwrap()
}

pub(crate) async fn call(target: &Target) -> Result<Answer, CallError> {
    let target = target.clone();
    // In a task of its own, as controllers do it.
    let mut task = JoinSet::new();
    task.spawn(async move { clients().call(&target, DEFAULT_BUDGET, &body()).await });
    task.join_next().await.unwrap().unwrap()
}

/// The kind and the text of the error that a call ends with. Its text is fit for a condition.
pub(crate) async fn failed(target: &Target) -> (CallErrorKind, String) {
    shown(&call(target).await.unwrap_err())
}

/// The same when it is told how long it may take.
pub(crate) async fn failed_within(target: &Target, budget: Duration) -> (CallErrorKind, String) {
    shown(&clients().call(target, budget, &body()).await.unwrap_err())
}

pub(crate) fn shown(error: &CallError) -> (CallErrorKind, String) {
    let text = error.to_string();
    assert!(!text.contains(char::is_control), "{text:?}");
    (error.kind(), text)
}

/// An authority that signs certificates.
pub(crate) struct Authority(TestAuthority);

impl Authority {
    pub(crate) fn new() -> Self {
        Self(TestAuthority::new("authority").unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// What a server needs that this authority signs for these names.
    pub(crate) fn server(&self, names: &[&str]) -> ServerConfig {
        self.server_with(names, |_| {})
    }

    pub(crate) fn server_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> ServerConfig {
        let key_pair = self.0.sign_with(names, change).unwrap();
        key_pair.server_config().unwrap()
    }
}

/// A port that is taken, and at which nobody listens yet.
pub(crate) fn refusing() -> (u16, TcpSocket) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (socket.local_addr().unwrap().port(), socket)
}

/// A server that takes connections and says nothing.
pub(crate) async fn silent() -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut held: Vec<TcpStream> = Vec::new();
        loop {
            held.push(listener.accept().await.unwrap().0);
        }
    });
    (port, tasks)
}
