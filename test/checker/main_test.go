package checker

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestMain(m *testing.M) { pods.Main(m) }
