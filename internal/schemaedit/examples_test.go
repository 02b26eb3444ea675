package schemaedit

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var example = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The API server would accept the custom resources of all documents, with its CEL rules and
// without dropping a field.
func TestExamplesOfTheDocumentsAreValid(t *testing.T) {
	root := os.DirFS("../..")
	documents := []string{"README.md"}
	err := fs.WalkDir(root, "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			documents = append(documents, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for _, document := range documents {
		text, err := fs.ReadFile(root, document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range example.FindAllStringSubmatch(string(text), -1) {
			for part := range strings.SplitSeq(match[1], "---\n") {
				object := &unstructured.Unstructured{Object: parse(t, part)}
				if object.GroupVersionKind().Group != "cache.memcached-operator.io" {
					continue
				}
				checked[object.GetKind()]++
				object.SetNamespace("default")
				admitted, err := load(t, strings.ToLower(object.GetKind())+"s").Admit(t.Context(), object, nil)
				if err != nil {
					t.Errorf("%s: %v in\n%s", document, err, part)
					continue
				}
				if diff := cmp.Diff(object.Object["spec"], withoutDefaults(object.Object["spec"], admitted.Object["spec"])); diff != "" {
					t.Errorf("%s has unknown fields (-example +admitted):\n%s", document, diff)
				}
			}
		}
	}
	for kind, atLeast := range map[string]int{"Memcached": 5, "MemcachedBackup": 2, "MemcachedScheduledBackup": 1, "MemcachedRestore": 2} {
		if checked[kind] < atLeast {
			t.Errorf("%d examples of %s were found, want at least %d", checked[kind], kind, atLeast)
		}
	}
}
