package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// MaxRevision is the size, in bytes, of the largest pod configuration. Each shard has several
// copies of it, in the API server and in the operator's memory.
const MaxRevision = 16 << 10

// MaxSpec is the size, in bytes as JSON, of the largest spec. The operator's cache has those of all namespaces.
const MaxSpec = 2 * MaxRevision

// ReducedSpec is the annotation of a Memcached whose spec is reduced. The API server accepts no such name.
const ReducedSpec = "cache.memcached-operator.io/spec is too large"

// ReduceSpec removes from a spec that is larger than MaxSpec the fields that the CRD doesn't bound.
func ReduceSpec(m *v1beta1.Memcached) {
	text, err := json.Marshal(&m.Spec)
	if err == nil && len(text) <= MaxSpec {
		return
	}
	s := &m.Spec
	s.Pod.ImagePullSecrets, s.Pod.Scheduling, s.Pod.Metadata, s.Pod.SecurityContext = nil, v1beta1.Scheduling{}, v1beta1.Metadata{}, v1beta1.SecurityContext{}
	s.Access.NetworkPolicy.AllowedClients, s.Access.NetworkPolicy.AllowedScrapers, s.Access.ServiceMetadata = nil, nil, v1beta1.Metadata{}
	s.Access.External.Annotations = nil
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, ReducedSpec, "")
}

// IsReduced reports whether ReduceSpec removed fields, so that nothing may be decided by what is left.
func IsReduced(m *v1beta1.Memcached) bool { return metav1.HasAnnotation(m.ObjectMeta, ReducedSpec) }

// MaxDiscoveryList is more than the size, in bytes, of the largest list of shards that a pod can have. With the largest
// pod configuration, the operator's cache still stores the ReplicaSet.
const MaxDiscoveryList = 32 << 10

// MaxClusterDomain is the length of the longest domain of a cluster.
const MaxClusterDomain = 64

// PodRevision is the configuration of a pod. A shard's template and its pod each carry one, so
// that it can be compared with the spec and rolled back to.
type PodRevision struct {
	// Spec has only the fields that concern a pod; its image is the complete reference.
	Spec v1beta1.MemcachedSpec
	// Image of Spec.
	Image Image
	// Arguments of memcached. ArgumentsText is the same as the JSON array that the agent reads.
	Arguments     []string
	ArgumentsText string
	// Resources of the memcached container, with defaults.
	Resources corev1.ResourceRequirements
	// Volume is the size of the memory volume.
	Volume resource.Quantity
	// text is the spec as JSON, and hash that of the text.
	text, hash string
}

// NewPodRevision returns the revision of a pod that runs image with the configuration of spec.
func NewPodRevision(spec *v1beta1.MemcachedSpec, image Image) PodRevision {
	spec = spec.DeepCopy()
	r := PodRevision{Image: image, Spec: v1beta1.MemcachedSpec{
		Memory: spec.Memory, Resources: spec.Resources, Config: spec.Config, Pod: spec.Pod, TLS: spec.TLS, Auth: spec.Auth,
	}}
	r.Spec.Pod.Image = image.Reference
	r.text = mustMarshal(r.Spec)
	r.derive()
	return r
}

// ParsePodRevision parses what String returned.
func ParsePodRevision(text string) (PodRevision, error) {
	r := PodRevision{text: text}
	if err := json.Unmarshal([]byte(text), &r.Spec); err != nil {
		return PodRevision{}, fmt.Errorf("parsing a pod revision: %w", err)
	}
	if s := r.Spec; s.Memory == nil || s.Config.MaxItemSize == nil || s.Config.MaxConnections == nil || s.Config.Threads == nil || s.Pod.Image == "" {
		return PodRevision{}, errors.New("parsing a pod revision: it is incomplete")
	}
	r.derive()
	return r.Parsed(), nil
}

// Parsed returns what ParsePodRevision returns for String, without parsing.
func (r PodRevision) Parsed() PodRevision {
	r.Image = Image{Reference: r.Spec.Pod.Image, Version: versionOf(r.Spec.Pod.Image)}
	return r
}

// String returns the revision as JSON.
func (r PodRevision) String() string { return r.text }

// Hash identifies the revision.
func (r PodRevision) Hash() string { return r.hash }

