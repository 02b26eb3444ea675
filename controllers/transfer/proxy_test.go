package transfer

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestJobsGetProxyWithoutPassword(t *testing.T) {
	for given, want := range map[string]string{
		"http://proxy.example:3128":                   "http://proxy.example:3128",
		"http://user:secret@proxy.example:3128":       "http://proxy.example:3128",
		"http://user:se%40cr%2Fet@proxy.example:3128": "http://proxy.example:3128",
		"http://secret@proxy.example:3128/":           "http://proxy.example:3128/",
		"user:secret@proxy.example:3128":              "proxy.example:3128",
		"user:se@cret@proxy.example:3128":             "proxy.example:3128",
		"http://user:se/cret@proxy.example:3128":      "proxy.example:3128",
		"proxy.example:3128":                          "proxy.example:3128",
		"socks5://user:secret@[fd00::1]:1080":         "socks5://[fd00::1]:1080",
	} {
		t.Run(given, func(t *testing.T) {
			t.Setenv("HTTPS_PROXY", given)
			t.Setenv("NO_PROXY", ".svc")
			environment, removed := ProxyEnvironment()
			if removed != (given != want) {
				t.Errorf("it reports that it removed a password: %t", removed)
			}
			for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
				i := slices.IndexFunc(environment, func(e corev1.EnvVar) bool { return e.Name == name })
				if i < 0 || environment[i].Value != want {
					t.Errorf("%s is not %s: %v", name, want, environment)
				}
			}
			for _, e := range environment {
				if strings.Contains(e.Value, "cret") {
					t.Errorf("%s is %s", e.Name, e.Value)
				}
			}
		})
	}
}
