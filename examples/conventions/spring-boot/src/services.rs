//! Services that an application is made to use.

use convention_webhook_sdk::{Applied, Dependencies, Template};

/// By service, the clients that tell of it.
const CLIENTS: [(&str, &[&str]); 7] = [
    ("mysql", &["mysql-connector-java", "r2dbc-mysql"]),
    ("postgres", &["postgresql", "r2dbc-postgresql"]),
    ("mongodb", &["mongodb-driver-core"]),
    ("rabbitmq", &["amqp-client"]),
    ("redis", &["jedis"]),
    ("kafka", &["kafka-clients"]),
    ("kafka-streams", &["kafka-streams"]),
];

/// Says which services a container has a client of.
pub(crate) fn intents(
    template: &mut Template,
    container: &str,
    dependencies: &Dependencies,
    applied: &mut Applied,
) {
    for (service, clients) in CLIENTS {
        let mut found = clients.iter().filter_map(|name| dependencies.named(name));
        let Some(client) = found.next() else {
            continue;
        };
        let key = format!("services.conventions.carto.run/{service}");
        template.default_label(&key, container);
        let version = format!("{}/{}", client.name, client.version);
        template.default_annotation(&key, &version);
        applied.add(format!("service-intent-{service}"));
    }
}
