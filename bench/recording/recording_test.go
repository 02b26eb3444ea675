package recording

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"testing"
)

func document(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestRecordingIsUpToDate(t *testing.T) {
	svg := document(t, "quickstart.svg")
	if want, err := draw(read(svg)); err != nil || !bytes.Equal(svg, want) {
		t.Errorf("docs/quickstart.svg is not what this package draws (%v): run make pictures", err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	events, err := parse(read(svg))
	if err != nil {
		t.Fatal(err)
	}
	var recorded, onPage []string
	for _, e := range events {
		if e.kind == "i" {
			recorded = append(recorded, e.text)
		}
	}
	for _, block := range regexp.MustCompile("(?s)```shell\n((?:kubectl|helm) .*?)```").FindAllSubmatch(document(t, "quickstart.md"), -1) {
		onPage = append(onPage, string(block[1]))
	}
	// The recording begins with the last installation on the page.
	if begin := slices.Index(onPage, recorded[0]); begin < 0 || !slices.Equal(recorded, onPage[begin:]) {
		t.Errorf("the picture shows the commands %q, docs/quickstart.md has %q: run make recording", recorded, onPage)
	}
}

func TestWaitsAreShortenedAndLongLinesAndOutputsAreCut(t *testing.T) {
	const cast = `{"version": 2}
[0.5, "i", "kubectl get xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\\n  y\n"]
[60.5, "o", "1\n2\n3\n4\n5\n6\n7\n"]
[60.5, "o", "8\n9\n10\n"]
[61.0, "i", "kubectl delete x\n"]
[62.0, "o", "deleted\n"]
`
	events, err := parse([]byte(cast))
	if err != nil {
		t.Fatal(err)
	}
	all, took := rows(events)
	if took != 60.5 || len(all) != 13 {
		t.Fatalf("the rows after %.1f s are %v", took, all)
	}
	if first, last := all[0], all[12]; len(first.text) != columns || all[2].text != "  y" || last.text != "(60 s)" || last.seconds-first.seconds > 5 || all[11].text != "…" || all[10].text != "8" {
		t.Errorf("the rows are %v", all)
	}
}
