package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// testContainer and untarContainer are operator-sdk's names.
	testContainer  = "scorecard-test"
	untarContainer = "scorecard-untar"
	// lookEvery is how often a pod is looked at.
	lookEvery = 500 * time.Millisecond
	// sweep bounds the cleaning up.
	sweep = 30 * time.Second
)

// runner runs tests as pods.
type runner struct {
	*cluster.Cluster
	options
	account string
	told    *teller
	// bundleMap is the ConfigMap with the bundle, and the label of the run's pods.
	bundleMap string
}

// result is what came of a test.
type result struct {
	test   v1alpha3.TestConfiguration
	status v1alpha3.TestStatus
	took   time.Duration
}

// state is pass if all results of a test are, and else the first other one.
func (r result) state() v1alpha3.State {
	for _, one := range r.status.Results {
		if one.State != v1alpha3.PassState {
			return one.State
		}
	}
	return v1alpha3.PassState
}

// runAll runs the stages one after the other and returns the results in the
// configuration's order.
func (r *runner) runAll(ctx context.Context, config v1alpha3.Configuration, packed []byte) ([]result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.waitTime)
	defer cancel()
	bundle := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, GenerateName: "scorecard-test-", Labels: map[string]string{"app": "scorecard-test"}},
		BinaryData: map[string][]byte{"bundle.tar.gz": packed},
	}
	if err := r.Create(ctx, bundle); err != nil {
		return nil, fmt.Errorf("creating the ConfigMap of the bundle: %w", err)
	}
	r.bundleMap = bundle.Name
	go r.told.remind(ctx)
	var results []result
	for _, stage := range config.Stages {
		results = append(results, r.runStage(ctx, stage)...)
	}
	// Whatever ended the tests must not end this.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweep)
	defer cancel()
	return results, r.cleanUp(clean, bundle)
}

// runStage runs the tests of a stage, one after the other or beside each other.
func (r *runner) runStage(ctx context.Context, stage v1alpha3.StageConfiguration) []result {
	results := make([]result, len(stage.Tests))
	var group sync.WaitGroup
	for i, test := range stage.Tests {
		group.Go(func() { results[i] = r.runTest(ctx, test) })
		if !stage.Parallel {
			group.Wait()
		}
	}
	group.Wait()
	return results
}

// runTest runs a test. What keeps it from telling a result is its result.
func (r *runner) runTest(ctx context.Context, test v1alpha3.TestConfiguration) result {
	began := time.Now()
	r.told.began(nameOf(test))
	status, err := r.ask(ctx, test)
	if err != nil {
		status = v1alpha3.TestStatus{Results: []v1alpha3.TestResult{{Name: nameOf(test), State: v1alpha3.ErrorState, Errors: []string{err.Error()}}}}
	}
	done := result{test: test, status: status, took: time.Since(began)}
	r.told.ended(nameOf(test), string(done.state()))
	return done
}

// ask makes a test's pod, waits for its end and reads the result from its log.
func (r *runner) ask(ctx context.Context, test v1alpha3.TestConfiguration) (v1alpha3.TestStatus, error) {
	pod := testPod(test, r.namespace, r.account, r.image, r.bundleMap)
	if err := r.Create(ctx, pod); err != nil {
		return v1alpha3.TestStatus{}, fmt.Errorf("creating the test's pod: %w", err)
	}
	if err := r.awaitEnd(ctx, pod); err != nil {
		return v1alpha3.TestStatus{}, err
	}
	log, err := r.log(ctx, pod, testContainer)
	if err != nil {
		return v1alpha3.TestStatus{}, err
	}
	return parseLog(log)
}

// parseLog reads a test's result, which is all that its log may hold.
func parseLog(log string) (v1alpha3.TestStatus, error) {
	var status v1alpha3.TestStatus
	if err := json.Unmarshal([]byte(log), &status); err != nil {
		return v1alpha3.TestStatus{}, fmt.Errorf("the log is no result: %w: %q", err, log)
	}
	if len(status.Results) == 0 {
		return v1alpha3.TestStatus{}, errors.New("the log tells no result")
	}
	return status, nil
}

