package podquery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), ResourceVersion: version}}
}

// program answers after a delay, or fails with an error.
type program struct {
	lock   sync.Mutex // of the next three
	answer string
	after  time.Duration
	err    error
	// queries is how often it was queried, and busy how many queries are in progress.
	queries, busy atomic.Int64
}

func (p *program) get(context.Context, string) (string, error) {
	p.queries.Add(1)
	p.busy.Add(1)
	p.lock.Lock()
	answer, after, err := p.answer, p.after, p.err
	p.lock.Unlock()
	time.Sleep(after) //nolint:forbidigo // the fake time of a bubble
	p.busy.Add(-1)
	return answer, err
}

// set changes the next answers.
func (p *program) set(answer string, after time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.answer, p.after, p.err = answer, after, nil
}

func TestAnswerThatComesAtOnceIsReturned(t *testing.T) {
	for _, q := range []*Queries[string]{nil, {}} {
		synctest.Test(t, func(t *testing.T) {
			p := &program{answer: "a", after: time.Millisecond}
			for range 3 {
				if got, err := q.Get(t.Context(), pod("cache-0", "1"), p.get); got != "a" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			}
			if p.queries.Load() != 3 {
				t.Errorf("%d queries", p.queries.Load())
			}
		})
	}
}

func TestSlowAnswerIsReturnedLaterUnlessThePodHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := Queries[string]{}, &program{answer: "a", after: time.Second}
		began := time.Now()
		if _, err := q.Get(t.Context(), pod("cache-0", "1"), p.get); !errors.Is(err, ErrPending) || time.Since(began) != wait {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if _, err := q.Get(t.Context(), pod("cache-0", "1"), p.get); !errors.Is(err, ErrPending) || time.Since(began) != wait || p.queries.Load() != 1 {
			t.Errorf("after %s and %d queries: %v", time.Since(began), p.queries.Load(), err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the fake time of a bubble
		p.set("b", time.Second)
		if got, err := q.Get(t.Context(), pod("cache-0", "1"), p.get); got != "a" || err != nil || p.queries.Load() != 1 {
			t.Errorf("%q, %v after %d queries", got, err, p.queries.Load())
		}
		_, _ = q.Get(t.Context(), pod("cache-0", "1"), p.get)
		time.Sleep(time.Second) //nolint:forbidigo // the fake time of a bubble
		p.set("b", 0)
		if got, err := q.Get(t.Context(), pod("cache-0", "2"), p.get); got != "b" || err != nil || p.queries.Load() != 3 {
			t.Errorf("the pod has changed: %q, %v after %d queries", got, err, p.queries.Load())
		}
	})
}

// An agent behind a network policy costs a worker the time of one answer, once.
func TestUnreachablePodDelaysOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timeout := errors.New("timeout")
		q, p := Queries[string]{}, &program{err: timeout, after: 2 * time.Second}
		began, waited := time.Now(), time.Duration(0)
		for range 300 { // one per second
			called := time.Now()
			_, err := q.Get(t.Context(), pod("cache-0", "1"), p.get)
			waited += time.Since(called)
			if time.Since(began) > 3*time.Second && !errors.Is(err, timeout) { //nolint:forbidigo // the fake time of a bubble; also while it is queried again
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
			time.Sleep(time.Second) //nolint:forbidigo // the fake time of a bubble
		}
		if waited != wait {
			t.Errorf("the calls took %s", waited)
		}
		if p.queries.Load() < 5 || p.queries.Load() > 50 {
			t.Errorf("%d queries in five minutes", p.queries.Load())
		}
		p.set("a", 0)
		for range 150 {
			if got, err := q.Get(t.Context(), pod("cache-0", "1"), p.get); err == nil {
				if got != "a" {
					t.Errorf("%q", got)
				}
				return
			}
			time.Sleep(time.Second) //nolint:forbidigo // the fake time of a bubble
		}
		t.Error("the pod answers again, and stays unreachable")
	})
}

func TestQueriesOfANamespaceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, unresponsive := Queries[string]{}, &program{err: errors.New("timeout"), after: 2 * time.Second}
		answering := &program{answer: "a"}
		answered := false
		for round := range 60 {
			for i := range 200 {
				go func() { _, _ = q.Get(t.Context(), pod(fmt.Sprintf("unresponsive-%d", i), "1"), unresponsive.get) }()
			}
			synctest.Wait()
			if unresponsive.busy.Load() > perNamespace {
				t.Errorf("%d queries at once", unresponsive.busy.Load())
			}
			if round > 30 { // all are known to be unresponsive, and leave room
				got, err := q.Get(t.Context(), pod("cache-0", fmt.Sprint(round)), answering.get)
				answered = answered || err == nil && got == "a"
			}
			other := pod("cache-0", fmt.Sprint(round))
			other.Namespace, other.UID = "other", "other"
			if got, err := q.Get(t.Context(), other, answering.get); err != nil || got != "a" {
				t.Fatalf("the pod of another namespace: %q, %v", got, err)
			}
			time.Sleep(time.Second) //nolint:forbidigo // the fake time of a bubble
		}
		if !answered {
			t.Error("a pod isn't queried beside 200 unresponsive ones")
		}
		time.Sleep(unresponsive.after) //nolint:forbidigo // the fake time of a bubble; the last queries end
	})
}

func TestPodsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := Queries[string]{}, &program{err: errors.New("refused")}
		for i := range 100 {
			_, _ = q.Get(t.Context(), pod(fmt.Sprint(i), "1"), p.get)
		}
		time.Sleep(2 * forgetAfter) //nolint:forbidigo // the fake time of a bubble
		_, _ = q.Get(t.Context(), pod("cache-0", "1"), p.get)
		if len(q.pods) != 1 {
			t.Errorf("%d pods", len(q.pods))
		}
	})
}
