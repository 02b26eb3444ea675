package clusterdns

import (
	"os"
	"path/filepath"
	"testing"
)

func TestServiceNamesBecomeAbsolute(t *testing.T) {
	const kubelet = "search team.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n"
	for name, c := range map[string]struct{ resolvConf, address, want string }{
		"in a pod":                    {kubelet, "cache-0.shop.svc:11211", "cache-0.shop.svc.cluster.local.:11211"},
		"another domain":              {"search team.svc.k8s.example.com svc.k8s.example.com k8s.example.com example.com", "a.b.svc:1", "a.b.svc.k8s.example.com.:1"},
		"final dots":                  {"search team.svc.cluster.local. svc.cluster.local. cluster.local.", "a.b.svc:1", "a.b.svc.cluster.local.:1"},
		"in a namespace named svc":    {"search svc.svc.cluster.local svc.cluster.local cluster.local", "a.b.svc:1", "a.b.svc.cluster.local.:1"},
		"the last search line counts": {"search a.example.com svc.example.com\n" + kubelet, "a.b.svc:1", "a.b.svc.cluster.local.:1"},
		"an absolute name":            {kubelet, "cache-0.shop.svc.cluster.local.:11211", "cache-0.shop.svc.cluster.local.:11211"},
		"a name with the domain":      {kubelet, "cache-0.shop.svc.cluster.local:11211", "cache-0.shop.svc.cluster.local:11211"},
		"a name outside the cluster":  {kubelet, "cache.example.com:11211", "cache.example.com:11211"},
		"an address":                  {kubelet, "10.0.0.1:11211", "10.0.0.1:11211"},
		"no port":                     {kubelet, "cache-0.shop.svc", "cache-0.shop.svc"},
		"search domains of a machine": {"search example.com svc.example.org", "a.b.svc:1", "a.b.svc:1"},
		"one search domain":           {"search svc.cluster.local", "a.b.svc:1", "a.b.svc:1"},
		"no search domain":            {"nameserver 10.96.0.10", "a.b.svc:1", "a.b.svc:1"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "resolv.conf")
			if err := os.WriteFile(path, []byte(c.resolvConf), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := absolute(c.address, path); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if got := absolute("a.b.svc:1", filepath.Join(t.TempDir(), "missing")); got != "a.b.svc:1" {
		t.Errorf("got %s without a resolv.conf", got)
	}
}
