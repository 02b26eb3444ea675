package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// requestTimeout is how long a request to the API server may take: its own limit.
const requestTimeout = time.Minute

var errSilent = fmt.Errorf("the API server hasn't answered within %s: %w", requestTimeout, context.DeadlineExceeded)

// Limit ends the requests to an API server that holds its connections and is silent. Else each would keep a worker
// forever. Watches have no end: of them it limits the wait for the beginning of the answer. rest.Config.Timeout would stop watches.
func Limit(next http.RoundTripper) http.RoundTripper { return limited{next} }

type limited struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(requestTimeout, func() { cancel(errSilent) })
	finish := func() {
		timer.Stop()
		cancel(nil)
	}
	response, err := l.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		finish()
		return nil, explain(ctx, err)
	}
	if slices.Contains([]string{"true", "1"}, r.URL.Query().Get("watch")) {
		timer.Stop()
	}
	response.Body = &limitedBody{response.Body, ctx, finish}
	return response, nil
}

type limitedBody struct {
	io.ReadCloser
	ctx    context.Context
	finish func()
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, explain(b.ctx, err)
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	b.finish()
	return b.ReadCloser.Close()
}

// explain returns why a request failed.
func explain(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}
