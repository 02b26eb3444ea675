package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for value, want := range map[float64]string{0: "0", -0.2: "0", 999: "999", 1000: "1,000", 1234567.4: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := Number(value); got != want {
			t.Errorf("%v is written %q, want %q", value, got, want)
		}
	}
}

func TestTheCommandIsWhatAPersonTypes(t *testing.T) {
	if got := Command("bench", nil); got != "make bench" {
		t.Error(got)
	}
	if got := Command("bench", []string{"-n", "5"}); got != "make bench ARGS='-n 5'" {
		t.Error(got)
	}
}

func TestAFolderIsOfTheProject(t *testing.T) {
	got, err := Folder("docs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(got, "user-guide.md")); err != nil {
		t.Error(err)
	}
	for _, named := range []string{"", t.TempDir()} {
		if got, err := Folder(named); got != named || err != nil {
			t.Errorf("%q is %q, %v", named, got, err)
		}
	}
}

func TestAxesMapValuesToPixels(t *testing.T) {
	a := Axis{From: 40, To: 100, Step: 20, PixelFrom: 300, PixelTo: 90}
	for value, want := range map[float64]float64{40: 300, 100: 90, 70: 195, 20: 300, 120: 90} {
		if got := a.At(value); got != want {
			t.Errorf("%v is at %v, want %v", value, got, want)
		}
	}
	if got := a.Ticks(); !slices.Equal(got, []float64{40, 60, 80, 100}) {
		t.Errorf("its ticks are %v", got)
	}
	if got := AxisTo(1234, 3, 0, 1); got != (Axis{To: 1500, Step: 500, PixelTo: 1}) {
		t.Errorf("up to 1234 it is %+v", got)
	}
	if got := AxisTo(0, 5, 0, 1); got.To != 1 || got.Step != 0.2 {
		t.Errorf("of nothing it is %+v", got)
	}
}

func TestAStepIsOneTwoOrFive(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		atMost   int
		want     float64
	}{{0, 1, 3, 0.5}, {0, 1100, 3, 500}, {40, 100, 10, 10}, {-10, 158, 10, 20}, {0, 3000, 3, 1000}} {
		if got := Step(c.from, c.to, c.atMost); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("from %v to %v in %d steps: %v, want %v", c.from, c.to, c.atMost, got, c.want)
		}
	}
}

func TestAPictureIsXMLWhateverItsWordsAre(t *testing.T) {
	p := NewPicture(900, 400, "A & B", `of "all" <things>`)
	p.Group(1, func() { p.Text("name", 1, 2, "end", "a < b") })
	p.Grid(Axis{To: 1, Step: 1, PixelTo: 100}, AxisTo(5, 5, 100, 0), "ratio & errors", 0)
	svg := p.SVG()
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{"A &amp; B", "a &lt; b", "prefers-color-scheme: dark", `<g class="s1">`, ">5</text>"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("it lacks %q", want)
		}
	}
}
