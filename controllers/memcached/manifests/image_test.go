package manifests

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fallback = "docker.io/library/memcached:1.6.45"

func TestResolveImage(t *testing.T) {
	for name, c := range map[string]struct {
		reason         string
		image, version string
		want           Image
		err            string
	}{
		"Nothing":             {"the operator's default moves with the operator", "", "", Image{fallback, "1.6.45"}, ""},
		"Version":             {"a version is a tag of the default repository", "", "1.6.38", Image{"docker.io/library/memcached:1.6.38", "1.6.38"}, ""},
		"Repository":          {"an image without a tag gets the version as its tag", "example.com/mc", "1.6.38", Image{"example.com/mc:1.6.38", "1.6.38"}, ""},
		"RepositoryOnly":      {"or the default version", "example.com/mc", "", Image{"example.com/mc:1.6.45", "1.6.45"}, ""},
		"RegistryPort":        {"the colon of a port is not that of a tag", "example.com:5000/mc", "1.6.38", Image{"example.com:5000/mc:1.6.38", "1.6.38"}, ""},
		"RegistryPortAndTag":  {"both colons are understood", "example.com:5000/mc:1.6.38", "", Image{"example.com:5000/mc:1.6.38", "1.6.38"}, ""},
		"TagWithSuffix":       {"a version may be followed by a variant", "memcached:1.6.38-alpine", "", Image{"memcached:1.6.38-alpine", "1.6.38"}, ""},
		"TagThatIsNoVersion":  {"what a tag does not say is not known", "memcached:stable", "", Image{"memcached:stable", ""}, ""},
		"Digest":              {"a digest does not say the version", "memcached@sha256:" + strings.Repeat("0", 64), "", Image{"memcached@sha256:" + strings.Repeat("0", 64), ""}, ""},
		"TagAndDigest":        {"of a tag and a digest the tag says it", "memcached:1.6.38@sha256:" + strings.Repeat("0", 64), "", Image{"memcached:1.6.38@sha256:" + strings.Repeat("0", 64), "1.6.38"}, ""},
		"BadDigest":           {"a mistyped digest is told", "memcached@sha256:xyz", "", Image{}, "not a digest"},
		"BadTag":              {"a mistyped tag is told", "memcached:-1", "", Image{}, "not a tag"},
		"UpperCase":           {"a repository is lower case", "Memcached:1.6.38", "", Image{}, "not an image reference"},
		"UpperCaseHost":       {"a registry's host may be written in any case", "EXAMPLE.com/mc:1.6.38", "", Image{"EXAMPLE.com/mc:1.6.38", "1.6.38"}, ""},
		"SlashAtTheEnd":       {"a path must have a last part", "example.com/mc/", "", Image{}, "not an image reference"},
		"EmptyPartOfThePath":  {"and no empty one", "example.com//mc", "", Image{}, "not an image reference"},
		"TagWithNothingAfter": {"a colon promises a tag", "memcached:", "", Image{}, "not a tag"},
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

func TestRefuseVersion(t *testing.T) {
	for version, refused := range map[string]bool{
		"":                             false, // not known: the shard will tell
		"1.4.39":                       true,
		"1.6.2":                        true,
		"1.6.3":                        false,
		"1.6.18":                       false,
		"1.6.45":                       false,
		"1.7.0":                        false,
		"2.0.0":                        false,
		"0.9.9":                        true,
		"1.6.99999999999999999999":     true,
		"99999999999999999999.1.1":     true,
		"1.5.99999999999999999999":     true,
		"1.10.0":                       false, // not less than 1.6 as text would have it
		"1.6.10":                       false,
		"18446744073709551617.6.45":    true,
		"1.18446744073709551617.45":    true,
		"1.6.18446744073709551617":     true,
		"9223372036854775807.1.000001": false,
	} {
		if why := RefuseVersion(version); (why != "") != refused {
			t.Errorf("version %q: refusal %q, want one: %t", version, why, refused)
		}
	}
}
