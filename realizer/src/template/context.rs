//! What templates see: the top-level keys of docs/behaviour/context.md#keys.

use std::collections::BTreeMap;

use api_types::{InputSlot, ProvenanceInput};
use serde_json::{Map, Value, json};

use crate::StatusKey;
use crate::blueprint::{BlueprintStep, Input};
use crate::owner::typed_view::Views;
use crate::template::outputs::{Output, OutputValues};
use crate::template::provenance::known_as;
use crate::template::stamp::WantedLabels;
use crate::values::redaction::Taint;
use template_language::interpolate::Compiled;
use template_language::jsonpath::Root;
use template_language::numbers;

/// The inputs of a step, resolved as far as their providers have outputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResolvedInputs<'o> {
    resolved: Vec<(&'o Input, &'o Output)>,
    pub(crate) missing: Vec<&'o Input>,
}

impl<'o> ResolvedInputs<'o> {
    /// `output` by index of the step; an output of the wrong kind, or a null image or config, is no input. `is_good` says of
    /// a step whether it is good as it is rendered now: nothing of that goes into the template.
    pub(crate) fn of(
        step: &'o BlueprintStep,
        output: impl Fn(usize) -> Option<&'o Output>,
        is_good: impl Fn(usize) -> bool,
    ) -> Self {
        let mut inputs = Self::default();
        for input in &step.inputs {
            if input.slot == InputSlot::Success {
                if !input.provider.is_some_and(&is_good) {
                    inputs.missing.push(input);
                }
                continue;
            }
            match input
                .provider
                .and_then(&output)
                .filter(|output| fits(input.slot, output))
            {
                Some(output) => inputs.resolved.push((input, output)),
                None => inputs.missing.push(input),
            }
        }
        inputs
    }

    /// The same with another deployment, where there is one.
    pub(crate) fn with_deployment(mut self, deployment: &'o Output) -> Self {
        for (input, output) in &mut self.resolved {
            if input.slot == InputSlot::Deployment {
                *output = deployment;
            }
        }
        self
    }

    /// What the deployment input holds.
    pub(crate) fn deployment(&self) -> Option<&'o Output> {
        self.of_slot(InputSlot::Deployment)
            .map(|(_, output)| output)
            .next()
    }

    /// The input of this slot and local name.
    pub(crate) fn named(&self, slot: InputSlot, local_name: &str) -> Option<&'o Output> {
        // The last one of a name, as in a map that is filled in order.
        self.of_slot(slot)
            .filter(|(input, _)| input.local_name == local_name)
            .map(|(_, output)| output)
            .last()
    }

    /// What came from Secrets: nothing that is said of the step may hold it.
    pub(crate) fn taint(&self) -> Taint {
        let taints = self.resolved.iter().map(|(_, output)| &output.taint);
        taints.fold(Taint::NONE, Taint::and)
    }

    /// By what each input is known, in the order in which they are declared.
    pub(crate) fn provenance(&self, key: &StatusKey) -> Vec<ProvenanceInput> {
        let inputs = self.resolved.iter();
        let inputs = inputs.map(|(input, output)| ProvenanceInput {
            name: input.resource.to_string(),
            identity: known_as(output, key),
        });
        inputs.collect()
    }

    /// The input of this slot if only one local name is declared. Upstream counts the names that are resolved, so with two
    /// declared inputs the shortcut flickers (docs/behaviour/context.md#shortcuts). Of several
    /// inputs of one name the last one counts.
    fn only(&self, step: &BlueprintStep, slot: InputSlot) -> Option<(&'o Input, &'o Output)> {
        let mut declared = step.inputs.iter().filter(|input| input.slot == slot);
        let first = declared.next()?;
        let is_only = declared.all(|input| input.local_name == first.local_name);
        self.of_slot(slot).last().filter(|_| is_only)
    }

    fn of_slot(&self, slot: InputSlot) -> impl Iterator<Item = (&'o Input, &'o Output)> {
        self.resolved
            .iter()
            .copied()
            .filter(move |(input, _)| input.slot == slot)
    }
}

fn fits(slot: InputSlot, output: &Output) -> bool {
    match slot {
        InputSlot::Source | InputSlot::Deployment => {
            matches!(output.values, OutputValues::Source { .. })
        }
        InputSlot::Image => {
            matches!(&output.values, OutputValues::Image(value) if !value.is_null())
        }
        InputSlot::Config => {
            matches!(&output.values, OutputValues::Config(value) if !value.is_null())
        }
        InputSlot::Success => true,
    }
}

