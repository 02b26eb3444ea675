package resources

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func hashOf(m *v1beta1.Memcached, image Image) string {
	return NewPodRevision(&m.Spec, image).Hash()
}

func TestPodRevisionRoundTrips(t *testing.T) {
	m := memcached(3, func(s *v1beta1.MemcachedSpec) { s.Config.ExtraArgs = []string{"-o", "hash_algorithm=murmur3"} })
	want := NewPodRevision(&m.Spec, Image{Reference: "example.com:5000/mc:1.6.38-alpine", Version: "1.6.38"})
	got, err := ParsePodRevision(want.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want.Parsed(), cmp.AllowUnexported(PodRevision{})); diff != "" {
		t.Errorf("Parsed differs from what is parsed (-parsed +Parsed):\n%s", diff)
	}
	if again := NewPodRevision(&got.Spec, got.Image); got.Hash() != want.Hash() || again.Hash() != want.Hash() || got.Image != want.Image {
		t.Errorf("parsed %+v, want %+v, created again %+v", got, want, again)
	}
	for _, bad := range []string{"", "{", "{}", `{"memory":"64Mi"}`} {
		if _, err := ParsePodRevision(bad); err == nil {
			t.Errorf("%q is parsed", bad)
		}
	}
}

// A pod must not be replaced for a configuration that it doesn't have.
func TestIncompletePodRevisionIsNotParsed(t *testing.T) {
	m := memcached(1, nil)
	complete := map[string]any{}
	if err := json.Unmarshal([]byte(NewPodRevision(&m.Spec, Image{Reference: fallback}).String()), &complete); err != nil {
		t.Fatal(err)
	}
	parse := func(fields map[string]any) error {
		_, err := ParsePodRevision(mustMarshal(fields))
		return err
	}
	for _, path := range [][]string{{"memory"}, {"config", "maxItemSize"}, {"config", "maxConnections"}, {"config", "threads"}, {"pod", "image"}} {
		less := runtime.DeepCopyJSON(complete)
		if _, ok, _ := unstructured.NestedFieldNoCopy(less, path...); !ok {
			t.Errorf("%s is not part of a pod revision", path)
		}
		unstructured.RemoveNestedField(less, path...)
		if parse(less) == nil {
			t.Errorf("it is parsed without %s", path)
		}
	}
	if err := parse(complete); err != nil {
		t.Error(err)
	}
	complete["resources"] = map[string]any{"limits": map[string]any{"cpu": "1e1.5"}}
	if parse(complete) == nil {
		t.Error("it is parsed with unreadable resources")
	}
}

// A field that doesn't concern a pod must not make the shards outdated, and one that does must.
// A new field of the API belongs to one of the two lists.
func TestPodRevisionHasTheFieldsThatConcernAPod(t *testing.T) {
	concerns := []string{"Memory", "Resources", "Config", "Pod", "TLS", "Auth"}
	others := []string{"Size", "Access", "Scaling", "UpdateStrategy", "Backup", "Monitoring", "DeletionPolicy", "Paused", "Version"} // the last is in the resolved image
	image := Image{Reference: fallback, Version: "1.6.45"}
	base := hashOf(memcached(3, nil), image)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[v1beta1.MemcachedSpec]()) {
		m := memcached(3, nil)
		fill(reflect.ValueOf(&m.Spec).Elem().FieldByIndex(field.Index))
		changed := hashOf(m, image) != base
		if changed != slices.Contains(concerns, field.Name) || changed == slices.Contains(others, field.Name) {
			t.Errorf("%s changes the revision: %t", field.Name, changed)
		}
	}
	if hashOf(memcached(3, nil), Image{Reference: "x"}) == base {
		t.Error("another image doesn't change the revision")
	}
}

// fill sets a value to one that differs from the default.
func fill(v reflect.Value) {
	if q, ok := v.Addr().Interface().(*resource.Quantity); ok {
		*q = resource.MustParse("7Gi")
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), value)
	case reflect.String:
		v.SetString("x")
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(v.Kind())
	}
}
