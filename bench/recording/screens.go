package recording

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// items are those of a shard that clients read: more than its memory has room for.
	items = 5000
	// until is how long it takes at most until the agents recommend memory, which needs an hour.
	until = 2 * time.Hour
)

// screens are the verbs of the plugin that are recorded.
var screens = []string{"why", "status", "top", "ring", "size"}

const owner client.FieldOwner = "recording"

func spec() v1beta1.MemcachedSpec {
	spec := v1beta1.MemcachedSpec{Size: new(int32(3)), Memory: new(resource.MustParse("64Mi")), Version: "1.6.38"}
	spec.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashKetama}
	return spec
}

// shop is the Memcached.
type shop struct {
	*cluster.Cluster
	plugin string
	key    client.ObjectKey
}

// Screens records verbs of the plugin, or all, with a real Memcached, and draws their pictures.
func Screens(ctx context.Context, verbs []string) error {
	if len(verbs) == 0 {
		verbs = screens
	}
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "screens-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	s := shop{Cluster: c, plugin: filepath.Join(dir, "kubectl-memcached"), key: client.ObjectKey{Namespace: "shop", Name: "cache"}}
	if out, err := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, "cmd/kubectl-memcached"), "build", "-o", s.plugin, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("building the plugin: %w\n%s", err, out)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.key.Namespace}}
	if err := s.Create(ctx, namespace); err == nil {
		defer func() { _ = s.Delete(context.WithoutCancel(ctx), namespace) }()
	} else if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := s.ApplyMemcached(ctx, s.key, spec(), owner); err != nil {
		return err
	}
	m, err := s.Await(ctx, s.key, "ready", cluster.Available)
	if err != nil {
		return err
	}
	using, stop := context.WithCancel(ctx)
	defer stop()
	if err := s.use(using, m.Status.Servers); err != nil {
		return err
	}
	if err := cluster.Sleep(ctx, 90*time.Second); err != nil { // while clients fill it
		return err
	}
	for _, verb := range verbs {
		prepare, after := nothing, nothing
		switch verb {
		case "size":
			prepare = s.recommends
		case "why":
			prepare, after = s.waits, s.continues
		}
		err := prepare(ctx)
		if err == nil {
			err = s.record(ctx, root, verb)
		}
		if err := errors.Join(err, after(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func nothing(context.Context) error { return nil }

// recommends waits for a recommendation of the agents.
func (s shop) recommends(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, until)
	defer cancel()
	for {
		output, err := s.run(ctx, "size")
		if err != nil || !strings.Contains(output, "no recommendation") { // of any shard
			return err
		}
		if err := cluster.Sleep(ctx, 10*time.Second); err != nil {
			return fmt.Errorf("no recommendation within %s: %w\n%s", until, err, output)
		}
	}
}

// waits lets an update wait for its maintenance window.
func (s shop) waits(ctx context.Context) error {
	spec := spec()
	spec.Version = "1.6.45"
	spec.UpdateStrategy.MaintenanceWindows = []v1beta1.MaintenanceWindow{{Start: time.Now().UTC().Add(12 * time.Hour).Format("15:04"), DurationSeconds: 3600}}
	if err := s.ApplyMemcached(ctx, s.key, spec, owner); err != nil {
		return err
	}
	_, err := s.Await(ctx, s.key, "the update waits", func(m *v1beta1.Memcached) error {
		if m.Status.Update == nil || m.Status.Update.Gate != v1beta1.GateOutsideMaintenanceWindow {
			return errors.New("it doesn't")
		}
		return nil
	})
	return err
}

// continues reverts the update that waits.
func (s shop) continues(ctx context.Context) error {
	if err := s.ApplyMemcached(ctx, s.key, spec(), owner); err != nil {
		return err
	}
	_, err := s.Await(ctx, s.key, "ready", cluster.Available)
	return err
}

// run returns what a verb prints.
func (s shop) run(ctx context.Context, verb string) (string, error) {
	out, err := exec.CommandContext(ctx, s.plugin, verb, s.key.Name, "-n", s.key.Namespace).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 { // not ready, as while an update waits
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", verb, err, out)
	}
	return string(out), err
}

// record draws the picture of a verb.
func (s shop) record(ctx context.Context, root, verb string) error {
	output, err := s.run(ctx, verb)
	if err != nil {
		return err
	}
	var cast bytes.Buffer
	fmt.Fprintln(&cast, `{"version": 2, "width": 100, "height": 40}`)
	for _, event := range [][]any{{0, "i", "kubectl memcached " + verb + " " + s.key.Name + "\n"}, {1, "o", output}} {
		line, err := json.Marshal(event)
		if err != nil {
			return err
		}
		fmt.Fprintf(&cast, "%s\n", line)
	}
	for _, r := range recordings {
		if r.name == "plugin-"+verb {
			return r.write(root, bytes.TrimSpace(cast.Bytes()))
		}
	}
	return fmt.Errorf("no recording is of %s", verb)
}

// use lets clients read items, and store those that the cache doesn't have, until the context ends.
func (s shop) use(ctx context.Context, servers []string) error {
	r, err := ring.New(ring.Ketama, servers)
	if err != nil {
		return err
	}
	keys := make([][]string, len(servers))
	for i, missing := 0, len(servers)*items; missing > 0; i++ {
		key := "session:" + strconv.Itoa(i)
		if shard := r.Shard([]byte(key)); len(keys[shard]) < items {
			keys[shard] = append(keys[shard], key)
			missing--
		}
	}
	for shard := range servers {
		go func() {
			for ctx.Err() == nil {
				if err := s.client(ctx, shard, keys[shard]); err != nil && ctx.Err() == nil {
					fmt.Fprintf(os.Stderr, "the client of shard %d: %v\n", shard, err)
				}
			}
		}()
	}
	return nil
}

// client uses a shard, through the shell of the plugin.
func (s shop) client(ctx context.Context, shard int, keys []string) error {
	shell := exec.CommandContext(ctx, s.plugin, "shell", s.key.Name, "-n", s.key.Namespace, "--shard", strconv.Itoa(shard))
	to, err := shell.StdinPipe()
	if err != nil {
		return err
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		return err
	}
	if err := shell.Start(); err != nil {
		return err
	}
	defer func() { _ = to.Close(); _ = shell.Wait() }()
	from := bufio.NewReader(out)
	get := func(key string) (found bool, err error) {
		if _, err := io.WriteString(to, "get "+key+"\n"); err != nil {
			return false, err
		}
		line, err := from.ReadString('\n')
		if err != nil || line == "END\r\n" {
			return false, err
		}
		size := 0
		if _, err := fmt.Sscanf(line, "VALUE "+key+" 0 %d", &size); err != nil {
			return false, fmt.Errorf("%q: %w", line, err)
		}
		_, err = from.Discard(size + len("\r\nEND\r\n"))
		return true, err
	}
	for {
		key := keys[int(rand.Float64()*rand.Float64()*float64(len(keys)))]
		found, err := get(key)
		if err == nil && !found {
			value := strings.Repeat("x", int(100*math.Pow(3000, rand.Float64()))) // of all slab classes
			if _, err = fmt.Fprintf(to, "set %s 0 0 %d\n%s\n", key, len(value), value); err == nil {
				if _, err = from.ReadString('\n'); err == nil {
					_, err = get(key)
				}
			}
		}
		if err != nil {
			return err
		}
		if err := cluster.Sleep(ctx, 30*time.Millisecond); err != nil {
			return err
		}
	}
}
