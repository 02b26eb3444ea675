package schemaedit

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// BenchmarkAdmit is of a spec with one field, and of one that was edited 300 times.
func BenchmarkAdmit(b *testing.B) {
	s := load(b, "memcacheds")
	small, err := s.Admit(b.Context(), named(b, s, "cache", "spec: {size: 3}"), nil)
	if err != nil {
		b.Fatal(err)
	}
	large := small
	wander(b, s, seeded(s, 1), 300, func(edited, old *unstructured.Unstructured, _ string) {
		if old != nil {
			large = old
		}
	})
	for name, old := range map[string]*unstructured.Unstructured{"small": small, "large": large} {
		edited := old.DeepCopy()
		edited.Object["spec"].(map[string]any)["threads"] = int64(7)
		b.Run(name+"/create", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Admit(b.Context(), edited, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/update", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Admit(b.Context(), edited, old); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNext is of the first 100 edits of a Memcached, as a simulation makes them.
func BenchmarkNext(b *testing.B) {
	s := load(b, "memcacheds")
	seed, n := uint64(0), 0
	var edits *Edits
	spec := map[string]any{}
	for b.Loop() {
		if n%100 == 0 {
			edits, spec = seeded(s, seed), map[string]any{}
			seed++
		}
		n++
		next, _ := edits.Next(spec)
		if admitted, err := s.Admit(b.Context(), object(s, next), object(s, spec)); err == nil {
			spec = admitted.Object["spec"].(map[string]any)
		}
	}
}
