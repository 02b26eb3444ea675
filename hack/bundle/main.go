// Command bundle generates and validates bundle/ and bundle.Dockerfile, which the Operator Lifecycle Manager installs, and
// generates the chart that Helm installs and the manifest for kubectl:
//
//	go -C hack run ./bundle --version 1.0.0 --image REFERENCE --scorecard-image REFERENCE --created-at TIME --channels A,B --default-channel A
//
// The source is config/manifests. The ClusterServiceVersion gets the Deployments, the rules that are bound to their
// ServiceAccounts, descriptors of the CRDs' fields, the samples, and the RELATED_IMAGE_ variables as relatedImages.
// config/samples/olmv1/installer.yaml gets the rights that OLM v1 needs. The source of charts/memcached-operator and of
// dist/install.yaml is config/default. The same inputs give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// root is the project's folder: "go -C hack run" starts this program in hack.
const root = ".."

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	r, err := parseRelease(args)
	if err != nil {
		return err
	}
	files, err := generate(root, r)
	if err != nil {
		return err
	}
	if err := write(root, files); err != nil {
		return err
	}
	findings, err := validate(root)
	if err == nil && len(findings) > 0 {
		err = errors.New("the bundle is not valid:\n  " + strings.Join(findings, "\n  "))
	}
	return err
}

// release contains what config/ does not, and the versions of OpenShift.
type release struct {
	openshift      string
	version        string
	image          string
	scorecardImage string
	createdAt      string
	channels       string
	defaultChannel string
}

func parseRelease(args []string) (release, error) {
	var r release
	flags := flag.NewFlagSet("bundle", flag.ExitOnError)
	flags.StringVar(&r.version, "version", "", "the release's `VERSION`, without a v")
	flags.StringVar(&r.image, "image", "", "the operator's image")
	flags.StringVar(&r.scorecardImage, "scorecard-image", "", "the image of the scorecard's suite memcached")
	flags.StringVar(&r.createdAt, "created-at", "", "time of the release (RFC 3339)")
	flags.StringVar(&r.channels, "channels", "", "channels, separated by commas")
	flags.StringVar(&r.defaultChannel, "default-channel", "", "channel of subscriptions without one")
	if err := flags.Parse(args); err != nil {
		return release{}, err
	}
	var missing []string
	flags.VisitAll(func(f *flag.Flag) {
		if f.Value.String() == "" {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) > 0 {
		return release{}, fmt.Errorf("missing %s", strings.Join(missing, ", "))
	}
	return r, nil
}

// write writes files below root, and removes other files of the bundle.
func write(root string, files map[string][]byte) error {
	if err := os.RemoveAll(filepath.Join(root, "bundle")); err != nil {
		return fmt.Errorf("removing the old bundle: %w", err)
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
