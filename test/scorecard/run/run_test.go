package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	corev1 "k8s.io/api/core/v1"
)

const ourImage = "example.com/scorecard:1"

// selected returns the image of each test that a selector selects from the project's bundle.
func selected(t *testing.T, selector string) (map[string]string, error) {
	t.Helper()
	o, err := parse([]string{"--bundle", "../../../bundle", "--namespace", "tests", "--image", ourImage, "--selector", selector})
	if err != nil {
		t.Fatal(err)
	}
	config, err := o.readConfig()
	images := map[string]string{}
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			images[nameOf(test)] = test.Image
		}
	}
	return images, err
}

func TestSelectorSelectsTests(t *testing.T) {
	for selector, want := range map[string][]string{
		"suite=memcached": {"backup-restore-test", "conditions-test", "cr-ready-test", "operand-upgrade-test", "operator-install-test",
			"pod-failure-test", "scale-test"},
		"test=scale-test":           {"scale-test"},
		"suite in (basic),test!=no": {"basic-check-spec-test"},
	} {
		if images, err := selected(t, selector); err != nil || !slices.Equal(slices.Sorted(maps.Keys(images)), want) {
			t.Errorf("%s selects %v, %v; want %v", selector, images, err, want)
		}
	}
	if images, _ := selected(t, ""); len(images) != 13 {
		t.Errorf("the empty selector selects %v, want 13 tests", images)
	}
	if _, err := selected(t, "suite=none"); err == nil || !strings.Contains(err.Error(), `no test has the labels "suite=none"`) {
		t.Errorf("labels that no test has: error %v", err)
	}
}

func TestImageFlagReplacesTheImageOfOurTestsOnly(t *testing.T) {
	images, _ := selected(t, "")
	for name, image := range images {
		theirs := strings.HasPrefix(name, "olm-") || strings.HasPrefix(name, "basic-")
		if theirs != strings.HasPrefix(image, "quay.io/operator-framework/scorecard-test:") || theirs == (image == ourImage) {
			t.Errorf("%s runs in %s", name, image)
		}
	}
}

func TestParseRejectsIncompleteArguments(t *testing.T) {
	for _, args := range []string{"", "--bundle b --namespace n", "--bundle b --namespace n --image i --selector suite,,", "--bundle b --namespace n --image i further"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// A test that passes here passes with operator-sdk only if the pod is the same.
func TestPodIsTheOneThatOperatorSDKCreates(t *testing.T) {
	test := v1alpha3.TestConfiguration{Image: ourImage, Entrypoint: []string{program, "scale"}}
	pod := testPod(test, "tests", "memcached-scorecard", "example.com/untar:1", "scorecard-test-abcd")
	spec := pod.Spec
	if spec.ServiceAccountName != "memcached-scorecard" || spec.RestartPolicy != corev1.RestartPolicyNever || pod.Labels["testrun"] != "scorecard-test-abcd" {
		t.Errorf("service account %q, restart policy %s, labels %v", spec.ServiceAccountName, spec.RestartPolicy, pod.Labels)
	}
	untar, container := spec.InitContainers[0], spec.Containers[0]
	args := strings.Join(untar.Args, " ")
	if untar.Image != "example.com/untar:1" || args != "tar xvzf /scorecard/bundle.tar.gz -C /scorecard-bundle" || untar.Command != nil {
		t.Errorf("init container: %s %q %q", untar.Image, untar.Command, args)
	}
	if !slices.Equal(container.Command, []string{program, "scale"}) || container.Args != nil || container.Image != ourImage {
		t.Errorf("container: %s %q %q", container.Image, container.Command, container.Args)
	}
	if m := container.VolumeMounts[0]; m.MountPath != "/bundle" || !m.ReadOnly || m.Name != untar.VolumeMounts[1].Name {
		t.Errorf("the container mounts %+v, the init container unpacks to %s", m, untar.VolumeMounts[1].Name)
	}
	if e := container.Env[0]; e.Name != "SCORECARD_NAMESPACE" || e.ValueFrom.FieldRef.FieldPath != "metadata.namespace" {
		t.Errorf("environment: %+v", container.Env)
	}
}

func TestLogMustBeOneResult(t *testing.T) {
	log := `{"results":[{"name":"one","state":"pass"},{"name":"two","state":"fail","errors":["no"]}]}` + "\n"
	if r, err := parseLog(log); err != nil || r.Name != "two" || r.State != v1alpha3.FailState {
		t.Errorf("result %+v, error %v", r, err)
	}
	if r, err := parseLog(`{"results":[{"state":"pass"}]}`); err != nil || r.State != v1alpha3.PassState {
		t.Errorf("result %+v, error %v", r, err)
	}
	for _, log := range []string{"", "{}", "panic: index out of range", `{"results":[]}`, `{"results":[{"state":"pass"}]} and more`} {
		if r, err := parseLog(log); err == nil || r.State != v1alpha3.ErrorState {
			t.Errorf("%q is accepted", log)
		}
	}
}
