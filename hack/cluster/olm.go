package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

const (
	olmNamespace = "olm"
	olmModule    = "github.com/operator-framework/operator-lifecycle-manager"
	// olmImageName is without a tag; that is OLM's version.
	olmImageName = "registry.local/olm"
	// olmImageLayout changes when the image below is made differently.
	olmImageLayout = "1"
)

// olmDeployments are what runs of OLM. Its package server is left out: it lists
// what catalogs offer to people and their consoles, and installs nothing.
var olmDeployments = []string{"olm-operator", "catalog-operator"}

// olm is a build of the Operator Lifecycle Manager.
type olm struct {
	version string
	deploy  string // its folder deploy, with the chart
	layout  string // OCI layout with its image alone
}

func olmCommand(d dirs, args []string) error {
	return dispatch("olm", args, "up or build", map[string]func() error{"up": d.olmUp, "build": d.olmBuild})
}

func (d dirs) olmBuild() error {
	_, err := d.olm()
	return err
}

// olm builds what is missing of OLM.
func (d dirs) olm() (olm, error) {
	dir, version, err := pinned("olm", olmModule)
	if err != nil {
		return olm{}, err
	}
	programs, err := d.buildOLM(dir, version)
	if err != nil {
		return olm{}, err
	}
	o := olm{version: version, deploy: filepath.Join(programs, "deploy")}
	o.layout, err = d.build("olm-image", key(olmImageLayout, programs), "making OLM's image", func(to, _ string) error {
		img, err := olmRecipe(filepath.Join(programs, "bin")).make()
		if err != nil {
			return err
		}
		l, err := layout.Write(to, empty.Index)
		if err != nil {
			return err
		}
		return l.AppendImage(img, layout.WithAnnotations(map[string]string{refAnnotation: o.tag()}))
	})
	return o, err
}

// buildOLM returns a folder with bin, the programs that the module in dir has as
// its tools and its own one, and deploy, as it is in OLM's module.
func (d dirs) buildOLM(dir, version string) (string, error) {
	flags := append(leanFlags, "-tags="+openPGPTag, "-ldflags=-s -w -X "+olmModule+"/pkg/version.OLMVersion="+version)
	what := fmt.Sprintf("building OLM %s (once, about 2 minutes on two cores)", version)
	return d.buildTools("olm", dir, what, flags, func(to string) error {
		if err := goBuild(dir, filepath.Join(to, "bin", "tools"), ".", flags...); err != nil {
			return err
		}
		return copyFromModule(dir, olmModule, "deploy", filepath.Join(to, "deploy"))
	})
}

// olmRecipe is the image that all pods of OLM run: its operators, the jobs that
// unpack bundles, and the pods that serve catalogs.
func olmRecipe(bin string) recipe {
	r := recipe{
		config: v1.Config{Entrypoint: []string{"/bin/olm"}, User: "1001:1001"},
		files:  map[string]string{},
		links:  map[string]string{"bin/cp": "tools", "bin/grpc_health_probe": "tools"},
	}
	for _, p := range []string{"olm", "catalog", "copy-content", "cpb", "opm", "tools"} {
		r.files["bin/"+p] = filepath.Join(bin, p)
	}
	return r
}

func (o olm) tag() string { return olmImageName + ":" + o.version }

// image names OLM's image by its digest as well: so a node never runs an older
// build, and OLM, which tells its pods to pull what has only a tag at each
// start, does not.
func (o olm) image() (string, error) {
	path, err := layout.FromPath(o.layout)
	if err != nil {
		return "", err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return "", err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	if len(list.Manifests) != 1 {
		return "", fmt.Errorf("%s holds %d images, want one: delete it and run this again", o.layout, len(list.Manifests))
	}
	return o.tag() + "@" + list.Manifests[0].Digest.String(), nil
}

// olmUp installs OLM in the running cluster. Each step does nothing when it is
// done already.
func (d dirs) olmUp() error {
	if _, ok := d.running(firstNode); !ok {
		return errNotRunning
	}
	o, err := d.olm()
	if err != nil {
		return err
	}
	unlock, err := d.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
	a, err := d.api()
	if err != nil {
		return err
	}
	image, err := o.image()
	if err != nil {
		return err
	}
	do, state := step, "runs"
	if why, err := a.olmNotAvailable(image); err == nil && why == "" {
		do, state = quietly, "runs already"
	}
	if err := do("installing OLM "+o.version, func() error { return d.applyOLM(a, o, image) }); err != nil {
		return err
	}
	if err := do("waiting for OLM to be available", func() error { return a.waitOLM(image) }); err != nil {
		return fmt.Errorf("%w\nkubectl -n %s describe pods tells more", err, olmNamespace)
	}
	_, err = fmt.Fprintf(os.Stderr, "OLM %s %s, in namespace %s\n", o.version, state, olmNamespace)
	return err
}

// applyOLM gives the cluster OLM's image, its resource definitions and its objects.
func (d dirs) applyOLM(a api, o olm, image string) error {
	if err := pushLayout(o.layout); err != nil {
		return err
	}
	objects, err := renderOLM(o.deploy, image)
	if err != nil {
		return err
	}
	if err := d.apply(filepath.Join(o.deploy, "chart", "crds"), ""); err != nil {
		return err
	}
	if err := a.waitServes("operators.coreos.com/v1", "olmconfigs", "operatorgroups"); err != nil {
		return err
	}
	return d.apply("-", objects)
}

// apply applies a file, a folder of them, or "-", which is the given text.
func (d dirs) apply(file, text string) error {
	// the programs that the cluster runs, which may be older than the checkout
	s, err := readSpec(filepath.Join(d.etc, firstNode.Name, "node.json"))
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.Kubernetes, "kubectl"), "--kubeconfig="+d.kubeconfig(), "apply", "--server-side", "--force-conflicts", "-f", file)
	cmd.Stdin = strings.NewReader(text)
	_, err = output(cmd)
	return err
}

// waitOLM waits until OLM is available and runs that image.
func (a api) waitOLM(image string) error {
	return waitFor(2*time.Minute, func() error {
		why, err := a.olmNotAvailable(image)
		if err == nil && why != "" {
			err = errors.New(why)
		}
		return err
	})
}

// olmNotAvailable says why OLM is not available, "" when it is. With an image it
// has to run that one.
func (a api) olmNotAvailable(image string) (string, error) {
	for _, name := range olmDeployments {
		var dep apiDeployment
		if err := a.do(http.MethodGet, "/apis/apps/v1/namespaces/"+olmNamespace+"/deployments/"+name, &dep); err != nil {
			return "", err
		}
		if why := dep.notAvailable(); why != "" {
			return name + " is " + why, nil
		}
		if image != "" && !dep.runs(image) {
			return name + " runs another image", nil
		}
	}
	return "", nil
}
