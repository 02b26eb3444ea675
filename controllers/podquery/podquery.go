// Package podquery queries the programs in pods without occupying a worker of a controller.
package podquery

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// wait is how long a reconcile waits for an answer. A program answers within milliseconds.
	wait = 100 * time.Millisecond
	// perNamespace bounds the queries of the pods of a namespace that are in progress. Pods that
	// didn't answer before use half of them.
	perNamespace = 32
	// A pod that didn't answer is queried again after a quarter of the time for which it has
	// been unresponsive, within these bounds.
	retryMin, retryMax = time.Second, 2 * time.Minute
	// forgetAfter is when an answer is forgotten that no reconcile waits for.
	forgetAfter = 10 * time.Minute
)

// ErrPending is returned while there is no answer yet. The next call may return it.
var ErrPending = errors.New("no answer yet")

// Queries queries pods for answers of a type. A nil one waits for each answer.
type Queries[T any] struct {
	lock sync.Mutex
	pods map[types.UID]*query[T]
	// running counts the queries in progress by namespace, unresponsive those of such pods.
	running, unresponsive map[string]int
	swept                 time.Time
}

// query is the last query of a pod.
type query[T any] struct {
	// version of the pod that was queried: an answer isn't used after the pod has changed.
	version string
	began   time.Time
	// done is closed when the query is done and has its answer.
	done   chan struct{}
	answer T
	// err is why the query failed; until it is done, why the one before failed.
	err error
	// since is when a pod that doesn't answer was queried first; zero for other pods.
	since time.Time
}

// Get queries a pod and returns the answer if it comes at once. Otherwise the query continues,
// and a later call returns its answer. For a pod that doesn't answer, it returns why the last query
// failed, also while it is queried again.
func (q *Queries[T]) Get(ctx context.Context, pod *corev1.Pod, get func(ctx context.Context, podIP string) (T, error)) (answer T, err error) {
	if q == nil {
		return get(ctx, pod.Status.PodIP)
	}
	current, isFirst := q.query(ctx, pod, get)
	if current == nil {
		return answer, ErrPending
	}
	if isFirst {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-current.done:
		case <-timer.C:
		}
	}
	return q.result(pod, current)
}

// query returns the last query of a pod, or a new one, or nil if its namespace has its share. It
// reports whether this is the first one since the pod changed or answered.
func (q *Queries[T]) query(ctx context.Context, pod *corev1.Pod, get func(context.Context, string) (T, error)) (current *query[T], isFirst bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	now := time.Now()
	q.sweep(now)
	last := q.pods[pod.UID]
	failed := &query[T]{}
	switch {
	case last == nil:
	case !last.isDone():
		return last, false
	case last.version != pod.ResourceVersion: // it may answer now
	case last.err == nil, now.Sub(last.began) < min(max(now.Sub(last.since)/4, retryMin), retryMax):
		return last, false
	default:
		failed = last
	}
	isUnresponsive := failed.err != nil
	if q.running[pod.Namespace] >= perNamespace || isUnresponsive && q.unresponsive[pod.Namespace] >= perNamespace/2 {
		return last, false
	}
	current = &query[T]{version: pod.ResourceVersion, began: now, done: make(chan struct{}), since: failed.since, err: failed.err}
	q.pods[pod.UID] = current
	count := func(n int) {
		q.running[pod.Namespace] += n
		if isUnresponsive {
			q.unresponsive[pod.Namespace] += n
		}
	}
	count(1)
	ctx, ip := context.WithoutCancel(ctx), pod.Status.PodIP
	go func() {
		answer, err := get(ctx, ip)
		q.lock.Lock()
		defer q.lock.Unlock()
		count(-1)
		if current.answer, current.err = answer, err; err == nil {
			current.since = time.Time{}
		} else if current.since.IsZero() {
			current.since = now
		}
		close(current.done)
	}()
	return current, !isUnresponsive
}

// result returns the result of a query. An answer is used once.
func (q *Queries[T]) result(pod *corev1.Pod, current *query[T]) (answer T, err error) {
	q.lock.Lock()
	defer q.lock.Unlock()
	switch {
	case current.isDone() && current.err == nil && current.version == pod.ResourceVersion:
		if q.pods[pod.UID] == current {
			delete(q.pods, pod.UID)
		}
		return current.answer, nil
	case current.err != nil:
		return answer, current.err
	default:
		return answer, ErrPending
	}
}

func (c *query[T]) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// sweep forgets the pods that no reconcile asks for any more.
func (q *Queries[T]) sweep(now time.Time) {
	if q.pods == nil {
		q.pods, q.running, q.unresponsive = map[types.UID]*query[T]{}, map[string]int{}, map[string]int{}
	}
	if now.Sub(q.swept) < forgetAfter {
		return
	}
	q.swept = now
	for uid, c := range q.pods {
		if c.isDone() && now.Sub(c.began) > forgetAfter {
			delete(q.pods, uid)
		}
	}
	for _, counts := range []map[string]int{q.running, q.unresponsive} {
		for namespace, n := range counts {
			if n == 0 {
				delete(counts, namespace)
			}
		}
	}
}
