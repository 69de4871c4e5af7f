package main

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
)

// generator makes questions: most follow the grammars, some are mutated, some are noise.
type generator struct {
	*rand.Rand
}

func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0))}
}

func (g generator) next() Case {
	switch g.IntN(10) {
	case 0, 1, 2, 3:
		return Case{Kind: "path", Text: g.mutated(g.expression()), Data: g.data()}
	case 4:
		return Case{Kind: "unwrapped", Text: g.mutated(g.oneOf("", "spec.env", "{.a}", "x{.b}y") + "{" + g.steps(3) + "}")}
	case 5:
		return Case{Kind: "tags", Text: g.template(), Data: g.data()}
	case 6, 7, 8:
		return Case{Kind: "yaml", Data: marshal(g.yamlValue(3))}
	default:
		return Case{Kind: g.oneOf("json", "display"), Data: marshal(g.yamlValue(2))}
	}
}

func marshal(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

func (g generator) oneOf(choices ...string) string {
	return choices[g.IntN(len(choices))]
}

func (g generator) chance(percent int) bool {
	return g.IntN(100) < percent
}

// Data: half of the cases use the document of docs/behaviour/paths.md#results, so that paths often
// hit something.

const document = `{"s":"str","n":5,"f":1.5,"nil":null,"t":true,"e":"","c":"x","m":{"k":"v"},"l":[1,2],"el":[],"em":{},
"lo":[{"t":"A","s":"True","n":1},{"t":"B","n":2.5}],"items":[{"x":"1"},{"y":"2"}],"m2":{"a.b/c":1,"with space":2},
"mixed":[1,"a",null,true,{"t":"A"},[1,[2]],1.5],"ll":[[1],[2,3]],"a":{"b":{"c":{"k":1}}}}`

func (g generator) data() json.RawMessage {
	if g.chance(60) {
		return json.RawMessage(document)
	}
	return marshal(g.value(4))
}

func (g generator) value(depth int) any {
	choice := g.IntN(12)
	if depth == 0 {
		choice %= 8
	}
	switch choice {
	case 0:
		return nil
	case 1:
		return g.chance(50)
	case 2, 3:
		return g.IntN(5) - 1
	case 4:
		return float64(g.IntN(10)) / 4
	case 5, 6, 7:
		return g.oneOf("", "a", "A", "B", "True", "str", "x y", "é", "5")
	case 8, 9:
		list := make([]any, g.IntN(4))
		for index := range list {
			list[index] = g.value(depth - 1)
		}
		return list
	default:
		object := map[string]any{}
		for range g.IntN(5) {
			object[g.name()] = g.value(depth - 1)
		}
		return object
	}
}

func (g generator) name() string {
	return g.oneOf("s", "n", "nil", "m", "k", "l", "el", "lo", "t", "items", "x", "y", "a", "b", "c", "mixed", "ll", "A", "f", "e", "em", "m2")
}

// Paths.

func (g generator) expression() string {
	body := g.steps(1 + g.IntN(4))
	switch g.IntN(8) {
	case 0:
		return "{" + body + "}"
	case 1, 2:
		return strings.TrimPrefix(body, ".")
	case 3:
		return body + g.oneOf("}", "}{.s}", "}x", "} ", "{", "}{range .l[*]}{@}{end}")
	default:
		return body
	}
}

func (g generator) steps(count int) string {
	var text strings.Builder
	for range count {
		text.WriteString(g.step(2))
	}
	return text.String()
}

func (g generator) step(depth int) string {
	switch g.IntN(26) {
	case 0, 1, 2, 3, 4, 5, 6:
		return "." + g.name()
	case 7, 8:
		return "[" + g.index() + "]"
	case 9:
		return "[" + g.slice() + "]"
	case 10:
		return g.oneOf("[*]", ".*", "..", "..*", ".")
	case 11, 12:
		return ".." + g.name()
	case 13:
		return "['" + g.key() + "']"
	case 14:
		return "[" + g.element() + "," + g.oneOf("", " ", "  ") + g.element() + g.oneOf("", " ", ","+g.element()) + "]"
	case 15, 16, 17, 18, 19, 20:
		if depth > 0 {
			return "[?(" + g.filter(depth-1) + ")]"
		}
		return "[0]"
	case 21:
		return g.oneOf("@", "$", " ", "@.", "$.", "\t", "\n")
	case 22:
		return " " + g.literal()
	case 23:
		return "." + g.key()
	case 24:
		return g.oneOf(`.a\.b`, `.\*`, `.m2.a\.b/c`, `.m2['a\.b/c']`, ".é", "..é", `.a\`, ".a-b", ".a_b/c")
	default:
		return g.oneOf(" range", " end", " true", " false", "true", "5", "x")
	}
}

func (g generator) key() string {
	return g.oneOf("k", "z", "t", `a\.b/c`, "a.b/c", "with space", "", "*", "0", "..k", "m", "lo", `with\ space`, "k}", "a'b", "[")
}

func (g generator) index() string {
	return g.oneOf("0", "1", "-1", "-2", "9", "-9", "", "-", "00", "+1", "99999999999999999999", " 0", "0 ", "1.5", "x", `"k"`, "*")
}

func (g generator) slice() string {
	part := func() string { return g.oneOf("", "0", "1", "2", "-1", "-9", "9", "3", "-") }
	text := part() + ":" + part()
	if g.chance(40) {
		text += ":" + g.oneOf("", "1", "2", "0", "-1", "9")
	}
	if g.chance(4) {
		text += ":"
	}
	return text
}

func (g generator) element() string {
	switch g.IntN(4) {
	case 0:
		return "'" + g.key() + "'"
	case 1:
		return g.slice()
	default:
		return g.index()
	}
}

func (g generator) filter(depth int) string {
	left := g.operand(depth)
	if g.chance(20) {
		return left
	}
	space := g.oneOf("", "", "", " ")
	return left + space + g.oneOf("==", "==", "==", "!=", "<", "<=", ">", ">=", "=", "===", "<>", "!") + space + g.operand(depth)
}

func (g generator) operand(depth int) string {
	switch g.IntN(8) {
	case 0, 1, 2:
		return "@." + g.name()
	case 3:
		return "@"
	case 4:
		return "@" + g.step(depth) + g.step(depth)
	case 5, 6:
		return g.literal()
	default:
		return g.oneOf("", ".t", "..t", "@..", "@.t.x", "@['t']", "x", "@.", "@[0]", "@[5]", "@[0,1]", "@.*")
	}
}

func (g generator) literal() string {
	return g.oneOf(`"A"`, `'A'`, `"B"`, `'True'`, "1", "2", "2.5", "-1", "+1", "1.", ".5", "-.5", "1.2.3", "-", "true", "false",
		`"a\"b"`, `'a\'b'`, `"\x41"`, `'\u0041'`, `"\101"`, `"\q"`, `"\U00110000"`, `"\ud800"`, `'"'`, `"'"`, `""`, `"a)b"`, `'a]b'`,
		`"\n\t\\"`, `"é"`, "9223372036854775808", "1e5", `"unclosed`, `"\xff"`, `"\c"`, `"\`, `'A`)
}

const noise = "{}[]()?@$.,:*'\"\\ =<>!+-#0123abkst\t\n\ré☃٣"

// mutated changes a few characters of some texts.
func (g generator) mutated(text string) string {
	if !g.chance(25) {
		return text
	}
	runes, characters := []rune(text), []rune(noise)
	for range 1 + g.IntN(3) {
		at := g.IntN(len(runes) + 1)
		character := characters[g.IntN(len(characters))]
		switch {
		case g.chance(40) || len(runes) == 0:
			runes = append(runes[:at], append([]rune{character}, runes[at:]...)...)
		case at < len(runes) && g.chance(50):
			runes = append(runes[:at], runes[at+1:]...)
		case at < len(runes):
			runes[at] = character
		}
	}
	return string(runes)
}

// Templates.

func (g generator) template() string {
	if g.chance(30) {
		return g.mutated("$(" + strings.TrimPrefix(g.steps(2), ".") + ")$")
	}
	var text strings.Builder
	for range g.IntN(5) {
		switch g.IntN(4) {
		case 0:
			text.WriteString(g.oneOf("x", "$", "\\", " ", ")$", "$(", "a-", "é", "\n"))
		case 1:
			text.WriteString("$(" + g.expression() + ")$")
		default:
			text.WriteString("$(" + g.name() + ")$")
		}
	}
	return g.mutated(text.String())
}
