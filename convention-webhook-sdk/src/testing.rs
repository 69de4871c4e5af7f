//! Tests of conventions, without a server and without a cluster.
//!
//! - [`given`] a pod and images, [`Given::run`] a convention, and look at what it changed:
//!   [`Done::expect`].
//! - [`check`] tries what every convention must be: deterministic, convergent, conservative, and to
//!   be had in any order with others.
//! - [`replay`] asks a convention again what was recorded from real requests.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use convention_webhook_sdk::testing::{check, given};
//! use convention_webhook_sdk::{Applied, ConventionError, Images, Template};
//!
//! async fn time_zone(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
//!     let mut applied = Applied::nothing();
//!     for mut container in template.containers_mut() {
//!         applied.record("time-zone", container.default_env("TZ", "UTC")?);
//!     }
//!     Ok(applied)
//! }
//!
//! let pod = given("
//! spec:
//!   containers:
//!   - name: web
//!     image: web:1
//! ");
//! pod.run(&time_zone).await.expect(r#"
//!     + spec.containers[web].env[TZ].name: "TZ"
//!     + spec.containers[web].env[TZ].value: "UTC"
//! "#).expect_applied(["time-zone"]);
//! check(&time_zone).on(&pod).await;
//! # });
//! ```

mod check;
mod difference;
mod replay;

use convention_protocol::{Bom, ImageConfig};
use serde_json::Value;

pub use check::{Check, Fault, check};
pub use difference::difference;
pub use replay::{Replayed, replay};

use crate::convention::Convention;
use crate::error::ConventionError;
use crate::images::Images;
use crate::template::Template;

/// A pod and its images, for a convention to be tried on.
#[derive(Clone, Debug)]
pub struct Given {
    template: Template,
    images: Vec<ImageConfig>,
}

/// A pod template, as YAML or JSON.
///
/// # Panics
///
/// The text is no pod template.
#[expect(clippy::panic, reason = "called by tests")]
pub fn given(template: &str) -> Given {
    let value = serde_saphyr::from_str(template).map_err(|error| error.to_string());
    let template = value.and_then(|value: Value| {
        let template = Template::from_value(value);
        template.map_err(|error| error.to_string())
    });
    match template {
        Ok(template) => Given {
            template,
            images: Vec::new(),
        },
        Err(error) => panic!("no pod template: {error}"),
    }
}

impl Given {
    /// With an image and its configuration, as YAML or JSON: what the registry has, so `config:
    /// {User: "1000"}` and the like.
    ///
    /// # Panics
    ///
    /// The text is no YAML.
    #[must_use]
    #[expect(clippy::panic, reason = "called by tests")]
    pub fn image(mut self, image: &str, config: &str) -> Self {
        let config = match serde_saphyr::from_str(config) {
            Ok(config) => config,
            Err(error) => panic!("no configuration of an image: {error}"),
        };
        self.images.push(ImageConfig {
            image: image.to_owned(),
            boms: Vec::new(),
            config,
        });
        self
    }

    /// With a bill of materials for the image that was given last.
    ///
    /// # Panics
    ///
    /// No image was given.
    #[must_use]
    #[expect(clippy::panic, reason = "called by tests")]
    pub fn bom(mut self, name: &str, raw: impl Into<Vec<u8>>) -> Self {
        let Some(image) = self.images.last_mut() else {
            panic!("give an image before its bill of materials");
        };
        image.boms.push(Bom {
            name: name.to_owned(),
            raw: raw.into(),
        });
        self
    }

    /// The template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The images.
    pub fn images(&self) -> Images {
        Images::from(self.images.clone())
    }

    /// Applies a convention.
    ///
    /// # Panics
    ///
    /// The convention failed; [`Self::try_run`] for where it should.
    #[expect(clippy::panic, reason = "called by tests")]
    pub async fn run(&self, convention: &impl Convention) -> Done {
        match self.try_run(convention).await {
            Ok(done) => done,
            Err(error) => panic!("the convention failed: {error}"),
        }
    }

    /// Applies a convention that may fail.
    ///
    /// # Errors
    ///
    /// That of the convention.
    pub async fn try_run(&self, convention: &impl Convention) -> Result<Done, ConventionError> {
        let mut template = self.template.clone();
        let applied = convention.apply(&mut template, &self.images()).await?;
        Ok(Done {
            before: self.template.clone(),
            after: template,
            applied: applied.into_names(),
        })
    }
}

/// What a convention did.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    before: Template,
    after: Template,
    applied: Vec<String>,
}

impl Done {
    /// The template as the convention left it.
    pub fn template(&self) -> &Template {
        &self.after
    }

    /// Its receipts.
    pub fn applied(&self) -> &[String] {
        &self.applied
    }

    /// What it changed, a line for each value: see [`difference`].
    pub fn difference(&self) -> String {
        difference(&self.before.to_value(), &self.after.to_value())
    }

    /// That it changed just this. Blanks around lines, and empty lines, do not count.
    ///
    /// # Panics
    ///
    /// It changed something else. The message has all lines, to be copied.
    pub fn expect(&self, lines: &str) -> &Self {
        let plain = |text: &str| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.collect::<Vec<_>>().join("\n")
        };
        let (changed, expected) = (plain(&self.difference()), plain(lines));
        assert!(
            changed == expected,
            "the convention changed\n{changed}\nand not\n{expected}"
        );
        self
    }

    /// That these are its receipts.
    ///
    /// # Panics
    ///
    /// It has others.
    pub fn expect_applied<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> &Self {
        let names: Vec<&str> = names.into_iter().collect();
        assert_eq!(self.applied, names, "receipts");
        self
    }
}
