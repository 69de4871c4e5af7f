//! Real git repositories over smart HTTP, as Flux wants them.
//!
//! `git http-backend` speaks the protocol; it is a CGI program, and this is the web server in front of it.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, bail, ensure};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::scratch::Scratch;

/// A web server on loopback with git repositories. It runs in a thread of its own until it is dropped.
#[derive(Debug)]
pub struct GitServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    home: Scratch,
}

impl GitServer {
    /// Starts a server without repositories.
    ///
    /// # Errors
    ///
    /// When git's `http-backend` is missing or no port can be opened.
    pub fn start() -> anyhow::Result<Self> {
        let backend = backend()?;
        let home = Scratch::new("carto-git-")?;
        let repositories = home.path().join("repositories");
        fs::create_dir(&repositories)?;
        // Bound here, so the port is known and connections queue up even before the thread runs.
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let app = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::disable())
            .with_state(Backend {
                program: backend,
                repositories,
            });
        let thread = std::thread::Builder::new()
            .name("git-server".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let served = async { axum::serve(TcpListener::from_std(listener)?, app).await };
                    // Connections still open are cut: whoever fetches from a test's server ends with the test.
                    tokio::select! { _ = served => {}, _ = stopped => {} }
                });
            })?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
            home,
        })
    }

    /// Creates an empty repository with the branch `main` and returns its URL. Everybody may push to it.
    ///
    /// # Errors
    ///
    /// When it exists or git fails.
    pub fn create_repo(&self, name: &str) -> anyhow::Result<String> {
        let folder = self.repository(name);
        ensure!(!folder.exists(), "repository {name} exists");
        fs::create_dir_all(self.work_tree(name))?;
        run(git()
            .args(["init", "--quiet", "--bare", "--initial-branch=main"])
            .arg(&folder))?;
        // Without a user, pushes over http are refused unless a repository takes them.
        run(git()
            .arg("--git-dir")
            .arg(&folder)
            .args(["config", "http.receivepack", "true"]))?;
        Ok(self.url(name))
    }

    /// The commits on `main`, newest first: sha and subject. Empty when there are none.
    ///
    /// # Errors
    ///
    /// When the repository does not exist or git fails.
    pub fn log(&self, repo: &str) -> anyhow::Result<Vec<(String, String)>> {
        let output = run(git().arg("--git-dir").arg(self.repository(repo)).args([
            "log",
            "--format=%H %s",
            "--all",
            "--topo-order",
        ]))?;
        let commits = String::from_utf8(output.stdout)?;
        let pairs = commits.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs
            .map(|(sha, subject)| (sha.to_owned(), subject.to_owned()))
            .collect())
    }

    /// What a file holds in a commit.
    ///
    /// # Errors
    ///
    /// When there is no such repository, commit or file.
    pub fn file(&self, repo: &str, commit: &str, path: &str) -> anyhow::Result<String> {
        let output = run(git()
            .arg("--git-dir")
            .arg(self.repository(repo))
            .args(["show", &format!("{commit}:{path}")]))?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Writes files (path and content), commits all on `main` and returns the commit's sha. A commit without a change is
    /// made too.
    ///
    /// # Errors
    ///
    /// When the repository does not exist or git fails.
    pub fn commit(
        &self,
        repo: &str,
        files: &[(&str, &str)],
        message: &str,
    ) -> anyhow::Result<String> {
        let (repository, work_tree) = (self.repository(repo), self.work_tree(repo));
        ensure!(
            repository.exists(),
            "no repository {repo}: create_repo makes it"
        );
        write_files(&work_tree, files)?;
        let git = || {
            let mut git = git();
            git.env("GIT_DIR", &repository)
                .env("GIT_WORK_TREE", &work_tree);
            git
        };
        run(git().args(["add", "--all"]))?;
        run(git().args(["commit", "--quiet", "--allow-empty", "--message", message]))?;
        let output = run(git().args(["rev-parse", "HEAD"]))?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// The port of 127.0.0.1 that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where clients clone a repository from.
    pub fn url(&self, repo: &str) -> String {
        format!("http://{}/{repo}.git", self.address)
    }

    fn repository(&self, name: &str) -> PathBuf {
        self.home
            .path()
            .join("repositories")
            .join(format!("{name}.git"))
    }

    fn work_tree(&self, name: &str) -> PathBuf {
        self.home.path().join("work-trees").join(name)
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed by then.
            let _ = thread.join();
        }
    }
}

/// Writes files below a folder, with the folders they need.
pub(crate) fn write_files(folder: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("a file name")?)?;
        fs::write(&path, content).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// git, deaf to the configuration of the user and the machine.
fn git() -> Command {
    let mut git = Command::new("git");
    git.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null());
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "carto")
            .env(format!("GIT_{role}_EMAIL"), "carto@example.com");
    }
    git
}

fn run(command: &mut Command) -> anyhow::Result<Output> {
    let output = command.output().context("git")?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output)
}

fn backend() -> anyhow::Result<PathBuf> {
    let output = run(git().arg("--exec-path"))?;
    let program = Path::new(String::from_utf8(output.stdout)?.trim()).join("git-http-backend");
    ensure!(
        program.exists(),
        "{} is missing: install the full git package",
        program.display()
    );
    Ok(program)
}

#[derive(Debug, Clone)]
struct Backend {
    program: PathBuf,
    repositories: PathBuf,
}

