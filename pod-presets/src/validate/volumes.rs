//! Volumes and mounts.

use std::collections::HashSet;

use conventions::pod::Part;
use serde_json::{Value, json};

use super::containers::{given, require};
use super::{FieldError, items, text};

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
     and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const MODE_RULE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const LONGEST_LABEL: usize = 63;

/// Texts that a source must have. What is required by the schema may still be empty.
const REQUIRED: [(&str, &[&str]); 20] = [
    ("awsElasticBlockStore", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("azureFile", &["secretName", "shareName"]),
    ("cinder", &["volumeID"]),
    ("configMap", &["name"]),
    ("csi", &["driver"]),
    ("flexVolume", &["driver"]),
    ("gcePersistentDisk", &["pdName"]),
    ("gitRepo", &["repository"]),
    ("glusterfs", &["endpoints", "path"]),
    ("hostPath", &["path"]),
    ("image", &["reference"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("nfs", &["server", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("portworxVolume", &["volumeID"]),
    ("quobyte", &["registry", "volume"]),
    ("rbd", &["image"]),
    ("scaleIO", &["gateway", "system"]),
    ("secret", &["secretName"]),
];

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];

pub(super) fn volume_errors(spec: &Value, errors: &mut Vec<FieldError>) {
    let mut names = HashSet::new();
    for (index, volume) in items(spec, Part::Volume).enumerate() {
        let field = format!("spec.volumes[{index}]");
        source_errors(volume, &field, errors);
        let (name, field) = (text(&volume["name"]), format!("{field}.name"));
        if name.is_empty() {
            errors.push(FieldError::required(&field, ""));
        } else if !is_label(name) {
            errors.push(FieldError::invalid(&field, &json!(name), LABEL_RULE));
        } else if !names.insert(name) {
            errors.push(FieldError::duplicate(&field, name));
        }
        if errors.len() >= super::MOST_ERRORS {
            return;
        }
    }
}

/// One source; without any it is an empty directory. Of what a newer Kubernetes knows only the number is checked.
fn source_errors(volume: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let fields = volume.as_object().into_iter().flatten();
    let sources = fields.filter(|(name, value)| *name != "name" && !value.is_null());
    for (index, (source, value)) in sources.enumerate() {
        let field = format!("{field}.{source}");
        if index > 0 {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(&field, detail));
            continue;
        }
        let required = REQUIRED.iter().find(|(name, _)| name == source);
        if let Some((_, texts)) = required {
            require(value, texts, &field, errors);
        }
        match source.as_str() {
            "secret" | "configMap" => keyed_errors(value, &field, errors),
            "downwardAPI" => downward_errors(value, &field, errors),
            "projected" => projected_errors(value, &field, errors),
            "hostPath" => host_path_errors(value, &field, errors),
            "nfs" => absolute_error(&value["path"], &format!("{field}.path"), errors),
            _ => {}
        }
    }
}

fn host_path_errors(source: &Value, field: &str, errors: &mut Vec<FieldError>) {
    backstep_error(&source["path"], &format!("{field}.path"), errors);
    let type_ = &source["type"];
    if !type_.is_null() && !HOST_PATH_TYPES.contains(&text(type_)) {
        let field = format!("{field}.type");
        errors.push(FieldError::unsupported(
            &field,
            type_,
            &HOST_PATH_TYPES[1..],
        ));
    }
}

/// Items of a ConfigMap or Secret.
fn keyed_errors(source: &Value, field: &str, errors: &mut Vec<FieldError>) {
    mode_error(
        &source["defaultMode"],
        &format!("{field}.defaultMode"),
        errors,
    );
    let items = source["items"].as_array().into_iter().flatten();
    for (index, item) in items.enumerate() {
        let field = format!("{field}.items[{index}]");
        require(item, &["key"], &field, errors);
        file_errors(item, &field, errors);
    }
}

fn downward_errors(source: &Value, field: &str, errors: &mut Vec<FieldError>) {
    mode_error(
        &source["defaultMode"],
        &format!("{field}.defaultMode"),
        errors,
    );
    let items = source["items"].as_array().into_iter().flatten();
    for (index, item) in items.enumerate() {
        let field = format!("{field}.items[{index}]");
        file_errors(item, &field, errors);
        let references = ["fieldRef", "resourceFieldRef"].map(|it| item[it].is_object());
        match references {
            [true, true] => errors.push(FieldError::invalid(
                &field,
                &json!("resource"),
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            )),
            [false, false] => errors.push(FieldError::required(
                &field,
                "one of fieldRef and resourceFieldRef is required",
            )),
            _ => {}
        }
    }
}

fn projected_errors(source: &Value, field: &str, errors: &mut Vec<FieldError>) {
    mode_error(
        &source["defaultMode"],
        &format!("{field}.defaultMode"),
        errors,
    );
    let sources = source["sources"].as_array().into_iter().flatten();
    for (index, source) in sources.enumerate() {
        let field = format!("{field}.sources[{index}]");
        match given(source) {
            0 => errors.push(FieldError::required(&field, "must specify a source")),
            1 => {}
            _ => errors.push(FieldError::forbidden(
                &field,
                "may not specify more than 1 volume type per source",
            )),
        }
        for keyed in ["secret", "configMap"] {
            if source[keyed].is_object() {
                let field = format!("{field}.{keyed}");
                require(&source[keyed], &["name"], &field, errors);
                keyed_errors(&source[keyed], &field, errors);
            }
        }
        if source["downwardAPI"].is_object() {
            downward_errors(
                &source["downwardAPI"],
                &format!("{field}.downwardAPI"),
                errors,
            );
        }
        if source["serviceAccountToken"].is_object() {
            file_errors(
                &source["serviceAccountToken"],
                &format!("{field}.serviceAccountToken"),
                errors,
            );
        }
    }
}

/// The place of a file in a volume, and its mode.
fn file_errors(item: &Value, field: &str, errors: &mut Vec<FieldError>) {
    require(item, &["path"], field, errors);
    relative_errors(&item["path"], &format!("{field}.path"), errors);
    mode_error(&item["mode"], &format!("{field}.mode"), errors);
}

pub(super) fn mount_errors(spec: &Value, errors: &mut Vec<FieldError>) {
    let volumes: HashSet<&str> = items(spec, Part::Volume)
        .map(|volume| text(&volume["name"]))
        .collect();
    let mut paths = HashSet::new();
    for (index, mount) in items(spec, Part::VolumeMount).enumerate() {
        let field = |name: &str| format!("spec.volumeMounts[{index}].{name}");
        let [name, path] = ["name", "mountPath"].map(|field| text(&mount[field]));
        if name.is_empty() {
            errors.push(FieldError::required(&field("name"), ""));
        } else if !volumes.contains(name) {
            errors.push(FieldError::not_found(&field("name"), name));
        }
        if path.is_empty() {
            errors.push(FieldError::required(&field("mountPath"), ""));
        } else if !paths.insert(path) {
            let value = json!(path);
            errors.push(FieldError::invalid(
                &field("mountPath"),
                &value,
                "must be unique",
            ));
        }
        for within in ["subPath", "subPathExpr"] {
            relative_errors(&mount[within], &field(within), errors);
        }
        if ["subPath", "subPathExpr"]
            .iter()
            .all(|it| !text(&mount[*it]).is_empty())
        {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(
                &field("subPathExpr"),
                &mount["subPathExpr"],
                detail,
            ));
        }
        let propagation = &mount["mountPropagation"];
        if !propagation.is_null() && !PROPAGATIONS.contains(&text(propagation)) {
            let field = field("mountPropagation");
            errors.push(FieldError::unsupported(&field, propagation, &PROPAGATIONS));
        }
        recursive_errors(mount, &field("recursiveReadOnly"), errors);
        if errors.len() >= super::MOST_ERRORS {
            return;
        }
    }
}

fn recursive_errors(mount: &Value, field: &str, errors: &mut Vec<FieldError>) {
    match text(&mount["recursiveReadOnly"]) {
        "" | "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if mount["readOnly"] != true {
                let detail = "may only be specified when readOnly is true";
                errors.push(FieldError::forbidden(field, detail));
            }
            if !["", "None"].contains(&text(&mount["mountPropagation"])) {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(field, detail));
            }
        }
        _ => {
            let known = ["Disabled", "Enabled", "IfPossible"];
            errors.push(FieldError::unsupported(
                field,
                &mount["recursiveReadOnly"],
                &known,
            ));
        }
    }
}

fn relative_errors(path: &Value, field: &str, errors: &mut Vec<FieldError>) {
    if text(path).starts_with('/') {
        errors.push(FieldError::invalid(field, path, "must be a relative path"));
    }
    backstep_error(path, field, errors);
}

fn absolute_error(path: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let path_text = text(path);
    if !path_text.is_empty() && !path_text.starts_with('/') {
        errors.push(FieldError::invalid(field, path, "must be an absolute path"));
    }
}

fn backstep_error(path: &Value, field: &str, errors: &mut Vec<FieldError>) {
    if text(path).split('/').any(|step| step == "..") {
        errors.push(FieldError::invalid(field, path, "must not contain '..'"));
    }
}

fn mode_error(mode: &Value, field: &str, errors: &mut Vec<FieldError>) {
    if !mode.is_null() && !mode.as_i64().is_some_and(|it| (0..=0o777).contains(&it)) {
        errors.push(FieldError::invalid(field, mode, MODE_RULE));
    }
}

fn is_label(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= LONGEST_LABEL
        && name.starts_with(edge)
        && name.ends_with(edge)
        && name.chars().all(|c| edge(c) || c == '-')
}
