package schemaedit

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
)

// repeats limits unlimited repetitions of a pattern.
const repeats = 4

// matching returns a string that matches a pattern, or "" for one that Go cannot parse.
func matching(rng *rand.Rand, pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var text strings.Builder
	match(rng, &text, parsed)
	return text.String()
}

func match(rng *rand.Rand, text *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		text.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		i := rng.IntN(len(re.Rune)/2) * 2
		low, high := re.Rune[i], min(re.Rune[i+1], max(re.Rune[i], '~')) // printable ASCII, if there is any
		text.WriteRune(low + rng.Int32N(high-low+1))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		text.WriteRune('a' + rng.Int32N(26))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			match(rng, text, sub)
		}
	case syntax.OpAlternate:
		match(rng, text, re.Sub[rng.IntN(len(re.Sub))])
	case syntax.OpStar:
		again(rng, text, re.Sub[0], 0, repeats)
	case syntax.OpPlus:
		again(rng, text, re.Sub[0], 1, repeats)
	case syntax.OpQuest:
		again(rng, text, re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = re.Min + repeats
		}
		again(rng, text, re.Sub[0], re.Min, most)
	}
}

func again(rng *rand.Rand, text *strings.Builder, re *syntax.Regexp, least, most int) {
	for range least + rng.IntN(most-least+1) {
		match(rng, text, re)
	}
}
