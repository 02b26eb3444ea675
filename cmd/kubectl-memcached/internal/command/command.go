// Package command has the verbs of the plugin: it parses arguments, prints, and chooses the exit code.
package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
)

// requestTimeout is the default of --request-timeout, so that no verb hangs.
const requestTimeout = "15s"

const help = `Show and control the Memcacheds of the memcached-operator.

The plugin uses your permissions, and names the one that is missing.

Exit codes:
  0  done; of status and why: the Memcached is ready
  1  failed; the message says why
  2  wrong arguments or flags
  3  status, why: not ready, and nothing requires manual intervention; ring: unclear, or clients disagree
  4  status, why: not ready until you intervene
  5  a permission is missing; the message names it
  6  get, delete: the shard doesn't have the key

For completion, put an executable file "kubectl_complete-memcached" into your PATH, with the lines
  #!/bin/sh
  exec kubectl memcached __complete "$@"`

// plugin is what the verbs share.
type plugin struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	// progress takes what a verb does that takes a while.
	progress io.Writer
	// connect returns the cluster that the flags select.
	connect func() (*cluster.Cluster, error)
	// pause waits until it is time to look again; it returns false if the user has interrupted.
	pause func(ctx context.Context, d time.Duration) bool
	// dryRun is whether the API server checks writes only.
	dryRun bool
	// began is whether the arguments were accepted.
	began bool
}

// Main runs the plugin and returns its exit code.
func Main(version string, args []string) int {
	ctrllog.SetLogger(logr.Discard()) // errors are returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	p := &plugin{flags: genericclioptions.NewConfigFlags(true), streams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, progress: io.Discard, pause: pause}
	if isTerminal(os.Stderr) {
		p.progress = os.Stderr
	}
	p.connect = p.dial
	return p.run(ctx, version, args)
}

func (p *plugin) run(ctx context.Context, version string, args []string) int {
	root := p.root(version)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !p.began {
		err = usageError{err}
	}
	if _, silent := err.(stateError); err != nil && !silent { //nolint:errorlint // verbs return it as it is
		fmt.Fprintf(p.streams.ErrOut, "Error: %s\n", explain(err))
	}
	return exitCode(err)
}

func (p *plugin) root(version string) *cobra.Command {
	timeout := requestTimeout
	p.flags.Timeout = &timeout
	root := &cobra.Command{
		Use: "kubectl-memcached", Short: "Show and control Memcacheds", Long: help, Version: version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl memcached"},
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) { p.began = true },
	}
	root.SetIn(p.streams.In)
	root.SetOut(p.streams.Out)
	root.SetErr(p.streams.ErrOut)
	p.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(p.status(), p.why(), p.addDryRun(p.restart()), p.addDryRun(p.move()), p.addDryRun(p.pauseVerb()), p.addDryRun(p.resume()),
		p.addDryRun(p.retry()), p.addDryRun(p.scaled()), p.purge(), p.addDryRun(p.backup()), p.addDryRun(p.restore()), p.hotkeys(), p.clients(),
		p.get(), p.set(), p.delete(), p.shell(), p.ring(), p.report(), p.top(), p.size())
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Show the release of the plugin", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Run: func(*cobra.Command, []string) { fmt.Fprintln(p.streams.Out, version) },
	})
	return root
}

// dial connects to the cluster that the flags select.
func (p *plugin) dial() (*cluster.Cluster, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NewWarningWriter(p.streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return cluster.New(config)
}

// at returns the cluster that the flags select, and the key of a Memcached in their namespace.
func (p *plugin) at(name string) (*cluster.Cluster, client.ObjectKey, error) {
	namespace, _, err := p.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, client.ObjectKey{}, fmt.Errorf("reading the namespace in the kubeconfig: %w", err)
	}
	c, err := p.connect()
	if err != nil {
		return nil, client.ObjectKey{}, err
	}
	if p.dryRun {
		c.Client = client.NewDryRunClient(c.Client)
	}
	c.Progress.Out = p.progress
	c.Flags = "-n " + namespace
	for _, flag := range [][2]string{{"kubeconfig", *p.flags.KubeConfig}, {"context", *p.flags.Context}, {"cluster", *p.flags.ClusterName}, {"server", *p.flags.APIServer}} {
		if flag[1] != "" {
			c.Flags += " --" + flag[0] + "=" + quoted(flag[1])
		}
	}
	return c, client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// plain are words that a shell takes as they are.
var plain = regexp.MustCompile(`^[\w./:@=,-]+$`)

// quoted returns a word of a command for a shell.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// addDryRun adds the flag of a verb that writes objects.
func (p *plugin) addDryRun(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "Let the API server check the request, and change nothing")
	cmd.PreRun = func(*cobra.Command, []string) {
		if p.dryRun {
			fmt.Fprintln(p.streams.ErrOut, "A dry run changes nothing. Without --dry-run:")
		}
	}
	return cmd
}

// find returns the cluster, and a Memcached in the namespace that the flags select.
func (p *plugin) find(ctx context.Context, name string) (*cluster.Cluster, *v1beta1.Memcached, error) {
	c, key, err := p.at(name)
	if err != nil {
		return nil, nil, err
	}
	m, err := c.Memcached(ctx, key)
	return c, m, err
}

// bounded returns a context for one answer, which ends after --request-timeout.
func (p *plugin) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout, err := clientcmd.ParseTimeout(*p.flags.Timeout)
	if err != nil || timeout <= 0 { // the flag was read when the plugin connected, and 0 or less is no limit
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// completeNames completes the name of a Memcached.
func (p *plugin) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, key, err := p.at("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := c.Memcacheds(cmd.Context(), key.Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, 0, len(all))
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// isTerminal reports whether an output is one.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
