package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// use is a use of the plugin by a user with some rights. Without the last of them, the plugin names it.
type use struct {
	args, rights string
	code         int
	says         string
	effect       func(*space) error
}

const readsMemcached = "get memcacheds"

// uses are those of all verbs, in the order in which they run.
var uses = []use{
	{args: "version", says: "dev"},
	{args: "set cache greeting hello", rights: "get memcacheds, create pods/portforward", says: " stores 5 bytes"},
	{args: "get cache greeting", rights: "get memcacheds, create pods/portforward", says: "hello"},
	{args: "shell cache --shard 0", rights: "get memcacheds, create pods/portforward", says: "VERSION "},
	{args: "delete cache greeting", rights: "get memcacheds, create pods/portforward", says: "has deleted the key"},
	{args: "status cache", rights: readsMemcached, says: "create pods/portforward"}, // for what it omits
	{args: "status -A", code: 5, says: " lacks the permission to list memcacheds.cache.memcached-operator.io in all namespaces. "},
	{args: "why cache", rights: readsMemcached, says: "cache"},
	{args: "report cache", rights: readsMemcached, says: "create pods/portforward"},
	{args: "hotkeys cache 0 --for 1s", rights: "get memcacheds, create pods/exec", says: "cache-0:"},
	{args: "clients cache", rights: "get memcacheds, create pods/exec", says: "cache-1:"},
	{args: "ring cache", rights: "get memcacheds, create pods/exec", code: 3, says: "it is unclear"},
	{args: "top cache", rights: readsMemcached, says: "create pods/portforward"},
	{args: "size cache", rights: readsMemcached, says: "create pods/portforward"},
	{args: "pause cache --dry-run", rights: "patch memcacheds", says: "Without --dry-run:\ncache is paused", effect: isPaused(false)},
	{args: "pause cache", rights: "patch memcacheds", says: "is paused", effect: isPaused(true)},
	{args: "resume cache", rights: "patch memcacheds", says: "isn't paused", effect: isPaused(false)},
	{args: "retry cache", rights: "patch memcacheds", says: "retries", effect: func(s *space) error {
		m, err := k.Memcached(s.Ctx, s.Key("cache"))
		if err == nil && m.Annotations[v1beta1.AnnotationRetry] == "" {
			err = errors.New("the annotation isn't set")
		}
		return err
	}},
	{args: "scaled cache", rights: "patch memcacheds, get memcacheds", code: 1, says: "doesn't wait for its clients"},
	{args: "purge cache", rights: "get memcacheds, patch memcacheds", says: "No shard has such items"},
	{args: "restart cache 0", rights: "get memcacheds, patch pods", says: "cache-0 has restarted: Warm"},
	{args: "backup cache --claim backups", rights: "get memcacheds, create memcachedbackups", says: "is created", effect: func(s *space) error {
		var all v1beta1.MemcachedBackupList
		s.Must(k.List(s.Ctx, &all, client.InNamespace(s.Namespace)))
		return k.Complete(s.Ctx, &all.Items[0], nil)
	}},
	{args: "restore cache", rights: "get memcacheds, list memcachedbackups, create memcachedrestores", says: "loads MemcachedBackup", effect: func(s *space) error {
		var all v1beta1.MemcachedRestoreList
		s.Must(k.List(s.Ctx, &all, client.InNamespace(s.Namespace)))
		return k.Complete(s.Ctx, &all.Items[0], nil)
	}},
	{args: "move cache 1", rights: "get memcacheds, patch pods", says: "cache-1 moves to another node", effect: func(s *space) error {
		s.Await("cache", "the move", func(m *v1beta1.Memcached) error { // which no other node has room for
			if u := m.Status.Update; u == nil || !strings.Contains(u.Message, "moves from node") {
				return fmt.Errorf("the update is %+v", u)
			}
			return nil
		})
		return nil
	}},
	{args: "move cache 1 --cancel", rights: "get memcacheds, patch pods", says: "cache-1 keeps its pod"},
}

func isPaused(want bool) func(*space) error {
	return func(s *space) error {
		m, err := k.Memcached(s.Ctx, s.Key("cache"))
		if err == nil && m.Spec.Paused != want {
			err = fmt.Errorf("spec.paused is %t", m.Spec.Paused)
		}
		return err
	}
}

// rule returns the rule of a right, such as "create pods/exec".
func rule(right string) rbacv1.PolicyRule {
	verb, resource, _ := strings.Cut(right, " ")
	group := ""
	if strings.HasPrefix(resource, "memcached") {
		group = v1beta1.GroupVersion.Group
	}
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
}

