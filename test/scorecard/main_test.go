package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"github.com/operator-framework/api/pkg/manifests"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/scorecard/internal/archive"
)

const root = "../.."

// asProgram is set where this test binary is to be the program itself.
const asProgram = "TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program returns what the program prints when it is run with arguments.
func program(t *testing.T, environment []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append([]string{asProgram + "=1"}, environment...)
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	return out.String(), complaint.String(), err
}

// Whatever is wrong, operator-sdk reads one line of JSON that says so.
func TestWhateverIsWrongTheOutputIsOneResult(t *testing.T) {
	namespace := "SCORECARD_NAMESPACE=default"
	for what, c := range map[string]struct {
		environment, args []string
		name, want        string
	}{
		"no test":        {nil, nil, "", "one argument is needed, the test: operator-install, cr-ready,"},
		"no such test":   {[]string{namespace}, []string{"no-such-test"}, "no-such-test", "one argument is needed, the test"},
		"several tests":  {[]string{namespace}, []string{"scale", "conditions"}, "scale conditions", "one argument is needed, the test"},
		"no environment": {nil, []string{"scale"}, "scale", "SCORECARD_NAMESPACE is not set"},
		"no bundle":      {[]string{namespace}, []string{"scale"}, "scale", "reading the bundle"},
	} {
		t.Run(what, func(t *testing.T) {
			stdout, stderr, err := program(t, c.environment, c.args...)
			if err != nil || stderr != "" {
				t.Errorf("it ended with %v and complained %q", err, stderr)
			}
			if strings.Count(stdout, "\n") != 1 || !strings.HasSuffix(stdout, "\n") {
				t.Fatalf("it printed %q, want one line", stdout)
			}
			var status v1alpha3.TestStatus
			if err := json.Unmarshal([]byte(stdout), &status); err != nil {
				t.Fatal(err)
			}
			if len(status.Results) != 1 {
				t.Fatalf("it told %d results", len(status.Results))
			}
			r := status.Results[0]
			if r.Name != c.name || r.State != v1alpha3.ErrorState || len(r.Errors) != 1 || !strings.Contains(r.Errors[0], c.want) {
				t.Errorf("the result is %+v, want error %q", r, c.want)
			}
		})
	}
}

func TestATestThatPanicsIsAnError(t *testing.T) {
	r := func() (result v1alpha3.TestResult) {
		defer recovered(&result)
		panic("index out of range")
	}()
	if r.State != v1alpha3.ErrorState || len(r.Errors) != 1 || !strings.Contains(r.Errors[0], "index out of range") {
		t.Errorf("the result is %+v", r)
	}
}

func TestItUnpacksAsTarDoes(t *testing.T) {
	packed, err := archive.Pack(fstest.MapFS{"metadata/annotations.yaml": {Data: []byte("annotations: {}\n")}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "bundle.tar.gz")
	if err := os.WriteFile(file, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	// operator-sdk's words.
	if _, stderr, err := program(t, nil, "tar", "xvzf", file, "-C", dir); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "metadata/annotations.yaml")); err != nil || !bytes.HasPrefix(content, []byte("annotations")) {
		t.Errorf("it unpacked %q, error %v", content, err)
	}
	for _, bad := range [][]string{{"tar"}, {"tar", "xf", file, "-C", dir}, {"tar", "xvzf", filepath.Join(dir, "nowhere"), "-C", dir}} {
		if _, stderr, err := program(t, nil, bad...); err == nil || stderr == "" {
			t.Errorf("%q is taken", bad)
		}
	}
}

