// Package builds builds what clusters and tests need, once.
package builds

import (
	"encoding/json"
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
	Memcached  string // one folder a version, each with an executable memcached
	Images     string // OCI layout of the images that every cluster has
}

// All builds what the cluster needs and is missing.
func All(d cache.Dirs) (Programs, error) {
	source, err := Source()
	if err != nil {
		return Programs{}, err
	}
	if !host.Exists(d.Builds) {
		fmt.Fprintln(os.Stderr, "the first start builds Kubernetes and what tests need of Go and Debian packages: about 10 minutes on two cores")
	}
	var b Programs
	if b.Kubernetes, err = kubernetes(d, source, allOfKubernetes, "7 minutes", kubernetesPrograms); err != nil {
		return Programs{}, err
	}
	if b.CoreDNS, err = goProgram(d, "coredns", filepath.Join(source, "coredns"), "building CoreDNS (once)", "-s -w"); err != nil {
		return Programs{}, err
	}
	if b.Registry, err = registry(d); err != nil {
		return Programs{}, err
	}
	if b.Memcached, err = Memcached(d); err != nil {
		return Programs{}, err
	}
	b.Images, err = images(d, source, b.Memcached)
	return b, err
}

// S3 returns the folder of rclone, as a server of S3.
func S3(d cache.Dirs, source string) (string, error) {
	return goProgram(d, "s3", filepath.Join(source, "s3"), "building rclone, a server of S3 (once)", "-s -w")
}

// Exporter returns the folder of memcached_exporter, with whose metrics those of the agent are compared.
func Exporter(d cache.Dirs, source string) (string, error) {
	return tools(d, "exporter", filepath.Join(source, "exporter"), "building memcached_exporter (once)", append(leanFlags, "-ldflags=-s -w"),
		func(string) error { return nil })
}

// Source returns hack/cluster of the checkout that has this program in bin.
func Source() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	source := filepath.Join(filepath.Dir(program), "..", "hack", "cluster")
	if !host.Exists(source) {
		err = fmt.Errorf("%s does not exist: build this program with make, which puts it into bin of a checkout", source)
	}
	return source, err
}

// The programs of Kubernetes. A build has them all, or with apiServer as its name and tag those that a test of the API
// needs, in half the time.
const (
	allOfKubernetes = "kubernetes"
	apiServer       = "apiserver"
)

var (
	apiServerPrograms  = []string{"etcd", "kube-apiserver"}
	kubernetesPrograms = append(apiServerPrograms, "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
)

// APIServer returns the folder of an API server and etcd.
func APIServer(d cache.Dirs, source string) (string, error) {
	return kubernetes(d, source, apiServer, "4 minutes", apiServerPrograms)
}

func kubernetes(d cache.Dirs, source, name, took string, programs []string) (string, error) {
	dir := filepath.Join(source, "kubernetes")
	version, err := requiredVersion(dir, "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	if name == apiServer { // which all of Kubernetes contains, if it is built
		k, err := goKey(dir, allOfKubernetes, versionFlags(version), kubernetesPrograms)
		if built := filepath.Join(d.Builds, allOfKubernetes+"-"+k); err != nil || host.Exists(built) {
			return built, err
		}
	}
	what := fmt.Sprintf("building Kubernetes %s: %s (once, about %s on two cores)", version, strings.Join(programs, ", "), took)
	return goProgram(d, name, dir, what, versionFlags(version), programs...)
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

// goProgram builds the main package in dir with its name as a tag, and returns the folder with the program and links to it.
func goProgram(d cache.Dirs, name, dir, what, ldflags string, links ...string) (string, error) {
	k, err := goKey(dir, name, ldflags, links)
	if err != nil {
		return "", err
	}
	return d.Build(name, k, what, func(to, _ string) error {
		if err := goBuild(dir, filepath.Join(to, name), ".", append(leanFlags, "-tags="+name, "-ldflags="+ldflags)...); err != nil {
			return err
		}
		for _, l := range links {
			if err := os.Symlink(name, filepath.Join(to, l)); err != nil {
				return err
			}
		}
		return nil
	})
}

func goKey(dir, name, ldflags string, links []string) (string, error) {
	version, err := goVersion(dir)
	if err != nil {
		return "", err
	}
	return cache.SourceKey(dir, version, runtime.GOARCH, name, strings.Join(leanFlags, " "), ldflags, strings.Join(links, " "))
}

func goBuild(dir, out, pkg string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", out, pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	_, err := host.Output(cmd)
	return err
}

// goVersion returns the version of Go that builds the module in dir.
func goVersion(dir string) (string, error) {
	cmd := exec.Command("go", "env", "GOVERSION")
	cmd.Dir = dir
	out, err := host.Output(cmd)
	return strings.TrimSpace(out), err
}

// openPGPTag makes programs that pull images check signatures in Go, without a C library.
const openPGPTag = "containers_image_openpgp"

// tools returns a folder with the tools of the module in dir in bin, and the files that more adds.
func tools(d cache.Dirs, name, dir, what string, flags []string, more func(to string) error) (string, error) {
	version, err := goVersion(dir)
	if err != nil {
		return "", err
	}
	k, err := cache.SourceKey(dir, version, runtime.GOARCH, strings.Join(flags, " "))
	if err != nil {
		return "", err
	}
	return d.Build(name, k, what, func(to, _ string) error {
		if err := goBuild(dir, filepath.Join(to, "bin")+"/", "tool", flags...); err != nil {
			return err
		}
		return more(to)
	})
}

// pinned returns the folder of a module in hack/cluster, and the version of another module that it requires.
func pinned(name, module string) (dir, version string, err error) {
	source, err := Source()
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(source, name)
	version, err = requiredVersion(dir, module)
	return dir, version, err
}

func requiredVersion(dir, module string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	requirement := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (v\d+\.\d+\.\d+\S*)`)
	m := requirement.FindSubmatch(mod)
	if m == nil {
		return "", fmt.Errorf("go.mod in %s does not require %s", dir, module)
	}
	return string(m[1]), nil
}

// PrometheusCRDs returns the folder with the CRDs of prometheus-operator.
func PrometheusCRDs(source string) (string, error) {
	module, err := moduleDir(filepath.Join(source, "prometheusoperator"), "github.com/prometheus-operator/prometheus-operator")
	return filepath.Join(module, "example", "prometheus-operator-crd"), err
}

// moduleDir returns the folder with the sources of a required module.
func moduleDir(dir, module string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := host.Output(cmd)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	return m.Dir, json.Unmarshal([]byte(out), &m)
}

func copyFromModule(dir, module, folder, to string) error {
	sources, err := moduleDir(dir, module)
	if err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(filepath.Join(sources, folder)))
}
