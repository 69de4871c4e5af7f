package main

import (
	"reflect"
	"strings"
)

// agree compares values as the doubles that upstream makes of all numbers; one answer of several is enough.
func agree(expected []Answer, ours Answer) bool {
	for _, answer := range expected {
		if (answer.OK == nil) != (ours.OK == nil) || answer.Error != ours.Error {
			continue
		}
		if answer.OK == nil || reflect.DeepEqual(doubles(answer.OK), doubles(ours.OK)) {
			return true
		}
	}
	return false
}

// explain gives the reason for a difference that is on purpose.
func explain(question Case, expected []Answer, ours Answer) string {
	isPath := question.Kind == "path" || question.Kind == "tags"
	switch {
	case isPath && startsWithRoot(question):
		return "a path that starts with `$.` or `$[` is RFC 9535"
	case isPath && ours.OK == nil && strings.Contains(question.Text, "range"):
		return "`range` makes several queries of one; it is an error at once"
	case isPath && ours.OK == nil && strings.HasPrefix(expected[0].Error, "PANIC "):
		return "the Go library crashes"
	case isPath && len(expected) > 1 && allErrors(expected) && ours.OK == nil:
		return "Go's order of map entries decides which error comes first; ours is that of the keys"
	case isPath && strings.Contains(ours.Error, "int64 is not array") &&
		(strings.Contains(expected[0].Error, "uint8 is not array") || strings.Contains(expected[0].Error, " int is not array")):
		return "bytes of a text and numbers of the path have no type of their own"
	case isPath && strings.Contains(question.Text, `\xff`):
		return "bytes of the path that are no text become U+FFFD"
	case question.Kind == "yaml" && len(expected) > 1:
		return "yaml.v3 gives different answers, since its order of keys contradicts itself"
	case question.Kind == "json" && exceedsDoubles(doubles(question.Data)):
		return "integers that a double cannot hold stay exact"
	case isPath && ours.OK == nil && strings.Contains(ours.Error, "more than 100000 results"):
		return "the number of results is bounded"
	}
	return ""
}

func allErrors(answers []Answer) bool {
	for _, answer := range answers {
		if answer.OK != nil {
			return false
		}
	}
	return true
}

func startsWithRoot(question Case) bool {
	text := question.Text
	if question.Kind == "tags" {
		return strings.Contains(text, "$($.") || strings.Contains(text, "$($[")
	}
	return strings.HasPrefix(text, "$.") || strings.HasPrefix(text, "$[")
}

func exceedsDoubles(value any) bool {
	switch value := value.(type) {
	case float64:
		return value >= 1<<53 || value <= -(1<<53)
	case []any:
		for _, item := range value {
			if exceedsDoubles(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range value {
			if exceedsDoubles(item) {
				return true
			}
		}
	}
	return false
}
