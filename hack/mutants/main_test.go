package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package p

func f(a, b int) (n int) {
	if a < b && isFree() {
		n = 1
	}
	switch {
	case a == 0:
		note()
	}
	return n + 1
}
`

func TestMutantsAreOfTheChangedLines(t *testing.T) {
	for name, c := range map[string]struct {
		only lines
		want []string
	}{
		"all lines": {lines{4: true, 5: true, 8: true, 9: true, 11: true}, []string{
			"4: negates a < b && isFree()", "4: < becomes <= in a < b", "4: && becomes || in a < b && isFree()", "5: omits n = 1",
			"8: negates a == 0", "8: == becomes != in a == 0", "9: omits note()", "11: + becomes - in n + 1"}},
		"some":    {lines{5: true, 11: true}, []string{"5: omits n = 1", "11: + becomes - in n + 1"}},
		"no code": {lines{1: true, 2: true}, nil},
	} {
		mutants, err := mutate([]byte(source), c.only)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range mutants {
			got = append(got, fmt.Sprintf("%d: %s", m.line, m.what))
			if string(m.apply([]byte(source))) == source {
				t.Errorf("%s changes nothing", m.what)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
