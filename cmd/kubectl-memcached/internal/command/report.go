package command

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
)

const (
	// maxReport bounds what a report contains, before it is compressed.
	maxReport = 32 << 20
	// operatorNamespace is where the operator is installed by default.
	operatorNamespace = "memcached-operator-system"
)

// archive is a report that is being written.
type archive struct {
	zip      *zip.Writer
	size     int
	progress io.Writer
	bounded  func(context.Context) (context.Context, context.CancelFunc)
	result   reportResult
	// denied are the groups of files that the user may not read.
	denied map[string]bool
}

// reportResult is what a report contains.
type reportResult struct {
	File  string   `json:"file"`
	Files []string `json:"files"`
	// Omitted says what the report lacks, and why.
	Omitted []string `json:"omitted,omitempty"`
}

// Text returns the result for a terminal.
func (r reportResult) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s has %d files\n", r.File, len(r.Files))
	for _, o := range r.Omitted {
		fmt.Fprintf(&out, "Omitted  %s\n", o)
	}
	return out.String()
}

func (p *plugin) report() *cobra.Command {
	var (
		format         output
		file, operator string
		timeout        = 2 * time.Minute
	)
	cmd := &cobra.Command{
		Use: "report NAME", Short: "Write what explains the state of a Memcached into a file, for a support case",
		Long: `Write a zip file with the objects of a Memcached, their events, the answers of its agents, and the logs of the agents and of the
operator.

It contains no keys, values or Secrets: it omits values of environment variables, annotations of others, how containers of others start,
and the lines of memcached in the logs. It contains names of objects and nodes, and IP addresses. What you may not read is omitted, and
manifest.txt in the file names it.`,
		Example: "  kubectl memcached report cache\n  kubectl memcached report cache --file cache.zip --operator-namespace memcached",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, m, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if file == "" {
				file = fmt.Sprintf("memcached-%s-%s.zip", m.Name, c.Now().UTC().Format("20060102T150405Z"))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			a := archive{progress: p.progress, bounded: p.bounded, denied: map[string]bool{}, result: reportResult{File: file}}
			if err := a.writeTo(file, func() { a.fill(ctx, c, m, operator) }); err != nil {
				return fmt.Errorf("writing the report: %w", err)
			}
			text, err := format.format(a.result)
			fmt.Fprint(p.streams.Out, text)
			return err
		},
	}
	format.add(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "File to create, which must not exist. Default: memcached-NAME-TIME.zip")
	cmd.Flags().StringVar(&operator, "operator-namespace", operatorNamespace, "Namespace of the operator, whose log is part of the report")
	addDuration(cmd, &timeout, "timeout", 0, 0, "How long it may take. What isn't read by then is omitted")
	return cmd
}

// writeTo creates the file, and deletes it if it can't be written.
func (a *archive) writeTo(file string, fill func()) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	a.zip = zip.NewWriter(out)
	fill()
	err = errors.Join(a.write("manifest.txt", []byte(a.manifest())), a.zip.Close(), out.Close())
	if err != nil {
		_ = os.Remove(file)
	}
	return err
}

func (a *archive) manifest() string {
	return "Files:\n  " + strings.Join(a.result.Files, "\n  ") + "\n\nOmitted, beside keys, values, Secrets and lines of memcached's log:\n  " +
		strings.Join(append(a.result.Omitted, ""), "\n  ")
}

func (a *archive) write(name string, content []byte) error {
	w, err := a.zip.Create(name)
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}

func (a *archive) omit(name, why string) {
	a.result.Omitted = append(a.result.Omitted, name+": "+why)
}

// add adds a file. After a missing permission, it doesn't try the other files of the group.
func (a *archive) add(ctx context.Context, group, name string, read func(context.Context) ([]byte, error)) {
	if a.denied[group] {
		return
	}
	fmt.Fprintf(a.progress, "reading %s\n", name)
	bounded, cancel := a.bounded(ctx)
	defer cancel()
	content, err := read(bounded)
	content = screen.RedactText(content)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.New("not read in time: raise --timeout")
	}
	if err == nil && a.size+len(content) > maxReport {
		err = fmt.Errorf("the report would be larger than %d MiB", maxReport>>20)
	}
	if err == nil {
		err = a.write(name, content)
	}
	if err != nil {
		_, isDenied := missingRight(err)
		if a.denied[group] = isDenied; isDenied {
			name = group
		}
		a.omit(name, explain(err))
		return
	}
	a.size += len(content)
	a.result.Files = append(a.result.Files, name)
}

