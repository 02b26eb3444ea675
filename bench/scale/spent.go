package scale

import (
	"os"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/internal/scale"
	"github.com/memcached-operator/memcached-operator/test/bench/usage"
)

// spent is processor time by program.
type spent struct {
	// Machine is the time of all programs, Server that of API server and etcd, Bench that of this one with its kubelet.
	Machine, Operator, Server, Controllers, Bench time.Duration
}

func (s spent) minus(t spent) spent {
	return spent{s.Machine - t.Machine, s.Operator - t.Operator, s.Server - t.Server, s.Controllers - t.Controllers, s.Bench - t.Bench}
}

// others returns the time of programs that are not part of the run.
func (s spent) others() time.Duration {
	return max(s.Machine-s.Operator-s.Server-s.Controllers-s.Bench, 0)
}

// meter reads processor times.
type meter struct {
	scene           *scale.Scene
	etcd, apiServer int
	// before is the time of the operator's processes before the current one.
	before time.Duration
}

func newMeter(s *scale.Scene) (m *meter, err error) {
	m = &meter{scene: s}
	if m.etcd, err = usage.Child("etcd"); err != nil {
		return nil, err
	}
	m.apiServer, err = usage.Child("kube-apiserver")
	return m, err
}

// read returns the processor times until now.
func (m *meter) read() spent {
	// A process that has exited makes the phase fail elsewhere.
	of := func(pid int) time.Duration { cpu, _ := usage.CPU(pid); return cpu }
	s := spent{Operator: m.before, Server: of(m.apiServer) + of(m.etcd), Bench: of(os.Getpid())}
	s.Machine, _ = usage.Busy()
	if m.scene.Operator.Process != nil {
		s.Operator += of(m.scene.Operator.Process.Pid)
	}
	if m.scene.Controllers != nil {
		s.Controllers = of(m.scene.Controllers.Pid)
	}
	return s
}
