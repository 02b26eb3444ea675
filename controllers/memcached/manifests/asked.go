package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Asked is what a spec asks of a pod. A shard's template and its pod each bear
// theirs, so that it is known what separates them from the spec of today, and
// what to go back to.
type Asked struct {
	// Spec without what does not concern a pod; its image is the whole reference.
	Spec v1alpha1.MemcachedSpec
	// Image that Spec names.
	Image Image
	text  string
}

// Ask returns what a spec asks of a pod that runs an image.
func Ask(spec *v1alpha1.MemcachedSpec, image Image) Asked {
	a := Asked{Spec: *spec.DeepCopy(), Image: image}
	a.Spec.Size, a.Spec.Paused, a.Spec.UpdateStrategy = nil, false, nil
	a.Spec.Hashing, a.Spec.Bootstrap, a.Spec.Backup, a.Spec.DeletionPolicy, a.Spec.Rewarm = nil, nil, nil, "", nil
	a.Spec.Version, a.Spec.Image = "", image.Reference
	text, err := json.Marshal(a.Spec)
	if err != nil { // a spec came as JSON, so it can be written as JSON
		panic(err)
	}
	a.text = string(text)
	return a
}

// ReadAsked reads what String returned, perhaps that of another release of the
// operator.
func ReadAsked(text string) (Asked, error) {
	a := Asked{text: text}
	if err := json.Unmarshal([]byte(text), &a.Spec); err != nil {
		return Asked{}, fmt.Errorf("reading what was asked of a pod: %w", err)
	}
	if a.Spec.Unreadable != "" {
		return Asked{}, fmt.Errorf("reading what was asked of a pod: %s", a.Spec.Unreadable)
	}
	if s := a.Spec; s.Memory == nil || s.MaxItemSize == nil || s.Connections == nil || s.Threads == nil || s.Image == "" {
		return Asked{}, errors.New("what was asked of a pod is not whole")
	}
	a.Image = Image{Reference: a.Spec.Image, Version: versionOf(a.Spec.Image)}
	return a, nil
}

// String returns it as JSON, for an annotation.
func (a Asked) String() string { return a.text }

// Revision returns a hash of it.
func (a Asked) Revision() string {
	sum := sha256.Sum256([]byte(a.text))
	return hex.EncodeToString(sum[:8])
}

// Arguments returns memcached's argument words, and the same as the JSON array
// that the agent reads.
func (a Asked) Arguments() (words []string, text string) {
	words = Arguments(&a.Spec)
	raw, err := json.Marshal(words)
	if err != nil { // strings can be written as JSON
		panic(err)
	}
	return words, string(raw)
}

// ownWords is how many words come before those of extraArgs in Arguments.
const ownWords = 12

// AskedOfOlder returns what was asked of a pod that a release before 1.2 made, which
// tells its image and its arguments only. The rest is taken from like.
func AskedOfOlder(pod *corev1.Pod, like Asked) Asked {
	spec := like.Spec.DeepCopy()
	image := like.Image
	for _, c := range pod.Spec.Containers {
		if c.Name == Container {
			image = Image{Reference: c.Image, Version: versionOf(c.Image)}
		}
	}
	var words []string
	if json.Unmarshal([]byte(pod.Annotations[v1alpha1.AnnotationArguments]), &words) == nil && len(words) >= ownWords {
		number := func(i int) int64 {
			n, _ := strconv.ParseInt(words[i], 10, 64) // the operator wrote it
			return n
		}
		spec.Memory = resource.NewQuantity(number(5)*mebibyte, resource.BinarySI)
		spec.Connections, spec.Threads = ptr.To(int32(number(7))), ptr.To(int32(number(9))) //nolint:gosec // bounded by the CRD
		spec.MaxItemSize = resource.NewQuantity(number(11), resource.BinarySI)
		if spec.ExtraArgs = nil; len(words) > ownWords {
			spec.ExtraArgs = words[ownWords:]
		}
	}
	return Ask(spec, image)
}
