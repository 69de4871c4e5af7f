//! Runs Spring Boot applications as they want to be run, by what their images are made of.
//!
//! For each container whose image has a bill of materials:
//!
//! | receipt | applies when the image has | what it does |
//! |---|---|---|
//! | `spring-boot` | `spring-boot` | label `conventions.carto.run/framework`, annotation `boot.spring.io/version` |
//! | `spring-boot-graceful-shutdown` | `spring-boot` from 2.3.0, and a server | time for the end of the pod, and 80 % of it for requests under way |
//! | `spring-boot-web` | `spring-boot` and `spring-web` | property `server.port`, and the port of the container |
//! | `spring-boot-actuator` | `spring-boot-actuator` | port and path of the actuator, annotation `boot.spring.io/actuator` |
//! | `spring-boot-actuator-probes` | `spring-boot-actuator` | liveness, readiness and startup probes |
//! | `service-intent-…` | a client of MySQL, PostgreSQL, MongoDB, RabbitMQ, Redis, Kafka | label and annotation `services.conventions.carto.run/…` |
//!
//! Properties are those of variable `JAVA_TOOL_OPTIONS`. What the author of the template wrote
//! there, or elsewhere, stays. Where the variable comes from a Secret or the like, nobody knows
//! which ports the application has, so only the first and the last row apply.

mod properties;
mod services;
mod steps;

use convention_webhook_sdk::{Applied, ConventionError, Dependencies, Images, Template};

use properties::Properties;

/// The variable with the properties.
const OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// Runs Spring Boot applications as they want to be run.
///
/// # Errors
///
/// A port that two containers have, a property that is no port, or a template with something else
/// where lists are. The author of the template must correct it.
#[expect(
    clippy::unused_async,
    reason = "a convention may wait; this one need not"
)]
pub async fn spring_boot(
    template: &mut Template,
    images: &Images,
) -> Result<Applied, ConventionError> {
    let mut applied = Applied::nothing();
    let names = template.containers();
    let names: Vec<String> = names.map(|it| it.name().to_owned()).collect();
    for name in names {
        decorate(template, images, &name, &mut applied)
            .map_err(|error| error.context(format!("container {name}")))?;
    }
    Ok(applied)
}

fn decorate(
    template: &mut Template,
    images: &Images,
    name: &str,
    applied: &mut Applied,
) -> Result<(), ConventionError> {
    let Some(container) = template.container(name) else {
        return Ok(());
    };
    let Some(image) = images.of(container) else {
        return Ok(());
    };
    let dependencies = image.dependencies();
    if dependencies.is_empty() {
        return Ok(());
    }
    steps::framework(template, dependencies, applied);
    // The image's own options would be lost if the pod had others.
    let options = match container_options(template, name) {
        Options::Unknown => None,
        Options::Known(options) => Some(options),
        Options::None => Some(image.settings().env(OPTIONS).unwrap_or_default().to_owned()),
    };
    if let Some(options) = options {
        with_properties(template, name, &options, dependencies, applied)?;
    }
    services::intents(template, name, dependencies, applied);
    Ok(())
}

/// What a container says of its options.
enum Options {
    /// Nothing.
    None,
    /// This.
    Known(String),
    /// They come from somewhere else.
    Unknown,
}

fn container_options(template: &Template, name: &str) -> Options {
    let container = template.container(name);
    let written = container.and_then(|it| it.variable(OPTIONS).map(|_| it.env(OPTIONS)));
    match written {
        None => Options::None,
        Some(Some(options)) => Options::Known(options.to_owned()),
        Some(None) => Options::Unknown,
    }
}

fn with_properties(
    template: &mut Template,
    name: &str,
    options: &str,
    dependencies: &Dependencies,
    applied: &mut Applied,
) -> Result<(), ConventionError> {
    let mut properties = Properties::read(options);
    let before = properties.clone();
    steps::graceful_shutdown(template, dependencies, &mut properties, applied)?;
    steps::web(template, name, dependencies, &mut properties, applied)?;
    if let Some(actuator) = steps::actuator(template, dependencies, &mut properties, applied)? {
        steps::probes(template, name, &actuator, &mut properties, applied)?;
    }
    // Somebody's own order of options stays where nothing is to be added.
    if properties != before
        && let Some(mut container) = template.container_mut(name)
    {
        container.set_env(OPTIONS, &properties.to_string())?;
    }
    Ok(())
}
