//! Presets as policies that an API server carries out by itself.

use std::io::{self, Write as _};

use anyhow::anyhow;
use pod_presets::{Export, FieldError, Origin, export};
use serde_json::Value;

use super::files;
use crate::args::{Connection, ExportArgs};

/// Prints the policies of presets, and what they do not do.
///
/// # Errors
///
/// A file without presets, or with one that cannot be exported; the text says what to change.
pub fn export_presets(connection: &Connection, args: &ExportArgs) -> anyhow::Result<()> {
    let namespace = connection.namespace.as_deref();
    let mut text = String::new();
    for object in files::presets(&args.files)? {
        text.push_str(&of(object, namespace)?);
    }
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn of(mut object: Value, namespace: Option<&str>) -> anyhow::Result<String> {
    let of = |field: &str| object[field].as_str().unwrap_or_default();
    let is_namespaced = Origin::of(of("apiVersion"), of("kind")).is_some_and(Origin::is_namespaced);
    let name = format!("{} {}", of("kind"), object["metadata"]["name"]);
    if is_namespaced && object["metadata"]["namespace"].is_null() {
        let namespace = namespace.ok_or_else(|| {
            anyhow!("{name} names no namespace\n  next: name the one whose pods it is for with -n")
        })?;
        object["metadata"]["namespace"] = namespace.into();
    }
    let exported = export(&object)
        .map_err(|errors| anyhow!("{name} cannot be exported: {}", FieldError::all(&errors)))?;
    written(&name, &exported)
}

fn written(name: &str, exported: &Export) -> anyhow::Result<String> {
    let mut text = format!(
        "# {} as a policy, which does not do all that it does:\n",
        escaped(name)
    );
    for sentence in &exported.lost {
        text.extend(["# - ", sentence, "\n"]);
    }
    for object in [&exported.policy, &exported.binding] {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object)?);
    }
    Ok(text)
}

/// On one line.
fn escaped(name: &str) -> String {
    name.chars().filter(|it| !it.is_control()).collect()
}
