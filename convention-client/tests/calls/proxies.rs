//! Ways through a proxy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convention_client::{CallErrorKind, Clients, DEFAULT_BUDGET, Proxies, Settings, Target};
use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::server::{Authority, Reply, Server, body, header, received, shown, target};

/// A proxy that leads everybody to one port, and keeps what it was asked.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn to(there: u16, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (mut tasks, heard) = (JoinSet::new(), Arc::clone(&asked));
        tasks.spawn(async move {
            let mut tunnels = JoinSet::new();
            loop {
                let (mut here, _) = listener.accept().await.unwrap();
                let heard = Arc::clone(&heard);
                tunnels.spawn(async move {
                    let request = received(&mut here).await.unwrap();
                    heard.lock().unwrap().push(request.head);
                    here.write_all(answer.as_bytes()).await.unwrap();
                    let mut there = TcpStream::connect(("127.0.0.1", there)).await.unwrap();
                    let _ = copy_bidirectional(&mut here, &mut there).await;
                });
            }
        });
        Self {
            port,
            asked,
            _tasks: tasks,
        }
    }

    fn clients(&self, except: &str) -> Clients {
        let proxy = format!("http://user:word@127.0.0.1:{}", self.port);
        let settings = Settings {
            proxies: Proxies::new(&proxy, except),
            ..Settings::default()
        };
        assert!(!format!("{settings:?}").contains("word"));
        Clients::new(settings).unwrap()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

const OPEN: &str = "HTTP/1.1 200 x\r\n\r\n";

#[tokio::test]
async fn a_url_is_called_through_a_tunnel() {
    let authority = Authority::new();
    let server = Server::start(Some(authority.server(&["localhost"])), |_, _| Reply::good()).await;
    let proxy = Proxy::to(server.port, OPEN).await;
    let (clients, target) = (proxy.clients(""), server.https(&authority.pem()));
    for _ in 0..3 {
        clients
            .call(&target, DEFAULT_BUDGET, &body())
            .await
            .unwrap();
    }
    let asked = proxy.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let wanted = format!("CONNECT localhost:{} HTTP/1.1\r\n", server.port);
    assert!(asked[0].starts_with(&wanted), "{asked:?}");
    assert!(header(&asked[0], "proxy-authorization").is_some());
    let head = &server.requests()[0].head;
    assert_eq!(header(head, "proxy-authorization"), None);
}

#[tokio::test]
async fn the_name_that_is_called_counts_behind_a_proxy_too() {
    let authority = Authority::new();
    let tls = Some(authority.server(&["hooks.team.svc"]));
    let server = Server::start(tls, |_, _| Reply::good()).await;
    let proxy = Proxy::to(server.port, OPEN).await;
    let clients = proxy.clients("");
    let call = |url| {
        let target = target(url, Some(&authority.pem()));
        let (clients, body) = (&clients, body());
        async move { clients.call(&target, DEFAULT_BUDGET, &body).await }
    };
    call("https://hooks.team.svc/").await.unwrap();
    let (kind, text) = shown(&call("https://hooks.other.svc/").await.unwrap_err());
    assert_eq!(kind, CallErrorKind::Webhook);
    assert!(
        text.contains("for hooks.team.svc, not for hooks.other.svc"),
        "{text}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_service_of_the_cluster_is_never_called_through_a_proxy() {
    let proxy = Proxy::to(1, OPEN).await;
    let service = ServiceReference {
        name: "hooks".to_owned(),
        namespace: "team".to_owned(),
        path: None,
        port: None,
    };
    let config = WebhookClientConfig {
        service: Some(service),
        ..Default::default()
    };
    let target = Target::of(&config, Some(Authority::new().pem().as_bytes())).unwrap();
    // There is no such host, and whether that is known soon makes no difference.
    let budget = Duration::from_secs(2);
    let error = proxy.clients("").call(&target, budget, &body()).await;
    assert_eq!(error.unwrap_err().kind(), CallErrorKind::Connection);
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn who_is_excepted_is_called_directly() {
    let authority = Authority::new();
    let server = Server::start(Some(authority.server(&["localhost"])), |_, _| Reply::good()).await;
    let proxy = Proxy::to(server.port, OPEN).await;
    let clients = proxy.clients("10.0.0.0/8,localhost");
    clients
        .call(&server.https(&authority.pem()), DEFAULT_BUDGET, &body())
        .await
        .unwrap();
    let plain = Server::plain(|_, _| Reply::good()).await;
    clients
        .call(&plain.http(), DEFAULT_BUDGET, &body())
        .await
        .unwrap();
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_without_its_password() {
    let authority = Authority::new();
    let proxy = Proxy::to(1, "HTTP/1.1 403 x\r\n\r\n").await;
    let target = target("https://hooks.invalid/", Some(&authority.pem()));
    let error = proxy
        .clients("")
        .call(&target, DEFAULT_BUDGET, &body())
        .await;
    let (kind, text) = shown(&error.unwrap_err());
    assert_eq!(kind, CallErrorKind::Connection);
    assert!(text.contains("tunnel"), "{text}");
    assert!(!text.contains("word"), "{text}");
}
