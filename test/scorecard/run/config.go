package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const (
	// configFile is where a bundle has the scorecard's configuration.
	configFile = "tests/scorecard/config.yaml"
	// program of the suite memcached, as its tests' entrypoints name it.
	program = "/scorecard-memcached"
)

func readConfig(bundle string) (v1alpha3.Configuration, error) {
	content, err := os.ReadFile(filepath.Join(bundle, configFile))
	if err != nil {
		return v1alpha3.Configuration{}, fmt.Errorf("reading the bundle's configuration of the scorecard: %w", err)
	}
	var config v1alpha3.Configuration
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		return v1alpha3.Configuration{}, fmt.Errorf("reading %s: %w", configFile, err)
	}
	return config, nil
}

// choose leaves the tests that the selector asks for, in stages as before.
func choose(config v1alpha3.Configuration, o options) (v1alpha3.Configuration, error) {
	chosen := config
	chosen.Stages = nil
	for _, stage := range config.Stages {
		kept := v1alpha3.StageConfiguration{Parallel: stage.Parallel}
		for _, test := range stage.Tests {
			if !o.selector.Matches(labels.Set(test.Labels)) {
				continue
			}
			if test.Storage.Spec.MountPath.Path != "" || config.Storage.Spec.MountPath.Path != "" {
				return v1alpha3.Configuration{}, fmt.Errorf("test %s asks for storage, which operator-sdk has and this has not", nameOf(test))
			}
			if len(test.Entrypoint) > 0 && test.Entrypoint[0] == program {
				test.Image = o.image
			}
			kept.Tests = append(kept.Tests, test)
		}
		if len(kept.Tests) > 0 {
			chosen.Stages = append(chosen.Stages, kept)
		}
	}
	if len(chosen.Stages) == 0 {
		return v1alpha3.Configuration{}, fmt.Errorf("no test has the labels %q", o.selector)
	}
	return chosen, nil
}

// nameOf is what a person calls a test.
func nameOf(test v1alpha3.TestConfiguration) string {
	if name := test.Labels["test"]; name != "" {
		return name
	}
	return fmt.Sprint(test.Entrypoint)
}
