package main

import (
	"fmt"
	"math"
	"strings"
)

// Values for the writers: strings near everything that YAML reads as something else, keys near each other in the
// order of keys, and structure.

func (g generator) yamlValue(depth int) any {
	choice := g.IntN(10)
	if depth == 0 {
		choice %= 7
	}
	switch choice {
	case 0:
		return g.number()
	case 1:
		return []any{nil, true, false, []any{}, map[string]any{}}[g.IntN(5)]
	case 2, 3, 4, 5, 6:
		return g.yamlString()
	case 7, 8:
		list := make([]any, g.IntN(4))
		for index := range list {
			list[index] = g.yamlValue(depth - 1)
		}
		return list
	default:
		object := map[string]any{}
		for range g.IntN(g.sizes()) {
			object[g.yamlKey()] = g.yamlValue(depth - 1)
		}
		return object
	}
}

func (g generator) sizes() int {
	if g.chance(5) {
		return 40
	}
	return 6
}

func (g generator) number() any {
	switch g.IntN(6) {
	case 0:
		return g.IntN(200) - 100
	case 1:
		return g.Int64N(1<<52) >> g.IntN(52)
	case 2:
		return float64(g.IntN(1000000)) / math.Pow10(g.IntN(9))
	case 3:
		return math.Pow10(g.IntN(50)-25) * float64(1+g.IntN(9))
	case 4:
		number := math.Float64frombits(g.Uint64())
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return 0
		}
		return number
	default:
		return []any{0, 1000000, 999999, 1e20, 1e21, 1e22, 1e-6, 1e-7, 0.0001, 0.00001, -0.5, 123456789.0, 1e6 + 0.5, int64(1) << 60, math.Copysign(0, -1), 5e-324}[g.IntN(16)]
	}
}

func (g generator) yamlString() string {
	switch g.IntN(12) {
	case 0:
		return g.oneOf("", "~", "null", "Null", "NULL", "nULL", "true", "True", "TRUE", "tRUE", "false", "False", "y", "Y", "yes", "Yes", "YES", "yEs",
			"on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF", ".inf", "-.inf", "+.Inf", "-.INF", ".nan", ".NaN", ".NAN", "-.nan", "<<", "=", "-", "--", "---", "--- a", "...", "....", "?", ":", "!", "#", "-a", "?a", ":a", "- a",
			"? a", ": a", "a:", "a: b", "a:b", "a #b", "a#b", "a\t#b", "a:\tb", "@a", "`a", "%a", "&a", "*a", "|", ">", "'", `"`, "a'b", `a"b`, `\`, "[", "]", "{", "}", ",", "a,b")
	case 1:
		return g.numeric()
	case 2:
		return g.timestamp()
	case 3, 4:
		return g.characters("ab01 .:-_#\n")
	case 5:
		return g.characters("ab \t\n\r\u0085\u2028\u2029")
	case 6:
		return g.characters("a \n\x00\x07\x08\x0b\x0c\x1b\x1f\x7f\u0080\u009f\u00a0\u00adé\ufeff\ufffd\ufffe\uffff\ue000\ud7ff😀\U0010ffff\"\\'")
	case 7:
		return strings.Repeat(g.oneOf("word ", "long", "a b\n", "é "), 1+g.IntN(60)) + g.oneOf("", " ", "end", "\n")
	case 8:
		return g.oneOf("https://x/y@sha256:abc", "main@sha1:abc", "é", "registry.io/a/b:v1", "1.2.3", "v1", "1.20", "0123abc", "12e34", "1_000", "0o17", "007", "09", "+1", "0x", "0b", "0b12", "1:30", "190:20:30.15")
	case 9:
		return g.characters("- \n")
	default:
		return g.characters("abc-/. ")
	}
}

func (g generator) characters(alphabet string) string {
	runes := []rune(alphabet)
	text := make([]rune, g.IntN(9))
	for index := range text {
		text[index] = runes[g.IntN(len(runes))]
	}
	return string(text)
}

func (g generator) numeric() string {
	switch g.IntN(4) {
	case 0:
		return g.oneOf("", "+", "-") + g.oneOf("0x", "0X", "0b", "0B", "0o", "0O", "0", "-0b", "") + g.oneOf("", "+", "-") + g.characters("0178_9aF")
	case 1:
		return g.oneOf("", "+", "-", ".") + g.characters("0123_") + g.oneOf("", ".", "e", "E", "e+", "e-", ".e") + g.characters("0123_")
	case 2:
		return g.oneOf("", "+", "-") + g.characters("019_") + ":" + g.oneOf("", "5", "59", "60", "6", "05", "005") + g.oneOf("", ":", ":30", ":3", ".", ".5", "._", ".a")
	default:
		return g.oneOf("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
			"18446744073709551616", "1e308", "1e309", "-1e309", ".5e309", "1e-400", "0x8000000000000000", "0x1FFFFFFFFFFFFFFFF", "-0x8000000000000001", "0x1p4", ".5p1", "0b"+strings.Repeat("1", 64),
			"0b"+strings.Repeat("1", 65), "-0b"+strings.Repeat("1", 64), "0777777777777777777777", "02000000000000000000000", "0o2000000000000000000000", "1__0", "_1", "1_", "0_1", "0x_1", "0b-1", "0o-7", "-0o7", "+0b1", "+0o7", "0b+1", ".1_0", ".1_", "._1", ".1__0")
	}
}

func (g generator) timestamp() string {
	date := fmt.Sprintf("%s-%s-%s", g.oneOf("2001", "2000", "1900", "2004", "0000", "201", "20011"),
		g.oneOf("1", "01", "12", "13", "0", "2", "02", "001"), g.oneOf("1", "01", "28", "29", "30", "31", "32", "0", "00", "001"))
	if g.chance(35) {
		return date + g.oneOf("", "", "", " ", "T", "x")
	}
	clock := fmt.Sprintf("%s:%s:%s", g.oneOf("0", "00", "23", "24", "7", "015"), g.oneOf("0", "00", "59", "60", "5"), g.oneOf("0", "00", "59", "60", "5", "007"))
	clock += g.oneOf("", "", ".", ".5", ",5", ".123456789", ".1234567890123", ".a")
	return date + g.oneOf("T", "t", " ", "  ", "") + clock + g.oneOf("", "", "Z", "z", "+01:00", "-24:60", "+25:00", "+1:00", "+0100", " Z", "+01:61", "Z ", "+01:00x")
}

func (g generator) yamlKey() string {
	switch g.IntN(8) {
	case 0:
		return g.yamlString()
	case 1, 2, 3:
		return g.characters("aB01.-_/")
	case 4:
		return g.characters("ab019")
	case 5:
		return g.characters("aé0٣ा中Ⅷ²-")
	case 6:
		return strings.Repeat(g.oneOf("k", "key ", "é"), 40+g.IntN(60))
	default:
		return g.oneOf("name", "kind", "spec", "apiVersion", "a1", "a2", "a10", "a01", "a001", "a", "ab", "a.b", "a-b")
	}
}
