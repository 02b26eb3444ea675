package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// asProgram is set where this test binary runs as the program itself.
const asProgram = "TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func runProgram(t *testing.T, environment []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append([]string{asProgram + "=1"}, environment...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func TestOutputIsOneResultWhateverIsWrong(t *testing.T) {
	namespace := []string{"SCORECARD_NAMESPACE=default"}
	for name, c := range map[string]struct {
		environment []string
		args, want  string
	}{
		"no test":        {nil, "", "one argument is required, the test: operator-install, cr-ready,"},
		"unknown test":   {namespace, "no-such-test", "one argument is required, the test"},
		"several tests":  {namespace, "scale conditions", "one argument is required, the test"},
		"no environment": {nil, "scale", "SCORECARD_NAMESPACE is not set"},
		"no bundle":      {namespace, "scale", "reading the bundle"},
	} {
		stdout, stderr, err := runProgram(t, c.environment, strings.Fields(c.args)...)
		if err != nil || stderr != "" {
			t.Errorf("%s: exit %v, stderr %q", name, err, stderr)
		}
		if strings.Count(stdout, "\n") != 1 || !strings.HasSuffix(stdout, "\n") {
			t.Fatalf("%s: printed %q, want one line", name, stdout)
		}
		var status v1alpha3.TestStatus
		if err := json.Unmarshal([]byte(stdout), &status); err != nil || len(status.Results) != 1 {
			t.Fatalf("%s: %v, %d results", name, err, len(status.Results))
		}
		r := status.Results[0]
		if r.Name != c.args || r.State != v1alpha3.ErrorState || len(r.Errors) != 1 || !strings.Contains(r.Errors[0], c.want) {
			t.Errorf("%s: result %+v, want error %q", name, r, c.want)
		}
	}
}

func TestConfigurationNamesEveryTestAndTheProgram(t *testing.T) {
	content, err := os.ReadFile(root + "/bundle/tests/scorecard/config.yaml")
	pods.Must(t, err)
	var config v1alpha3.Configuration
	pods.Must(t, yaml.UnmarshalStrict(content, &config))
	dockerfile, err := os.ReadFile("Dockerfile")
	pods.Must(t, err)
	entrypoint := regexp.MustCompile(`(?m)^ENTRYPOINT \["(.*)"\]$`).FindSubmatch(dockerfile)
	if entrypoint == nil {
		t.Fatal("the Dockerfile has no ENTRYPOINT")
	}
	var configured []string
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			if test.Labels["suite"] != "memcached" {
				continue
			}
			if len(test.Entrypoint) != 2 || test.Entrypoint[0] != string(entrypoint[1]) || test.Labels["test"] != test.Entrypoint[1]+"-test" {
				t.Errorf("test %v has the entrypoint %v, the image %s", test.Labels, test.Entrypoint, entrypoint[1])
				continue
			}
			configured = append(configured, test.Entrypoint[1])
		}
	}
	if !slices.Equal(configured, testNames()) {
		t.Errorf("the bundle configures %v, the image has %v", configured, testNames())
	}
	if config.ServiceAccount != "" {
		t.Errorf("the configuration names the ServiceAccount %s, which overrides operator-sdk's --service-account", config.ServiceAccount)
	}
}

func TestStateAndSuggestionsFollowFromTheError(t *testing.T) {
	resource := schema.GroupResource{Group: "cache.memcached-operator.io", Resource: "memcacheds"}
	forbidden := apierrors.NewForbidden(resource, "cache", nil)
	for name, c := range map[string]struct {
		err        error
		state      v1alpha3.State
		suggestion string
	}{
		"none":                  {nil, v1alpha3.PassState, ""},
		"wrong behaviour":       {errors.New("shard cache-1 must not change"), v1alpha3.FailState, ""},
		"timeout":               {context.DeadlineExceeded, v1alpha3.FailState, ""},
		"no operator":           {fmt.Errorf("Memcached cache: %w", errNoOperator), v1alpha3.FailState, "Check whether the operator runs"},
		"no CRD":                {fmt.Errorf("creating: %w", &meta.NoKindMatchError{}), v1alpha3.FailState, "Install the operator first"},
		"no permission":         {fmt.Errorf("creating: %w", forbidden), v1alpha3.ErrorState, "kubectl apply -k config/scorecard/rbac"},
		"no permission as well": {errors.Join(errors.New("no answer"), forbidden), v1alpha3.ErrorState, "kubectl apply -k config/scorecard/rbac"},
		"interrupted":           {fmt.Errorf("waiting: %w", context.Canceled), v1alpha3.ErrorState, "--wait-time=5m"},
		"no API server":         {fmt.Errorf("reading: %w", &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: errors.New("refused")}), v1alpha3.ErrorState, ""},
	} {
		r := (&environment{}).complete(v1alpha3.TestResult{}, c.err)
		if r.State != c.state || (c.err == nil) != (len(r.Errors) == 0) {
			t.Errorf("%s: state %s with errors %q, want %s", name, r.State, r.Errors, c.state)
		}
		if got := strings.Join(r.Suggestions, "\n"); !strings.Contains(got, c.suggestion) || (c.suggestion == "") != (got == "") {
			t.Errorf("%s: suggestions %q, want %q", name, got, c.suggestion)
		}
	}
}
