package schemaedit

import (
	"strings"
	"testing"
)

func TestStoryNamesWhatIsDifferent(t *testing.T) {
	for reason, c := range map[string]struct{ before, after, want string }{
		"nothing":                   {`{size: 1}`, `{size: 1}`, ""},
		"a number":                  {`{threads: 4}`, `{threads: 8}`, "spec.threads: 4 → 8"},
		"a number that is a word":   {`{size: 3}`, `{size: "3"}`, `spec.size: 3 → "3"`},
		"a field that was not":      {`{}`, `{version: 1.6.45}`, "spec.version: none → 1.6.45"},
		"a field that is no more":   {`{paused: true}`, `{}`, "spec.paused: true → none"},
		"null":                      {`{size: 1}`, `{size: null}`, "spec.size: 1 → null"},
		"the empty word":            {`{image: a}`, `{image: ""}`, `spec.image: a → ""`},
		"the word none":             {`{image: a}`, `{image: none}`, `spec.image: a → "none"`},
		"several, in their order":   {`{size: 1, threads: 4}`, `{size: 2, image: "a b"}`, `spec.image: none → "a b"; spec.size: 1 → 2; spec.threads: 4 → none`},
		"a field of a field":        {`{backup: {deadline: 1m}}`, `{backup: {deadline: 2m}}`, "spec.backup.deadline: 1m → 2m"},
		"a label":                   {`{podLabels: {example.com/a: b}}`, `{podLabels: {}}`, "spec.podLabels[example.com/a]: b → none"},
		"an item":                   {`{extraArgs: [-v, -C]}`, `{extraArgs: [-v, -X]}`, "spec.extraArgs[1]: -C → -X"},
		"a list of another length":  {`{extraArgs: [-v]}`, `{extraArgs: [-v, -C]}`, `spec.extraArgs: ["-v"] → ["-v","-C"]`},
		"something else altogether": {`{extraArgs: [-v]}`, `{extraArgs: {}}`, `spec.extraArgs: ["-v"] → {}`},
		"a long word":               {`{}`, `{image: ` + strings.Repeat("a", 513) + `}`, "spec.image: none → " + strings.Repeat("a", longest) + "… (513 bytes)"},
	} {
		t.Run(reason, func(t *testing.T) {
			if got := tell(parse(t, c.before), parse(t, c.after)); got != c.want {
				t.Errorf("story %q, want %q", got, c.want)
			}
		})
	}
}
