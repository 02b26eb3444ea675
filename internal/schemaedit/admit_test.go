package schemaedit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestAdmitSortsCausesByField(t *testing.T) {
	s := load(t, "memcacheds")
	_, err := s.Admit(t.Context(), named(t, s, "cache", `spec: {config: {threads: 0, maxConnections: 1}, size: -1, updateStrategy: {minPeriodSeconds: -1}, pod: {imagePullPolicy: Sometimes}, deletionPolicy: Keep}`), nil)
	var fields []string
	for _, cause := range causes(err) {
		field, _, _ := strings.Cut(cause, ": ")
		fields = append(fields, field)
	}
	want := []string{"<nil>", "spec.config.maxConnections", "spec.config.threads", "spec.deletionPolicy", "spec.pod.imagePullPolicy", "spec.size", "spec.updateStrategy.minPeriodSeconds"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestAdmitAcceptsUnchangedErrors(t *testing.T) {
	s := load(t, "memcacheds")
	old := named(t, s, "cache", `spec: {size: 1, config: {threads: 65, maxItemSize: 1Mi, maxConnections: 1024}, version: v1, memory: 64Mi, deletionPolicy: Delete}`)
	if _, err := s.Admit(t.Context(), named(t, s, "cache", `spec: {size: 2, config: {threads: 65}, version: v1}`), old); err != nil {
		t.Errorf("another size is rejected: %v", err)
	}
	for _, text := range []string{`spec: {config: {threads: 66}, version: v1}`, `spec: {config: {threads: 65}, version: v2}`} {
		if _, err := s.Admit(t.Context(), named(t, s, "cache", text), old); !apierrors.IsInvalid(err) {
			t.Errorf("%s: error %v, want an Invalid one", text, err)
		}
	}
}

func TestAdmitRejectsAnotherKind(t *testing.T) {
	backups := load(t, "memcachedbackups")
	_, err := load(t, "memcacheds").Admit(t.Context(), named(t, backups, "cache", "spec: {}"), nil)
	if !apierrors.IsBadRequest(err) {
		t.Errorf("error %v, want a bad request", err)
	}
}

func TestLoadReportsErrorsOfTheFile(t *testing.T) {
	for reason, c := range map[string]struct{ text, says string }{
		"no file":           {"", "reading the CustomResourceDefinition"},
		"no definition":     {"kind: 1", "reading the CustomResourceDefinition in"},
		"no stored version": {"spec: {versions: [{name: v1, served: true, storage: false}]}", "stores no version"},
		"no schema":         {"{metadata: {name: things}, spec: {versions: [{name: v1, served: true, storage: true}]}}", "schema v1 of things is missing"},
		"no spec":           {"{metadata: {name: things}, spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}", "has no spec"},
	} {
		t.Run(reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "crd.yaml")
			if c.text != "" {
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Load(file); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
}
