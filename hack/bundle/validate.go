package main

import (
	"fmt"
	"path/filepath"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

// kubernetesVersion is the one whose removed APIs the bundle must not use.
const kubernetesVersion = "1.36"

// validate returns what OperatorHub and operator-sdk would find wrong with the
// bundle of the project in root: errors and warnings alike.
func validate(root string) ([]string, error) {
	bundle, err := manifests.GetBundleFromDir(filepath.Join(root, "bundle"))
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	// Not all that there are: one of them pulls images.
	validators := validation.DefaultBundleValidators.WithValidators(
		validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
		validation.GoodPracticesValidator,
		validation.AlphaDeprecatedAPIsValidator,
		validation.ObjectValidator,
	)
	objects := append(bundle.ObjectsToValidate(), map[string]string{"k8s-version": kubernetesVersion})
	return findings(validators, objects), nil
}

func findings(validators interfaces.Validators, objects []any) []string {
	var out []string
	for _, result := range validators.Validate(objects...) {
		for _, finding := range append(result.Errors, result.Warnings...) {
			out = append(out, result.Name+": "+finding.Error())
		}
	}
	return out
}
