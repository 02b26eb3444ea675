package diagrams

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"testing"
)

func TestDiagramsOfTheDocumentsAreUpToDate(t *testing.T) {
	for name, d := range diagrams() {
		want := d.svg()
		if got, err := os.ReadFile("../../docs/" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s (%v) is not what this package draws: run make pictures", name, err)
		}
		for decoder := xml.NewDecoder(bytes.NewReader(want)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}
