package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

func TestTheAPIServerRefusesWhatCannotWorkAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	quantity := func(text string) *resource.Quantity { return new(resource.MustParse(text)) }
	for _, bad := range []struct {
		what     string
		name     string
		spec     v1alpha1.MemcachedSpec
		sentence string
	}{
		{"a negative size", "cache", v1alpha1.MemcachedSpec{Size: new(int32(-1))},
			"spec.size in body should be greater than or equal to 0"},
		{"a huge size", "cache", v1alpha1.MemcachedSpec{Size: new(int32(1001))},
			"spec.size in body should be less than or equal to 1000"},
		{"a malformed version", "cache", v1alpha1.MemcachedSpec{Version: "latest"},
			"version must be three numbers such as 1.6.45"},
		{"an image that is none", "cache", v1alpha1.MemcachedSpec{Image: "memcached 1.6"},
			"image must be an image reference such as"},
		{"a name that starts with a digit", "1cache", v1alpha1.MemcachedSpec{},
			"start with a letter"},
		{"a name with a dot", "my.cache", v1alpha1.MemcachedSpec{},
			"it must consist of lower case letters, digits and '-'"},
		{"a name that is too long", strings.Repeat("c", 53), v1alpha1.MemcachedSpec{},
			"the name must have at most 52 characters"},
		{"an argument that the operator owns", "cache", v1alpha1.MemcachedSpec{ExtraArgs: []string{"-m", "64"}},
			"extraArgs must not hold what the operator sets itself: use spec.memory"},
		{"an argument that the operator owns, in words", "cache", v1alpha1.MemcachedSpec{ExtraArgs: []string{"--port=11212"}},
			"extraArgs must not hold what the operator sets itself"},
		{"an argument that nobody knows", "cache", v1alpha1.MemcachedSpec{ExtraArgs: []string{"--make-it-fast"}},
			"extraArgs holds an option that is not known"},
		{"an argument that is a value", "cache", v1alpha1.MemcachedSpec{ExtraArgs: []string{"64"}},
			"extraArgs must begin with an option such as -v"},
		{"an argument of several words", "cache", v1alpha1.MemcachedSpec{ExtraArgs: []string{"-v -v"}},
			"an extraArgs item is one word"},
		{"external storage", "cache", v1alpha1.MemcachedSpec{ExtraArgs: []string{"-o", "ext_path=/tmp/f:1G"}},
			"extraArgs must not ask for external storage"},
		{"a memory limit below what the cache takes", "cache", v1alpha1.MemcachedSpec{Memory: quantity("64Mi"), Resources: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}}},
			"resources.limits.memory is too small for the cache"},
		{"too little memory", "cache", v1alpha1.MemcachedSpec{Memory: quantity("32Mi")},
			"memory must be at least 64Mi"},
		{"items larger than half of the memory", "cache", v1alpha1.MemcachedSpec{Memory: quantity("64Mi"), MaxItemSize: quantity("33Mi")},
			"maxItemSize must be at most half of memory"},
		{"items of no whole number of chunks", "cache", v1alpha1.MemcachedSpec{MaxItemSize: quantity("1M")},
			"maxItemSize must be a multiple of 512Ki"},
		{"too few connections", "cache", v1alpha1.MemcachedSpec{Connections: new(int32(10))},
			"spec.connections in body should be greater than or equal to 256"},
		{"labels that are the operator's", "cache", v1alpha1.MemcachedSpec{PodLabels: map[string]string{v1alpha1.LabelShard: "7"}},
			"podLabels must not hold labels of"},
	} {
		t.Run(bad.what, func(t *testing.T) {
			m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: bad.name}, Spec: bad.spec}
			err := k.Create(s.ctx, m, client.DryRunAll)
			if err == nil {
				t.Fatal("it is not refused")
			}
			if !strings.Contains(err.Error(), bad.sentence) {
				t.Errorf("the answer does not say %q: %v", bad.sentence, err)
			}
		})
	}
}