/// The keys of an owner; both are there for both families (docs/behaviour/context.md#keys).
const OWNER: &[&str] = &["workload", "deliverable"];

/// The key of a Runnable (docs/behaviour/runnables.md#context).
const RUNNABLE: &[&str] = &["runnable"];

/// The top-level entries, owner aside.
pub(crate) struct Context<'c> {
    owner: &'c Views,
    owner_keys: &'static [&'static str],
    entries: Map<String, Value>,
}

impl<'c> Context<'c> {
    pub(crate) fn new(
        owner: &'c Views,
        step: &BlueprintStep,
        params: &BTreeMap<&str, &Value>,
        inputs: &ResolvedInputs<'_>,
        labels: &WantedLabels,
    ) -> Self {
        let params = params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).clone()));
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)));
        let deployment = inputs
            .deployment()
            .map_or(Value::Null, |output| entry(output, ""));
        let mut entries = Map::new();
        let mut insert = |key: &str, value: Value| entries.insert(key.to_owned(), value);
        insert("params", Value::Object(params.collect()));
        insert("labels", Value::Object(labels.collect()));
        insert("deployment", deployment);
        for slot in NAMED {
            if let Some(only) = inputs.only(step, slot) {
                insert(slot.singular(), shortcut(only));
            }
            let named = inputs.of_slot(slot);
            let named = named.map(|(input, output)| {
                (input.local_name.clone(), entry(output, &input.local_name))
            });
            insert(slot.list(), Value::Object(named.collect()));
        }
        Self {
            owner,
            owner_keys: OWNER,
            entries,
        }
    }

    /// The context of a ClusterRunTemplate; without a selector, `selected` is null.
    pub(crate) fn of_run(runnable: &'c Views, selected: Option<&Value>) -> Self {
        let selected = selected.cloned().unwrap_or_default();
        Self {
            owner: runnable,
            owner_keys: RUNNABLE,
            entries: Map::from_iter([("selected".to_owned(), selected)]),
        }
    }
}

/// The slots whose inputs have names.
const NAMED: [InputSlot; 3] = [InputSlot::Source, InputSlot::Image, InputSlot::Config];

/// An input as it appears under its local name.
fn entry(output: &Output, name: &str) -> Value {
    match &output.values {
        OutputValues::Source { url, revision } => {
            json!({"url": url, "revision": revision, "name": name})
        }
        OutputValues::Image(image) => json!({"image": image, "name": name}),
        OutputValues::Config(config) => json!({"config": config, "name": name}),
        OutputValues::Nothing => Value::Null,
    }
}

/// The single source is an object; the single image and config are the bare values.
fn shortcut((input, output): (&Input, &Output)) -> Value {
    match &output.values {
        OutputValues::Image(value) | OutputValues::Config(value) => value.clone(),
        OutputValues::Source { .. } | OutputValues::Nothing => entry(output, &input.local_name),
    }
}

impl Context<'_> {
    /// The values for ytt, which sees JSON with unset fields left out.
    pub(crate) fn into_values(self) -> BTreeMap<String, Value> {
        let mut values: BTreeMap<String, Value> = self.entries.into_iter().collect();
        for key in self.owner_keys {
            values.insert((*key).to_owned(), self.owner.json.clone());
        }
        values
    }

    /// Renders a simple template.
    pub(crate) fn render(&self, template: &Compiled) -> Result<Value, String> {
        let typed = View {
            owner: &self.owner.typed,
            owner_keys: self.owner_keys,
            entries: &self.entries,
        };
        let json = View {
            owner: &self.owner.json,
            owner_keys: self.owner_keys,
            entries: &self.entries,
        };
        template
            .render(&mut |path| {
                let found = path.evaluate_root(&typed)?;
                let value = self.owner.settled(found, || path.evaluate_root(&json));
                Ok(numbers::plain(value))
            })
            .map_err(|error| error.to_string())
    }
}

/// The context with one of the two views of the owner.
struct View<'v> {
    owner: &'v Value,
    owner_keys: &'static [&'static str],
    entries: &'v Map<String, Value>,
}

impl Root for View<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        if self.owner_keys.contains(&key) {
            Some(self.owner)
        } else {
            self.entries.get(key)
        }
    }

    fn entries(&self) -> Vec<(&str, &Value)> {
        let own = self
            .entries
            .iter()
            .map(|(key, value)| (key.as_str(), value));
        self.owner_keys
            .iter()
            .map(|key| (*key, self.owner))
            .chain(own)
            .collect()
    }
}

#[cfg(test)]
mod tests;
