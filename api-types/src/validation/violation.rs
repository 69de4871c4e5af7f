//! Every way in which an object can be refused, and its text.

use crate::blueprint::InputReference;
use crate::selector::SelectorError;

/// A broken rule. The texts are the Go controller's, spelling included.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    // Blueprints (docs/behaviour/admission.md#supply-chains,
    // docs/behaviour/admission.md#deliveries).
    /// The blueprint selects nothing.
    #[error("at least one selector, selectorMatchExpression, selectorMatchField must be specified")]
    NoOwnerSelector,
    /// A param gives neither or both of value and default.
    #[error("param [{param}] is invalid: must set exactly one of value and default")]
    Param {
        /// Name of the param.
        param: String,
    },
    /// The same for a param of a resource.
    #[error(
        "resource [{resource}] is invalid: param [{param}] is invalid: must set exactly one of value and default"
    )]
    ResourceParam {
        /// Name of the resource.
        resource: String,
        /// Name of the param.
        param: String,
    },
    /// The labels of the selector are no labels.
    #[error("selector is not valid: {0}")]
    OwnerLabels(#[source] SelectorError),
    /// The label requirements of the selector are not valid.
    #[error("selectorMatchExpressions are not valid: {0}")]
    OwnerExpressions(#[source] SelectorError),
    /// The labels that namespaces must have are no labels, or the requirements on them not valid.
    #[error("allowedNamespaces is not valid: {0}")]
    AllowedNamespaces(#[source] SelectorError),
    /// Two resources of a supply chain have the same name.
    #[error("duplicate resource name [{resource}] found")]
    DuplicateResource {
        /// Name of the resources.
        resource: String,
    },
    /// Two resources of a delivery have the same name.
    #[error("spec.resources[{index}].name \"{resource}\" cannot appear twice")]
    ResourceTwice {
        /// Position of the later one.
        index: usize,
        /// Name of the resources.
        resource: String,
    },
    /// Two options of a resource have the same template name; pass-throughs have the empty one.
    #[error("duplicate template name [{template}] found in options for resource [{resource}]")]
    DuplicateOption {
        /// Name of the template.
        template: String,
        /// Name of the resource.
        resource: String,
    },
    /// Something is wrong with the template of a resource.
    #[error("error validating resource [{resource}]: {violation}")]
    Resource {
        /// Name of the resource.
        resource: String,
        /// What is wrong.
        violation: Box<Self>,
    },
    /// An input is hand through for a kind of template that has no such input.
    #[error("TemplateRef.Kind [{kind}] is not a known type")]
    PassThroughKind {
        /// Kind of the template.
        kind: String,
    },
    /// An input that is not declared is handed through.
    #[error("pass through [{input}] does not refer to a known input")]
    PassThroughInput {
        /// Local name of the input.
        input: String,
    },
    /// An input comes from a resource that does not exist.
    #[error("invalid {list} for resource [{resource}]: [{}] is provided by unknown resource [{}]", .input.name, .input.resource)]
    UnknownProvider {
        /// `sources`, `images` or `configs`.
        list: &'static str,
        /// Name of the resource that takes the input.
        resource: String,
        /// The input.
        input: InputReference,
    },
    /// An input comes from a resource that yields something else.
    #[error("invalid {list} for resource [{resource}]: resource [{}] providing [{}] must reference a {kind}", .input.resource, .input.name)]
    WrongProvider {
        /// `sources`, `images` or `configs`.
        list: &'static str,
        /// Name of the resource that takes the input.
        resource: String,
        /// The input.
        input: InputReference,
        /// Kind of template it must come from.
        kind: &'static str,
    },
    /// A deployment or validation template has no deployment.
    #[error("spec.resources[{resource}] is a {kind} and must receive a deployment")]
    DeploymentMissing {
        /// Name of the resource.
        resource: String,
        /// Kind of the template.
        kind: &'static str,
    },
    /// Another template has one.
    #[error(
        "spec.resources[{resource}] receives a deployment but is not a ClusterDeploymentTemplate"
    )]
    DeploymentUnexpected {
        /// Name of the resource.
        resource: String,
    },
    /// A deployment or validation template takes configuration.
    #[error("spec.resources[{resource}] is a {kind} and must not receive config")]
    ConfigUnexpected {
        /// Name of the resource.
        resource: String,
        /// Kind of the template.
        kind: &'static str,
    },

    // Field requirements (docs/behaviour/admission.md#fields).
    /// `Exists` or `DoesNotExist` with values.
    #[error("cannot specify values with operator [{operator}]")]
    FieldValuesUnexpected {
        /// The operator.
        operator: String,
    },
    /// `In` or `NotIn` without values.
    #[error("must specify values with operator [{operator}]")]
    FieldValuesMissing {
        /// The operator.
        operator: String,
    },
    /// No such operator.
    #[error("operator [{operator}] is invalid")]
    FieldOperator {
        /// The operator as given.
        operator: String,
    },
    /// Owners have no such field, or it may not be selected by.
    #[error("requirement key [{key}] is not a valid path")]
    FieldKey {
        /// The path.
        key: String,
    },
    /// The path does not parse.
    #[error("invalid jsonpath for key [{key}]: {text}")]
    FieldPath {
        /// The path.
        key: String,
        /// The parser's text.
        text: String,
    },

    // References to templates (docs/behaviour/admission.md#template-references).
    /// A template reference gives a name and options.
    #[error("exactly one of templateRef.Name or templateRef.Options must be specified, found both")]
    TemplateNameAndOptions,
    /// A template reference gives neither.
    #[error(
        "exactly one of templateRef.Name or templateRef.Options must be specified, found neither"
    )]
    NoTemplate,
    /// There is nothing to choose from.
    #[error("templateRef.Options must have more than one option")]
    SingleOption,
    /// Several options hand an input through.
    #[error("cannot have more than one pass through option, found {count}")]
    SeveralPassThroughs {
        /// How many.
        count: usize,
    },
    /// An option gives a name and a pass-through.
    #[error("exactly one of option.Name or option.PassThrough must be specified, found both")]
    OptionNameAndPassThrough,
    /// An option gives neither.
    #[error("exactly one of option.Name or option.PassThrough must be specified, found neither")]
    EmptyOption,
    /// Something is wrong with the selector of an option.
    #[error("error validating option [{option}] selector: {violation}")]
    OptionSelector {
        /// Template name of the option, or `passThrough`.
        option: String,
        /// What is wrong.
        violation: Box<Self>,
    },
    /// The selector is empty.
    #[error("at least one of matchLabels, matchExpressions or MatchFields must be specified")]
    EmptySelector,
    /// The labels are no labels.
    #[error("matchLabels are not valid: {0}")]
    MatchLabels(#[source] SelectorError),
    /// The label requirements are not valid.
    #[error("matchExpressions are not valid: {0}")]
    MatchExpressions(#[source] SelectorError),
    /// Two options can never be told apart.
    #[error("duplicate selector found in options [{first}, {second}]")]
    DuplicateSelector {
        /// The earlier option.
        first: String,
        /// The later option.
        second: String,
    },

    // Templates (docs/behaviour/admission.md#templates, docs/behaviour/admission.md#run-templates).
    /// Nothing to stamp.
    #[error("invalid template: must specify one of template or ytt, found neither")]
    NoTemplateBody,
    /// Two things to stamp.
    #[error("invalid template: must specify one of template or ytt, found both")]
    TemplateAndYtt,
    /// The template is no object with a kind.
    #[error("invalid template: failed to parse object: {text}")]
    TemplateObject {
        /// Why not.
        text: String,
    },
    /// The template says where the object goes.
    #[error("invalid template: template should not set metadata.namespace on the child object")]
    TemplateNamespace,
    /// The health rule is empty.
    #[error(
        "invalid health rule: must specify one of alwaysHealthy, singleConditionType or multiMatch, found neither"
    )]
    NoHealthRule,
    /// The health rule says several things.
    #[error(
        "invalid health rule: must specify one of alwaysHealthy, singleConditionType or multiMatch, found multiple"
    )]
    SeveralHealthRules,
    /// One side of `multiMatch` is empty.
    #[error("invalid multi match health rule: {side} rule has no matchFields or matchConditions")]
    EmptyHealthMatch {
        /// `unhealthy` or `healthy`.
        side: &'static str,
    },
    /// Retention of objects that are changed in place.
    #[error("invalid template: if lifecycle is mutable, no retention policy may be set")]
    RetentionOfMutable,
    /// A deployment template gives neither or both.
    #[error(
        "invalid spec: must set exactly one of spec.ObservedMatches and spec.ObservedCompletion"
    )]
    Observed,
    /// A validation template gives `failed` without `observedMatches`.
    #[error("invalid spec: must set spec.failed only with spec.observedMatches")]
    FailedWithoutMatches,
    /// A template says in several ways when its outputs are good.
    #[error(
        "invalid spec: must set at most one of spec.observedCompletion, spec.observedMatches, spec.alwaysSuccessful and \
         spec.inputsOnStatus"
    )]
    SeveralSuccessRules,
    /// A template gives `failed` without a rule that it could stand beside.
    #[error(
        "invalid spec: must set spec.failed only with spec.observedMatches or spec.inputsOnStatus; \
         spec.observedCompletion has a failed of its own"
    )]
    FailedWithoutRule,
    /// The objects of a template are made of one set of inputs each.
    #[error(
        "invalid spec: spec.inputsOnStatus needs lifecycle mutable: an object that is never changed has the inputs that it \
         was made with; use spec.observedCompletion"
    )]
    InputsOfRun,
    /// Updates wait for what the template does not say.
    #[error(
        "invalid spec: spec.updatePolicy.whenReconciling Wait needs a rule that says when the object is good: \
         spec.observedCompletion, spec.observedMatches or spec.inputsOnStatus"
    )]
    WaitWithoutRule,
    /// Fields of others are refused, and what was made with them could not be told from what was made without.
    #[error(
        "invalid spec: spec.foreignFields Refuse needs spec.observedCompletion or spec.alwaysSuccessful: nothing else tells \
         whether what the object reports came of these fields"
    )]
    RefuseWithoutRule,
    /// A condition is none, or can never hold.
    #[error("invalid spec: {at}: {why}")]
    Condition {
        /// Where it stands.
        at: String,
        /// What is wrong with it.
        why: String,
    },
    /// The timeout of a validation template is no duration.
    #[error(
        "invalid spec: timeout [{timeout}] is not a duration such as 90s, 30m or 1h; 0 means never"
    )]
    Timeout {
        /// The text as given.
        timeout: String,
    },
    /// A run template whose object is none.
    #[error("invalid template: not a map[string]interface{{}}; templated object: {object}")]
    RunTemplateObject {
        /// The object as Go prints it.
        object: String,
    },
    /// A run template whose object has no spec.
    #[error("invalid template: object must have a spec; templated object: {object}")]
    RunTemplateWithoutSpec {
        /// The object as Go prints it.
        object: String,
    },
}
