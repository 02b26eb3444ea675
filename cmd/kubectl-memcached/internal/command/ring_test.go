package command

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
)

// placed returns keys as clients place them that use the lists of servers in turn.
func placed(t *testing.T, name string, lists ...[]string) func(pod string) (string, error) {
	t.Helper()
	var samples [2]strings.Builder
	for i := range 2000 {
		r, err := ring.New(name, lists[i%len(lists)])
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Appendf(nil, "secret:%d", i)
		fmt.Fprintln(&samples[r.Shard(key)], base64.StdEncoding.EncodeToString(key))
	}
	return func(pod string) (string, error) {
		return samples[map[string]int{"cache-0-a": 0, "cache-1-b": 1}[pod]].String(), nil
	}
}

func TestRingOfTheClients(t *testing.T) {
	w := newWorld(t)
	m, _ := w.createServed() // the spec says Modulo
	for i, pod := range []string{"cache-0-a", "cache-1-b"} {
		labels := map[string]string{v1beta1.LabelInstance: "cache"}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: "default", Labels: labels}, Status: corev1.PodStatus{PodIP: fmt.Sprintf("10.0.0.%d", 7-i)}}
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cache-%d", i), Namespace: "default", Labels: labels}, Spec: corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.96.0.%d", i)}}
		if err := errors.Join(w.api.Create(t.Context(), p), w.api.Create(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
	}
	addresses := []string{"10.0.0.7:11211", "10.0.0.6:11211"}
	services := []string{"10.96.0.0:11211", "10.96.0.1:11211"}

	w.pods.sample = placed(t, ring.Modulo, m.Status.Servers)
	w.want(w.run("ring", "cache"), 0, "default/cache: the clients use Modulo\n2,000 keys of 2 shards were compared", "")
	if text := w.out.String(); strings.Contains(text, "Do:") || strings.Contains(text, "secret") {
		t.Errorf("got\n%s", text)
	}
	w.pods.sample = func(pod string) (string, error) {
		keys, err := placed(t, ring.Modulo, m.Status.Servers)(pod)
		left, _ := placed(t, ring.Modulo, m.Status.Servers)("cache-0-a")
		return keys + strings.Join(strings.SplitAfter(left, "\n")[:50], ""), err
	}
	w.want(w.run("ring", "cache"), 0, "Do: Run \"kubectl memcached purge cache -n default\"", "")
	w.pods.sample = placed(t, ring.Rendezvous, services)
	w.want(w.run("ring", "cache"), 0, "Rendezvous  addresses of the Services  10.96.0.0:11211  100%   100%\n\nDo: Set spec.access.hashing, which says Modulo over status.servers, to algorithm: Rendezvous, and give the clients the names in status.servers", "")
	w.pods.sample = placed(t, ring.Ketama, []string{"cache-0:11211", "cache-1:11211"})
	w.want(w.run("ring", "cache"), 0, `to algorithm: Ketama and serverNameTemplate: "{shard}:11211". Changes of spec.size`, "")
	w.pods.sample = placed(t, ring.Jump, addresses) // as with dnssrv+
	w.want(w.run("ring", "cache"), 0, "Do: Don't use the addresses of pods", "")
	w.pods.sample = placed(t, ring.Ketama, m.Status.Servers, addresses)
	w.want(w.run("ring", "cache"), exitNotReady, "two groups of clients look for the same key on different shards", "")
	if w.run("ring", "cache", "-o", "json"); !strings.Contains(w.out.String(), `"clients": "Disagree"`) {
		t.Errorf("got %s", w.out.String())
	}
	var read struct {
		Keys   int
		Groups []struct{ Ring string }
	}
	if err := json.Unmarshal(w.out.Bytes(), &read); err != nil || read.Keys != 2000 || len(read.Groups) != 2 || read.Groups[1].Ring != ring.Ketama {
		t.Errorf("got %+v, %v", read, err)
	}

	if want := "\rQueried 0 of 2 pods\rQueried 1 of 2 pods\r\x1b[KComparing the keys with 7 spellings of the servers\n"; w.progress.String() != want {
		t.Errorf("the progress is %q", w.progress.String())
	}
	agreed := w.pods.sample
	w.pods.sample = func(pod string) (string, error) { w.interrupt(); return agreed(pod) }
	w.want(w.run("ring", "cache"), exitFailed, "", "Error: interrupted\n")

	w.pods.sample = func(string) (string, error) { return "YQ==\n", nil }
	w.want(w.run("ring", "cache"), exitNotReady, "it is unclear which ring the clients use\n2 keys of 2 shards", "")
}

func TestRingOfWhatCanBeRead(t *testing.T) {
	w := newWorld(t)
	m, _ := w.createServed()
	w.reject = func(verb string, o any) error {
		if _, isPods := o.(*corev1.PodList); isPods {
			return cannot("list", "", "pods", "")
		}
		return nil
	}
	all := placed(t, ring.Modulo, m.Status.Servers)
	w.pods.sample = func(pod string) (string, error) {
		if pod == "cache-1-b" {
			return "", errors.New("memcached is not serving")
		}
		return all(pod)
	}
	w.want(w.run("ring", "cache"), exitNotReady, "Not compared: the addresses of the pods: bob lacks the permission to list pods in namespace default", "")
	w.want(0, 0, "Not compared: the keys of all shards: querying the agent in pod cache-1-b in namespace default: memcached is not serving", "")
	w.pods.sample = func(string) (string, error) { return "", cannot("create", "", "pods/exec", "cache-0-a") }
	w.want(w.run("ring", "cache"), exitDenied, "", "bob lacks the permission to create pods/exec in namespace default")
	w.pods.sample = func(string) (string, error) {
		return "", errors.New("usage:\n  agent install DIR")
	}
	w.want(w.run("ring", "cache"), exitFailed, "", "of a release before 1.1.0")
	w.pods.sample = func(string) (string, error) { return "?\n", nil }
	w.want(w.run("ring", "cache"), exitFailed, "", "reading the keys that the agent has sampled")
	m.Status.Shards = m.Status.Shards[:1]
	w.report(m)
	w.want(w.run("ring", "cache"), exitFailed, "", "cache has 1 shards, and 2 servers in status.servers: try again")
	m.Status.Servers = m.Status.Servers[:1]
	w.report(m)
	w.want(w.run("ring", "cache"), exitFailed, "", "clients of cache need no ring")
}
