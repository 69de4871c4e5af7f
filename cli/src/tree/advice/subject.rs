//! The owner that advice is about, and what to do about it as a whole.

use std::fmt;

use api_types::BlueprintSpec;
use realizer::{Advice, Family};

use super::super::{OwnerView, Step};
use super::{check_controller, names, wiring};
use crate::target::TargetKind;

/// The owner that advice is about; displays as `workload dev/web-app`.
pub(in crate::tree) struct Subject<'a> {
    pub(super) family: Family,
    pub(super) namespace: &'a str,
    name: &'a str,
    blueprint: &'a str,
    account: String,
    account_namespace: &'a str,
    /// The blueprint lends its account, as the owner names none.
    lent: bool,
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}/{}",
            self.family.owner_word(),
            self.namespace,
            self.name
        )
    }
}

impl<'a> Subject<'a> {
    pub(in crate::tree) fn new(
        family: Family,
        owner: &'a OwnerView,
        blueprint: Option<&'a BlueprintSpec>,
    ) -> Self {
        let namespace = owner.metadata.namespace.as_str();
        let lent = blueprint.and_then(|spec| spec.service_account_ref.as_ref());
        let own = owner
            .spec
            .service_account_name
            .as_deref()
            .filter(|name| !name.is_empty());
        // The owner's choice wins and is in its own namespace
        // (docs/behaviour/service-accounts.md#which).
        let (account, account_namespace) = match (own, lent) {
            (Some(own), _) => (own, namespace),
            (None, Some(lent)) => (
                lent.name.as_str(),
                lent.namespace
                    .as_deref()
                    .filter(|name| !name.is_empty())
                    .unwrap_or(namespace),
            ),
            (None, None) => ("default", namespace),
        };
        Self {
            family,
            namespace,
            name: &owner.metadata.name,
            blueprint: owner.chosen.name.as_deref().unwrap_or_default(),
            account: account.to_owned(),
            account_namespace,
            lent: own.is_none() && lent.is_some(),
        }
    }

    /// Namespace and name of the service account whose rights are used.
    pub(super) fn account(&self) -> (&str, &str) {
        (self.account_namespace, &self.account)
    }

    /// Nothing was written: the controller does not run, or is behind.
    pub(in crate::tree) fn check_controller(&self) -> String {
        check_controller(TargetKind::Owner(self.family).controller())
    }

    pub(super) fn look_at_controller_log(&self) -> String {
        let controller = TargetKind::Owner(self.family).controller();
        format!(
            "it is tried again by itself; if it stays, read the log: kubectl logs -n carto-system deployment/{controller}"
        )
    }

    /// Compatible conditions do not say which blueprints match; our event does.
    pub(super) fn compare_selectors(&self, advice: Advice) -> String {
        let matches = if advice == Advice::TellMatchesApart {
            format!(
                "the event says which match: kubectl describe {} {} -n {}; ",
                self.family.owner_word(),
                self.name,
                self.namespace
            )
        } else {
            String::new()
        };
        format!(
            "{matches}compare the labels (kubectl get {} {} -n {} --show-labels) with the selectors (kubectl get {} -o custom-columns=NAME:.metadata.name,SELECTOR:.spec.selector,EXPRESSIONS:.spec.selectorMatchExpressions,FIELDS:.spec.selectorMatchFields)",
            self.family.owner_word(),
            self.name,
            self.namespace,
            self.family.blueprint_plural(),
        )
    }

    pub(super) fn read_blueprint(&self) -> String {
        names::command(
            "read the blueprint, with kubectl describe",
            &[self.blueprint],
            format!(
                "kubectl describe {} {}",
                self.family.blueprint_plural(),
                self.blueprint
            ),
        )
    }

    pub(super) fn edit_blueprint(&self) -> String {
        names::command(
            "edit the blueprint, with kubectl edit",
            &[self.blueprint],
            format!(
                "kubectl edit {} {}",
                self.family.blueprint_plural(),
                self.blueprint
            ),
        )
    }

    /// The account is missing, or its name is wrong.
    pub(super) fn provide_account(&self) -> String {
        let (field, edit) = if self.lent {
            ("serviceAccountRef", self.edit_blueprint())
        } else {
            let edit = format!(
                "kubectl edit {} {} -n {}",
                self.family.owner_word(),
                self.name,
                self.namespace
            );
            ("serviceAccountName", edit)
        };
        let (namespace, account) = self.account();
        names::command(
            &format!("its name cannot be one; name another one in spec.{field}: {edit}"),
            &[namespace, account],
            format!(
                "create it: kubectl create serviceaccount {account} -n {namespace}; or name another one in spec.{field}: \
                 {edit}"
            ),
        )
    }

    /// The message lists steps; it is their templates that are missing.
    pub(super) fn provide_templates(&self, steps: &[Step], message: &str) -> String {
        match wiring::templates_named(steps, message) {
            Some(templates) => format!(
                "create {templates}, or correct the name: {}",
                self.edit_blueprint()
            ),
            None => format!(
                "create the templates of these steps, or correct their names: {}",
                self.read_blueprint()
            ),
        }
    }
}
