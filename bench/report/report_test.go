package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNumberSeparatesThousands(t *testing.T) {
	for value, want := range map[float64]string{0: "0", -0.2: "0", 999: "999", 1000: "1,000", 1234567.4: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := Number(value); got != want {
			t.Errorf("%v: got %q, want %q", value, got, want)
		}
	}
}

func TestTableIsWrittenForDocumentAndTerminal(t *testing.T) {
	table := Table{{"**Shards**", "one", "another"}}
	Add(&table, "items `kept`", []float64{10, 2000}, Number)
	if got, want := table.Markdown(), "| **Shards** | one | another |\n|---|---:|---:|\n| items `kept` | 10 | 2,000 |\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := table.Terminal(), "Shards      one  another  \nitems kept  10   2,000    \n"; got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestDocumentSaysWhatWasMeasuredAndRequiresEveryValue(t *testing.T) {
	b := Benchmark{Name: "x", Template: "{{.Tables}}{{.Footer}}: {{.A}}"}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	result := Result{Tables: []Table{{{"a", "b"}}, {{"c", "d"}}}, Values: map[string]any{"A": 1}, Machine: "A machine."}
	r := Run{Benchmark: b, Began: noon, args: []string{"-n", "5"}, commit: "01234567 with uncommitted changes"}
	footer := r.footer(result)
	want := "| a | b |\n|---|---:|\n\n| c | d |\n|---|---:|\n" + footer + ": 1"
	if got, err := b.Document(result, footer); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if want := "`make bench-x ARGS='-n 5'` measured the commit 01234567 with uncommitted changes on 2026-01-01. A machine."; footer != want {
		t.Errorf("the footer is %q, want %q", footer, want)
	}
	r = Run{Benchmark: b, Began: noon, commit: "01234567", out: "docs"}
	result.Chart = &Chart{}
	if got, want := r.footer(result), "`make bench-x` measured the commit 01234567 on 2026-01-01. It wrote this page and the chart: do not edit them. A machine."; got != want {
		t.Errorf("the footer is %q, want %q", got, want)
	}
	result.Values = nil
	if got, err := b.Document(result, footer); err == nil {
		t.Errorf("a value is missing: got %q", got)
	}
}

func TestQuantileIsTheSmallestValueThatAShareDoesNotExceed(t *testing.T) {
	values := []int{4, 1, 3, 2}
	for share, want := range map[float64]int{0: 1, 0.25: 1, 0.5: 2, 0.51: 3, 0.99: 4, 1: 4} {
		if got := Quantile(values, share); got != want {
			t.Errorf("%v of %v: %d, want %d", share, values, got, want)
		}
	}
	if got := Quantile([]int(nil), 0.5); got != 0 {
		t.Errorf("without values: %d", got)
	}
}

func TestAxesFitTheSeries(t *testing.T) {
	p := Panel{YTo: 100, Series: []Series{{Points: []Point{{-10, 100}, {0, 52}}}, {Points: []Point{{60, 90}}}}}
	x, y := p.axes(90, 300)
	if x.from != -10 || x.to != 60 || x.step != 10 || y.from != 0 || y.to != 100 || y.at(0) != 300 || y.at(100) != 90 || y.at(50) != 195 || y.at(-20) != 300 {
		t.Errorf("x %+v, y %+v", x, y)
	}
	if got := y.ticks(); !slices.Equal(got, []float64{0, 20, 40, 60, 80, 100}) {
		t.Errorf("ticks %v", got)
	}
	p = Panel{Series: []Series{{Points: []Point{{0, 0}, {30, 1234}}}}}
	if _, y = p.axes(0, 300); y.from != 0 || y.to != 1500 || y.step != 500 {
		t.Errorf("up to 1234: %+v", y)
	}
	if x, y = (Panel{}).axes(0, 300); x.to != 1 || y.to != 1 {
		t.Errorf("without series: %+v, %+v", x, y)
	}
}

func TestStepIsOneTwoOrFive(t *testing.T) {
	for _, c := range []struct {
		length float64
		atMost int
		want   float64
	}{{1, 3, 0.5}, {1100, 3, 500}, {60, 10, 10}, {168, 10, 20}, {3000, 3, 1000}} {
		if got := step(c.length, c.atMost); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d steps in %v: %v, want %v", c.atMost, c.length, got, c.want)
		}
	}
}

