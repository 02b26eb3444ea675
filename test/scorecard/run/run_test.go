package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	corev1 "k8s.io/api/core/v1"
)

const bundle = "../../../bundle"

func optionsOf(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parse(append([]string{"--bundle", bundle, "--namespace", "tests", "--image", "example.com/scorecard:1"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// chosen returns the names of the tests that a selector leaves of the project's
// own bundle.
func chosen(t *testing.T, selector string) (names, images []string) {
	t.Helper()
	config, err := readConfig(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if config, err = choose(config, optionsOf(t, "--selector", selector)); err != nil {
		t.Fatal(err)
	}
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			names, images = append(names, nameOf(test)), append(images, test.Image)
		}
	}
	return names, images
}

func TestTheSelectorChoosesTests(t *testing.T) {
	for selector, want := range map[string][]string{
		"suite=memcached":           {"operator-install-test", "cr-ready-test", "conditions-test", "pod-failure-test", "scale-test", "operand-upgrade-test", "backup-restore-test"},
		"test=scale-test":           {"scale-test"},
		"suite=basic":               {"basic-check-spec-test"},
		"suite in (basic),test!=no": {"basic-check-spec-test"},
	} {
		if names, _ := chosen(t, selector); !slices.Equal(names, want) {
			t.Errorf("%s chooses %v, want %v", selector, names, want)
		}
	}
	if names, _ := chosen(t, ""); len(names) != 13 {
		t.Errorf("no selector chooses %v, want all 13", names)
	}
}

func TestOurTestsRunInTheImageThatIsAskedForAndOthersInTheirOwn(t *testing.T) {
	names, images := chosen(t, "")
	for i, image := range images {
		built := strings.HasPrefix(image, "quay.io/operator-framework/scorecard-test:")
		ours := image == "example.com/scorecard:1"
		if suite := !strings.HasPrefix(names[i], "olm-") && !strings.HasPrefix(names[i], "basic-"); suite != ours || suite == built {
			t.Errorf("%s runs in %s", names[i], image)
		}
	}
}

func TestChooseRefuses(t *testing.T) {
	with := func(test v1alpha3.TestConfiguration) v1alpha3.Configuration {
		return v1alpha3.Configuration{Stages: []v1alpha3.StageConfiguration{{Tests: []v1alpha3.TestConfiguration{test}}}}
	}
	stored := v1alpha3.TestConfiguration{Labels: map[string]string{"test": "stored"}}
	stored.Storage.Spec.MountPath.Path = "/out"
	for what, c := range map[string]struct {
		config         v1alpha3.Configuration
		selector, want string
	}{
		"labels that no test has":    {with(v1alpha3.TestConfiguration{}), "suite=none", `no test has the labels "suite=none"`},
		"a test that stores results": {with(stored), "", "test stored asks for storage"},
	} {
		_, err := choose(c.config, optionsOf(t, "--selector", c.selector))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", what, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--bundle", "b", "--namespace", "n"},
		{"--bundle", "b", "--namespace", "n", "--image", "i", "--selector", "suite in"},
		{"--bundle", "b", "--namespace", "n", "--image", "i", "further"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// The pod is what operator-sdk makes, so that a test that passes here passes there.
func TestThePodOfATest(t *testing.T) {
	pod := testPod(v1alpha3.TestConfiguration{Image: "example.com/scorecard:1", Entrypoint: []string{program, "scale"}}, "tests", "memcached-scorecard", "example.com/untar:1", "scorecard-test-abcd")
	spec := pod.Spec
	if spec.ServiceAccountName != "memcached-scorecard" || spec.RestartPolicy != corev1.RestartPolicyNever || pod.Labels["testrun"] != "scorecard-test-abcd" {
		t.Errorf("the pod runs as %q, restarts %s, has labels %v", spec.ServiceAccountName, spec.RestartPolicy, pod.Labels)
	}
	untar, test := spec.InitContainers[0], spec.Containers[0]
	if got := strings.Join(untar.Args, " "); untar.Image != "example.com/untar:1" || got != "tar xvzf /scorecard/bundle.tar.gz -C /scorecard-bundle" || untar.Command != nil {
		t.Errorf("the bundle is unpacked by %s %q %q", untar.Image, untar.Command, got)
	}
	if !slices.Equal(test.Command, []string{program, "scale"}) || test.Args != nil || test.Image != "example.com/scorecard:1" {
		t.Errorf("the test is %s %q %q", test.Image, test.Command, test.Args)
	}
	if m := test.VolumeMounts[0]; m.MountPath != "/bundle" || !m.ReadOnly || m.Name != untar.VolumeMounts[1].Name {
		t.Errorf("the test mounts %+v, what is unpacked is in %s", m, untar.VolumeMounts[1].Name)
	}
	if e := test.Env[0]; e.Name != "SCORECARD_NAMESPACE" || e.ValueFrom.FieldRef.FieldPath != "metadata.namespace" {
		t.Errorf("the environment is %+v", test.Env)
	}
}

func TestParseLog(t *testing.T) {
	status, err := parseLog(`{"results":[{"name":"scale","state":"fail","errors":["no"]}]}` + "\n")
	if err != nil || len(status.Results) != 1 || status.Results[0].State != v1alpha3.FailState {
		t.Errorf("the status is %+v, error %v", status, err)
	}
	for _, log := range []string{"", "{}", "panic: index out of range", `{"results":[]}`, `{"results":[{"state":"pass"}]} and more`} {
		if _, err := parseLog(log); err == nil {
			t.Errorf("%q is taken for a result", log)
		}
	}
}

func TestAPodThatWillNotRunIsNotWaitedFor(t *testing.T) {
	state := func(name string, s corev1.ContainerState) corev1.PodStatus {
		statuses := []corev1.ContainerStatus{{Name: name, Image: "example.com/scorecard:1", State: s}}
		if name == untarContainer {
			return corev1.PodStatus{InitContainerStatuses: statuses}
		}
		return corev1.PodStatus{ContainerStatuses: statuses}
	}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "not found"}}
	}
	exited := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	for what, c := range map[string]struct {
		status corev1.PodStatus
		ended  bool
		want   string
	}{
		"new":                   {corev1.PodStatus{}, false, ""},
		"pulled":                {state(testContainer, waiting("ContainerCreating")), false, ""},
		"pulled again":          {state(testContainer, waiting("ErrImagePull")), false, ""},
		"not to be pulled":      {state(testContainer, waiting("ImagePullBackOff")), false, "container scorecard-test of image example.com/scorecard:1: ImagePullBackOff: not found"},
		"unpacked":              {state(untarContainer, exited(0)), false, ""},
		"not unpacked":          {state(untarContainer, exited(1)), false, "container scorecard-untar ended with exit status 1"},
		"ended":                 {state(testContainer, exited(0)), true, ""},
		"ended with a panic":    {state(testContainer, exited(2)), true, ""},
		"evicted from its node": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, false, "the test's pod failed: Evicted"},
	} {
		t.Run(what, func(t *testing.T) {
			ended, err := hasEnded(&corev1.Pod{Status: c.status})
			if ended != c.ended || (err != nil) != (c.want != "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("ended is %t and the error %v, want %t and %q", ended, err, c.ended, c.want)
			}
		})
	}
}

func TestTheReportSaysWhatFailedAndWhy(t *testing.T) {
	named := func(name string) v1alpha3.TestConfiguration {
		return v1alpha3.TestConfiguration{Labels: map[string]string{"test": name}}
	}
	results := []result{
		{named("scale-test"), v1alpha3.TestStatus{Results: []v1alpha3.TestResult{{State: v1alpha3.PassState, Log: "all is well"}}}, 12 * time.Second},
		{named("conditions-test"), v1alpha3.TestStatus{Results: []v1alpha3.TestResult{{State: v1alpha3.FailState,
			Errors: []string{"no operator"}, Suggestions: []string{"See whether it runs"}, Log: "0.1s begun\n30.0s given up\n"}}}, 30 * time.Second},
	}
	var out strings.Builder
	report(&out, results)
	for _, want := range []string{"scale-test        pass     12.0\n", "conditions-test   fail     30.0\n", "    no operator\n", "    See whether it runs\n", "    30.0s given up\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "all is well") {
		t.Error("it tells the log of a test that passed")
	}
	if err := verdict(results); err == nil || !strings.Contains(err.Error(), "1 of 2 tests did not pass") {
		t.Errorf("the verdict is %v", err)
	}
	if err := verdict(results[:1]); err != nil {
		t.Error(err)
	}
}
