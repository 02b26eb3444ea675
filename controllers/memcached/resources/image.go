package resources

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// Image is an image of memcached.
type Image struct {
	// Reference is what the container runtime pulls.
	Reference string
	// Version that the image should contain; empty if the reference doesn't say.
	Version string
}

// ContainerOf returns the memcached container in a pod's spec, where admission may have added others and changed the image and the
// resources; empty if there is none.
func ContainerOf(pod *corev1.Pod) corev1.Container {
	for _, c := range pod.Spec.Containers {
		if c.Name == Container {
			return c
		}
	}
	return corev1.Container{}
}

// ImageOf returns the image of a pod's memcached container.
func ImageOf(pod *corev1.Pod) string { return ContainerOf(pod).Image }

var (
	// versionPrefix matches a version at the start of a tag such as 1.6.45-alpine.
	versionPrefix = regexp.MustCompile(`^([0-9]+\.[0-9]+\.[0-9]+)([-_+].*)?$`)
	tagForm       = regexp.MustCompile(`^[A-Za-z0-9_][-.A-Za-z0-9_]{0,127}$`)
	digestForm    = regexp.MustCompile(`^[a-z0-9]+:[0-9a-f]{32,}$`)
)

// ResolveImage returns the image of a spec with these fields, which may be empty. fallback is the
// operator's default image, whose tag is the default version. Its digest is of that image only.
func ResolveImage(image, version, fallback string) (Image, error) {
	repository, tag, _, err := splitReference(fallback)
	if err != nil {
		return Image{}, fmt.Errorf("the operator's default image: %w", err)
	}
	if image == "" && version == "" {
		return Image{Reference: fallback, Version: tag}, nil
	}
	if version == "" {
		version = tag
	}
	if image == "" {
		return Image{Reference: repository + ":" + version, Version: version}, nil
	}
	_, tag, digest, err := splitReference(image)
	if err != nil {
		return Image{}, err
	}
	switch {
	case tag == "" && digest == "":
		return Image{Reference: image + ":" + version, Version: version}, nil
	default:
		return Image{Reference: image, Version: versionOf(image)}, nil
	}
}

// DependsOnDefault reports whether the operator's default image decides the repository or the
// version of a spec with these fields, which may be empty.
func DependsOnDefault(image, version string) bool {
	if image == "" {
		return true
	}
	_, tag, digest, err := splitReference(image)
	return version == "" && tag == "" && digest == "" && err == nil
}

// versionOf returns the version in an image's tag; empty if there is none.
func versionOf(image string) string {
	_, tag, _, err := splitReference(image)
	if found := versionPrefix.FindStringSubmatch(tag); err == nil && found != nil {
		return found[1]
	}
	return ""
}

// splitReference splits an image reference. A colon before the last slash precedes a port, not a
// tag.
func splitReference(ref string) (repository, tag, digest string, err error) {
	rest, digest, hasDigest := strings.Cut(ref, "@")
	if hasDigest && !digestForm.MatchString(digest) {
		return "", "", "", fmt.Errorf("image %q: the part after @ is not a digest such as sha256:0123…", ref)
	}
	repository = rest
	if i := strings.LastIndex(rest, ":"); i > strings.LastIndex(rest, "/") {
		repository, tag = rest[:i], rest[i+1:]
		if !tagForm.MatchString(tag) {
			return "", "", "", fmt.Errorf("image %q: %q is not a valid tag", ref, tag)
		}
	}
	_, path, hasSlash := strings.Cut(repository, "/")
	if !hasSlash {
		path = repository
	}
	if path == "" || path != strings.ToLower(path) || strings.Contains(repository, "//") || strings.HasSuffix(repository, "/") {
		return "", "", "", fmt.Errorf("image %q is not an image reference such as registry.example.com/memcached:1.6.45", ref)
	}
	return repository, tag, digest, nil
}

// UnsupportedVersion returns why a version of memcached isn't supported, and what to do; empty if it
// is. Versions newer than the operator are supported.
func UnsupportedVersion(version string, tls v1beta1.TLSSpec, auth v1beta1.AuthSpec) string {
	// "ms" of 1.6.9 has the size in a flag: it would execute the values of a restore, or of items that move, as commands.
	switch {
	case version == "":
		return ""
	case slab.IsBefore(version, 1, 6, 10):
		return fmt.Sprintf("version %s isn't supported: it stores items by another syntax than 1.6.10, and 1.6.2 and older crash on requests (CVE-2020-10931, CVE-2020-22570). Use 1.6.10 or newer", version)
	case auth.IsRequired() && slab.IsBefore(version, 1, 6, 44):
		return fmt.Sprintf("version %s isn't supported with spec.auth: clients can crash it without logging in, or bypass the login (fixed in 1.6.42 to 1.6.44). Use 1.6.44 or newer", version)
	case tls.IsEnabled() && slab.IsBefore(version, 1, 6, 39):
		return fmt.Sprintf("version %s isn't supported with spec.tls: it can wait for more data although it has received a pipelined request. Use 1.6.39 or newer", version)
	}
	return ""
}
