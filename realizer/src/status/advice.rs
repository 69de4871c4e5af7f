//! What to do about what holds an owner back: the one table of it, by the reason that a condition gives.
//!
//! The controllers say it in words, in `status.summary`. `carto tree` begins with the same words and adds the commands.

use api_types::Reason;

/// What somebody can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Nothing: a condition with such a reason says that all is well.
    Nothing,
    /// The owner has no labels.
    GiveLabels,
    /// No blueprint selects it.
    CompareSelectors,
    /// Several blueprints select it.
    TellMatchesApart,
    /// The blueprint names templates that are not there.
    ProvideTemplates,
    /// The inputs of the blueprint's steps do not fit together.
    ConnectSteps,
    /// A step waits for other steps.
    AwaitSteps,
    /// No option of a template fits, or several do.
    ChooseOption,
    /// The template of a step cannot be read.
    FindTemplate,
    /// The ClusterRunTemplate cannot be read.
    FindRunTemplate,
    /// A template cannot be rendered.
    CorrectTemplate,
    /// A path of a template does not fit the object.
    CorrectPath,
    /// A template stamps what it is stamped for.
    EndRecursion,
    /// A template renders something else each time.
    RenderSteadily,
    /// The owner is too large.
    ShrinkOwner,
    /// What is rendered is too large.
    ShrinkRendering,
    /// There is more than what is read.
    KeepFewer,
    /// The API server refused an object.
    HeedRefusal,
    /// The objects of a step cannot be listed.
    AllowLists,
    /// An object cannot be deleted.
    AllowDeletion,
    /// A kind may not be watched.
    AllowWatch,
    /// The blueprint is not for this namespace.
    LetNamespaceIn,
    /// The ServiceAccount is of another namespace.
    NameOwnAccount,
    /// The ServiceAccount is not there.
    ProvideAccount,
    /// There is no token of the ServiceAccount.
    AllowTokens,
    /// The object is somebody else's.
    Separate,
    /// Somebody undoes the object.
    StopWriter,
    /// The object says more of itself than what is known of it.
    ExamineObject,
    /// A validation runs.
    AwaitValidation,
    /// A validation failed.
    PushAnother,
    /// A validation takes too long.
    HastenValidation,
    /// Another run has to end first.
    AwaitRun,
    /// The API server does not answer.
    AwaitApiServer,
    /// Nobody knows: it is tried again.
    ReadLog,
}

impl Advice {
    /// By the reason of what holds the owner back, and whether nothing will change until somebody does something.
    pub fn on(reason: &Reason, is_stuck: bool) -> Self {
        match reason {
            Reason::Ready
            | Reason::Good
            | Reason::ResourceSubmissionComplete
            | Reason::OutputsAvailable
            | Reason::AlwaysHealthy => Self::Nothing,
            Reason::WorkloadLabelsMissing | Reason::DeliverableLabelsMissing => Self::GiveLabels,
            Reason::SupplyChainNotFound | Reason::DeliveryNotFound => Self::CompareSelectors,
            Reason::MultipleSupplyChainMatches | Reason::MultipleDeliveryMatches => {
                Self::TellMatchesApart
            }
            Reason::TemplatesNotFound => Self::ProvideTemplates,
            Reason::InputsNotReady | Reason::PassThrough if !is_stuck => Self::AwaitSteps,
            Reason::InputsNotReady | Reason::PassThrough | Reason::BlueprintProblem => {
                Self::ConnectSteps
            }
            Reason::ResolveTemplateOptionsError | Reason::TemplateOptionsMatchError => {
                Self::ChooseOption
            }
            Reason::TemplateObjectRetrievalFailure => Self::FindTemplate,
            Reason::RunTemplateNotFound => Self::FindRunTemplate,
            Reason::TemplateStampFailure => Self::CorrectTemplate,
            // As long as it can still come, the object tells more.
            Reason::MissingValueAtPath
            | Reason::ConditionNotMet
            | Reason::OutputPathNotSatisfied
                if !is_stuck =>
            {
                Self::ExamineObject
            }
            Reason::MissingValueAtPath
            | Reason::ConditionNotMet
            | Reason::OutputPathNotSatisfied
            | Reason::OutputUnreadable => Self::CorrectPath,
            Reason::StampedTooDeep => Self::EndRecursion,
            Reason::CreatedTooOften => Self::RenderSteadily,
            Reason::OwnerTooLarge => Self::ShrinkOwner,
            Reason::RenderingTooLarge => Self::ShrinkRendering,
            Reason::AnswerTooLarge => Self::KeepFewer,
            Reason::TemplateRejectedByAPIServer | Reason::StampedObjectRejectedByAPIServer => {
                Self::HeedRefusal
            }
            Reason::FailedToListCreatedObjects => Self::AllowLists,
            Reason::DeletionPending => Self::AllowDeletion,
            Reason::WatchForbidden => Self::AllowWatch,
            Reason::NamespaceNotAllowed => Self::LetNamespaceIn,
            Reason::LentAccountRefused => Self::NameOwnAccount,
            Reason::ServiceAccountError => Self::ProvideAccount,
            Reason::ServiceAccountTokenError => Self::AllowTokens,
            Reason::ObjectContested => Self::Separate,
            Reason::ObjectUndone => Self::StopWriter,
            Reason::Unknown
            | Reason::FailedConditionMet
            | Reason::OutputNotAvailable
            | Reason::NoStampedObject
            | Reason::MatchedCondition
            | Reason::MatchedField
            | Reason::NoMatchesFulfilled
            | Reason::HealthyConditionRule
            | Reason::Reconciling
            | Reason::Failed
            | Reason::Condition(_)
            | Reason::Copied(_) => Self::ExamineObject,
            Reason::ValidationRunning => Self::AwaitValidation,
            Reason::ValidationFailed => Self::PushAnother,
            Reason::ValidationTimedOut => Self::HastenValidation,
            Reason::WaitingForRun => Self::AwaitRun,
            Reason::ApiServerUnavailable => Self::AwaitApiServer,
            Reason::ResourceRealizerBuilderError
            | Reason::ClientBuilderError
            | Reason::UnknownError => Self::ReadLog,
        }
    }

