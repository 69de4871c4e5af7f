//! Answers of webhooks in passes that were not whole: the next try asks only those who failed, and
//! those behind them who are given something else then.

use std::collections::HashMap;
use std::time::Duration;

use controller_kit::stamped::ObjectKey;
use conventions::answer::Answer;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The most bytes of templates that are kept. Who has no room is asked for again.
const MOST_BYTES: usize = 16 << 20;
/// How long an answer is believed. Who waits longer for one webhook hears also what the others say
/// by then.
const LONGEST: Duration = Duration::from_mins(10);

/// What a webhook answered.
#[derive(Clone)]
pub(crate) struct Heard {
    pub(crate) answer: Answer,
    /// Images whose bills of materials it was not sent.
    pub(crate) boms_left_out: Vec<String>,
}

/// Answers, by [`conventions::inputs::Called::digest_with`] of what was asked.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    by_question: HashMap<String, (Heard, Instant)>,
}

impl Answers {
    /// What was answered to this.
    pub(crate) fn get(&self, question: &str) -> Option<&Heard> {
        let (heard, since) = self.by_question.get(question)?;
        (since.elapsed() < LONGEST).then_some(heard)
    }

    /// Takes an answer, which was there already if it is among the earlier ones.
    pub(crate) fn insert(&mut self, question: String, heard: Heard, earlier: &Self) {
        let known = earlier.by_question.get(&question);
        let since = known.map_or_else(Instant::now, |(_, since)| *since);
        self.by_question.insert(question, (heard, since));
    }
}

/// What is kept, by PodIntent.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<HashMap<ObjectKey, OfIntent>>);

struct OfIntent {
    uid: String,
    answers: Answers,
    bytes: usize,
}

impl Remembered {
    /// What was answered for this PodIntent in its last try.
    pub(crate) fn of(&self, intent: &ObjectKey, uid: &str) -> Answers {
        let all = self.0.lock();
        let kept = all.get(intent).filter(|kept| kept.uid == uid);
        kept.map(|kept| kept.answers.clone()).unwrap_or_default()
    }

    /// Keeps what was answered, in place of what was before, if there is room.
    pub(crate) fn keep(&self, intent: &ObjectKey, uid: &str, answers: Answers) {
        let bytes = size(&answers);
        let mut all = self.0.lock();
        all.remove(intent);
        let taken: usize = all.values().map(|kept| kept.bytes).sum();
        if !answers.by_question.is_empty() && taken + bytes <= MOST_BYTES {
            let uid = uid.to_owned();
            let kept = OfIntent {
                uid,
                answers,
                bytes,
            };
            all.insert(intent.clone(), kept);
        }
    }

    /// Another replica has worked meanwhile.
    pub(crate) fn begin_term(&self) {
        self.0.lock().clear();
    }

    /// All were answered, or it is gone.
    pub(crate) fn forget(&self, intent: &ObjectKey) {
        self.0.lock().remove(intent);
    }
}

/// About what they take.
fn size(answers: &Answers) -> usize {
    const LEAST: usize = 1 << 10;
    let templates = answers.by_question.values();
    let sizes = templates.map(|(heard, _)| {
        let json = heard.answer.template.as_ref().map(serde_json::to_vec);
        let texts = heard.answer.applied.iter().chain(&heard.boms_left_out);
        let texts: usize = texts.map(String::len).sum();
        LEAST + texts + json.and_then(Result::ok).map_or(0, |json| json.len())
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(bytes: usize) -> Heard {
        let template = json!({"metadata": {"annotations": {"a": "b".repeat(bytes)}}});
        let answer = Answer {
            template: serde_json::from_value(template).unwrap(),
            applied: Vec::new(),
        };
        Heard {
            answer,
            boms_left_out: Vec::new(),
        }
    }

    fn answers(question: &str, bytes: usize) -> Answers {
        let mut answers = Answers::default();
        answers.insert(question.to_owned(), heard(bytes), &Answers::default());
        answers
    }

    fn key(name: usize) -> ObjectKey {
        ObjectKey::new("dev", &name.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_used_again_for_a_while_however_often() {
        let remembered = Remembered::default();
        remembered.keep(&key(0), "u", answers("q", 1));
        for _ in 0..4 {
            let earlier = remembered.of(&key(0), "u");
            let again = earlier.get("q").unwrap().clone();
            assert!(earlier.get("other").is_none());
            let mut answers = Answers::default();
            answers.insert("q".to_owned(), again, &earlier);
            remembered.keep(&key(0), "u", answers);
            tokio::time::advance(LONGEST / 4).await;
        }
        assert!(remembered.of(&key(0), "u").get("q").is_none());
    }

    #[test]
    fn what_is_remembered_is_of_one_object_and_bounded() {
        let remembered = Remembered::default();
        remembered.keep(&key(0), "u", answers("q", 1));
        assert!(remembered.of(&key(0), "made anew").get("q").is_none());
        remembered.forget(&key(0));
        assert!(remembered.of(&key(0), "u").get("q").is_none());
        for name in 0..100 {
            remembered.keep(&key(name), "u", answers("q", 1 << 20));
        }
        let has = |name: &usize| remembered.of(&key(*name), "u").get("q").is_some();
        assert_eq!((0..100).filter(has).count(), 15);
        // Nothing to keep gives the room back.
        remembered.keep(&key(0), "u", Answers::default());
        remembered.keep(&key(99), "u", answers("q", 1));
        assert!(!has(&0) && has(&99));
    }
}
