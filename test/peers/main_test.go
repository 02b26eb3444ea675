package peers

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestMain(m *testing.M) {
	pods.Main(m, "MEMCACHED_CLIENTS", "S3_SERVER", "PROMTOOL", "MEMCACHED_EXPORTER")
}
