// Run runs the scorecard tests of a bundle on the cluster that KUBECONFIG names, as "operator-sdk scorecard" does with
// --pod-security=restricted, all at the same time:
//
//	go run ./scorecard/run --bundle FOLDER --namespace NAME --image REFERENCE [--service-account NAME] [--selector LABELS]
//
// Each test is a pod with the bundle at /bundle, which an init container unpacks from a ConfigMap. The log of the pod is
// the result of the test. The exit status is 1 unless all tests pass.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// program is the entrypoint of the tests that run in the image of --image.
const program = "/scorecard-memcached"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
		os.Exit(1)
	}
}

var (
	bundle    = flag.String("bundle", "", "`FOLDER` of the bundle")
	namespace = flag.String("namespace", "", "namespace `NAME` to run the tests in")
	account   = flag.String("service-account", "default", "`NAME` of the ServiceAccount of the tests")
	selector  = flag.String("selector", "", "`LABELS` of the tests to run, such as suite=memcached; empty runs all")
	image     = flag.String("image", "", "image `REFERENCE` that runs the tests of "+program)
)

func run(ctx context.Context) error {
	flag.Parse()
	selected, err := labels.Parse(*selector)
	if err != nil {
		return fmt.Errorf("reading --selector: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(*bundle, "tests", "scorecard", "config.yaml"))
	if err != nil {
		return err
	}
	var config v1alpha3.Configuration
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		return fmt.Errorf("reading the scorecard configuration: %w", err)
	}
	packed, err := exec.CommandContext(ctx, "tar", "-C", *bundle, "-czf", "-", ".").Output()
	if err != nil {
		return fmt.Errorf("packing the bundle: %w", err)
	}
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	if image, err := c.OperatorImage(ctx); err != nil {
		return err
	} else if image != "" {
		if err := c.UseNewest(ctx); err != nil {
			return err
		}
	}
	archive := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: *namespace, GenerateName: "scorecard-test-", Labels: map[string]string{"app": "scorecard-test"}},
		BinaryData: map[string][]byte{"bundle.tar.gz": packed},
	}
	if err := c.Create(ctx, archive); err != nil {
		return fmt.Errorf("creating the ConfigMap of the bundle: %w", err)
	}
	var tests sync.WaitGroup
	var lock sync.Mutex
	passed, failures := 0, []error(nil)
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			if !selected.Matches(labels.Set(test.Labels)) {
				continue
			}
			if test.Entrypoint[0] == program {
				test.Image = *image
			}
			tests.Go(func() {
				err := runTest(ctx, c, test, archive.Name)
				lock.Lock()
				defer lock.Unlock()
				if err != nil {
					failures = append(failures, fmt.Errorf("%s: %w", test.Labels["test"], err))
					return
				}
				fmt.Printf("%s: pass\n", test.Labels["test"])
				passed++
			})
		}
	}
	tests.Wait()
	if passed+len(failures) == 0 {
		failures = append(failures, fmt.Errorf("no test has the labels %q", *selector))
	}
	return errors.Join(append(failures, cleanUp(context.WithoutCancel(ctx), c, archive))...)
}

// runTest creates the pod of a test, waits until it has terminated, and returns an error unless the test passed.
func runTest(ctx context.Context, c *cluster.Cluster, test v1alpha3.TestConfiguration, run string) error {
	pod, err := testPod(test, run)
	if err != nil {
		return err
	}
	if err := c.Create(ctx, pod); err != nil {
		return fmt.Errorf("creating the pod of the test: %w", err)
	}
	err = cluster.Eventually(ctx, "the end of pod "+pod.Name, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return err
		}
		status, _ := json.Marshal(pod.Status) // says which image cannot be pulled, or why the bundle was not unpacked
		return errors.New(string(status))
	})
	if err != nil {
		return err
	}
	log, err := c.Set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return err
	}
	var status v1alpha3.TestStatus
	if err := json.Unmarshal(log, &status); err != nil || len(status.Results) == 0 {
		return fmt.Errorf("the log is not a result: %w: %q", err, log)
	}
	for _, result := range status.Results {
		if result.State != v1alpha3.PassState {
			described, _ := yaml.Marshal(result) // consists of strings
			return errors.New(string(described))
		}
	}
	return nil
}

// cleanUp deletes the pods of the run and waits until they no longer exist, so that interrupted tests can clean up after
// themselves. Then it deletes the bundle.
func cleanUp(ctx context.Context, c *cluster.Cluster, archive *corev1.ConfigMap) error {
	ofRun := client.MatchingLabels{"testrun": archive.Name}
	if err := c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(*namespace), ofRun); err != nil {
		return fmt.Errorf("deleting the pods of the tests: %w", err)
	}
	err := cluster.Eventually(ctx, "deletion of the pods of the tests", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(*namespace), ofRun); err != nil || len(pods.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d pods are left", len(pods.Items))
	})
	return errors.Join(err, c.Delete(ctx, archive))
}

// testPod returns the pod that operator-sdk creates for a test.
func testPod(test v1alpha3.TestConfiguration, run string) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: *namespace, GenerateName: "scorecard-test-", Labels: map[string]string{"app": "scorecard-test", "testrun": run},
	}}
	err := yaml.UnmarshalStrict(fmt.Appendf(nil, `
serviceAccountName: %q
restartPolicy: Never
securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
initContainers:
- name: scorecard-untar
  image: docker.io/library/busybox:1
  imagePullPolicy: IfNotPresent
  command: [busybox, tar, xvzf, /scorecard/bundle.tar.gz, -C, /scorecard-bundle]
  volumeMounts: [{name: scorecard-bundle, mountPath: /scorecard, readOnly: true}, {name: scorecard-untar, mountPath: /scorecard-bundle}]
  securityContext: &restricted {runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
containers:
- name: scorecard-test
  image: %q
  imagePullPolicy: IfNotPresent
  env: [{name: SCORECARD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
  volumeMounts: [{name: scorecard-untar, mountPath: /bundle, readOnly: true}]
  securityContext: *restricted
volumes:
- {name: scorecard-bundle, configMap: {name: %q}}
- {name: scorecard-untar, emptyDir: {}}
`, *account, test.Image, run), &pod.Spec)
	if err == nil {
		pod.Spec.Containers[0].Command = test.Entrypoint
	}
	return pod, err
}
