package host

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

const (
	// Each idle pod uses some of the processor that the other tests need.
	restCount  = 20
	restWindow = 5 * time.Minute
	// eventsWithin bounds how long the events of their creation may take after the status, which the operator writes first.
	eventsWithin = 30 * time.Second
)

// rest is the namespace of idle Memcacheds, and since when nothing may be written to them.
var rest struct {
	namespace string
	made      time.Time
	idleSince time.Time
	// others are the tests beside the one that counts writes, which are part of what it counts.
	others sync.WaitGroup
	// events are the tests that wait for an event, which an operator that stops may not post.
	events sync.WaitGroup
	// monitored is how often a test created the CRDs of prometheus-operator since.
	monitored int
	// releases is how often another release of the operator took them over since.
	releases int
}

// atRest returns the space of the idle Memcacheds, which the first test that needs them creates.
func atRest(t *testing.T) *space {
	t.Helper()
	if rest.namespace == "" {
		s := &space{suite.NewKept(t)}
		atEnd = append(atEnd, func(ctx context.Context) error { return suite.Delete(ctx, s.Namespace) })
		rest.made = time.Now()
		for i := range restCount {
			// with a version, as other tests change the default image
			s.Apply(fmt.Sprintf("rest-%d", i), suite.Small(1, suite.Version(defaultVersion)))
		}
		for i := range restCount {
			s.Available(fmt.Sprintf("rest-%d", i))
		}
		t.Logf("%d Memcacheds available %s after the first was applied", restCount, time.Since(rest.made).Round(time.Second))
		rest.idleSince = time.Now()
		rest.namespace = s.Namespace
	}
	return (&space{&suite.Space{Namespace: rest.namespace}}).in(t)
}

// tookOver waits until the idle Memcacheds are those of the operator of another
// image: it rewrites their templates, which changes no pod.
func tookOver(s *suite.Space, image string) {
	s.Helper()
	if rest.namespace == "" {
		return
	}
	s.Eventually("templates with the agent of "+image, func(ctx context.Context) error {
		var sets appsv1.ReplicaSetList
		if err := k.List(ctx, &sets, client.InNamespace(rest.namespace)); err != nil {
			return err
		}
		for _, set := range sets.Items {
			if agent := set.Spec.Template.Spec.InitContainers[0].Image; agent != image {
				return fmt.Errorf("%s has the agent of %s", set.Name, agent)
			}
		}
		return nil
	})
	rest.releases++
}

// await waits for tests beside this one, of which two wait so.
func await(t *testing.T, others *sync.WaitGroup) {
	t.Helper()
	if n := flag.Lookup("test.parallel").Value.String(); n == "1" || n == "2" {
		t.Fatalf("-test.parallel is %s, and this test waits for others beside it: use at least 3", n)
	}
	others.Wait()
}

// This file's name puts the test first, so that the window passes while the others run. In it the operator is restarted,
// removed and exchanged. That must cost no write either, but one a shard for each other release.
func TestIdleMemcachedsAreNotWrittenForFiveMinutes(t *testing.T) {
	s := atRest(t)
	t.Parallel() // after all tests that aren't
	await(t, &rest.others)
	time.Sleep(time.Until(rest.idleSince.Add(restWindow))) //nolint:forbidigo // the window in which nothing is written
	before, err := cluster.OperatorWrites(s.Ctx, s.Namespace, rest.made)
	s.Must(err)
	writes, err := cluster.OperatorWrites(s.Ctx, s.Namespace, rest.idleSince)
	s.Must(err)
	made := len(before) - len(writes)
	if least := restCount * 6; made < least { // five objects and a status each
		t.Fatalf("the audit log has %d writes during their creation, want at least %d", made, least)
	}
	writes = slices.DeleteFunc(writes, func(r audit.Request) bool {
		return r.Resource == "events" && r.Received.Before(rest.idleSince.Add(eventsWithin))
	})
	count := func(resource string, conflict bool) (n int) {
		for _, w := range writes {
			if w.Resource == resource && (w.Code == http.StatusConflict) == conflict {
				n++
			}
		}
		return n
	}
	// The operator can't read Secrets. Before it writes a template it tries to create both keys, which changes nothing.
	templates, policies, attempts, exchanged := count("replicasets", false), count("networkpolicies", false), count("replicasets", true), restCount*rest.releases
	if tried := count("secrets", true); tried > 2*(templates+attempts) {
		t.Errorf("the operator tried %d times to create a Secret, more often than twice for each of %d templates that it wrote and %d that it tried to write", tried, templates, attempts)
	}
	others := slices.DeleteFunc(slices.Clone(writes), func(r audit.Request) bool {
		return r.Resource == "replicasets" || r.Resource == "networkpolicies" || r.Resource == "podmonitors" || r.Resource == "prometheusrules" || r.Code == http.StatusConflict
	})
	// The CRDs were created and deleted in between. The API server rejects writes in the second of the deletion.
	for _, resource := range []string{"podmonitors", "prometheusrules"} {
		written, refused := 0, 0
		for _, w := range writes {
			switch {
			case w.Resource != resource:
			case w.Code < http.StatusBadRequest:
				written++
			default:
				refused++
			}
		}
		if written != rest.monitored || refused > 10*rest.monitored {
			t.Errorf("%s were written %d times, and %d writes were refused; want one write for each of %d creations of the CRD", resource, written, refused, rest.monitored)
		}
	}
	// On a busy machine, an agent or a probe is late by chance, which costs two writes of a status and two events. What the operator
	// writes by a rule, it writes for a Memcached of which no status says so, or often.
	late, excused := map[string]bool{}, map[string]int{}
	for _, w := range writes {
		late[w.Name] = late[w.Name] || strings.Contains(w.Body, `"ready":false`) || strings.Contains(w.Body, `"agentUnreachableTime":"`)
	}
	others = slices.DeleteFunc(others, func(r audit.Request) bool {
		name, _, _ := strings.Cut(r.Name, ".") // that of an event has more
		if !late[name] || r.Resource != "memcacheds/status" && r.Resource != "events" {
			return false
		}
		excused[name]++
		return excused[name] <= 3*4
	})
	t.Logf("%d writes while %d Memcacheds became available; in the %s after, %d templates and %d policies for %d exchanges of the operator by another release, and %d others, and these of late agents and probes: %v",
		made, restCount, time.Since(rest.idleSince).Round(time.Second), templates, policies, rest.releases, len(others), excused)
	if templates != exchanged {
		t.Errorf("%d templates were written, not one a shard for each of %d exchanges", templates, rest.releases)
	}
	if policies != 0 && policies != exchanged { // another release may open another port
		t.Errorf("%d policies were written, neither none nor one a Memcached for each of %d exchanges", policies, rest.releases)
	}
	for _, w := range others {
		t.Errorf("written while idle: %s", w)
	}
}
