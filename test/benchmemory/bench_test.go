package main

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

func sample() document {
	return document{
		options: options{version: "1.6.45", connections: 5000}, machine: "A machine.", date: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		filled:    []filled{{memory: resource.MustParse("64Mi"), value: 500, plain: 1000, items: 990, file: 100 << 20, peak: 120 << 20, limit: 150 << 20, plainPeak: 70 << 20}},
		connected: []connected{{"idle", 4608, 512}},
	}
}

func TestDocumentHasItemsMemoryAndConnections(t *testing.T) {
	d := sample()
	d.options.out = t.TempDir()
	if err := d.write(d.options.out); err != nil {
		t.Fatal(err)
	}
	text := d.items().Markdown() + d.connections().Markdown()
	for _, want := range []string{"| 64Mi, 500 B | 1,000 | 990 | 99.0% | 100 MiB | 120 MiB (80%) | 150 MiB | 70 MiB |", "| idle | 4.5 KiB | 0.5 KiB |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestTooFewItemsOrTooMuchMemoryIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*filled)
		fails  bool
	}{
		"99%":             {func(*filled) {}, false},
		"98.9%":           {func(f *filled) { f.items = 989 }, true},
		"the whole limit": {func(f *filled) { f.peak = f.limit }, false},
		"more than that":  {func(f *filled) { f.peak = f.limit + 1 }, true},
	} {
		d := sample()
		c.change(&d.filled[0])
		if err := d.check(); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