// awaitEnd waits until the test's container has ended, and is an error as soon as
// it is known that it will not begin.
func (r *runner) awaitEnd(ctx context.Context, pod *corev1.Pod) error {
	key := client.ObjectKeyFromObject(pod)
	for {
		if err := r.Get(ctx, key, pod); err != nil && ctx.Err() == nil {
			return fmt.Errorf("reading the test's pod: %w", err)
		}
		ended, err := hasEnded(pod)
		if ended {
			return nil
		}
		if err != nil {
			if log, _ := r.log(ctx, pod, untarContainer); log != "" { // there may be none, and the error says enough
				err = fmt.Errorf("%w: %s", err, strings.TrimSpace(log))
			}
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pod %s has not ended, it is %s: %w", pod.Name, pod.Status.Phase, ctx.Err())
		case <-time.After(lookEvery):
		}
	}
}

// hopeless are reasons of a container that waits for what will not come.
var hopeless = []string{"ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"}

// hasEnded says whether the test's container has ended, or why it never will.
func hasEnded(pod *corev1.Pod) (bool, error) {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && slices.Contains(hopeless, w.Reason) {
			return false, fmt.Errorf("container %s of image %s: %s: %s", c.Name, c.Image, w.Reason, w.Message)
		}
		if c.State.Terminated == nil {
			continue
		}
		if c.Name == testContainer {
			return true, nil
		}
		if code := c.State.Terminated.ExitCode; code != 0 {
			return false, fmt.Errorf("container %s ended with exit status %d", c.Name, code)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return false, fmt.Errorf("the test's pod failed: %s: %s", pod.Status.Reason, pod.Status.Message)
	}
	return false, nil
}

func (r *runner) log(ctx context.Context, pod *corev1.Pod, container string) (string, error) {
	stream, err := r.Set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	defer stream.Close()
	log, err := io.ReadAll(stream)
	if err != nil {
		return "", fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	return string(log), nil
}

// cleanUp deletes the pods of the run and waits until they are gone, so that one
// that was ended has cleaned up itself. Then it deletes the bundle.
func (r *runner) cleanUp(ctx context.Context, bundle *corev1.ConfigMap) error {
	ours := []client.ListOption{client.InNamespace(r.namespace), client.MatchingLabels{"testrun": r.bundleMap}}
	if err := r.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(r.namespace), client.MatchingLabels{"testrun": r.bundleMap}); err != nil {
		return fmt.Errorf("deleting the tests' pods: %w", err)
	}
	err := cluster.Eventually(ctx, sweep, "the end of the tests' pods", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := r.List(ctx, &pods, ours...); err != nil {
			return err
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
	if err := r.Delete(ctx, bundle); err != nil {
		return fmt.Errorf("deleting the ConfigMap of the bundle: %w", err)
	}
	return err
}

// testPod is the pod of a test, as operator-sdk makes it.
func testPod(test v1alpha3.TestConfiguration, namespace, account, untarImage, bundleMap string) *corev1.Pod {
	restricted := &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	const packed, unpacked = "scorecard-bundle", "scorecard-untar"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    namespace,
			GenerateName: "scorecard-test-",
			Labels:       map[string]string{"app": "scorecard-test", "testrun": bundleMap},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: account,
			RestartPolicy:      corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{{
				Name:            untarContainer,
				Image:           untarImage,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Args:            []string{"tar", "xvzf", "/scorecard/bundle.tar.gz", "-C", "/scorecard-bundle"},
				VolumeMounts:    []corev1.VolumeMount{{Name: packed, MountPath: "/scorecard", ReadOnly: true}, {Name: unpacked, MountPath: "/scorecard-bundle"}},
				SecurityContext: restricted,
			}},
			Containers: []corev1.Container{{
				Name:            testContainer,
				Image:           test.Image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         test.Entrypoint,
				Env: []corev1.EnvVar{{Name: "SCORECARD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}},
				VolumeMounts:    []corev1.VolumeMount{{Name: unpacked, MountPath: "/bundle", ReadOnly: true}},
				SecurityContext: restricted,
			}},
			Volumes: []corev1.Volume{
				{Name: packed, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: bundleMap}}}},
				{Name: unpacked, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
}
