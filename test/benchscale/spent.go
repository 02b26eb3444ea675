package main

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/test/benchscale/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
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

type reading struct {
	at time.Time
	spent
}

// readInterval is many times the resolution of processor times, which is 10 ms.
const readInterval = 500 * time.Millisecond

// meter reads processor times periodically.
type meter struct {
	plane *plane
	lock  sync.Mutex
	// operator is the process that runs, or 0; before is the time of the processes before it.
	operator     int
	before, last time.Duration
	readings     []reading
}

func startMeter(ctx context.Context, p *plane) *meter {
	m := &meter{plane: p}
	go func() {
		for cluster.Sleep(ctx, readInterval) == nil {
			m.read()
		}
	}()
	return m
}

// follow sets the process of the operator; 0 means none.
func (m *meter) follow(pid int) {
	m.read()
	m.lock.Lock()
	defer m.lock.Unlock()
	m.operator, m.before, m.last = pid, m.before+m.last, 0
}

// read reads the processor times. The time of a process that has exited is that of the last reading.
func (m *meter) read() reading {
	m.lock.Lock()
	defer m.lock.Unlock()
	r := reading{at: time.Now()}
	if len(m.readings) > 0 {
		r.spent = m.readings[len(m.readings)-1].spent
	}
	if busy, err := usage.Busy(); err == nil {
		r.Machine = busy
	}
	if cpu, err := usage.CPU(m.operator); err == nil && m.operator != 0 {
		m.last = cpu
	}
	r.Operator = m.before + m.last
	server, err := usage.CPU(m.plane.apiServer)
	etcd, err2 := usage.CPU(m.plane.etcd)
	if err == nil && err2 == nil {
		r.Server = server + etcd
	}
	if m.plane.controllers != nil {
		if cpu, err := usage.CPU(m.plane.controllers.process.Pid); err == nil {
			r.Controllers = cpu
		}
	}
	if cpu, err := usage.CPU(os.Getpid()); err == nil {
		r.Bench = cpu
	}
	m.readings = append(m.readings, r)
	return r
}

// slices returns the processor times between two moments.
func (m *meter) slices(from, until time.Time) []usage.Slice {
	m.lock.Lock()
	defer m.lock.Unlock()
	var slices []usage.Slice
	for i := 1; i < len(m.readings); i++ {
		a, b := m.readings[i-1], m.readings[i]
		if a.at.Before(from) || b.at.After(until) || b.at.Sub(a.at) < readInterval/2 {
			continue
		}
		d := b.minus(a.spent)
		slices = append(slices, usage.Slice{From: a.at, Until: b.at, Machine: d.Machine, Server: d.Server, Others: []time.Duration{d.Operator, d.Controllers, d.Bench}})
	}
	return slices
}
