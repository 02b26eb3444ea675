package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

// kubernetesVersion is the newest version, that of the libraries, without whose removed APIs the bundle must work.
const kubernetesVersion = "1.37"

// validate returns the errors and warnings of OperatorHub and operator-sdk for the bundle of the project in root. A
// difference to the release of the same version is an error too.
func validate(root string) ([]string, error) {
	bundle, err := manifests.GetBundleFromDir(filepath.Join(root, "bundle"))
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	// Another one pulls images.
	validators := validation.DefaultBundleValidators.WithValidators(
		validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
		validation.GoodPracticesValidator,
		validation.AlphaDeprecatedAPIsValidator,
		validation.ObjectValidator,
	)
	objects := append(bundle.ObjectsToValidate(), map[string]string{"k8s-version": kubernetesVersion})
	var out []string
	for _, result := range validators.Validate(objects...) {
		for _, finding := range append(result.Errors, result.Warnings...) {
			out = append(out, result.Name+": "+finding.Error())
		}
	}

	version := bundle.CSV.Spec.Version.String()
	released := filepath.Join(root, "catalog/releases", version)
	if _, err := os.Stat(released); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err := exec.Command("diff", "-qr", filepath.Join(root, "bundle"), released).Run(); err != nil {
		out = append(out, fmt.Sprintf("bundle/ differs from the release %s: raise VERSION in the Makefile", version))
	}
	return out, nil
}
