package screen

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

var update = flag.Bool("update", false, "write the golden files")

// screens are all screens of one Memcached.
var screens = map[string]func(Input) interface{ Text() string }{
	"status": func(in Input) interface{ Text() string } { return NewStatus(in) },
	"why":    func(in Input) interface{ Text() string } { return NewWhy(in) },
}

func inputs(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no inputs", err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".in.yaml")] = text
	}
	return all
}

func TestScreens(t *testing.T) {
	for name, text := range inputs(t) {
		var in Input
		if err := yaml.Unmarshal(text, &in); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for screen, of := range screens {
			path := filepath.Join("testdata", name+"."+screen+".txt")
			got := of(in).Text()
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: go test . -update writes what differs (- want, + got):\n%s", path, diff)
			}
		}
	}
}

// TestScreensDoWithoutAnyField removes each field of each input, one at a time, as a release that doesn't have it.
func TestScreensDoWithoutAnyField(t *testing.T) {
	for name, text := range inputs(t) {
		var document any
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		removed := 0
		without(document, func(field string) {
			removed++
			raw, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			var in Input
			if err := json.Unmarshal(raw, &in); err != nil {
				t.Fatal(err)
			}
			if in.Memcached == nil {
				return // what isn't found isn't shown
			}
			for screen, of := range screens {
				func() {
					defer func() {
						if r := recover(); r != nil {
							t.Errorf("%s without %s of %s: %v", screen, field, name, r)
						}
					}()
					if s := of(in); strings.Contains(s.Text(), "%!") {
						t.Errorf("%s without %s of %s:\n%s", screen, field, name, s.Text())
					}
				}()
			}
		})
		if removed < 5 {
			t.Errorf("%s: only %d fields were removed", name, removed)
		}
	}
}

// without calls f while each field is removed, one at a time.
func without(value any, f func(field string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			delete(value, key)
			f(key)
			value[key] = field
			without(field, f)
		}
	case []any:
		for _, element := range value {
			without(element, f)
		}
	}
}

func TestState(t *testing.T) {
	condition := func(kind, status string) string { return `{"type":"` + kind + `","status":"` + status + `"}` }
	for name, c := range map[string]struct {
		conditions []string
		generation int64
		want       State
	}{
		"ready":                           {[]string{condition("Ready", "True")}, 1, Ready},
		"the spec has changed since":      {[]string{condition("Ready", "True")}, 2, NotReady},
		"it becomes ready":                {[]string{condition("Ready", "False"), condition("Reconciling", "True")}, 1, NotReady},
		"it needs manual intervention":    {[]string{condition("Ready", "False"), condition("Stalled", "True")}, 1, NeedsIntervention},
		"a release without Stalled":       {[]string{condition("Degraded", "True")}, 1, NeedsIntervention},
		"the operator hasn't reported it": {nil, 1, NotReady},
	} {
		var m v1beta1.Memcached
		if err := json.Unmarshal([]byte(`{"status":{"observedGeneration":1,"conditions":[`+strings.Join(c.conditions, ",")+`]}}`), &m); err != nil {
			t.Fatal(err)
		}
		m.Generation = c.generation
		if got := stateOf(&m); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestListNamesNamespacesOnlyOfSeveral(t *testing.T) {
	var m v1beta1.Memcached
	m.Name, m.Namespace = "cache", "shop"
	m.Status.ObservedGeneration, m.Status.Phase, m.Status.Version = 1, v1beta1.PhaseRunning, "1.6.45"
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for namespaces, want := range map[bool]string{
		false: "NAME   VERSION  SHARDS  READY  UPDATED  AGE  STATUS\ncache  1.6.45   0       0      0        -    Running\n",
		true:  "NAMESPACE  NAME   VERSION  SHARDS  READY  UPDATED  AGE  STATUS\nshop       cache  1.6.45   0       0      0        -    Running\n",
	} {
		if diff := cmp.Diff(want, NewList([]v1beta1.Memcached{m}, namespaces, now).Text()); diff != "" {
			t.Error(diff)
		}
	}
	if got := NewList(nil, true, now).Text(); got != "There is no Memcached.\n" {
		t.Errorf("got %q", got)
	}
}

func TestEveryGateSaysWhatToDo(t *testing.T) {
	for _, g := range v1beta1.Gates {
		if actions()[string(g)] == "" {
			t.Errorf("%s: make docs writes what to do about it", g)
		}
	}
}
