package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// testContainer is the name that operator-sdk gives to the container of a test.
	testContainer = "scorecard-test"

	pollInterval   = 500 * time.Millisecond
	cleanupTimeout = 30 * time.Second
)

// runner runs tests as pods.
type runner struct {
	*cluster.Cluster
	options
	began time.Time
	// run is the name of the ConfigMap with the bundle and the label of the pods.
	run string
}

func (r *runner) say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// runAll runs the stages one after the other and returns the results in the order of the configuration.
func (r *runner) runAll(ctx context.Context, config v1alpha3.Configuration, packed []byte) ([]v1alpha3.TestResult, error) {
	ctx, cancel := context.WithTimeout(ctx, r.waitTime)
	defer cancel()
	bundle := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, GenerateName: "scorecard-test-", Labels: map[string]string{"app": "scorecard-test"}},
		BinaryData: map[string][]byte{"bundle.tar.gz": packed},
	}
	if err := r.Create(ctx, bundle); err != nil {
		return nil, fmt.Errorf("creating the ConfigMap of the bundle: %w", err)
	}
	r.run = bundle.Name
	var results []v1alpha3.TestResult
	for _, stage := range config.Stages {
		ofStage := make([]v1alpha3.TestResult, len(stage.Tests))
		var group sync.WaitGroup
		for i, test := range stage.Tests {
			group.Go(func() { ofStage[i] = r.runTest(ctx, test) })
			if !stage.Parallel {
				group.Wait()
			}
		}
		group.Wait()
		results = append(results, ofStage...)
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout) // also after an interrupt
	defer cancel()
	return results, r.cleanUp(clean, bundle)
}

// runTest returns the first result of a test that did not pass, or the one that passed.
func (r *runner) runTest(ctx context.Context, test v1alpha3.TestConfiguration) v1alpha3.TestResult {
	log, err := r.logOf(ctx, testPod(test, r.namespace, r.account, r.image, r.run))
	result := v1alpha3.TestResult{State: v1alpha3.ErrorState}
	if err == nil {
		result, err = parseLog(log)
	}
	if err != nil {
		result.Errors = []string{err.Error()}
	}
	result.Name = nameOf(test)
	r.say("%s: %s", result.Name, result.State)
	return result
}

func nameOf(test v1alpha3.TestConfiguration) string {
	if name := test.Labels["test"]; name != "" {
		return name
	}
	return strings.Join(test.Entrypoint, " ")
}

// logOf creates the pod of a test, waits until it has terminated, and returns the log of the test.
func (r *runner) logOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	if err := r.Create(ctx, pod); err != nil {
		return "", fmt.Errorf("creating the pod of the test: %w", err)
	}
	var err error
	for err == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		if err = cluster.Sleep(ctx, pollInterval); err == nil {
			err = r.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		}
	}
	var log []byte
	if err == nil {
		log, err = r.Set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: testContainer}).DoRaw(ctx)
	}
	if err != nil {
		status, _ := json.Marshal(pod.Status) // says which image cannot be pulled, or why the bundle was not unpacked
		return "", fmt.Errorf("waiting for the result of pod %s: %w: %s", pod.Name, err, status)
	}
	return string(log), nil
}

// parseLog reads the log of a test, which is one TestStatus and nothing else.
func parseLog(log string) (v1alpha3.TestResult, error) {
	failed := v1alpha3.TestResult{State: v1alpha3.ErrorState}
	var status v1alpha3.TestStatus
	if err := json.Unmarshal([]byte(log), &status); err != nil {
		return failed, fmt.Errorf("the log is not a result: %w: %q", err, log)
	}
	if len(status.Results) == 0 {
		return failed, errors.New("the log has no result")
	}
	i := slices.IndexFunc(status.Results, func(r v1alpha3.TestResult) bool { return r.State != v1alpha3.PassState })
	return status.Results[max(i, 0)], nil
}

// cleanUp deletes the pods of the run and waits until they no longer exist, so that interrupted tests can clean up after
// themselves. Then it deletes the bundle.
func (r *runner) cleanUp(ctx context.Context, bundle *corev1.ConfigMap) error {
	ofRun := client.MatchingLabels{"testrun": r.run}
	if err := r.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(r.namespace), ofRun); err != nil {
		return fmt.Errorf("deleting the pods of the tests: %w", err)
	}
	err := cluster.Eventually(ctx, "deletion of the pods of the tests", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := r.List(ctx, &pods, client.InNamespace(r.namespace), ofRun); err != nil {
			return err
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Errorf("%d pods are left", n)
		}
		return nil
	})
	return errors.Join(err, r.Delete(ctx, bundle))
}

// testPod returns the pod that operator-sdk creates for a test.
func testPod(test v1alpha3.TestConfiguration, namespace, account, untarImage, run string) *corev1.Pod {
	restricted := &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	const packed, unpacked = "scorecard-bundle", "scorecard-untar"
	bundle := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: run}}
	fieldRef := &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    namespace,
			GenerateName: "scorecard-test-",
			Labels:       map[string]string{"app": "scorecard-test", "testrun": run},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: account,
			RestartPolicy:      corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{{
				Name:            unpacked,
				Image:           untarImage,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Args:            []string{"tar", "xvzf", "/scorecard/bundle.tar.gz", "-C", "/scorecard-bundle"},
				VolumeMounts: []corev1.VolumeMount{
					{Name: packed, MountPath: "/scorecard", ReadOnly: true}, {Name: unpacked, MountPath: "/scorecard-bundle"},
				},
				SecurityContext: restricted,
			}},
			Containers: []corev1.Container{{
				Name:            testContainer,
				Image:           test.Image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         test.Entrypoint,
				Env:             []corev1.EnvVar{{Name: "SCORECARD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: fieldRef}}},
				VolumeMounts:    []corev1.VolumeMount{{Name: unpacked, MountPath: "/bundle", ReadOnly: true}},
				SecurityContext: restricted,
			}},
			Volumes: []corev1.Volume{
				{Name: packed, VolumeSource: corev1.VolumeSource{ConfigMap: bundle}},
				{Name: unpacked, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
}
