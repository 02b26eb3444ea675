package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
)

// The exit codes, which --help lists.
const (
	exitFailed            = 1
	exitUsage             = 2
	exitNotReady          = 3
	exitNeedsIntervention = 4
	exitDenied            = 5
	exitNotFound          = 6
)

// errNotFound is a key that a shard doesn't have.
var errNotFound = errors.New("doesn't have the key")

// stateError is the end of a verb that showed a Memcached which isn't ready. It prints nothing.
type stateError struct{ state screen.State }

func (e stateError) Error() string { return string(e.state) }

// usageError is an error about arguments or flags.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode returns the exit code for the error of a verb.
func exitCode(err error) int {
	var (
		usage usageError
		state stateError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &state) && state.state == screen.NeedsIntervention:
		return exitNeedsIntervention
	case errors.As(err, &state):
		return exitNotReady
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errNotFound):
		return exitNotFound
	}
	if _, ok := missingRight(err); ok {
		return exitDenied
	}
	return exitFailed
}

// right is what a user may not do.
type right struct{ user, verb, resource, group, namespace string }

// denied is how an API server rejects a request for want of a right. Admission and quotas use the same code.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// missingRight returns the right for want of which the API server rejected a request.
func missingRight(err error) (right, bool) {
	if !apierrors.IsForbidden(err) {
		return right{}, false
	}
	words := denied.FindStringSubmatch(err.Error())
	if words == nil {
		return right{}, false
	}
	return right{user: words[1], verb: words[2], resource: words[3], group: words[4], namespace: words[5]}, true
}

func (r right) String() string {
	resource := r.resource
	if r.group != "" {
		plural, subresource, isSubresource := strings.Cut(resource, "/")
		if resource = plural + "." + r.group; isSubresource {
			resource += "/" + subresource
		}
	}
	where, create := "all namespaces", "clusterrolebinding"
	if r.namespace != "" {
		where, create = "namespace "+r.namespace, "-n "+r.namespace+" create rolebinding"
	}
	subject := fmt.Sprintf("--user=%q", r.user)
	if account, ok := strings.CutPrefix(r.user, "system:serviceaccount:"); ok {
		subject = "--serviceaccount=" + account
	}
	if r.namespace == "" {
		create = "create " + create
	}
	return fmt.Sprintf("%s lacks the permission to %s %s in %s. Ask an administrator for it; the ClusterRole %[5]q has it: kubectl %[6]s memcached-%[5]s --clusterrole=%[5]s %[7]s",
		r.user, r.verb, resource, where, r.role(), create, subject)
}

// role is the least of Kubernetes' roles for users that has the right: the operator's are part of them.
func (r right) role() string {
	reads := r.verb == "get" || r.verb == "list" || r.verb == "watch"
	if reads && (r.resource == "pods/log" || !strings.HasPrefix(r.resource, "pods/")) && r.resource != "secrets" {
		return "view"
	}
	return "edit"
}

// explain describes an error for a terminal, and ends with what to do.
func explain(err error) string { return printers.EscapeTerminal(explanation(err)) }

func explanation(err error) string {
	if r, ok := missingRight(err); ok {
		return r.String()
	}
	var (
		status  apierrors.APIStatus
		network net.Error
		request *url.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse): // it doesn't know the resource
		return "this cluster doesn't have the CRDs of the operator: install it, or choose another cluster with --context"
	case errors.As(err, &status) && apierrors.IsNotFound(err) && ptr.Deref(status.Status().Details, metav1.StatusDetails{}).Kind == "pods":
		return err.Error() + ": it was deleted a moment ago; try again"
	case apierrors.IsNotFound(err):
		return err.Error() + ": \"kubectl memcached status -A\" lists all Memcacheds"
	case errors.As(err, &network) && network.Timeout(): // as the error of a context is
		return err.Error() + ": check the network, or raise --request-timeout"
	case errors.As(err, &request): // of the API server
		return err.Error() + ": check the network, and the cluster that --context or the kubeconfig names"
	case apierrors.IsUnauthorized(err):
		return err.Error() + ": log in to the cluster again, or check the user in the kubeconfig"
	}
	return err.Error()
}
