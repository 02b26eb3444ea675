package builds

import (
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
)

const (
	olmModule    = "github.com/operator-framework/operator-lifecycle-manager"
	olmImageName = "registry.local/olm"
	// olmImageLayout changes with the way OLM's image is built.
	olmImageLayout = "3"

	olmv1Module = "github.com/operator-framework/operator-controller"
)

// OLM is a build of OLM.
type OLM struct {
	Version string
	Deploy  string // its folder deploy, with the chart
	Layout  string // OCI layout with its image alone
}

// NewOLM builds OLM and its image.
func NewOLM(d cache.Dirs) (OLM, error) {
	dir, version, err := pinned("olm", olmModule)
	if err != nil {
		return OLM{}, err
	}
	programs, err := olmPrograms(d, dir, version)
	if err != nil {
		return OLM{}, err
	}
	memcached, err := Memcached(d)
	if err != nil {
		return OLM{}, err
	}
	o := OLM{Version: version, Deploy: filepath.Join(programs, "deploy")}
	o.Layout, err = d.Build("olm-image", cache.Key(olmImageLayout, programs, memcached), "making OLM's image", func(to, _ string) error {
		r := olmRecipe(filepath.Join(programs, "bin"), filepath.Join(memcached, ".busybox"))
		r.Ref = o.tag()
		return image.WriteLayout(to, r)
	})
	return o, err
}

// olmPrograms returns a folder with bin, the programs of the module in dir, and deploy of OLM's module.
func olmPrograms(d cache.Dirs, dir, version string) (string, error) {
	flags := append(leanFlags, "-tags="+openPGPTag, "-ldflags=-s -w -X "+olmModule+"/pkg/version.OLMVersion="+version)
	what := fmt.Sprintf("building OLM %s (once, about 2 minutes on two cores)", version)
	return tools(d, "olm", dir, what, flags, func(to string) error {
		return copyFromModule(dir, olmModule, "deploy", filepath.Join(to, "deploy"))
	})
}

// olmRecipe returns the image of all pods of OLM: its operators, jobs that unpack bundles, and catalogs.
func olmRecipe(bin, busybox string) image.Recipe {
	r := image.Recipe{
		Config: v1.Config{Entrypoint: []string{"/bin/olm"}, User: "1001:1001"},
		Files:  map[string]string{"bin/cp": busybox, "bin/grpc_health_probe": filepath.Join(bin, "grpc-health-probe")},
	}
	for _, p := range []string{"olm", "catalog", "copy-content", "cpb", "opm"} {
		r.Files["bin/"+p] = filepath.Join(bin, p)
	}
	return r
}

func (o OLM) tag() string { return olmImageName + ":" + o.Version }

// Image returns the name of OLM's image with its digest. A node then never runs an older build, and OLM does not pull
// it at each start.
func (o OLM) Image() (string, error) {
	_, manifests, err := image.ReadLayout(o.Layout)
	if err != nil {
		return "", err
	}
	return o.tag() + "@" + manifests[0].Digest.String(), nil
}

// OLMv1 is a build of catalogd, which serves catalogs, and operator-controller, which installs from them.
type OLMv1 struct {
	Version string
	Dir     string // with bin, its programs, and config, as it is in its module
}

// NewOLMv1 builds OLM v1.
func NewOLMv1(d cache.Dirs) (OLMv1, error) {
	dir, version, err := pinned("olmv1", olmv1Module)
	if err != nil {
		return OLMv1{}, err
	}
	flags := append(leanFlags, "-tags="+openPGPTag, "-ldflags=-s -w -X "+olmv1Module+"/internal/shared/version.version="+version)
	what := fmt.Sprintf("building OLM v1, %s (once, about 2 minutes on two cores)", version)
	built, err := tools(d, "olmv1", dir, what, flags, func(to string) error {
		return copyFromModule(dir, olmv1Module, "config/base", filepath.Join(to, "config"))
	})
	return OLMv1{Version: version, Dir: built}, err
}
