//! Makes pods as safe as the Pod security standard `restricted` wants them, where that does no
//! harm, and says what it left alone and why.
//!
//! | what | given to | left alone |
//! |---|---|---|
//! | `seccompProfile: RuntimeDefault` | the pod | where somebody chose another |
//! | `allowPrivilegeEscalation: false` | every container | where somebody chose otherwise, and privileged containers |
//! | `runAsNonRoot: true`, `capabilities.drop: [ALL]` | containers that are known not to run as root | root, names of users, images that nobody looked up |
//! | `readOnlyRootFilesystem: true`, with an empty `/tmp` | containers whose image has a user other than root and keeps no data | the others |
//!
//! Root without capabilities is less than its image was made for: it may not even give up being
//! root. Pods for Windows have none of this, and are left alone.
//!
//! A receipt is the name of what was done, `…/<container>` for a container, or
//! `skipped/<what>/<container>: <why>`.

use convention_webhook_sdk::{
    Applied, Change, Container, ContainerMut, ConventionError, Image, Images, Mount, Template,
    TemplateError, Volume,
};
use serde_json::{Value, json};

/// The volume for what containers with a read-only root write nevertheless.
pub const TMP_VOLUME: &str = "security-baseline-tmp";

/// Gives a pod the baseline.
///
/// # Errors
///
/// The template has something else where security contexts, volumes or mounts are.
#[expect(
    clippy::unused_async,
    reason = "a convention may wait; this one need not"
)]
pub async fn security_baseline(
    template: &mut Template,
    images: &Images,
) -> Result<Applied, ConventionError> {
    let mut applied = Applied::nothing();
    if template
        .get(&["os", "name"])
        .is_some_and(|os| os == "windows")
    {
        applied.add(skipped("all", "pod", "it is for Windows"));
        return Ok(applied);
    }
    let seccomp = template.default_at(&["securityContext", "seccompProfile"], seccomp())?;
    told(&mut applied, "seccomp", "pod", seccomp);
    let pod = Pod::of(template);
    let mut needs_tmp = false;
    for mut container in template.all_containers_mut() {
        let image = images.of(container.view());
        if is_privileged(container.view()) {
            applied.add(skipped(
                "all",
                container.view().name(),
                "it is privileged on purpose",
            ));
            continue;
        }
        privileges(&mut applied, &mut container, &pod, image)?;
        non_root(&mut applied, &mut container, &pod, image)?;
        needs_tmp |= read_only_root(&mut applied, &mut container, &pod, image)?;
    }
    if needs_tmp {
        template.default_volume(&Volume::empty_dir(TMP_VOLUME))?;
    }
    Ok(applied)
}

fn seccomp() -> Value {
    json!({"type": "RuntimeDefault"})
}

/// What the pod says for all of its containers.
struct Pod {
    user: Option<Value>,
    non_root: Option<bool>,
}

impl Pod {
    fn of(template: &Template) -> Self {
        let of = |field| template.get(&["securityContext", field]).cloned();
        Self {
            user: of("runAsUser"),
            non_root: of("runAsNonRoot").and_then(|value| value.as_bool()),
        }
    }
}

fn is_privileged(container: Container<'_>) -> bool {
    container.get(&["securityContext", "privileged"]) == Some(&json!(true))
}

/// The API server refuses a container that may not gain privileges and has the capability to do
/// all.
fn has_sys_admin(container: Container<'_>) -> bool {
    let added = container.get(&["securityContext", "capabilities", "add"]);
    let added = added.and_then(Value::as_array).into_iter().flatten();
    added
        .filter_map(Value::as_str)
        .any(|name| name.trim_start_matches("CAP_") == "SYS_ADMIN")
}