// fill reads what a report contains.
func (a *archive) fill(ctx context.Context, c *cluster.Cluster, m *v1beta1.Memcached, operator string) {
	objects := func(name string, read func(context.Context) (any, error)) {
		a.add(ctx, name, name, func(ctx context.Context) ([]byte, error) {
			all, err := read(ctx)
			if err != nil {
				return nil, err
			}
			return screen.Redact(all)
		})
	}
	objects("memcached.yaml", func(context.Context) (any, error) { return m, nil })
	for _, owned := range []struct {
		name string
		list client.ObjectList
	}{
		{"pods", &corev1.PodList{}},
		{"replicasets", &appsv1.ReplicaSetList{}},
		{"services", &corev1.ServiceList{}},
		{"poddisruptionbudgets", &policyv1.PodDisruptionBudgetList{}},
		{"networkpolicies", &networkingv1.NetworkPolicyList{}},
	} {
		objects(owned.name+".yaml", func(ctx context.Context) (any, error) { return c.OwnedObjects(ctx, m, owned.list) })
	}
	key := client.ObjectKeyFromObject(m)
	objects("backups.yaml", func(ctx context.Context) (any, error) { return c.Backups(ctx, key) })
	objects("restores.yaml", func(ctx context.Context) (any, error) { return c.Restores(ctx, m) })
	objects("schedules.yaml", func(ctx context.Context) (any, error) { return c.Schedules(ctx, key) })
	objects("events.yaml", func(ctx context.Context) (any, error) { return c.Events(ctx, m) })
	in := screen.Input{Memcached: m, Flags: c.Flags, Now: c.Now()}
	a.add(ctx, "", "status.txt", func(context.Context) ([]byte, error) { return []byte(screen.NewStatus(in).Text()), nil })
	a.add(ctx, "", "why.txt", func(context.Context) ([]byte, error) { return []byte(screen.NewWhy(in).Text()), nil })
	for _, s := range m.Status.Shards {
		if s.PodName == "" {
			a.omit("the agent of "+s.Name, "the shard has no pod now")
			continue
		}
		a.add(ctx, "the answers of the agents", "agents/"+s.PodName+".json", func(ctx context.Context) ([]byte, error) {
			status, err := c.AgentStatus(ctx, m.Namespace, s.PodName)
			if err != nil {
				return nil, err
			}
			return json.MarshalIndent(status, "", "  ")
		})
		a.logs(ctx, c, "the logs of the agents", "logs", m.Namespace, s.PodName, "memcached")
	}
	pods, err := c.OperatorPods(ctx, operator)
	switch {
	case err != nil:
		a.omit("the operator's logs", explain(err))
	case len(pods) == 0:
		a.omit("the operator's logs", "namespace "+operator+" has no pod of it: use --operator-namespace")
	}
	for _, pod := range pods {
		a.logs(ctx, c, "the operator's logs", "operator", operator, pod.Name, "manager")
	}
}

// logs adds the log of a container, and that of the one before it, if there was one.
func (a *archive) logs(ctx context.Context, c *cluster.Cluster, group, folder, namespace, pod, container string) {
	for _, previous := range []bool{false, true} {
		suffix := ".log"
		if previous {
			suffix = ".previous.log"
		}
		if previous && !c.HasRestarted(ctx, client.ObjectKey{Namespace: namespace, Name: pod}, container) {
			continue
		}
		a.add(ctx, group, folder+"/"+pod+suffix, func(ctx context.Context) ([]byte, error) {
			log, err := c.Pods.Logs(ctx, namespace, pod, container, previous)
			if err != nil {
				return nil, err
			}
			kept, lines := screen.RedactLog(log, cluster.MaxFile)
			if lines > 0 {
				a.omit(folder+"/"+pod+suffix, fmt.Sprintf("%d lines of memcached, or before the last %d MiB", lines, cluster.MaxFile>>20))
			}
			return kept, nil
		})
	}
}
