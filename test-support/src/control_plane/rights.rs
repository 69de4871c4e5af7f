//! Who may do what, by the API server's own word. Rights in words: verb, resource (`<plural>[.<group>][/<subresource>]`), and
//! where: `watch pods`, `patch workloads.carto.run/status in dev named app`.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::ControlPlane;
use crate::eventually;

/// How long a right may take until it is in force, or is no more, on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

impl ControlPlane {
    /// Whether a user may do something. The user has the groups of everybody who is logged in, and no others.
    ///
    /// # Errors
    ///
    /// When the right is misspelt, or the API server does not answer.
    pub async fn may(&self, user: &str, right: &str) -> anyhow::Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.to_owned()),
                groups: Some(groups(user)),
                resource_attributes: Some(attributes(right)?),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client()?);
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Waits until a user may do something. A right is in force later than the API server answers who granted it.
    ///
    /// # Panics
    ///
    /// When it is not granted in time.
    pub async fn until_it_may(&self, user: &str, right: &str) {
        eventually(&format!("{user} may {right}"), LIMIT, async || {
            self.may(user, right).await
        })
        .await;
    }

    /// Waits until a user may not do something any more. A right is in force for a moment after it was taken away.
    ///
    /// # Panics
    ///
    /// When it is not taken away in time.
    pub async fn until_it_may_not(&self, user: &str, right: &str) {
        eventually(&format!("{user} may not {right}"), LIMIT, async || {
            anyhow::Ok(!self.may(user, right).await?)
        })
        .await;
    }
}

/// The user that a service account is.
#[must_use]
pub fn service_account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

fn groups(user: &str) -> Vec<String> {
    let mut groups = vec!["system:authenticated".to_owned()];
    if let Some((namespace, _)) = user
        .strip_prefix("system:serviceaccount:")
        .and_then(|account| account.split_once(':'))
    {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups
}

/// A right as the API server is asked for it. A word that is misspelt must not read as a request that nobody may send.
fn attributes(right: &str) -> anyhow::Result<ResourceAttributes> {
    let mut words = right.split(' ');
    let (verb, target) = words
        .next()
        .zip(words.next())
        .context("verb and resource")?;
    let (resource, subresource) = target.split_once('/').unwrap_or((target, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let mut attributes = ResourceAttributes {
        verb: some(verb),
        group: some(group),
        resource: some(resource),
        subresource: some(subresource),
        ..ResourceAttributes::default()
    };
    while let Some(word) = words.next() {
        let place = match word {
            "in" => &mut attributes.namespace,
            "named" => &mut attributes.name,
            other => bail!("{other:?} in {right:?}"),
        };
        *place = words.next().and_then(some);
        ensure!(place.is_some(), "{right:?} ends too early");
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_in_words_is_what_the_api_server_is_asked() {
        let asked = attributes("patch workloads.carto.run/status in dev named app").unwrap();
        let expected = ResourceAttributes {
            verb: Some("patch".into()),
            group: Some("carto.run".into()),
            resource: Some("workloads".into()),
            subresource: Some("status".into()),
            namespace: Some("dev".into()),
            name: Some("app".into()),
            ..ResourceAttributes::default()
        };
        assert_eq!(asked, expected);
        assert_eq!(attributes("watch pods").unwrap().group, None);
        for misspelt in ["watch", "watch pods at dev", "watch pods in"] {
            assert!(attributes(misspelt).is_err(), "{misspelt}");
        }
    }

    #[test]
    fn a_service_account_has_its_groups() {
        let account = service_account("dev", "app");
        assert_eq!(
            groups(&account)[1..],
            ["system:serviceaccounts", "system:serviceaccounts:dev"]
        );
        assert_eq!(groups("jane"), ["system:authenticated"]);
    }
}