// What config/scorecard asks for is what the image has, and nothing is left out.
func TestTheConfigurationNamesEveryTestAndTheProgram(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "bundle/tests/scorecard/config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config v1alpha3.Configuration
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		t.Fatal(err)
	}
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	entrypoint := regexp.MustCompile(`(?m)^ENTRYPOINT \["(.*)"\]$`).FindSubmatch(dockerfile)
	if entrypoint == nil {
		t.Fatal("the Dockerfile has no ENTRYPOINT")
	}
	var asked []string
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			if test.Labels["suite"] != "memcached" {
				continue
			}
			if len(test.Entrypoint) != 2 || test.Entrypoint[0] != string(entrypoint[1]) || test.Labels["test"] != test.Entrypoint[1]+"-test" {
				t.Errorf("test %v has the entrypoint %v, the image's program is %s", test.Labels, test.Entrypoint, entrypoint[1])
				continue
			}
			asked = append(asked, test.Entrypoint[1])
		}
	}
	if !slices.Equal(asked, names()) {
		t.Errorf("the bundle asks for %v, the image has %v", asked, names())
	}
	if config.ServiceAccount != "memcached-scorecard" {
		t.Errorf("the tests run as %q, config/scorecard/rbac makes memcached-scorecard", config.ServiceAccount)
	}
}

func TestAnErrorIsOfTheOperatorOrOfTheTest(t *testing.T) {
	resource := schema.GroupResource{Group: "cache.memcached-operator.io", Resource: "memcacheds"}
	for what, c := range map[string]struct {
		err        error
		state      v1alpha3.State
		suggestion string
	}{
		"none":                  {nil, v1alpha3.PassState, ""},
		"not as it should be":   {errors.New("shard cache-1 was to be left alone"), v1alpha3.FailState, ""},
		"time is up":            {context.DeadlineExceeded, v1alpha3.FailState, ""},
		"no operator":           {fmt.Errorf("Memcached cache: %w", errNoOperator), v1alpha3.FailState, "See whether the operator runs"},
		"no kind":               {fmt.Errorf("creating: %w", &meta.NoKindMatchError{}), v1alpha3.FailState, "Install the operator first"},
		"no default storage":    {errNoStorage, v1alpha3.ErrorState, "kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true"},
		"a backup that failed":  {errors.Join(&runError{v1alpha1.ReasonStoreFull, errors.New("is Failed")}), v1alpha3.FailState, `says under "When it fails" what to do about StoreFull`},
		"a backup unnoticed":    {fmt.Errorf("no status: %w", errNoOperator), v1alpha3.FailState, "See whether the operator runs"},
		"no permission":         {fmt.Errorf("creating: %w", apierrors.NewForbidden(resource, "cache", nil)), v1alpha3.ErrorState, "kubectl apply -k config/scorecard/rbac"},
		"no permission as well": {errors.Join(errors.New("no answer"), apierrors.NewForbidden(resource, "cache", nil)), v1alpha3.ErrorState, "kubectl apply -k config/scorecard/rbac"},
		"ended from outside":    {fmt.Errorf("waiting: %w", context.Canceled), v1alpha3.ErrorState, "--wait-time=5m"},
		"no API server":         {fmt.Errorf("reading: %w", &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: errors.New("refused")}), v1alpha3.ErrorState, ""},
	} {
		t.Run(what, func(t *testing.T) {
			r := (&trial{}).judge(v1alpha3.TestResult{}, c.err)
			if r.State != c.state || (c.err == nil) != (len(r.Errors) == 0) {
				t.Errorf("the state is %s with errors %q, want %s", r.State, r.Errors, c.state)
			}
			if suggestions := strings.Join(r.Suggestions, "\n"); !strings.Contains(suggestions, c.suggestion) || (c.suggestion == "") != (suggestions == "") {
				t.Errorf("the suggestions are %q, want %q", suggestions, c.suggestion)
			}
		})
	}
}

func TestAFailureTellsHowTheMemcachedWas(t *testing.T) {
	tr := &trial{}
	m := &v1alpha1.Memcached{}
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonImagePull, Message: "no such image"})
	tr.subjects = []*subject{{trial: tr, last: m}}
	tr.subjects[0].tellState()
	r := tr.judge(v1alpha3.TestResult{}, errors.New("not available"))
	if !strings.Contains(r.Log, "Degraded is True: ImageCannotBePulled: no such image") {
		t.Errorf("the log is %q", r.Log)
	}
	if s := strings.Join(r.Suggestions, "\n"); !strings.Contains(s, "what to do about ImageCannotBePulled") {
		t.Errorf("the suggestions are %q", s)
	}
}