    /// In words that need nothing else to be understood; none where there is nothing to do.
    pub fn words(self) -> Option<&'static str> {
        Some(match self {
            Self::Nothing => return None,
            Self::GiveLabels => "give it the labels that a blueprint selects by",
            Self::CompareSelectors => "compare its labels with the selectors of the blueprints",
            Self::TellMatchesApart => "make one selector more specific than the others",
            Self::ProvideTemplates => {
                "create the templates of these steps, or correct their names in the blueprint"
            }
            Self::ConnectSteps => "correct the inputs in the blueprint",
            Self::AwaitSteps => "see which steps it waits for",
            Self::ChooseOption => "make exactly one option's selector match",
            Self::FindTemplate => "see whether the template is there",
            Self::FindRunTemplate => "create the ClusterRunTemplate, or name another one",
            Self::CorrectTemplate => "correct the template, or what it is given",
            Self::CorrectPath => "correct the path in the template",
            Self::EndRecursion => {
                "take out of the template what stamps its own owner, and delete the first owner that the message names"
            }
            Self::RenderSteadily => {
                "take out of the template what it renders anew each time, such as a time; the next object is made when its \
                 turn comes"
            }
            Self::ShrinkOwner => "move data out of it, into an object that it refers to",
            Self::ShrinkRendering => "have the template render less, or make two steps of it",
            Self::KeepFewer => {
                "delete some of these objects, or make them smaller; a retentionPolicy keeps fewer of them"
            }
            Self::HeedRefusal => {
                "correct the template, or grant the ServiceAccount the right that the message names"
            }
            Self::AllowLists => {
                "it is tried again by itself; if a right is missing, grant the ServiceAccount to list the kind"
            }
            Self::AllowDeletion => {
                "it is tried again by itself; if a right is missing, grant the ServiceAccount to delete the object"
            }
            Self::AllowWatch => "grant the controller to list and watch the kind",
            Self::LetNamespaceIn => {
                "have a cluster administrator label the namespace as spec.allowedNamespaces of the blueprint asks, or select \
                 another blueprint"
            }
            Self::NameOwnAccount => {
                "name a ServiceAccount of the owner's namespace in spec.serviceAccountName"
            }
            Self::ProvideAccount => "create the ServiceAccount, or name another one",
            Self::AllowTokens => {
                "see that the ServiceAccount is there, and that the controller may create tokens of it"
            }
            Self::Separate => {
                "give the object a name of its own in the template, or let whoever holds it give it up"
            }
            Self::StopWriter => {
                "stop the other writer, or take the fields that it sets out of the template"
            }
            Self::ExamineObject => "look at the object",
            Self::AwaitValidation => {
                "wait: it goes on by itself when the validation has ended, or its time is over"
            }
            Self::PushAnother => {
                "push a new commit that mends it: this revision is not validated again, however long you wait"
            }
            Self::HastenValidation => {
                "see why it does not end; the environment is free for a new commit meanwhile, and spec.timeout of the \
                 template gives it more time"
            }
            Self::AwaitRun => {
                "wait until the run that is going is over, or set spec.concurrency to Replace"
            }
            Self::AwaitApiServer => {
                "see that the API server, and the webhooks and aggregated APIs that it asks, answer; it is tried again by \
                 itself"
            }
            Self::ReadLog => "it is tried again by itself; if it stays, read the controller's log",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A new reason does not compile without advice; that it needs none is said here as well.
    #[test]
    fn every_reason_but_those_of_what_is_well_has_advice() {
        let well = [
            Reason::Ready,
            Reason::ResourceSubmissionComplete,
            Reason::OutputsAvailable,
            Reason::AlwaysHealthy,
            Reason::Good,
        ];
        for reason in Reason::NAMED {
            for is_stuck in [true, false] {
                let words = Advice::on(reason, is_stuck).words();
                let is_well = well.contains(reason);
                assert_eq!(words.is_none(), is_well, "{reason} {words:?}");
            }
        }
        let seen: BTreeSet<&str> = Reason::NAMED
            .iter()
            .filter_map(|reason| Advice::on(reason, true).words())
            .collect();
        assert!(seen.len() > 25, "it says the same of everything: {seen:?}");
    }

    #[test]
    fn what_somebody_else_made_up_is_told_by_the_object() {
        for reason in [
            "ReadyCondition",
            "BackoffLimitExceeded",
            "",
            "ObjectContestedX",
        ] {
            let reason = Reason::read(reason);
            assert_eq!(Advice::on(&reason, true), Advice::ExamineObject, "{reason}");
        }
    }
}
