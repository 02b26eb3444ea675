package transfer

import (
	"net/url"
	"strings"

	"github.com/operator-framework/operator-lib/proxy"
	corev1 "k8s.io/api/core/v1"
)

// ProxyEnvironment returns the operator's own proxy as the environment of a Job, without the
// user and password of the URLs: everybody who may read pods in the Job's namespace would
// see them. It reports whether it removed any.
func ProxyEnvironment() (environment []corev1.EnvVar, removed bool) {
	environment = proxy.ReadProxyVarsFromEnv()
	for i := range environment {
		e := &environment[i]
		if strings.EqualFold(e.Name, "NO_PROXY") {
			continue
		}
		stripped := withoutUser(e.Value)
		removed = removed || stripped != e.Value
		e.Value = stripped
	}
	return environment, removed
}

// withoutUser removes user and password from a proxy's URL, which may lack the scheme.
func withoutUser(proxy string) string {
	if u, err := url.Parse(proxy); err == nil && u.Host != "" {
		if u.User == nil {
			return proxy
		}
		u.User = nil
		return u.String()
	}
	return proxy[strings.LastIndex(proxy, "@")+1:]
}
