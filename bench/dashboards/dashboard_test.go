package dashboards

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/prometheus"
)

const sample = `{"title": "A & B", "panels": [
{"type": "row", "title": "Glance"},
{"type": "stat", "title": "Ratio", "fieldConfig": {"defaults": {"unit": "percentunit"}}, "targets": [{"expr": "ratio"}]},
{"type": "timeseries", "title": "Rate", "targets": [{"expr": "rate", "legendFormat": "shard {{shard}}"}]},
{"type": "row", "title": "More", "collapsed": true, "panels": [{"type": "table", "title": "Nothing", "targets": [{"expr": "absent"}]}]}]}`

func TestPictureHasThePanelsWithTheirData(t *testing.T) {
	d, err := prometheus.ParseDashboard([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	from := time.Unix(1000, 0)
	picture := string(draw(d.Record(from, from.Add(time.Minute), func(expr string) []prometheus.Series {
		if expr == "absent" {
			return nil
		}
		return []prometheus.Series{{Labels: map[string]string{"shard": "2"}, Points: []prometheus.Point{{At: from, Value: 1}, {At: from.Add(time.Second), Value: 0.25}, {At: from, Value: math.NaN()}}}}
	})))
	for _, want := range []string{"A &amp; B", "Glance", "25%", "shard 2", "M52.0 32.0L57.3 96.5", "Nothing", "No data"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %q:\n%s", want, picture)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(d.AllPanels()); n != 3 {
		t.Errorf("it has %d panels, not 3", n)
	}
}

func TestParseRejectsWhatHasNoPanels(t *testing.T) {
	if _, err := prometheus.ParseDashboard([]byte(`{"title": "empty"}`)); err == nil {
		t.Error("a dashboard without panels is accepted")
	}
}
