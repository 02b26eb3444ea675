package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

const logTail = 60

// Describe describes a namespace for the analysis of a failure: Memcacheds, pods, events, and the end of the operator's log.
func (c *Cluster) Describe(ctx context.Context, namespace string) string {
	var b strings.Builder
	var memcacheds v1beta1.MemcachedList
	section(&b, "Memcacheds", c.List(ctx, &memcacheds, client.InNamespace(namespace)))
	for _, m := range memcacheds.Items {
		m.ManagedFields = nil
		writeYAML(&b, m)
	}
	var pods corev1.PodList
	section(&b, "pods", c.List(ctx, &pods, client.InNamespace(namespace)))
	for _, pod := range pods.Items {
		fmt.Fprintf(&b, "%s on %q, terminating since %v\n", pod.Name, pod.Spec.NodeName, pod.DeletionTimestamp)
		writeYAML(&b, pod.Status)
	}
	events, err := c.Set.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	section(&b, "events", err)
	if err == nil {
		for _, e := range events.Items {
			fmt.Fprintf(&b, "%s %s/%s %s: %s\n", eventTime(e).Format(time.TimeOnly), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	operators, err := c.OperatorPods(ctx)
	section(&b, "the operator", err)
	for _, pod := range operators {
		log, err := c.Set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: new(int64(logTail))}).DoRaw(ctx)
		section(&b, "the last lines of "+pod.Name, err)
		b.Write(log)
	}
	return b.String()
}

func section(b *strings.Builder, name string, err error) {
	fmt.Fprintf(b, "== %s\n", name)
	if err != nil {
		fmt.Fprintf(b, "cannot be read: %v\n", err)
	}
}

func writeYAML(b *strings.Builder, o any) {
	text, err := yaml.Marshal(o)
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Fprintf(b, "%s---\n", text)
}

// eventTime returns when an event was last seen, which the two APIs of events have in different fields.
func eventTime(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}
