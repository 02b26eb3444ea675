package release

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

// Krew installs from the manifest, and users from the archive by its checksum.
func TestArchiveOfThePluginIsInstalledAndReproducible(t *testing.T) {
	dir := t.TempDir()
	must.Run(t, root, "hack/plugin.sh", "1.2.3-rc.4", dir, runtime.GOOS+"/"+runtime.GOARCH)
	type platform struct {
		Selector         struct{ MatchLabels map[string]string }
		URI, SHA256, Bin string
	}
	var manifest struct {
		Spec struct{ Platforms []platform }
	}
	must.Succeed(t, yaml.Unmarshal(must.Read(t, filepath.Join(dir, "memcached.yaml")), &manifest))
	if len(manifest.Spec.Platforms) != 1 {
		t.Fatalf("the platforms are %+v", manifest.Spec.Platforms)
	}
	p := manifest.Spec.Platforms[0]
	file, found := strings.CutPrefix(p.URI, "https://github.com/memcached-operator/memcached-operator/releases/download/v1.2.3-rc.4/")
	if on := p.Selector.MatchLabels; !found || on["os"] != runtime.GOOS || on["arch"] != runtime.GOARCH {
		t.Errorf("the manifest has %+v", p)
	}
	must.Run(t, dir, "sha256sum", "--check", "--strict", "kubectl-memcached_checksums.txt")
	if want := p.SHA256 + "  " + file + "\n"; string(must.Read(t, filepath.Join(dir, "kubectl-memcached_checksums.txt"))) != want {
		t.Errorf("the checksums are not %s", want)
	}
	must.Run(t, dir, "tar", "-xzf", file)
	if got := must.Run(t, dir, filepath.Join(dir, p.Bin), "version"); got != "1.2.3-rc.4" {
		t.Errorf("it says it is %s", got)
	}
	// Two builds of Go are equal. Archives are, if they contain neither times nor users of this machine.
	for i, line := range strings.Split(must.Run(t, dir, "tar", "--utc", "--numeric-owner", "-tvzf", file), "\n") {
		words, want := strings.Fields(line), [][]string{{"-rw-r--r--", "LICENSE"}, {"-rwxr-xr-x", p.Bin}}[i]
		if words[0] != want[0] || words[1] != "0/0" || words[3] != "2000-01-01" || words[5] != want[1] {
			t.Errorf("the archive contains %s", line)
		}
	}
	if header := must.Read(t, filepath.Join(dir, file)); string(header[3:8]) != "\x00\x00\x00\x00\x00" {
		t.Errorf("the compression has a name or a time: % x", header[:10])
	}
}
