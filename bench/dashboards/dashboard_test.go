package dashboards

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/prometheus"
)

const sample = `{"title": "A & B", "panels": [
{"type": "row", "title": "Glance"},
{"type": "stat", "title": "Ratio", "fieldConfig": {"defaults": {"unit": "percentunit"}}, "targets": [{"expr": "ratio"}]},
{"type": "timeseries", "title": "Rate", "targets": [{"expr": "rate", "legendFormat": "shard {{shard}}"}]},
{"type": "table", "title": "Versions", "targets": [{"expr": "versions"}]},
{"type": "table", "title": "Firing", "targets": [{"expr": "absent"}]},
{"type": "row", "title": "More", "collapsed": true, "panels": [{"type": "table", "title": "Nothing", "targets": [{"expr": "absent"}]}]}]}`

func TestPictureHasThePanelsWithTheirData(t *testing.T) {
	d, err := prometheus.ParseDashboard([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	from := time.Unix(1000, 0)
	picture := string(draw(d.Record(from, from.Add(time.Minute), func(expr string) []prometheus.Series {
		switch expr {
		case "absent":
			return nil
		case "versions": // the first one is that before an update
			return []prometheus.Series{
				{Labels: map[string]string{"shard": "0", "version": "1.6.38"}, Points: []prometheus.Point{{At: from, Value: 1}}},
				{Labels: map[string]string{"shard": "0", "version": "1.6.45"}, Points: []prometheus.Point{{At: from.Add(time.Minute), Value: 1}}},
			}
		}
		return []prometheus.Series{{Labels: map[string]string{"shard": "2"}, Points: []prometheus.Point{{At: from, Value: 1}, {At: from.Add(time.Second), Value: 0.25}, {At: from, Value: math.NaN()}}}}
	})))
	for _, want := range []string{"A &amp; B", "Glance", "25%", "shard 2", "M52.0 32.0L57.3 96.5", ">version<", ">1.6.45<", ">value<", ">none<", "More", "prefers-color-scheme: dark"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %q:\n%s", want, picture)
		}
	}
	for _, other := range []string{"1.6.38", "Nothing", "No data"} {
		if strings.Contains(picture, other) {
			t.Errorf("the picture has %q:\n%s", other, picture)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(d.AllPanels()); n != 5 {
		t.Errorf("it has %d panels, not 5", n)
	}
}

// titles are those of the rows and of the panels in a picture.
var titles = regexp.MustCompile(`<text class="(?:row|name)" x="[\d.]+" y="[\d.]+">([^<]*)<`)

func TestPicturesShowTheDashboards(t *testing.T) {
	for _, name := range []string{"memcached", "fleet"} {
		content, err := os.ReadFile("../../config/monitoring/memcached-" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		d, err := prometheus.ParseDashboard(content)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, p := range d.Panels {
			want = append(want, p.Title)
		}
		picture, err := os.ReadFile("../../docs/dashboard-" + name + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range titles.FindAllSubmatch(picture, -1) {
			got = append(got, html.UnescapeString(string(match[1])))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the picture of the dashboard %s has the titles\n%q, want\n%q: run make dashboards", name, got, want)
		}
	}
}

func TestParseRejectsWhatHasNoPanels(t *testing.T) {
	if _, err := prometheus.ParseDashboard([]byte(`{"title": "empty"}`)); err == nil {
		t.Error("a dashboard without panels is accepted")
	}
}
