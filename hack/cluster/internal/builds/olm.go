package builds

import (
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
)

const (
	olmModule   = "github.com/operator-framework/operator-lifecycle-manager"
	olmv1Module = "github.com/operator-framework/operator-controller"

	olmImage = "registry.local/olm:1"
	// olmImageLayout changes with the way OLM's image is built.
	olmImageLayout = "4"
)

// OLM is a build of OLM.
type OLM struct {
	Version string
	Chart   string // its folder
	Layout  string // OCI layout with its image alone
}

// NewOLM builds OLM and its image.
func NewOLM(d cache.Dirs) (OLM, error) {
	version, err := requiredVersion(d, "olm", olmModule)
	if err != nil {
		return OLM{}, err
	}
	what := fmt.Sprintf("building OLM %s (once, about 2 minutes on two cores)", version)
	programs, err := tools(d, "olm", what, "-tags="+openPGPTag, "-ldflags=-s -w -X "+olmModule+"/pkg/version.OLMVersion="+version)
	if err != nil {
		return OLM{}, err
	}
	memcached, err := Memcached(d)
	if err != nil {
		return OLM{}, err
	}
	o := OLM{Version: version}
	if o.Chart, err = moduleFolder(d, "olm", olmModule, "deploy/chart"); err != nil {
		return o, err
	}
	o.Layout, err = d.Build("olm-image", cache.Key(olmImageLayout, programs, memcached), "making OLM's image", func(to string) error {
		bin, busybox := filepath.Join(programs, "bin"), filepath.Join(memcached, ".busybox")
		// Of all pods of OLM: its operators, jobs that unpack bundles, and catalogs.
		r := image.Recipe{
			Ref:    olmImage,
			Config: v1.Config{Entrypoint: []string{"/bin/olm"}, User: "1001:1001"},
			Files:  map[string]string{"bin/cp": busybox, "bin/grpc_health_probe": filepath.Join(bin, "grpc-health-probe")},
		}
		for _, p := range []string{"olm", "catalog", "copy-content", "cpb", "opm"} {
			r.Files["bin/"+p] = filepath.Join(bin, p)
		}
		return image.WriteLayout(to, r)
	})
	return o, err
}

// Image returns the name of OLM's image with its digest. A node then never runs an older build, and OLM does not pull
// it at each start.
func (o OLM) Image() (string, error) {
	_, manifests, err := image.ReadLayout(o.Layout)
	if err != nil {
		return "", err
	}
	return olmImage + "@" + manifests[0].Digest.String(), nil
}

// OLMv1 is a build of catalogd, which serves catalogs, and operator-controller, which installs from them.
type OLMv1 struct {
	Version  string
	Programs string // a folder with bin
	Config   string // the folder of its configuration
}

// NewOLMv1 builds OLM v1.
func NewOLMv1(d cache.Dirs) (OLMv1, error) {
	version, err := requiredVersion(d, "olmv1", olmv1Module)
	if err != nil {
		return OLMv1{}, err
	}
	o := OLMv1{Version: version}
	what := fmt.Sprintf("building OLM v1, %s (once, about 2 minutes on two cores)", version)
	o.Programs, err = tools(d, "olmv1", what, "-tags="+openPGPTag, "-ldflags=-s -w -X "+olmv1Module+"/internal/shared/version.version="+version)
	if err != nil {
		return o, err
	}
	o.Config, err = moduleFolder(d, "olmv1", olmv1Module, "config/base")
	return o, err
}
