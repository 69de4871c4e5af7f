//! Volumes and containers that are added to a template.

use serde_json::Value;

use super::place::{Item, TemplateError, Wish};
use super::value::Volume;
use super::{CONTAINERS, INIT_CONTAINERS, Template};
use crate::change::Change;

impl Template {
    /// Gives a volume, unless there is one of this name.
    ///
    /// # Errors
    ///
    /// `volumes` is no list; whoever wrote the template must correct it.
    pub fn default_volume(&mut self, volume: &Volume) -> Result<Change, TemplateError> {
        self.put_item("volumes", volume.item(), Wish::Default)
    }

    /// Gives a volume, whatever there was of this name.
    ///
    /// # Errors
    ///
    /// As [`Self::default_volume`].
    pub fn set_volume(&mut self, volume: &Volume) -> Result<Change, TemplateError> {
        self.put_item("volumes", volume.item(), Wish::Set)
    }

    /// Gives a container that helps the others, unless there is one of its name among them.
    ///
    /// ```
    /// use convention_webhook_sdk::{Change, Template};
    /// use serde_json::json;
    ///
    /// let mut template = Template::default();
    /// let proxy = json!({"name": "proxy", "image": "proxy:1"});
    /// assert_eq!(template.default_sidecar(proxy.clone())?, Change::Made);
    /// assert_eq!(template.default_sidecar(proxy)?, Change::Already);
    /// assert!(template.default_sidecar(json!({"image": "nameless"})).is_err());
    /// # Ok::<(), convention_webhook_sdk::TemplateError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The container is no object with a name, which its author must correct, or `containers` is no
    /// list.
    pub fn default_sidecar(&mut self, container: Value) -> Result<Change, TemplateError> {
        let item = Item::named(container, CONTAINERS)?;
        self.put_item(CONTAINERS, item, Wish::Default)
    }

    /// Gives a container that helps the others, whatever there was of its name.
    ///
    /// # Errors
    ///
    /// As [`Self::default_sidecar`].
    pub fn set_sidecar(&mut self, container: Value) -> Result<Change, TemplateError> {
        let item = Item::named(container, CONTAINERS)?;
        self.put_item(CONTAINERS, item, Wish::Set)
    }

    /// Gives an init container, unless there is one of its name. With `restartPolicy: Always` it is
    /// a sidecar of Kubernetes.
    ///
    /// # Errors
    ///
    /// As [`Self::default_sidecar`].
    pub fn default_init_container(&mut self, container: Value) -> Result<Change, TemplateError> {
        let item = Item::named(container, INIT_CONTAINERS)?;
        self.put_item(INIT_CONTAINERS, item, Wish::Default)
    }

    /// Gives an init container, whatever there was of its name.
    ///
    /// # Errors
    ///
    /// As [`Self::default_sidecar`].
    pub fn set_init_container(&mut self, container: Value) -> Result<Change, TemplateError> {
        let item = Item::named(container, INIT_CONTAINERS)?;
        self.put_item(INIT_CONTAINERS, item, Wish::Set)
    }

    fn put_item(&mut self, list: &str, item: Item, wish: Wish) -> Result<Change, TemplateError> {
        item.put(self.spec_mut(), "spec", list, wish)
    }
}