// user creates a user with rights, and waits until the API server grants them.
func (s *space) user(name string, rights ...string) {
	s.Helper()
	if len(rights) == 0 {
		return
	}
	named := metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
	role := &rbacv1.Role{ObjectMeta: named}
	for _, right := range rights {
		role.Rules = append(role.Rules, rule(right))
	}
	s.Must(k.Create(s.Ctx, role))
	s.Must(k.Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	s.Eventually("the rights of "+name, func(ctx context.Context) error {
		for _, r := range role.Rules {
			resource, sub, _ := strings.Cut(r.Resources[0], "/")
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: s.Namespace, Group: r.APIGroups[0], Resource: resource, Subresource: sub, Verb: r.Verbs[0],
			}}}
			if err := k.Create(ctx, review); err != nil || !review.Status.Allowed {
				return fmt.Errorf("%s %s: %w %s", r.Verbs[0], r.Resources[0], err, review.Status.Reason)
			}
		}
		return nil
	})
}

// plugin builds the plugin, and returns what runs it.
func (s *space) plugin() func(args ...string) (code int, output string) {
	s.Helper()
	root, err := cluster.Root()
	s.Must(err)
	program := filepath.Join(s.TempDir(), "kubectl-memcached")
	if out, err := exec.CommandContext(s.Ctx, "go", "-C", filepath.Join(root, "cmd/kubectl-memcached"), "build", "-o", program, ".").CombinedOutput(); err != nil {
		s.Fatalf("building the plugin: %v\n%s", err, out)
	}
	return func(args ...string) (int, string) {
		s.Helper()
		cmd := exec.CommandContext(s.Ctx, program, args...)
		cmd.Dir, cmd.Stdin = filepath.Dir(program), strings.NewReader("version\n")
		output, err := cmd.CombinedOutput()
		exit, code := (*exec.ExitError)(nil), 0
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		} else {
			s.Must(err)
		}
		return code, string(output)
	}
}

func TestVerbsOfThePluginNeedTheirRightsOnly(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	plugin := s.plugin()
	as := func(user, args string) (int, string) {
		return plugin(append(strings.Fields(args), "-n", s.Namespace, "--as", user, "--request-timeout", "2m")...)
	}
	s.Claim()
	s.Apply("cache", suite.Small(2, suite.Handover(v1beta1.HandoverAvailable), func(spec *v1beta1.MemcachedSpec) {
		spec.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashModulo}
	}))
	s.Available("cache")
	_, verbs := plugin("__complete", "")
	root, err := cluster.Root()
	s.Must(err)
	page, err := os.ReadFile(filepath.Join(root, "docs/kubectl-plugin.md"))
	s.Must(err)
	tested := map[string]bool{"completion": true, "help": true}
	for i, u := range uses {
		verb := strings.Fields(u.args)[0]
		tested[verb] = true
		t.Run(u.args, func(t *testing.T) {
			s := s.in(t)
			if row := regexp.MustCompile("(?m)^\\|.*`" + verb + "`.*? \\| " + u.rights + " \\|"); u.rights != "" && !row.Match(page) {
				t.Errorf("the table in docs/kubectl-plugin.md doesn't say that %s needs %s", verb, u.rights)
			}
			rights := strings.FieldsFunc(strings.ReplaceAll(u.rights, ", ", ","), func(r rune) bool { return r == ',' })
			if len(rights) > 0 {
				lacking := fmt.Sprintf("lacks-%d", i)
				s.user(lacking, rights[:len(rights)-1]...)
				last := rule(rights[len(rights)-1])
				if code, output := as(lacking, u.args); code != 5 || !strings.Contains(output, lacking+" lacks the permission to "+last.Verbs[0]+" "+last.Resources[0]) {
					t.Errorf("without the right to %s, the exit code is %d, and the output\n%s", rights[len(rights)-1], code, output)
				}
			}
			user := fmt.Sprintf("has-%d", i)
			s.user(user, rights...)
			code, output := as(user, u.args)
			for i := 0; i < 10 && code != u.code && strings.HasSuffix(u.rights, "create pods/exec"); i++ { // an agent on a busy machine may be late
				code, output = as(user, u.args)
			}
			t.Logf("exit code %d\n%s", code, output)
			if code != u.code || !strings.Contains(output, u.says) {
				t.Errorf("got exit code %d, want %d and %q", code, u.code, u.says)
			} else if u.effect != nil {
				s.Must(u.effect(s))
			}
		})
	}
	for line := range strings.Lines(verbs) {
		if verb, _, described := strings.Cut(line, "\t"); described && !tested[verb] {
			t.Errorf("the verb %s has no use in this test", verb)
		}
	}
}
