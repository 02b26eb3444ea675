package cluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

const (
	// container of a shard's pod.
	container = "memcached"
	// agentPath is the agent's program in it.
	agentPath = "/opt/agent/agent"
)

// Agent runs a command of the agent in a pod and copies what it prints, as kubectl exec does.
func (p *pods) Agent(ctx context.Context, namespace, pod string, out io.Writer, args ...string) error {
	address := p.base.JoinPath("api", "v1", "namespaces", namespace, "pods", pod, "exec")
	address.RawQuery = url.Values{"container": {container}, "stdout": {"true"}, "stderr": {"true"}, "command": append([]string{agentPath}, args...)}.Encode()
	webSocket, err := remotecommand.NewWebSocketExecutor(p.config, http.MethodGet, address.String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(p.config, http.MethodPost, address)
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewFallbackExecutor(webSocket, spdy, canFallBack)
	if err != nil {
		return err
	}
	var message strings.Builder
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out, Stderr: &message})
	var exit exec.CodeExitError
	if errors.As(err, &exit) && message.Len() > 0 {
		return errors.New(strings.TrimSpace(message.String()))
	}
	if err != nil {
		return asRejection(err)
	}
	return nil
}
