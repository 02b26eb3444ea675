package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// maxAnswer bounds an answer of an agent, which is about 1 KB.
const maxAnswer = 64 << 10

// maxMetrics bounds those of an agent, which are about 30 KB, and more with slab classes.
const maxMetrics = 1 << 20

// pods reaches into pods as kubectl port-forward does, which passes NetworkPolicies.
type pods struct {
	config *rest.Config
	base   *url.URL
}

func newPods(config *rest.Config) (*pods, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Timeout = 0 // of a complete stream
	return &pods{config: config, base: base}, nil
}

// AgentStatus returns what the agent of a pod answers.
func (p *pods) AgentStatus(ctx context.Context, namespace, pod string) (status wire.Status, err error) {
	text, err := p.get(ctx, namespace, pod, wire.Port, wire.StatusPath, maxAnswer)
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal(text, &status)
}

// Metrics returns the metrics of the agent of a pod.
func (p *pods) Metrics(ctx context.Context, namespace, pod string) (string, error) {
	text, err := p.get(ctx, namespace, pod, wire.MetricsPort, "/metrics", maxMetrics)
	return string(text), err
}

// get returns what a port of a pod answers over HTTP.
func (p *pods) get(ctx context.Context, namespace, pod string, port int, path string, most int64) ([]byte, error) {
	conn, err := p.Dial(ctx, namespace, pod, port)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	text, err := get(ctx, conn, "http://"+pod+path, most)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return text, err
}

func get(ctx context.Context, conn net.Conn, url string, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	if err := request.Write(conn); err != nil {
		return nil, fmt.Errorf("sending a request: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, most))
}

// Dial connects to a port of a pod.
func (p *pods) Dial(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	// A dialer takes no context.
	type result struct {
		conn *forwarded
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := p.forward(namespace, pod, port)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, r.err
		}
		return r.conn, nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

func (p *pods) forward(namespace, pod string, port int) (*forwarded, error) {
	dialer, err := p.dialer(p.base.JoinPath("api", "v1", "namespaces", namespace, "pods", pod, "portforward"))
	if err != nil {
		return nil, err
	}
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, asRejection(err)
	}
	failure, data, err := streams(connection, port)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a stream: %w", err), connection.Close())
	}
	return &forwarded{connection: connection, failure: failure, data: data, address: address(net.JoinHostPort(pod, strconv.Itoa(port)))}, nil
}

// streams opens those of a connection to a port of the pod: one for an error, and one for data.
func streams(connection httpstream.Connection, port int) (failure, data httpstream.Stream, err error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	if failure, err = connection.CreateStream(headers); err != nil {
		return nil, nil, err
	}
	if err := failure.Close(); err != nil { // nothing is sent
		return nil, nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err = connection.CreateStream(headers)
	return failure, data, err
}

// dialer uses WebSocket, and SPDY where an older API server or a proxy can't.
func (p *pods) dialer(url *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(p.config)
	if err != nil {
		return nil, err
	}
	webSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, p.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(webSocket, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), canFallBack), nil
}

// asRejection returns the error of a stream that the API server forbids as that of a request: the clients of streams pass on
// its text only.
func asRejection(err error) error {
	_, text, upgrades := strings.Cut(err.Error(), "unable to upgrade connection: ")
	if !upgrades || !strings.Contains(text, " is forbidden: ") {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: text,
	}}
}

func canFallBack(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}
