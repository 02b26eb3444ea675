package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

const logTail = 60

// Describe describes a namespace for the analysis of a failure: Memcacheds, pods, events, and the end of the operator's
// log.
func (c *Cluster) Describe(ctx context.Context, namespace string) string {
	var b strings.Builder
	var memcacheds v1beta1.MemcachedList
	section(&b, "Memcacheds", c.List(ctx, &memcacheds, client.InNamespace(namespace)))
	for _, m := range memcacheds.Items {
		m.ManagedFields = nil
		text, err := yaml.Marshal(m)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&b, "%s---\n", text)
	}
	var pods corev1.PodList
	section(&b, "pods", c.List(ctx, &pods, client.InNamespace(namespace)))
	for _, pod := range pods.Items {
		describePod(&b, &pod)
	}
	events, err := c.Set.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	section(&b, "events", err)
	if err == nil {
		for _, e := range events.Items {
			fmt.Fprintf(&b, "%s %s/%s %s: %s\n", eventTime(e).Format(time.TimeOnly), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	log, err := c.OperatorLog(ctx, &corev1.PodLogOptions{TailLines: new(int64(logTail))})
	section(&b, "the operator's last lines", err)
	b.WriteString(log)
	return b.String()
}

// OperatorLog returns the logs of the operator's pods.
func (c *Cluster) OperatorLog(ctx context.Context, options *corev1.PodLogOptions) (string, error) {
	pods, err := c.OperatorPods(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, pod := range pods {
		stream, err := c.Set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
		if err != nil {
			return "", fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
		}
		_, err = io.Copy(&b, stream)
		_ = stream.Close()
		if err != nil {
			return "", fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
		}
	}
	return b.String(), nil
}

func section(b *strings.Builder, name string, err error) {
	fmt.Fprintf(b, "== %s\n", name)
	if err != nil {
		fmt.Fprintf(b, "cannot be read: %v\n", err)
	}
}

func describePod(b *strings.Builder, pod *corev1.Pod) {
	fmt.Fprintf(b, "%s on %q, %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
	if pod.DeletionTimestamp != nil {
		fmt.Fprintf(b, ", terminating since %s", pod.DeletionTimestamp.Format(time.TimeOnly))
	}
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			fmt.Fprintf(b, "; %s %s %s", c.Type, c.Reason, c.Message)
		}
	}
	b.WriteByte('\n')
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range containers {
			fmt.Fprintf(b, "  %s of %s, ready %t, %d restarts", c.Name, c.Image, c.Ready, c.RestartCount)
			switch s := c.State; {
			case s.Waiting != nil:
				fmt.Fprintf(b, ", waiting: %s %s", s.Waiting.Reason, s.Waiting.Message)
			case s.Terminated != nil:
				fmt.Fprintf(b, ", terminated: %s %d %s", s.Terminated.Reason, s.Terminated.ExitCode, s.Terminated.Message)
			}
			if last := c.LastTerminationState.Terminated; last != nil {
				fmt.Fprintf(b, ", terminated before: %s %d %s", last.Reason, last.ExitCode, last.Message)
			}
			b.WriteByte('\n')
		}
	}
}

// eventTime returns when an event was last seen, which the two APIs of events have in different fields.
func eventTime(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}
