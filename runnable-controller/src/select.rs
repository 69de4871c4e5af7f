//! The object that a Runnable selects, read with its own rights
//! (docs/behaviour/runnables.md#selector).

use std::collections::BTreeMap;
use std::time::Duration;

use controller_kit::mapper::{Kind, MapError};
use controller_kit::owner::{Dependency, Unselected, Wanted};
use controller_kit::selections::NotOne;
use controller_kit::stamped::ObjectKey;
use controller_kit::submit::SubmitError;
use controller_kit::tokens::Account;
use realizer::runnable::{Runnable, SelectError, Selected};
use realizer::{Needed, ObjectChoice};

use crate::controller::RunnableController;

/// Enough to know that there is not one.
const ENOUGH: usize = 2;

/// What selecting came to, and what the Runnable waits for besides.
pub(crate) struct Look {
    pub(crate) selected: Selected,
    /// Look again after this time: the object is not watched.
    pub(crate) again: Option<Duration>,
    pub(crate) awaited: Vec<Dependency>,
    /// What is missing to watch the object.
    pub(crate) unwatched: Option<String>,
}

impl RunnableController {
    /// Sends nothing as long as the objects that match are those of the last time.
    pub(crate) async fn select(
        &self,
        runnable: &Runnable,
        account: &Account,
    ) -> Result<Look, SubmitError> {
        let key = ObjectKey::of_owner(&runnable.namespace, &runnable.name);
        let Some(selector) = &runnable.selector else {
            self.shell.selections.retain(&key, &[]);
            return Ok(Look {
                selected: Ok(None),
                again: None,
                awaited: Vec::new(),
                unwatched: None,
            });
        };
        let resource = &selector.resource;
        let wanted = Wanted {
            owner: &key,
            account,
            kind: Kind::new(
                resource.api_version.clone().unwrap_or_default(),
                resource.kind.clone().unwrap_or_default(),
            ),
            choice: ObjectChoice::Labels(selector.matching_labels.clone()),
            most: ENOUGH,
            part: None,
            is_fresh: false,
            needed: Needed::Value,
        };
        let selected = self.shell.select(wanted).await?;
        self.shell
            .selections
            .retain(&key, selected.selection.as_slice());
        let labels = &selector.matching_labels;
        let object = selected.object;
        Ok(Look {
            selected: object.map(Some).map_err(|why| unselected(labels, why)),
            again: selected.again,
            awaited: selected.awaited,
            unwatched: selected.unwatched,
        })
    }
}

/// A kind that is not served counts as one of the cluster, whose objects then cannot be listed, as upstream. Of a version that is
/// not served, upstream's cache of discovery knows no more than that.
fn unselected(labels: &BTreeMap<String, String>, why: Unselected) -> SelectError {
    let unlisted = |namespaced, cause| SelectError::List {
        namespaced,
        labels: labels.clone(),
        cause,
    };
    match why {
        Unselected::Unneeded | Unselected::NotOne(NotOne::None) => SelectError::None,
        Unselected::NotOne(NotOne::Several(_)) => SelectError::Many,
        Unselected::Refused {
            failure,
            namespaced,
        } => unlisted(namespaced, failure.message),
        Unselected::Unmapped(MapError::NotServed {
            has_version: false, ..
        }) => SelectError::Discovery("not found".to_owned()),
        Unselected::Unmapped(error @ MapError::NotServed { .. }) => {
            unlisted(false, error.to_string())
        }
        Unselected::Unmapped(MapError::Discovery { error, .. }) => {
            SelectError::Discovery(error.to_string())
        }
    }
}
