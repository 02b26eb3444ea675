package recording

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func document(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// commands returns those of a picture, after it has compared it with what this package draws.
func (r recording) commands(t *testing.T) (commands []string, output string) {
	t.Helper()
	svg := document(t, r.name+".svg")
	if want, err := r.draw(read(svg)); err != nil || !bytes.Equal(svg, want) {
		t.Errorf("docs/%s.svg is not what this package draws (%v): run make pictures", r.name, err)
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
	for _, e := range events {
		if e.kind == "i" {
			commands = append(commands, e.text)
		} else {
			output += e.text
		}
	}
	return commands, output
}

func TestRecordingOfTheQuickstartIsUpToDate(t *testing.T) {
	recorded, _ := recordings[0].commands(t)
	var onPage []string
	for _, block := range regexp.MustCompile("(?s)```shell\n((?:kubectl|helm) .*?)```").FindAllSubmatch(document(t, "quickstart.md"), -1) {
		onPage = append(onPage, string(block[1]))
	}
	// The recording begins with the last installation on the page.
	if begin := slices.Index(onPage, recorded[0]); begin < 0 || !slices.Equal(recorded, onPage[begin:]) {
		t.Errorf("the picture shows the commands %q, docs/quickstart.md has %q: run make recording", recorded, onPage)
	}
}

func TestRecordedScreensAreThoseOfThePlugin(t *testing.T) {
	page, sources := document(t, "kubectl-plugin.md"), ""
	files, err := filepath.Glob("../../cmd/kubectl-memcached/internal/screen/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		sources += string(document(t, "../"+strings.TrimPrefix(file, "../../")))
	}
	for _, r := range recordings[1:] {
		t.Run(r.name, func(t *testing.T) {
			commands, output := r.commands(t)
			verb := strings.TrimPrefix(r.name, "plugin-")
			if want := []string{"kubectl memcached " + verb + " cache\n"}; !slices.Equal(commands, want) {
				t.Errorf("it shows the commands %q, want %q", commands, want)
			}
			if !slices.Contains(screens, verb) || !bytes.Contains(page, []byte("]("+r.name+".svg)")) {
				t.Error("docs/kubectl-plugin.md doesn't show it, or no command records it")
			}
			headings := regexp.MustCompile(`(?m)^[A-Z][A-Z0-9/ ]+$`).FindAllString(output, -1)
			if slices.ContainsFunc(headings, func(s string) bool { return len(s) > r.columns }) {
				t.Error("a table is wider than the picture")
			}
			for _, heading := range regexp.MustCompile(" {2,}").Split(strings.Join(headings, "  "), -1) {
				if !strings.Contains(sources, heading) || heading == "" {
					t.Errorf("the plugin has no column %q any more: run make recording-plugin", heading)
				}
			}
			for _, gate := range v1beta1.Gates {
				if verb == "why" && !strings.Contains(output, "\n"+string(gate)+" ") {
					t.Errorf("the gate %s is missing: run make recording-plugin", gate)
				}
			}
		})
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
	r := recordings[0]
	all, took := r.rows(events)
	if took != 60.5 || len(all) != 13 {
		t.Fatalf("the rows after %.1f s are %v", took, all)
	}
	if first, last := all[0], all[12]; len(first.text) != r.columns || all[2].text != "  y" || last.text != "(60 s)" || last.seconds-first.seconds > 5 || all[11].text != "…" || all[10].text != "8" {
		t.Errorf("the rows are %v", all)
	}
}
