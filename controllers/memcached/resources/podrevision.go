package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// PodRevision is the configuration of a pod. A shard's template and its pod each carry one, so
// that it can be compared with the spec and rolled back to.
type PodRevision struct {
	// Spec has only the fields that concern a pod; its image is the complete reference.
	Spec v1alpha1.MemcachedSpec
	// Image of Spec.
	Image Image
	// text is the spec as JSON, and hash that of the text.
	text, hash string
}

// NewPodRevision returns the revision of a pod that runs image with the configuration of spec.
func NewPodRevision(spec *v1alpha1.MemcachedSpec, image Image) PodRevision {
	spec = spec.DeepCopy()
	r := PodRevision{Image: image, Spec: v1alpha1.MemcachedSpec{
		Image:            image.Reference,
		ImagePullPolicy:  spec.ImagePullPolicy,
		ImagePullSecrets: spec.ImagePullSecrets,
		Memory:           spec.Memory,
		MaxConnections:   spec.MaxConnections,
		Threads:          spec.Threads,
		MaxItemSize:      spec.MaxItemSize,
		ExtraArgs:        spec.ExtraArgs,
		Resources:        spec.Resources,
		Scheduling:       spec.Scheduling,
		PodMetadata:      spec.PodMetadata,
	}}
	r.text = mustMarshal(r.Spec)
	r.hash = hashOfText(r.text)
	return r
}

// ParsePodRevision parses what String returned.
func ParsePodRevision(text string) (PodRevision, error) {
	r := PodRevision{text: text, hash: hashOfText(text)}
	if err := json.Unmarshal([]byte(text), &r.Spec); err != nil {
		return PodRevision{}, fmt.Errorf("parsing a pod revision: %w", err)
	}
	if s := r.Spec; s.Memory == nil || s.MaxItemSize == nil || s.MaxConnections == nil || s.Threads == nil || s.Image == "" {
		return PodRevision{}, errors.New("parsing a pod revision: it is incomplete")
	}
	r.Image = Image{Reference: r.Spec.Image, Version: versionOf(r.Spec.Image)}
	return r, nil
}

// String returns the revision as JSON.
func (r PodRevision) String() string { return r.text }

// Hash identifies the revision.
func (r PodRevision) Hash() string { return r.hash }

func hashOfText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Arguments returns memcached's arguments, and the same as the JSON array that the agent reads.
func (r PodRevision) Arguments() (words []string, text string) {
	words = Arguments(&r.Spec)
	return words, mustMarshal(words)
}

// mustMarshal returns a value that was decoded from JSON, or is made of strings, as JSON.
func mustMarshal(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