// derive sets what follows from the spec and its text.
func (r *PodRevision) derive() {
	sum := sha256.Sum256([]byte(r.text))
	r.hash = hex.EncodeToString(sum[:8])
	r.Arguments = argumentsOf(&r.Spec)
	r.ArgumentsText = mustMarshal(r.Arguments)
	r.Resources = resourcesOf(&r.Spec)
	r.Volume = volumeSize(&r.Spec)
}

// argumentsOf returns memcached's arguments for a spec. The agent adds those of the restartable
// cache, whose path only it knows. UDP is off: it has been used to amplify attacks.
func argumentsOf(spec *v1beta1.MemcachedSpec) []string {
	return slices.Concat([]string{
		"-p", strconv.Itoa(agentwire.MemcachedPort),
		"-U", "0",
		"-m", strconv.FormatInt(megabytes(spec)+slabPages(spec), 10),
		"-c", strconv.Itoa(int(*spec.Config.MaxConnections)),
		"-t", strconv.Itoa(int(*spec.Config.Threads)),
		"-I", strconv.FormatInt(spec.Config.MaxItemSize.Value(), 10),
	}, spec.Config.ExtraArgs, tlsArguments(spec.TLS), authArguments(spec.Auth))
}

// resourcesOf returns the resources of the memcached container: those of the spec and, by default,
// enough memory for a full cache as limit and request, and no CPU limit.
func resourcesOf(spec *v1beta1.MemcachedSpec) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{}
	if spec.Resources != nil {
		own := spec.Resources.DeepCopy()
		r.Limits, r.Requests = own.Limits, own.Requests
	}
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	if _, ok := r.Limits[corev1.ResourceMemory]; !ok {
		limit := MemoryLimit(spec)
		if request, ok := r.Requests[corev1.ResourceMemory]; ok && request.Cmp(limit) > 0 {
			limit = request
		}
		r.Limits[corev1.ResourceMemory] = limit
	}
	if _, ok := r.Requests[corev1.ResourceMemory]; !ok {
		r.Requests[corev1.ResourceMemory] = r.Limits[corev1.ResourceMemory]
	}
	if _, ok := r.Requests[corev1.ResourceCPU]; !ok {
		r.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
		if limit, limited := r.Limits[corev1.ResourceCPU]; limited { // the API server's default
			r.Requests[corev1.ResourceCPU] = limit
		}
	}
	return r
}

const mebibyte = 1 << 20

// megabytes returns the spec's memory in whole mebibytes.
func megabytes(spec *v1beta1.MemcachedSpec) int64 {
	return spec.Memory.Value() / mebibyte
}

// slabPages returns how many mebibytes memcached assigns to its chunk sizes before it stores an item.
// A restartable memcached does so when it starts, so they would be missing for items of other sizes.
// Options that change the number also change the geometry of the memory, which requires a new pod.
func slabPages(spec *v1beta1.MemcachedSpec) int64 {
	words := slices.Concat([]string{"-I", strconv.FormatInt(spec.Config.MaxItemSize.Value(), 10)}, spec.Config.ExtraArgs)
	return int64(slab.Of(words, versionOf(spec.Pod.Image)).Classes())
}

// MemoryLimit returns the smallest memory limit, in bytes, with which the kernel doesn't kill a full
// memcached whose clients read their answers: items and hash table, the pages of all chunk sizes (63Mi at most), threads and agent, and
// what each connection costs. docs/bench-memory.md and, for TLS, docs/tls.md have measurements. The items are in a memory volume,
// which counts towards the limit. The CRD's rule for resources.limits.memory has the same formula.
func MemoryLimit(spec *v1beta1.MemcachedSpec) resource.Quantity {
	items := megabytes(spec) * mebibyte
	return *resource.NewQuantity(items/100*110+80*mebibyte+(8192+tlsConnection(spec.TLS))*int64(*spec.Config.MaxConnections), resource.BinarySI)
}

// volumeSlack is space in the memory volume for more than the items: memcached's metadata file, the
// agent's record of the last stop, and the file system's own blocks. In a volume smaller than its
// memory, memcached is killed by SIGBUS once the volume is full.
const volumeSlack = 16 * mebibyte

// volumeSize returns the size of the memory volume, in bytes.
func volumeSize(spec *v1beta1.MemcachedSpec) resource.Quantity {
	return *resource.NewQuantity((megabytes(spec)+slabPages(spec))*mebibyte+volumeSlack, resource.BinarySI)
}

// mustMarshal returns a value that was decoded from JSON, or is made of strings, as JSON.
func mustMarshal(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
