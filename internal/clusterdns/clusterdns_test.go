package clusterdns

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNamesWithADomainBecomeAbsolute(t *testing.T) {
	for address, want := range map[string]string{
		"cache-0.shop.svc.cluster.local:11211":  "cache-0.shop.svc.cluster.local.:11211",
		"cache-0.shop.svc.cluster.local.:11211": "cache-0.shop.svc.cluster.local.:11211",
		"a.b.svc.k8s.example.com:1":             "a.b.svc.k8s.example.com.:1",
		"10.0.0.1:11211":                        "10.0.0.1:11211",
		"[fd00::1]:11211":                       "[fd00::1]:11211",
		"localhost:11211":                       "localhost:11211",
		"cache-0.shop.svc.cluster.local":        "cache-0.shop.svc.cluster.local", // no port
	} {
		if got := Absolute(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

func TestDomainIsThatOfTheSearchList(t *testing.T) {
	const kubelet = "search team.svc.k8s.example.com svc.k8s.example.com k8s.example.com example.com\nnameserver 10.96.0.10\noptions ndots:5\n"
	for name, c := range map[string]struct{ resolvConf, want string }{
		"in a pod":                    {kubelet, "k8s.example.com"},
		"final dots":                  {"search team.svc.example.org. svc.example.org. example.org.", "example.org"},
		"in a namespace named svc":    {"search svc.svc.example.org svc.example.org example.org", "example.org"},
		"the last search line counts": {"search a.example.com svc.example.com\n" + kubelet, "k8s.example.com"},
		"search domains of a machine": {"search example.com svc.example.org", Default},
		"one search domain":           {"search svc.example.org", Default},
		"no search domain":            {"nameserver 10.96.0.10", Default},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "resolv.conf")
			if err := os.WriteFile(path, []byte(c.resolvConf), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := domain(path); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if got := domain(filepath.Join(t.TempDir(), "missing")); got != Default {
		t.Errorf("got %s without a resolv.conf", got)
	}
}
