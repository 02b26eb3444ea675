package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

const fallback = "docker.io/library/memcached:1.6.45"

func TestImageIsResolvedFromImageAndVersion(t *testing.T) {
	for name, c := range map[string]struct {
		reason         string
		image, version string
		want           Image
		err            string
	}{
		"Nothing":             {"the operator has a default", "", "", Image{fallback, "1.6.45"}, ""},
		"Version":             {"a version is a tag of the default repository", "", "1.6.38", Image{"docker.io/library/memcached:1.6.38", "1.6.38"}, ""},
		"Repository":          {"an image without a tag gets the version as its tag", "example.com/mc", "1.6.38", Image{"example.com/mc:1.6.38", "1.6.38"}, ""},
		"RepositoryOnly":      {"or the default version", "example.com/mc", "", Image{"example.com/mc:1.6.45", "1.6.45"}, ""},
		"RegistryPort":        {"the colon of a port doesn't precede a tag", "example.com:5000/mc", "1.6.38", Image{"example.com:5000/mc:1.6.38", "1.6.38"}, ""},
		"RegistryPortAndTag":  {"a port and a tag have a colon each", "example.com:5000/mc:1.6.38", "", Image{"example.com:5000/mc:1.6.38", "1.6.38"}, ""},
		"TagWithSuffix":       {"a version may be followed by a variant", "memcached:1.6.38-alpine", "", Image{"memcached:1.6.38-alpine", "1.6.38"}, ""},
		"TagThatIsNoVersion":  {"a tag doesn't have to contain a version", "memcached:stable", "", Image{"memcached:stable", ""}, ""},
		"Digest":              {"a digest contains no version", "memcached@sha256:" + strings.Repeat("0", 64), "", Image{"memcached@sha256:" + strings.Repeat("0", 64), ""}, ""},
		"TagAndDigest":        {"the version is in the tag", "memcached:1.6.38@sha256:" + strings.Repeat("0", 64), "", Image{"memcached:1.6.38@sha256:" + strings.Repeat("0", 64), "1.6.38"}, ""},
		"BadDigest":           {"a digest has a form", "memcached@sha256:xyz", "", Image{}, "not a digest"},
		"BadTag":              {"a tag has a form", "memcached:-1", "", Image{}, "not a valid tag"},
		"UpperCase":           {"a repository is lower case", "Memcached:1.6.38", "", Image{}, "not an image reference"},
		"UpperCaseHost":       {"a registry's host may be written in any case", "EXAMPLE.com/mc:1.6.38", "", Image{"EXAMPLE.com/mc:1.6.38", "1.6.38"}, ""},
		"SlashAtTheEnd":       {"a path has a last part", "example.com/mc/", "", Image{}, "not an image reference"},
		"EmptyPartOfThePath":  {"and no empty part", "example.com//mc", "", Image{}, "not an image reference"},
		"TagWithNothingAfter": {"a tag follows a colon", "memcached:", "", Image{}, "not a valid tag"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ResolveImage(c.image, c.version, fallback)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("%s: error %v, want one with %q", c.reason, err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestDigestOfTheDefaultImageIsUsedWithoutVersionOnly(t *testing.T) {
	const pinned = fallback + "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		image, version string
		want           Image
	}{
		"nothing":        {"", "", Image{pinned, "1.6.45"}},
		"another":        {"", "1.6.38", Image{"docker.io/library/memcached:1.6.38", "1.6.38"}},
		"the same":       {"", "1.6.45", Image{fallback, "1.6.45"}},
		"the repository": {"example.com/mc", "", Image{"example.com/mc:1.6.45", "1.6.45"}},
	} {
		got, err := ResolveImage(c.image, c.version, pinned)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestVersionsThatCrashOrReadOtherCommandsAreUnsupported(t *testing.T) {
	for version, unsupported := range map[string]bool{
		"":                             false, // unknown: the shard will report it
		"1.4.39":                       true,
		"1.6.2":                        true,
		"1.6.9":                        true, // doc/protocol.txt of 1.6.9 and 1.6.10: "ms"
		"1.6.18":                       false,
		"1.6.45":                       false,
		"1.7.0":                        false,
		"2.0.0":                        false,
		"0.9.9":                        true,
		"1.6.45_1-g2":                  false, // one that isn't released, as an agent reports it
		"1.6.9_1-g2":                   true,
		"1.6.99999999999999999999":     false,
		"99999999999999999999.1.1":     false,
		"1.5.99999999999999999999":     true,
		"1.10.0":                       false, // less than 1.6 as text
		"1.6.10":                       false,
		"18446744073709551617.6.45":    false,
		"1.18446744073709551617.45":    false,
		"1.6.18446744073709551617":     false,
		"9223372036854775807.1.000001": false,
	} {
		if why := UnsupportedVersion(version, v1beta1.TLSSpec{}, v1beta1.AuthSpec{}); (why != "") != unsupported {
			t.Errorf("version %q: got %q, want unsupported: %t", version, why, unsupported)
		}
	}
}

func TestVersionsThatHangWithTLSAreUnsupportedWithIt(t *testing.T) {
	for version, unsupported := range map[string]bool{"": false, "1.6.18": true, "1.6.38": true, "1.6.39": false, "1.6.45": false, "1.7.0": false} {
		if why := UnsupportedVersion(version, v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}, v1beta1.AuthSpec{}); (why != "") != unsupported {
			t.Errorf("version %q: got %q, want unsupported: %t", version, why, unsupported)
		}
	}
}

func TestVersionsThatALoginCrashesAreUnsupportedWithIt(t *testing.T) {
	for version, unsupported := range map[string]bool{"": false, "1.6.18": true, "1.6.43": true, "1.6.44": false, "1.6.45": false, "1.7.0": false} {
		if why := UnsupportedVersion(version, v1beta1.TLSSpec{}, v1beta1.AuthSpec{Mode: v1beta1.AuthRequired}); (why != "") != unsupported {
			t.Errorf("version %q: got %q, want unsupported: %t", version, why, unsupported)
		}
	}
}

func TestVersionIsReadFromCompleteTagsOnly(t *testing.T) {
	for image, want := range map[string]string{
		"memcached:1.6.45":        "1.6.45",
		"memcached:1.6.45-alpine": "1.6.45",
		"memcached:1.6.45_3":      "1.6.45",
		"memcached:1.6.45rc1":     "",
		"memcached:1.6.45.1":      "",
		"memcached:1.6":           "",
		"memcached:v1.6.45":       "",
	} {
		if got := versionOf(image); got != want {
			t.Errorf("version of %s: got %q, want %q", image, got, want)
		}
	}
}
