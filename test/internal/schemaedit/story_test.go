package schemaedit

import (
	"strings"
	"testing"
)

func TestDescriptionNamesTheDifferences(t *testing.T) {
	for reason, c := range map[string]struct{ before, after, want string }{
		"nothing":              {`{size: 1}`, `{size: 1}`, ""},
		"a number":             {`{threads: 4}`, `{threads: 8}`, "spec.threads: 4 → 8"},
		"a number as a string": {`{size: 3}`, `{size: "3"}`, `spec.size: 3 → "3"`},
		"an added field":       {`{}`, `{version: 1.6.45}`, "spec.version: none → 1.6.45"},
		"a removed field":      {`{paused: true}`, `{}`, "spec.paused: true → none"},
		"null":                 {`{size: 1}`, `{size: null}`, "spec.size: 1 → null"},
		"an empty string":      {`{image: a}`, `{image: ""}`, `spec.image: a → ""`},
		"the string none":      {`{image: a}`, `{image: none}`, `spec.image: a → "none"`},
		"several, sorted":      {`{size: 1, threads: 4}`, `{size: 2, image: "a b"}`, `spec.image: none → "a b"; spec.size: 1 → 2; spec.threads: 4 → none`},
		"a field of a field":   {`{finalBackup: {deadlineSeconds: 60}}`, `{finalBackup: {deadlineSeconds: 120}}`, "spec.finalBackup.deadlineSeconds: 60 → 120"},
		"a label":              {`{podMetadata: {labels: {example.com/a: b}}}`, `{podMetadata: {labels: {}}}`, "spec.podMetadata.labels[example.com/a]: b → none"},
		"an item":              {`{extraArgs: [-v, -C]}`, `{extraArgs: [-v, -X]}`, "spec.extraArgs[1]: -C → -X"},
		"a longer list":        {`{extraArgs: [-v]}`, `{extraArgs: [-v, -C]}`, `spec.extraArgs: ["-v"] → ["-v","-C"]`},
		"another type":         {`{extraArgs: [-v]}`, `{extraArgs: {}}`, `spec.extraArgs: ["-v"] → {}`},
		"a long string":        {`{}`, `{image: ` + strings.Repeat("a", 513) + `}`, "spec.image: none → " + strings.Repeat("a", longest) + "… (513 bytes)"},
	} {
		t.Run(reason, func(t *testing.T) {
			if got := describe(parse(t, c.before), parse(t, c.after)); got != c.want {
				t.Errorf("story %q, want %q", got, c.want)
			}
		})
	}
}
