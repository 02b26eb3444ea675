package main

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	olmNamespace = "olm"
	olmModule    = "github.com/operator-framework/operator-lifecycle-manager"
	olmImageName = "registry.local/olm"
	// olmImageLayout changes with the way OLM's image is built.
	olmImageLayout = "2"
)

// olmDeployments omit the package server, which only lists the contents of catalogs for consoles.
var olmDeployments = []string{"olm-operator", "catalog-operator"}

type olm struct {
	version string
	deploy  string // its folder deploy, with the chart
	layout  string // OCI layout with its image alone
}

func (d dirs) olm() (olm, error) {
	dir, version, err := pinned("olm", olmModule)
	if err != nil {
		return olm{}, err
	}
	programs, err := d.buildOLM(dir, version)
	if err != nil {
		return olm{}, err
	}
	memcached, err := d.memcached()
	if err != nil {
		return olm{}, err
	}
	o := olm{version: version, deploy: filepath.Join(programs, "deploy")}
	o.layout, err = d.build("olm-image", key(olmImageLayout, programs, memcached), "making OLM's image", func(to, _ string) error {
		r := olmRecipe(filepath.Join(programs, "bin"), filepath.Join(memcached, ".busybox"))
		r.ref = o.tag()
		return writeLayout(to, r)
	})
	return o, err
}

// buildOLM returns a folder with bin, the programs of the module in dir, and deploy of OLM's module.
func (d dirs) buildOLM(dir, version string) (string, error) {
	flags := append(leanFlags, "-tags="+openPGPTag, "-ldflags=-s -w -X "+olmModule+"/pkg/version.OLMVersion="+version)
	what := fmt.Sprintf("building OLM %s (once, about 2 minutes on two cores)", version)
	return d.buildTools("olm", dir, what, flags, func(to string) error {
		if err := goBuild(dir, filepath.Join(to, "bin", "grpc_health_probe"), ".", flags...); err != nil {
			return err
		}
		return copyFromModule(dir, olmModule, "deploy", filepath.Join(to, "deploy"))
	})
}

// olmRecipe returns the image of all pods of OLM: its operators, jobs that unpack bundles, and catalogs.
func olmRecipe(bin, busybox string) recipe {
	r := recipe{
		config: v1.Config{Entrypoint: []string{"/bin/olm"}, User: "1001:1001"},
		files:  map[string]string{"bin/cp": busybox},
	}
	for _, p := range []string{"olm", "catalog", "copy-content", "cpb", "opm", "grpc_health_probe"} {
		r.files["bin/"+p] = filepath.Join(bin, p)
	}
	return r
}

func (o olm) tag() string { return olmImageName + ":" + o.version }

// image returns the name of OLM's image with its digest. A node then never runs an older build, and OLM does not pull
// it at each start.
func (o olm) image() (string, error) {
	_, manifests, err := readLayout(o.layout)
	if err != nil {
		return "", err
	}
	return o.tag() + "@" + manifests[0].Digest.String(), nil
}

// olmUp installs OLM in the running cluster. It can be repeated.
func (d dirs) olmUp() error {
	if _, ok := d.running(firstNode); !ok {
		return errNotRunning
	}
	o, err := d.olm()
	if err != nil {
		return err
	}
	image, err := o.image()
	if err != nil {
		return err
	}
	do, state := step, "runs"
	const images = "-o=jsonpath={.items[*].spec.template.spec.containers[*].image}"
	if running, err := d.kubectl("", "--namespace="+olmNamespace, "get", "deployments", images); err == nil && running == image+" "+image {
		do, state = quietly, "runs already"
	}
	if err := do("installing OLM "+o.version, func() error { return d.applyOLM(o, image) }); err != nil {
		return err
	}
	if err := do("waiting for OLM to be available", d.waitOLM); err != nil {
		return fmt.Errorf("%w\nsee kubectl -n %s describe pods", err, olmNamespace)
	}
	_, err = fmt.Fprintf(os.Stderr, "OLM %s %s, in namespace %s\n", o.version, state, olmNamespace)
	return err
}

func (d dirs) applyOLM(o olm, image string) error {
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
	return d.apply("-", objects)
}

func (d dirs) waitOLM() error {
	for _, name := range olmDeployments {
		if _, err := d.kubectl("", "--namespace="+olmNamespace, "rollout", "status", "deployment/"+name, "--timeout=2m"); err != nil {
			return err
		}
	}
	return nil
}
