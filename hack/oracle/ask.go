package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"github.com/valyala/fasttemplate"
	"gopkg.in/yaml.v3"
	"k8s.io/client-go/util/jsonpath"
)

// ask returns the different answers that the Go libraries give when they are asked so often. They depend on the order in
// which Go walks a map: which error a wildcard meets first, and how yaml.v3 sorts keys, whose order is not transitive.
func ask(question Case, times int) []Answer {
	answers := []Answer{}
	for range times {
		if answer := askOnce(question); !contains(answers, answer) {
			answers = append(answers, answer)
		}
	}
	return answers
}

func contains(answers []Answer, answer Answer) bool {
	for _, other := range answers {
		if other.Error == answer.Error && bytes.Equal(other.OK, answer.OK) {
			return true
		}
	}
	return false
}

func askOnce(question Case) (answer Answer) {
	defer func() {
		if trouble := recover(); trouble != nil {
			answer = Answer{Error: fmt.Sprint("PANIC ", trouble)}
		}
	}()
	var value any
	var err error
	switch question.Kind {
	case "path":
		value, err = evaluate(question.Text, decode(question.Data))
	case "unwrapped":
		err = jsonpath.New("").Parse(question.Text)
	case "tags":
		value, err = render(question.Text, decode(question.Data))
	case "yaml":
		var text []byte
		text, err = yaml.Marshal(doubles(question.Data))
		value = string(text)
	case "json":
		value = compact(doubles(question.Data))
	case "display":
		value = fmt.Sprintf("%v", doubles(question.Data))
	default:
		panic("unknown kind " + question.Kind)
	}
	if err != nil {
		// Ours is text; an escape of the dialect can make bytes that are none.
		return Answer{Error: strings.ToValidUTF8(err.Error(), "\ufffd")}
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return Answer{OK: text}
}

// decode keeps integers, as Kubernetes does when it reads an object without a type.
func decode(data json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err)
	}
	return integers(value)
}

func integers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if number, err := value.Int64(); err == nil {
			return number
		}
		number, err := value.Float64()
		if err != nil {
			panic(err)
		}
		return number
	case []any:
		for index := range value {
			value[index] = integers(value[index])
		}
	case map[string]any:
		for key := range value {
			value[key] = integers(value[key])
		}
	}
	return value
}

func doubles(data json.RawMessage) any {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		panic(err)
	}
	return value
}

func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// evaluate wraps client-go's evaluator as docs/behaviour/paths.md#dialect says.
func evaluate(expression string, data any) (any, error) {
	if expression == "" {
		return nil, fmt.Errorf("empty jsonpath not allowed")
	}
	wrapped := expression
	if !strings.HasPrefix(wrapped, "{.") {
		if strings.HasPrefix(wrapped, ".") {
			wrapped = "{" + wrapped
		} else {
			wrapped = "{." + wrapped
		}
	}
	if !strings.HasSuffix(wrapped, "}") {
		wrapped += "}"
	}
	path := jsonpath.New("").AllowMissingKeys(true)
	if err := path.Parse(wrapped); err != nil {
		return nil, fmt.Errorf("evaluate: failed to parse jsonpath '%s': %w", wrapped, err)
	}
	queries, err := path.FindResults(data)
	if err != nil {
		return nil, fmt.Errorf("evaluate: failed to find results: %w", err)
	}
	if len(queries) > 1 {
		return nil, fmt.Errorf("evaluate: more queries than expected: %s", expression)
	}
	var results []reflect.Value
	if len(queries) == 1 {
		results = queries[0]
	}
	switch len(results) {
	case 0:
		return nil, fmt.Errorf("jsonpath returned empty list: %s", expression)
	case 1:
		var value any
		text, err := json.Marshal(results[0].Interface())
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		return value, err
	default:
		return nil, fmt.Errorf("too many results for the query: %s", expression)
	}
}

var singleTag = regexp.MustCompile(`^(?s)\$\((.*)\)\$$`)

func render(template string, data any) (any, error) {
	if found := singleTag.FindStringSubmatch(template); found != nil && strings.Count(template, "$(") == 1 {
		value, err := evaluate(found[1], data)
		if err != nil {
			return nil, fmt.Errorf("evaluate tag %s: %w", template, err)
		}
		return value, nil
	}
	text, err := fasttemplate.ExecuteFuncStringWithErr(template, "$(", ")$", func(out io.Writer, tag string) (int, error) {
		value, err := evaluate(tag, data)
		if err != nil {
			return 0, fmt.Errorf("evaluate jsonpath: %w", err)
		}
		switch value := value.(type) {
		case nil:
			return 0, fmt.Errorf("tag must not point to nil value: %s", tag)
		case string:
			return io.WriteString(out, value)
		default:
			return io.WriteString(out, compact(value))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("interpolate tag: %w", err)
	}
	return text, nil
}
