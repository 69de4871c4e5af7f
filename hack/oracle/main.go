// Command oracle compares our JSONPath, tags, YAML digests and Go text with the Go libraries that users' manifests
// were written against: client-go's jsonpath, fasttemplate, yaml.v3, encoding/json and fmt.
//
//	oracle generate -seed 1 -count 40000 > cases     one JSON document a line, the same ones for the same seed
//	cargo run --example oracle < cases > ours        our answers
//	oracle compare cases ours                        ends with 1 if an answer differs without a known reason
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

// Case is one question. Which fields are set depends on Kind.
type Case struct {
	Kind string          `json:"kind"`
	Text string          `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Answer holds a value or an error text, never both.
type Answer struct {
	OK    json.RawMessage `json:"ok,omitempty"`
	Error string          `json:"error,omitempty"`
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: oracle generate|compare"))
	}
	var err error
	switch os.Args[1] {
	case "generate":
		err = generateCommand(os.Args[2:])
	case "compare":
		err = compareCommand(os.Args[2:])
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func generateCommand(args []string) error {
	flags := flag.NewFlagSet("generate", flag.ExitOnError)
	seed := flags.Uint64("seed", 1, "the same seed gives the same cases")
	count := flags.Int("count", 40000, "number of cases")
	if err := flags.Parse(args); err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	generator := newGenerator(*seed)
	for range *count {
		if err := encoder.Encode(generator.next()); err != nil {
			return err
		}
	}
	return out.Flush()
}

func compareCommand(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: oracle compare CASES OURS")
	}
	cases, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer cases.Close()
	ours, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer ours.Close()
	return compareAll(json.NewDecoder(bufio.NewReader(cases)), json.NewDecoder(bufio.NewReader(ours)))
}

const printed = 40

func compareAll(cases, ours *json.Decoder) error {
	counts, explained, differences := map[string]int{}, map[string]int{}, 0
	for {
		var question Case
		if err := cases.Decode(&question); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		var answer Answer
		if err := ours.Decode(&answer); err != nil {
			return fmt.Errorf("our answer to %+v: %w", question, err)
		}
		counts[question.Kind]++
		if agree(ask(question, 1), answer) {
			continue
		}
		expected := ask(question, 200)
		if agree(expected, answer) {
			continue
		}
		if reason := explain(question, expected, answer); reason != "" {
			explained[reason]++
			continue
		}
		differences++
		if differences <= printed {
			fmt.Printf("DIFFERENT %s %q\n  data %s\n  go   %s\n  ours %s\n",
				question.Kind, question.Text, question.Data, show(expected...), show(answer))
		}
	}
	fmt.Println("compared", counts)
	for reason, count := range explained {
		fmt.Printf("explained %d: %s\n", count, reason)
	}
	if differences > 0 {
		return fmt.Errorf("%d answers differ", differences)
	}
	return nil
}

func show(answers ...Answer) string {
	text := ""
	for index, answer := range answers {
		if index > 0 {
			text += " | "
		}
		if answer.OK != nil {
			text += string(answer.OK)
		} else {
			text += "error " + answer.Error
		}
	}
	return text
}