func TestChartIsXMLWithALineForEachSeries(t *testing.T) {
	chart := Chart{Title: "A & B", Subtitle: `of "all" <things>`, Panels: []Panel{
		{Title: "ratio & errors", XLabel: "seconds", YTo: 100, Series: []Series{
			{Name: "a < b", Points: []Point{{-1, 50.02}, {5, 100}}}, {Name: "second", Color: 1, Points: []Point{{-1, 50}, {5, 99}}},
		}},
		{Title: "seconds", Series: []Series{{Name: "none"}, {Name: "long", Points: make([]Point, 21)}}},
	}, Brief: []string{"second"}}
	pictures, err := chart.Pictures()
	if err != nil {
		t.Fatal(err)
	}
	svg := pictures[".svg"]
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{"A &amp; B", "a &lt; b", "prefers-color-scheme: dark", `<g class="s1">`, ">60</text>"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%q is missing", want)
		}
	}
	for element, want := range map[string]int{"<path": 3, "<circle": 4, `class="mark"`: 1, "NaN": 0, "Inf": 0} {
		if got := bytes.Count(svg, []byte(element)); got != want {
			t.Errorf("%d of %s, want %d", got, element, want)
		}
	}
	got, err := Read(svg)
	if err != nil || !reflect.DeepEqual(got, chart) {
		t.Errorf("the picture has the data %+v, %v, want %+v", got, err, chart)
	}
	// Values that differ by less than the last decimal are drawn at the same place.
	chart.Panels[0].Series[0].Points[0].Y = 50.024
	if exact, err := chart.Pictures(); err != nil || !bytes.Equal(exact[".svg"], svg) {
		t.Errorf("%v, the picture is not drawn from the data that it has", err)
	}
	brief := string(pictures["-brief.svg"])
	if _, err := Read([]byte(brief)); err == nil || !strings.Contains(brief, "second") || strings.Contains(brief, "a &lt; b") || strings.Contains(brief, `class="mark"`) {
		t.Errorf("the brief picture is\n%s", brief)
	}
}

func TestPicturesOfTheDocumentsAreUpToDate(t *testing.T) {
	files, err := redrawn("../../docs")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d pictures, %v", len(files), err)
	}
	for file, want := range files {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s (%v) is not what its data gives now: run make pictures", file, err)
		}
	}
}

func TestNamesStandAtTheirOwnLineOnly(t *testing.T) {
	plot := box{0, 0, 600, 200}
	flat := func(y float64) (all []Point) {
		for x := range 150 {
			all = append(all, Point{float64(4 * x), y})
		}
		return all
	}
	name := box{width: 80, height: labelHeight}
	for _, c := range []struct {
		other float64
		fits  bool
	}{{160, true}, {100, false}, {104, false}, {120, true}, {80, true}} {
		at, fits := name.beside(0, [][]Point{flat(100), flat(c.other)}, nil, plot)
		if above := at.top < 100; fits != c.fits || fits && above != (c.other > 100) {
			t.Errorf("a line at %v: the name is at %+v, %t", c.other, at, fits)
		}
	}
	if at, fits := name.beside(0, [][]Point{flat(100)}, []box{{0, 0, 600, 100}}, plot); !fits || at.top < 100 {
		t.Errorf("where another name stands: %+v, %t", at, fits)
	}
}

func TestFactorIsGivenWhereItIsMeaningful(t *testing.T) {
	for _, c := range []struct {
		value, first float64
		want         string
	}{
		{10.7, 0.4, " (27 ×)"}, {12, 5, " (2.4 ×)"}, {3, 6, " (0.5 ×)"}, {5, 5, ""}, {10, 0, ""}, {0, 10, ""}, {10, 0.04, ""}, {10, -1, ""}, {1, 20, ""},
	} {
		if got := Factor(c.value, c.first); got != c.want {
			t.Errorf("%v to %v: got %q, want %q", c.value, c.first, got, c.want)
		}
	}
}

func TestMedianOfTwoRoundsIsBetweenThem(t *testing.T) {
	if s := SpreadOf([]float64{4, 1}, func(f float64) float64 { return f }); s != (Spread{2.5, 1, 4}) {
		t.Errorf("%+v", s)
	}
}
