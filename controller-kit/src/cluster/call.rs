//! The kinds of requests that are sent: their verbs, queries and media types.

use http::Method;
use serde_json::Value;

use super::encode;

const JSON_PATCH: &str = "application/json-patch+json";

/// What a request asks for.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub(super) method: Method,
    /// Path and query.
    pub(super) uri: String,
    /// Media type of the body.
    pub(super) content_type: &'static str,
    pub(super) body: Option<&'a Value>,
}

impl<'a> Call<'a> {
    /// Reads what is at a path, which may have a query.
    pub fn get(uri: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            uri: uri.into(),
            content_type: "",
            body: None,
        }
    }

    fn with(method: Method, uri: String, content_type: &'static str, body: &'a Value) -> Self {
        Self {
            method,
            uri,
            content_type,
            body: Some(body),
        }
    }

    /// Creates an object in a collection.
    pub fn create(collection: &str, field_manager: &str, object: &'a Value) -> Self {
        let uri = managed(collection, field_manager);
        Self::with(Method::POST, uri, "application/json", object)
    }

    /// What creating an object would come to; nothing is stored.
    pub(crate) fn try_create(collection: &str, object: &'a Value) -> Self {
        let uri = format!("{collection}?dryRun=All");
        Self::with(Method::POST, uri, "application/json", object)
    }

    /// Server-side apply, forced: other managers lose the fields that the object has.
    pub fn apply(path: &str, field_manager: &str, object: &'a Value) -> Self {
        let uri = format!("{}&force=true", managed(path, field_manager));
        Self::with(Method::PATCH, uri, "application/apply-patch+yaml", object)
    }

    /// What a server-side apply would come to; nothing is stored.
    pub(crate) fn try_apply(path: &str, field_manager: &str, object: &'a Value) -> Self {
        let uri = format!("{}&force=true&dryRun=All", managed(path, field_manager));
        Self::with(Method::PATCH, uri, "application/apply-patch+yaml", object)
    }

    /// The operations of a JSON patch (RFC 6902), all or none.
    pub fn json_patch(path: &str, field_manager: &str, operations: &'a Value) -> Self {
        let uri = managed(path, field_manager);
        Self::with(Method::PATCH, uri, JSON_PATCH, operations)
    }

    /// The body as it is sent. The API server compares what a JSON patch tests with what is stored as text, in which Go has
    /// escaped some characters: a status with `&` in a message would never be what it was.
    pub(super) fn escaped(&self, body: String) -> String {
        let is_escaped = ['&', '<', '>', '\u{2028}', '\u{2029}'];
        if self.content_type != JSON_PATCH || !body.contains(is_escaped) {
            return body;
        }
        // Outside of strings JSON has none of these.
        body.replace('&', "\\u0026")
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029")
    }

    /// What a merge patch (RFC 7396) would come to; nothing is stored.
    pub(crate) fn try_merge_patch(path: &str, field_manager: &str, patch: &'a Value) -> Self {
        let uri = format!("{}&dryRun=All", managed(path, field_manager));
        Self::with(Method::PATCH, uri, "application/merge-patch+json", patch)
    }

    /// Deletes an object; `options` are `DeleteOptions`.
    pub fn delete(path: impl Into<String>, options: &'a Value) -> Self {
        Self::with(Method::DELETE, path.into(), "application/json", options)
    }
}

fn managed(path: &str, field_manager: &str) -> String {
    format!("{path}?fieldManager={}", encode(field_manager))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_writes_is_named_as_the_manager_of_the_fields() {
        let object = json!({});
        let of = |call: Call<'_>| format!("{} {} {}", call.method, call.uri, call.content_type);
        for (call, expected) in [
            (Call::get("/x?labelSelector=a"), "GET /x?labelSelector=a "),
            (
                Call::create("/x", "me", &object),
                "POST /x?fieldManager=me application/json",
            ),
            (
                Call::try_create("/x", &object),
                "POST /x?dryRun=All application/json",
            ),
            (
                Call::apply("/x/y", "me & you", &object),
                "PATCH /x/y?fieldManager=me%20%26%20you&force=true application/apply-patch+yaml",
            ),
            (
                Call::try_apply("/x/y", "me", &object),
                "PATCH /x/y?fieldManager=me&force=true&dryRun=All application/apply-patch+yaml",
            ),
            (
                Call::json_patch("/x/y/status", "me", &object),
                "PATCH /x/y/status?fieldManager=me application/json-patch+json",
            ),
            (
                Call::try_merge_patch("/x/y", "me", &object),
                "PATCH /x/y?fieldManager=me&dryRun=All application/merge-patch+json",
            ),
            (
                Call::delete("/x/y", &object),
                "DELETE /x/y application/json",
            ),
        ] {
            assert_eq!(of(call), expected);
        }
    }

    #[test]
    fn a_json_patch_has_the_escapes_of_go_and_nothing_else_has() {
        let object = json!({"message": "a && <b>\u{2028}\u{2029}"});
        let text = object.to_string();
        let patch = Call::json_patch("/x/y/status", "me", &object);
        let escaped = patch.escaped(text.clone());
        assert_eq!(
            escaped,
            r#"{"message":"a \u0026\u0026 \u003cb\u003e\u2028\u2029"}"#
        );
        let read: Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, object);
        assert_eq!(
            Call::apply("/x/y", "me", &object).escaped(text.clone()),
            text
        );
    }
}