func TestTheBundlesClusterServiceVersionHasToBeSucceeded(t *testing.T) {
	for what, c := range map[string]struct {
		csvs           []installed
		sentence, want string
	}{
		"no OLM's doing":       {nil, "installed in another way", ""},
		"other operators only": {[]installed{{"operators", "etcd-operator.v1.0.0", "Failed", ""}}, "installed in another way", ""},
		"it is there":          {[]installed{{"operators", "memcached-operator.v1.0.0", "Succeeded", ""}}, "is Succeeded in namespace operators", ""},
		"it is there twice":    {[]installed{{"a", "memcached-operator.v1.0.0", "Pending", ""}, {"b", "memcached-operator.v1.0.0", "Succeeded", ""}}, "is Succeeded in namespace b", ""},
		"it failed":            {[]installed{{"operators", "memcached-operator.v1.0.0", "Failed", "no such image"}}, "", "is Failed and not Succeeded: no such image"},
		"an upgrade is done":   {[]installed{{"operators", "memcached-operator.v0.9.0", "Replacing", ""}, {"operators", "memcached-operator.v1.0.0", "Succeeded", ""}}, "is Succeeded", ""},
		"another release":      {[]installed{{"a", "memcached-operator.v0.9.0", "Succeeded", ""}, {"b", "memcached-operator.v0.9.0", "Succeeded", ""}}, "", "has installed memcached-operator.v0.9.0 and not memcached-operator.v1.0.0"},
	} {
		t.Run(what, func(t *testing.T) {
			sentence, err := judgeCSVs("memcached-operator.v1.0.0", "memcached-operator", c.csvs)
			if (err != nil) != (c.want != "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if !strings.Contains(sentence, c.sentence) {
				t.Errorf("it says %q, want %q", sentence, c.sentence)
			}
		})
	}
}

func TestTheBundleHasWhatTheTestsRead(t *testing.T) {
	bundle, err := manifests.GetBundleFromDir(filepath.Join(root, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := exampleOf(bundle.CSV.Annotations[examplesAnnotation])
	if err != nil {
		t.Fatal(err)
	}
	if example.Name == "" || example.Spec.Size == nil {
		t.Errorf("the example is %+v", example)
	}
	if len(bundle.V1CRDs) == 0 || len(servedVersions(bundle.V1CRDs[0])) == 0 || bundle.Package != "memcached-operator" {
		t.Errorf("package %s ships %d kinds", bundle.Package, len(bundle.V1CRDs))
	}
	if _, err := exampleOf(`[{"kind":"MemcachedBackup"}]`); err == nil {
		t.Error("an example of another kind is taken for a Memcached")
	}
}

func TestARefusedVersionHasToBeTold(t *testing.T) {
	told := []metav1.Condition{
		{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, ObservedGeneration: 2},
		{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, ObservedGeneration: 2},
		{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, ObservedGeneration: 2, Reason: v1alpha1.ReasonVersionUnsupported, Message: "1.5.0 has holes: use 1.6.3 or newer"},
	}
	if err := saysVersionUnsupported(told, 2); err != nil {
		t.Error(err)
	}
	for what, spoil := range map[string]func([]metav1.Condition){
		"another reason":  func(c []metav1.Condition) { c[2].Reason = v1alpha1.ReasonImagePull },
		"no version":      func(c []metav1.Condition) { c[2].Message = "use another one" },
		"nothing to do":   func(c []metav1.Condition) { c[2].Message = "1.5.0 is bad" },
		"not degraded":    func(c []metav1.Condition) { c[2].Status = metav1.ConditionFalse },
		"of an old spec":  func(c []metav1.Condition) { c[1].ObservedGeneration = 1 },
		"a condition off": func(c []metav1.Condition) { c[0].Type = "Ready" },
	} {
		c := slices.Clone(told)
		spoil(c)
		if saysVersionUnsupported(c, 2) == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
