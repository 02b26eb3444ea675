// Package builds builds what clusters and tests need, once.
package builds

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// Programs are the folders of what the cluster is built of.
type Programs struct {
	Kubernetes string // kubectl, kube-apiserver, etcd … as links to one program
	CoreDNS    string
	Registry   string
	Images     string // OCI layout of the images that every cluster has
}

// All builds what the cluster needs and is missing.
func All(d cache.Dirs) (b Programs, err error) {
	if !host.Exists(d.Builds) {
		fmt.Fprintln(os.Stderr, "the first start builds Kubernetes and what tests need of Go and Debian packages: about 10 minutes on two cores")
	}
	if b.Kubernetes, err = Kubernetes(d); err != nil {
		return b, err
	}
	if b.CoreDNS, err = goProgram(d, "coredns", "coredns", "building CoreDNS (once)", "-s -w"); err != nil {
		return b, err
	}
	if b.Registry, err = registry(d); err != nil {
		return b, err
	}
	b.Images, err = images(d)
	return b, err
}

// S3 returns the folder of rclone, as a server of S3.
func S3(d cache.Dirs) (string, error) {
	return goProgram(d, "s3", "s3", "building rclone, a server of S3 (once)", "-s -w")
}

// Exporter returns the folder of memcached_exporter, with whose metrics those of the agent are compared.
func Exporter(d cache.Dirs) (string, error) {
	return tools(d, "exporter", "building memcached_exporter (once)", "-ldflags=-s -w")
}

var (
	apiServerPrograms  = []string{"etcd", "kube-apiserver"}
	kubernetesPrograms = append(apiServerPrograms, "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
)

// Kubernetes returns the folder of all programs of Kubernetes.
func Kubernetes(d cache.Dirs) (string, error) {
	version, err := requiredVersion(d, "kubernetes", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("building Kubernetes %s: %s (once, about 7 minutes on two cores)", version, strings.Join(kubernetesPrograms, ", "))
	return goProgram(d, "kubernetes", "kubernetes", what, versionFlags(version), kubernetesPrograms...)
}

// APIServer returns the folder of an API server and etcd: all of Kubernetes, if that is built, or what a test of the API
// needs, in half the time.
func APIServer(d cache.Dirs) (string, error) {
	version, err := requiredVersion(d, "kubernetes", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	flags := versionFlags(version)
	k, err := programKey(d, "kubernetes", "kubernetes", flags, kubernetesPrograms)
	if built := filepath.Join(d.Builds, "kubernetes-"+k); err != nil || host.Exists(built) {
		return built, err
	}
	what := fmt.Sprintf("building Kubernetes %s: %s (once, about 4 minutes on two cores)", version, strings.Join(apiServerPrograms, ", "))
	return goProgram(d, "apiserver", "kubernetes", what, flags, apiServerPrograms...)
}

// versionFlags returns the linker flags with the version of Kubernetes, which does not start without one.
func versionFlags(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	flags := []string{"-s", "-w"}
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, v := range [][2]string{{"gitVersion", version}, {"gitMajor", parts[0]}, {"gitMinor", parts[1]}, {"gitTreeState", "clean"}, {"buildDate", "2026-01-01T00:00:00Z"}} {
			flags = append(flags, "-X", p+"."+v[0]+"="+v[1])
		}
	}
	return strings.Join(flags, " ")
}

// leanFlags omit debug information, a tenth of the build of Kubernetes. The Makefile builds all else with the same, so
// that what is compiled for one program serves the others.
var leanFlags = []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"}

// goProgram builds the main package in a folder of d.Source with its name as a tag, and returns the folder with the program and
// links to it.
func goProgram(d cache.Dirs, name, folder, what, ldflags string, links ...string) (string, error) {
	k, err := programKey(d, name, folder, ldflags, links)
	if err != nil {
		return "", err
	}
	return d.Build(name, k, what, func(to string) error {
		err := goBuild(filepath.Join(d.Source, folder), filepath.Join(to, name), ".", append(leanFlags, "-tags="+name, "-ldflags="+ldflags)...)
		for _, l := range links {
			err = errors.Join(err, os.Symlink(name, filepath.Join(to, l)))
		}
		return err
	})
}

func programKey(d cache.Dirs, name, folder, ldflags string, links []string) (string, error) {
	return sourceKey(filepath.Join(d.Source, folder), runtime.GOARCH, name, strings.Join(leanFlags, " "), ldflags, strings.Join(links, " "))
}

// sourceKey returns the key of the sources of the module in a folder, of the version of Go that builds it, and of more inputs.
func sourceKey(dir string, inputs ...string) (string, error) {
	version, err := goCommand(dir, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	return cache.SourceKey(dir, append([]string{strings.TrimSpace(version)}, inputs...)...)
}

func goBuild(dir, out, pkg string, flags ...string) error {
	_, err := goCommand(dir, append(append([]string{"build"}, flags...), "-o", out, pkg)...)
	return err
}

// goCommand runs the Go of the module in a folder, for programs of this machine without C.
func goCommand(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	return host.Output(cmd)
}

// openPGPTag makes programs that pull images check signatures in Go, without a C library.
const openPGPTag = "containers_image_openpgp"

// tools returns a folder with bin, the tools of the module in the folder name of d.Source.
func tools(d cache.Dirs, name, what string, flags ...string) (string, error) {
	dir := filepath.Join(d.Source, name)
	flags = append(leanFlags, flags...)
	k, err := sourceKey(dir, runtime.GOARCH, strings.Join(flags, " "))
	if err != nil {
		return "", err
	}
	return d.Build(name, k, what, func(to string) error { return goBuild(dir, filepath.Join(to, "bin")+"/", "tool", flags...) })
}

// requiredVersion returns the version of a module that go.mod in a folder of d.Source requires.
func requiredVersion(d cache.Dirs, folder, module string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(d.Source, folder, "go.mod"))
	if err != nil {
		return "", err
	}
	requirement := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (v\d+\.\d+\.\d+\S*)`)
	m := requirement.FindSubmatch(mod)
	if m == nil {
		return "", fmt.Errorf("go.mod in %s does not require %s", folder, module)
	}
	return string(m[1]), nil
}

// PrometheusCRDs returns the folder with the CRDs of prometheus-operator.
func PrometheusCRDs(d cache.Dirs) (string, error) {
	return moduleFolder(d, "prometheusoperator", "github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd")
}

// moduleFolder returns a folder in the sources of a module that the one in a folder of d.Source requires.
func moduleFolder(d cache.Dirs, requiring, module, folder string) (string, error) {
	out, err := goCommand(filepath.Join(d.Source, requiring), "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	err = json.Unmarshal([]byte(out), &m)
	return filepath.Join(m.Dir, folder), err
}