async fn answer(State(backend): State<Backend>, parts: Parts, body: Bytes) -> Response<Body> {
    serve(&backend, &parts, &body)
        .await
        .unwrap_or_else(|error| {
            let mut response = Response::new(Body::from(format!("{error:#}")));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
}

async fn serve(backend: &Backend, request: &Parts, body: &[u8]) -> anyhow::Result<Response<Body>> {
    let mut child = tokio::process::Command::new(&backend.program)
        .env_clear()
        .envs(cgi_variables(backend, request, body.len()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("git http-backend")?;
    let mut stdin = child.stdin.take().context("no pipe to git http-backend")?;
    // Both ways at once: it may answer before it has read all.
    let (written, output) = tokio::join!(
        async move { stdin.write_all(body).await },
        child.wait_with_output()
    );
    written.context("hand the request to git http-backend")?;
    parse_cgi(&output?.stdout)
}

fn cgi_variables(backend: &Backend, request: &Parts, length: usize) -> Vec<(&'static str, String)> {
    let header = |name: &str| header(&request.headers, name);
    vec![
        ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("GIT_HTTP_EXPORT_ALL", "1".to_owned()),
        (
            "GIT_PROJECT_ROOT",
            backend.repositories.to_string_lossy().into_owned(),
        ),
        ("GIT_PROTOCOL", header("git-protocol")),
        ("PATH_INFO", request.uri.path().to_owned()),
        (
            "QUERY_STRING",
            request.uri.query().unwrap_or_default().to_owned(),
        ),
        ("REQUEST_METHOD", request.method.to_string()),
        ("CONTENT_TYPE", header("content-type")),
        ("CONTENT_LENGTH", length.to_string()),
        ("HTTP_CONTENT_ENCODING", header("content-encoding")),
        ("REMOTE_ADDR", "127.0.0.1".to_owned()),
    ]
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

/// A CGI answer: header lines, one of which may be `Status`, an empty line, the body.
fn parse_cgi(output: &[u8]) -> anyhow::Result<Response<Body>> {
    const END_OF_HEADERS: &[u8] = b"\r\n\r\n";
    let end = output
        .windows(END_OF_HEADERS.len())
        .position(|window| window == END_OF_HEADERS)
        .context("git http-backend sent no headers")?;
    let mut response = Response::builder();
    let mut seen = HashSet::new();
    for line in std::str::from_utf8(&output[..end])?.lines() {
        let (name, value) = line
            .split_once(':')
            .with_context(|| format!("header line {line:?}"))?;
        ensure!(seen.insert(name), "header {name} twice");
        let value = value.trim();
        response = if name == "Status" {
            response.status(value.split(' ').next().unwrap_or_default())
        } else {
            response.header(name, value)
        };
    }
    Ok(response.body(Body::from(output[end + END_OF_HEADERS.len()..].to_vec()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgi_answer_without_a_status_is_200() {
        let response =
            parse_cgi(b"Content-Type: text/plain\r\nExpires: never\r\n\r\nbody\r\n\r\nmore")
                .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/plain");
    }

    #[test]
    fn a_cgi_status_is_the_status_of_the_answer() {
        let response = parse_cgi(b"Status: 404 Not Found\r\nPragma: no-cache\r\n\r\n").unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn a_committed_file_can_be_cloned_over_http() {
        let server = GitServer::start().unwrap();
        let url = server.create_repo("app").unwrap();
        let first = server
            .commit(
                "app",
                &[("README", "one"), ("deploy/a.yaml", "a: 1")],
                "first",
            )
            .unwrap();
        let second = server
            .commit("app", &[("README", "two")], "second")
            .unwrap();
        assert_ne!(first, second);

        let clone = tempfile::tempdir().unwrap();
        run(git().args(["clone", "--quiet", &url]).arg(clone.path())).unwrap();
        assert_eq!(
            fs::read_to_string(clone.path().join("README")).unwrap(),
            "two"
        );
        assert_eq!(
            fs::read_to_string(clone.path().join("deploy/a.yaml")).unwrap(),
            "a: 1"
        );
        let log = run(git()
            .args(["log", "--format=%H %s"])
            .current_dir(clone.path()))
        .unwrap()
        .stdout;
        assert_eq!(
            String::from_utf8(log).unwrap(),
            format!("{second} second\n{first} first\n")
        );
    }

    #[test]
    fn what_is_pushed_over_http_is_in_the_log() {
        let server = GitServer::start().unwrap();
        let url = server.create_repo("app").unwrap();
        assert_eq!(server.log("app").unwrap(), []);
        let first = server.commit("app", &[("a", "1")], "first one").unwrap();

        let clone = tempfile::tempdir().unwrap();
        let in_clone = || {
            let mut git = git();
            git.current_dir(clone.path());
            git
        };
        run(in_clone().args(["clone", "--quiet", &url, "."])).unwrap();
        fs::write(clone.path().join("a"), "2").unwrap();
        run(in_clone().args(["commit", "--quiet", "--all", "--message", "second"])).unwrap();
        run(in_clone().args(["push", "--quiet", "origin", "main"])).unwrap();

        let log = server.log("app").unwrap();
        let subjects: Vec<&str> = log.iter().map(|(_, subject)| subject.as_str()).collect();
        assert_eq!(subjects, ["second", "first one"]);
        assert_eq!(log[1].0, first);
        assert_eq!(server.file("app", &log[0].0, "a").unwrap(), "2");
        assert_eq!(server.file("app", &first, "a").unwrap(), "1");
    }

    #[test]
    fn an_unknown_repository_is_not_found() {
        let server = GitServer::start().unwrap();
        let error = run(git().args(["ls-remote", &server.url("none")])).unwrap_err();
        assert!(error.to_string().contains("not found"), "{error}");
        assert!(
            server
                .commit("none", &[], "m")
                .unwrap_err()
                .to_string()
                .contains("create_repo")
        );
    }
}
