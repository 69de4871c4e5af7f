//! A network that loses replies: the API server does what it was asked, and whoever asked does not hear of it. Or it holds
//! requests back, so that whoever asked can be killed just before they would be carried out.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use http::request::Parts;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use kube::config::AuthInfo;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::ControlPlane;

/// Stands between a process and the API server until it is dropped. A request with a bearer token is passed on with it, any
/// other as one of the administrator.
pub struct LossyProxy {
    kubeconfig: PathBuf,
    lost: Arc<Mutex<Vec<String>>>,
    /// Ends with the set.
    _serving: JoinSet<Infallible>,
}

/// Ends the connection instead of a reply.
#[derive(Debug, Error)]
enum NoReply {
    #[error("the reply is lost")]
    Lost,
    #[error("the API server gave none: {0}")]
    Failed(#[from] kube::Error),
    #[error("the request is not whole: {0}")]
    Request(#[from] hyper::Error),
    #[error("the answer cannot be made: {0}")]
    Answer(#[from] http::Error),
}

/// What stands between a request and the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// An answer in its place, in plain text, as those have that do not come from its registry.
    Refused {
        /// HTTP status.
        code: u16,
        /// Seconds to wait.
        retry_after: Option<u32>,
        /// What it says.
        text: &'static str,
    },
    /// The connection breaks off.
    Broken,
}

/// What happens to a request that is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It is carried out, and nobody hears of it.
    Reply,
    /// It never arrives.
    Request,
    /// It is answered otherwise.
    Disturbed(Disturbance),
}

/// Says of a request and its body what happens to it.
type Faults = Box<dyn Fn(&Parts, &[u8]) -> Option<Fault> + Send + Sync>;

struct Way {
    administrator: Client,
    anonymous: Client,
    faults: Faults,
    lost: Arc<Mutex<Vec<String>>>,
}

impl LossyProxy {
    /// Loses the replies to requests that `loses` says; they have been carried out then.
    ///
    /// # Errors
    ///
    /// When no port is free, or no client can be made.
    pub async fn start(
        plane: &ControlPlane,
        loses: impl Fn(&Parts) -> bool + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let faults = move |parts: &Parts, _: &[u8]| loses(parts).then_some(Fault::Reply);
        Self::with(plane, Box::new(faults)).await
    }

    /// Holds back the requests that `holds` says, given head and body: they never reach the API server, and have no reply.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub async fn holding(
        plane: &ControlPlane,
        holds: impl Fn(&Parts, &[u8]) -> bool + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let faults = move |parts: &Parts, body: &[u8]| holds(parts, body).then_some(Fault::Request);
        Self::with(plane, Box::new(faults)).await
    }

    /// Answers in the API server's place, where `disturbs` says so; the request never reaches it.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub async fn disturbing(
        plane: &ControlPlane,
        disturbs: impl Fn(&Parts) -> Option<Disturbance> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let faults = move |parts: &Parts, _: &[u8]| disturbs(parts).map(Fault::Disturbed);
        Self::with(plane, Box::new(faults)).await
    }

    /// As [`Self::disturbing`], by what is sent as well.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub async fn disturbing_by_body(
        plane: &ControlPlane,
        disturbs: impl Fn(&Parts, &[u8]) -> Option<Disturbance> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let faults = move |parts: &Parts, body: &[u8]| disturbs(parts, body).map(Fault::Disturbed);
        Self::with(plane, Box::new(faults)).await
    }

    async fn with(plane: &ControlPlane, faults: Faults) -> anyhow::Result<Self> {
        let administrator = plane.config()?;
        let mut anonymous = administrator.clone();
        anonymous.auth_info = AuthInfo::default();
        let lost = Arc::<Mutex<Vec<String>>>::default();
        let way = Way {
            administrator: Client::try_from(administrator)?,
            anonymous: Client::try_from(anonymous)?,
            faults,
            lost: lost.clone(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let kubeconfig = plane.folder().join(format!("lossy-{port}.kubeconfig"));
        std::fs::write(&kubeconfig, kubeconfig_of(port))
            .with_context(|| format!("cannot write {}", kubeconfig.display()))?;
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::new(way)));
        Ok(Self {
            kubeconfig,
            lost,
            _serving: serving,
        })
    }

    /// Leads to the API server by this way.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Requests that were held back, or whose replies were lost, so far: method and path.
    pub fn lost(&self) -> Vec<String> {
        self.lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn kubeconfig_of(port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: lossy\n\
         clusters: [{{name: lossy, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n\
         contexts: [{{name: lossy, context: {{cluster: lossy, user: nobody}}}}]\n\
         users: [{{name: nobody, user: {{}}}}]\n"
    )
}

async fn serve(listener: TcpListener, way: Arc<Way>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                connections.spawn(connection(stream, way.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, way: Arc<Way>) {
    let service = service_fn(|request| pass_on(&way, request));
    // That it breaks off is what it is for.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn pass_on(way: &Way, request: Request<Incoming>) -> Result<Response<Body>, NoReply> {
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(header::HOST);
    let asked = format!("{} {}", parts.method, parts.uri.path());
    let body = body.collect().await?.to_bytes();
    let fault = (way.faults)(&parts, &body);
    match fault {
        Some(Fault::Request) => {
            way.note(asked);
            return std::future::pending().await;
        }
        Some(Fault::Disturbed(disturbance)) => {
            way.note(asked);
            return disturbance.answer();
        }
        Some(Fault::Reply) | None => {}
    }
    let client = if parts.headers.contains_key(header::AUTHORIZATION) {
        &way.anonymous
    } else {
        &way.administrator
    };
    let body = Body::from(body.to_vec());
    let reply = client.send(Request::from_parts(parts, body)).await?;
    if fault.is_some() {
        way.note(asked);
        return Err(NoReply::Lost);
    }
    Ok(reply)
}

impl Disturbance {
    fn answer(self) -> Result<Response<Body>, NoReply> {
        let Self::Refused {
            code,
            retry_after,
            text,
        } = self
        else {
            return Err(NoReply::Lost);
        };
        let mut answer = Response::builder().status(code);
        if let Some(seconds) = retry_after {
            answer = answer.header(header::RETRY_AFTER, seconds);
        }
        Ok(answer.body(Body::from(text.as_bytes().to_vec()))?)
    }
}

impl Way {
    fn note(&self, asked: String) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.push(asked);
    }
}
