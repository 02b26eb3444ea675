package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

// install does with a manifest and an archive what Krew does.
func install(t *testing.T, folder, system, arch string) (program string) {
	t.Helper()
	content := must.Read(t, filepath.Join(folder, "memcached.yaml"))
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []platform
		}
	}
	must.Succeed(t, yaml.Unmarshal(content, &manifest))
	for _, p := range manifest.Spec.Platforms {
		if on := p.Selector["matchLabels"]; on["os"] != system || on["arch"] != arch {
			continue
		}
		file, found := strings.CutPrefix(p.URI, repository+"/releases/download/"+manifest.Spec.Version+"/")
		if !found {
			t.Errorf("the manifest has the URI %s", p.URI)
		}
		check := exec.Command("sha256sum", "--check", "--strict")
		check.Dir, check.Stdin = folder, strings.NewReader(p.SHA256+"  "+file+"\n")
		extracted := t.TempDir()
		for _, cmd := range []*exec.Cmd{check, exec.Command("tar", "-xzf", filepath.Join(folder, file), "-C", extracted), exec.Command("test", "-s", filepath.Join(extracted, "LICENSE"))} {
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", cmd.Args, err, output)
			}
		}
		return filepath.Join(extracted, p.Bin)
	}
	t.Fatalf("the manifest has no %s/%s:\n%s", system, arch, content)
	return ""
}

func TestArchiveOfThePluginIsInstalledAndReproducible(t *testing.T) {
	t.Chdir("..")
	first, second := t.TempDir(), t.TempDir()
	for _, folder := range []string{first, second} {
		must.Succeed(t, write("1.2.3-rc.4", folder, []string{runtime.GOOS + "/" + runtime.GOARCH}))
	}
	if output, err := exec.Command("diff", "-r", first, second).CombinedOutput(); err != nil {
		t.Errorf("two builds differ: %s", output)
	}
	if output, err := exec.Command(install(t, first, runtime.GOOS, runtime.GOARCH), "version").CombinedOutput(); err != nil || string(output) != "1.2.3-rc.4\n" {
		t.Errorf("%v: it says it is %s", err, output)
	}
	check := exec.Command("sha256sum", "--check", "--strict", name+"_checksums.txt")
	if check.Dir = first; check.Run() != nil {
		t.Error("the checksums are wrong")
	}
}