fn privileges(
    applied: &mut Applied,
    container: &mut ContainerMut<'_>,
    pod: &Pod,
    image: Option<&Image>,
) -> Result<(), TemplateError> {
    const ESCALATION: &str = "no-privilege-escalation";
    const CAPABILITIES: &str = "drop-all-capabilities";
    let name = container.view().name().to_owned();
    if has_sys_admin(container.view()) {
        applied.add(skipped(ESCALATION, &name, "it wants SYS_ADMIN"));
    } else {
        let escalation = container.default_security("allowPrivilegeEscalation", false)?;
        told(applied, ESCALATION, &name, escalation);
    }
    if let Some(why) = why_root(container.view(), pod, image) {
        applied.add(skipped(CAPABILITIES, &name, &why));
        return Ok(());
    }
    let keys = ["securityContext", "capabilities", "drop"];
    let dropped = container.default_at(&keys, json!(["ALL"]))?;
    told(applied, CAPABILITIES, &name, dropped);
    Ok(())
}

/// The kubelet refuses to start a container with `runAsNonRoot` whose image has root, or a user by
/// name. So it is given only where the number of the user is known.
fn non_root(
    applied: &mut Applied,
    container: &mut ContainerMut<'_>,
    pod: &Pod,
    image: Option<&Image>,
) -> Result<(), TemplateError> {
    const WHAT: &str = "run-as-non-root";
    let name = container.view().name().to_owned();
    let own = container.view().get(&["securityContext", "runAsNonRoot"]);
    let change = match (&pod.non_root, own) {
        // The pod has decided for it.
        (Some(true), None) => Change::Already,
        (Some(false), None) => Change::Kept,
        _ => match why_root(container.view(), pod, image) {
            None => container.default_security("runAsNonRoot", true)?,
            Some(why) => {
                applied.add(skipped(WHAT, &name, &why));
                return Ok(());
            }
        },
    };
    told(applied, WHAT, &name, change);
    Ok(())
}

/// Why the container cannot be said to run as somebody other than root.
fn why_root(container: Container<'_>, pod: &Pod, image: Option<&Image>) -> Option<String> {
    let user = container.get(&["securityContext", "runAsUser"]);
    let settings = image.map(Image::settings);
    let why = match (user.or(pod.user.as_ref()), settings) {
        (Some(user), _) if user == 0 => "the template wants root",
        (Some(_), _) => return None,
        (None, None) => "nothing is known of its image",
        (None, Some(settings)) => match settings.runs_as_root() {
            Some(false) => return None,
            Some(true) => "its image runs as root",
            None => "the user of its image is a name, not a number",
        },
    };
    Some(why.to_owned())
}

/// Whether the container needs somewhere to write.
fn read_only_root(
    applied: &mut Applied,
    container: &mut ContainerMut<'_>,
    pod: &Pod,
    image: Option<&Image>,
) -> Result<bool, TemplateError> {
    const WHAT: &str = "read-only-root";
    let name = container.view().name().to_owned();
    let refused = why_root(container.view(), pod, image).or_else(|| {
        let Some(image) = image else {
            return Some("nothing is known of its image".to_owned());
        };
        let keeps = image.settings().volumes().next()?;
        Some(format!("its image keeps data at {keeps}"))
    });
    if let Some(why) = refused {
        applied.add(skipped(WHAT, &name, &why));
        return Ok(false);
    }
    let change = container.default_security("readOnlyRootFilesystem", true)?;
    told(applied, WHAT, &name, change);
    if !change.is_in_force() {
        return Ok(false);
    }
    let mounted = container.default_mount(&Mount::new(TMP_VOLUME, "/tmp"))?;
    Ok(mounted.is_in_force())
}

/// A receipt for what was done, or for what somebody wanted otherwise. None for what was as wished.
fn told(applied: &mut Applied, what: &str, whose: &str, change: Change) {
    match change {
        Change::Made => applied.add(format!("{what}/{whose}")),
        Change::Kept => applied.add(skipped(what, whose, "the template says otherwise")),
        Change::Already => {}
    }
}

fn skipped(what: &str, whose: &str, why: &str) -> String {
    format!("skipped/{what}/{whose}: {why}")
}
