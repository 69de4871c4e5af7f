//! What Spring Boot itself wants.

use convention_webhook_sdk::semver::{Comparator, Op, Prerelease, VersionReq};
use convention_webhook_sdk::{
    Applied, ConventionError, Dependencies, Port, Probe, ProbeKind, Protocol, Template,
    TemplateError,
};

use crate::properties::Properties;

const SPRING_BOOT: &str = "spring-boot";
const SERVER_PORT: &str = "server.port";
const MANAGEMENT_PORT: &str = "management.server.port";
/// Starters that bring a server which can end gracefully.
const SERVERS: [&str; 4] = [
    "spring-boot-starter-tomcat",
    "spring-boot-starter-jetty",
    "spring-boot-starter-reactor-netty",
    "spring-boot-starter-undertow",
];
/// What Kubernetes gives a pod for its end if nobody says otherwise.
const GRACE_PERIOD: u64 = 30;

/// From the version that has graceful ends, and paths for probes.
fn from_2_3() -> VersionReq {
    let from = Comparator {
        op: Op::GreaterEq,
        major: 2,
        minor: Some(3),
        patch: Some(0),
        pre: Prerelease::EMPTY,
    };
    VersionReq {
        comparators: vec![from],
    }
}

pub(crate) fn framework(
    template: &mut Template,
    dependencies: &Dependencies,
    applied: &mut Applied,
) {
    if let Some(spring_boot) = dependencies.named(SPRING_BOOT) {
        template.default_label("conventions.carto.run/framework", SPRING_BOOT);
        template.default_annotation("boot.spring.io/version", &spring_boot.version);
        applied.add("spring-boot");
    }
}

pub(crate) fn graceful_shutdown(
    template: &mut Template,
    dependencies: &Dependencies,
    properties: &mut Properties,
    applied: &mut Applied,
) -> Result<(), TemplateError> {
    let has_server = SERVERS.iter().any(|it| dependencies.named(it).is_some());
    if !has_server || dependencies.matching(SPRING_BOOT, &from_2_3()).is_none() {
        return Ok(());
    }
    template.default_at(&["terminationGracePeriodSeconds"], GRACE_PERIOD)?;
    let period = template.termination_grace_period().unwrap_or(GRACE_PERIOD);
    // Four fifths, rounded down; no number of seconds is too large for it.
    let seconds = period / 5 * 4 + period % 5 * 4 / 5;
    properties.or_default("server.shutdown.grace-period", &format!("{seconds}s"));
    applied.add("spring-boot-graceful-shutdown");
    Ok(())
}

pub(crate) fn web(
    template: &mut Template,
    name: &str,
    dependencies: &Dependencies,
    properties: &mut Properties,
    applied: &mut Applied,
) -> Result<(), ConventionError> {
    let needed = [SPRING_BOOT, "spring-web"];
    if needed.iter().any(|it| dependencies.named(it).is_none()) {
        return Ok(());
    }
    properties.or_default(SERVER_PORT, "8080");
    if let Some(port) = port(properties, SERVER_PORT)? {
        let mut others = template.containers().filter(|other| other.name() != name);
        if let Some(other) = others.find(|other| other.has_port(port, Protocol::Tcp)) {
            return Err(ConventionError::new(format!(
                "port {port} is that of container {} already; set -D{SERVER_PORT} in {}",
                other.name(),
                crate::OPTIONS
            )));
        }
        drop(others);
        if let Some(mut container) = template.container_mut(name) {
            container.default_port(&Port::tcp(port))?;
        }
    }
    applied.add("spring-boot-web");
    Ok(())
}

/// Where the actuator is.
pub(crate) struct Actuator {
    /// None if it has none, or one that nobody knows before it starts.
    port: Option<u16>,
    is_https: bool,
    base: String,
    has_health_groups: bool,
}

impl Actuator {
    fn probe(&self, group: &str, port: u16) -> Probe {
        let path = if self.has_health_groups {
            format!("{}/health/{group}", self.base)
        } else {
            format!("{}/info", self.base)
        };
        if self.is_https {
            Probe::https_get(&path, port)
        } else {
            Probe::http_get(&path, port)
        }
    }
}

pub(crate) fn actuator(
    template: &mut Template,
    dependencies: &Dependencies,
    properties: &mut Properties,
    applied: &mut Applied,
) -> Result<Option<Actuator>, ConventionError> {
    if dependencies.named("spring-boot-actuator").is_none() {
        return Ok(None);
    }
    let server_port = properties.get(SERVER_PORT).unwrap_or("8080").to_owned();
    properties.or_default(MANAGEMENT_PORT, &server_port);
    let base = properties.or_default("management.endpoints.web.base-path", "/actuator");
    let base = format!("/{}", base.trim_matches('/'));
    let base = base.trim_end_matches('/').to_owned();
    let is_on = |name| properties.get(name) == Some("true");
    let is_same = properties.get(MANAGEMENT_PORT) == Some(server_port.as_str());
    let actuator = Actuator {
        port: port(properties, MANAGEMENT_PORT)?,
        is_https: is_on("management.server.ssl.enabled")
            || (is_same && is_on("server.ssl.enabled")),
        base,
        has_health_groups: dependencies.matching(SPRING_BOOT, &from_2_3()).is_some(),
    };
    if let Some(port) = actuator.port {
        let scheme = if actuator.is_https { "https" } else { "http" };
        let address = format!("{scheme}://:{port}{}", actuator.base);
        template.default_annotation("boot.spring.io/actuator", &address);
    }
    applied.add("spring-boot-actuator");
    Ok(Some(actuator))
}

pub(crate) fn probes(
    template: &mut Template,
    name: &str,
    actuator: &Actuator,
    properties: &mut Properties,
    applied: &mut Applied,
) -> Result<(), TemplateError> {
    let enabled = properties.or_default("management.health.probes.enabled", "true");
    if enabled != "true" {
        return Ok(());
    }
    let (Some(port), Some(mut container)) = (actuator.port, template.container_mut(name)) else {
        return Ok(());
    };
    container.default_probe(ProbeKind::Liveness, &actuator.probe("liveness", port))?;
    container.default_probe(ProbeKind::Readiness, &actuator.probe("readiness", port))?;
    let liveness = container.view().probe(ProbeKind::Liveness);
    if let Some(startup) = liveness.and_then(Probe::like) {
        let startup = startup
            .initial_delay_seconds(1)
            .period_seconds(1)
            .failure_threshold(120);
        container.default_probe(ProbeKind::Startup, &startup)?;
    }
    applied.add("spring-boot-actuator-probes");
    Ok(())
}

/// A property that is a port. Spring takes 0 for any port and a negative one for none.
fn port(properties: &Properties, name: &str) -> Result<Option<u16>, ConventionError> {
    let text = properties.get(name).unwrap_or_default();
    let Ok(number) = text.parse::<i32>() else {
        return Err(wrong_port(name, text));
    };
    match u16::try_from(number) {
        Ok(port) => Ok((port > 0).then_some(port)),
        Err(_) if number < 0 => Ok(None),
        Err(_) => Err(wrong_port(name, text)),
    }
}

fn wrong_port(name: &str, text: &str) -> ConventionError {
    let text: String = text.chars().take(50).collect();
    ConventionError::new(format!(
        "property {name} of {} is {text:?}, not a port",
        crate::OPTIONS
    ))
}
