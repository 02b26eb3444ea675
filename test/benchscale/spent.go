package main

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/test/benchscale/usage"
)

// spent is processor time since some moment, by who spent it.
type spent struct {
	// Machine is all of it, Server that of API server and etcd, Bench that of this
	// program, which is the kubelets too.
	Machine, Operator, Server, Controllers, Bench time.Duration
}

func (s spent) minus(t spent) spent {
	return spent{s.Machine - t.Machine, s.Operator - t.Operator, s.Server - t.Server, s.Controllers - t.Controllers, s.Bench - t.Bench}
}

// others is what programs spent that have nothing to do with the run.
func (s spent) others() time.Duration {
	return max(s.Machine-s.Operator-s.Server-s.Controllers-s.Bench, 0)
}

// reading is what was spent by a moment.
type reading struct {
	at time.Time
	spent
}

// readEvery is how often it is looked at. Processor times come in ticks of 10 ms.
const readEvery = 500 * time.Millisecond

// meter reads what is spent, again and again.
type meter struct {
	plane *plane
	lock  sync.Mutex
	// operator is the one that runs now, 0 for none, and before what those before it
	// had spent.
	operator     int
	before, last time.Duration
	readings     []reading
}

func startMeter(ctx context.Context, p *plane) *meter {
	m := &meter{plane: p}
	go func() {
		for sleep(ctx, readEvery) == nil {
			m.read()
		}
	}()
	return m
}

// follow has another operator metered; 0 is none.
func (m *meter) follow(pid int) {
	m.read()
	m.lock.Lock()
	defer m.lock.Unlock()
	m.operator, m.before, m.last = pid, m.before+m.last, 0
}

// read reads what is spent by now. A process that has ended has spent what it had when
// it was last looked at.
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
	server, err := usage.CPU(m.plane.apiServer.process.Pid)
	etcd, err2 := usage.CPU(m.plane.etcd.process.Pid)
	if err == nil && err2 == nil {
		r.Server = server + etcd
	}
	if cpu, err := usage.CPU(m.plane.controllers.process.Pid); err == nil {
		r.Controllers = cpu
	}
	if cpu, err := usage.CPU(os.Getpid()); err == nil {
		r.Bench = cpu
	}
	m.readings = append(m.readings, r)
	return r
}

// slices returns what was spent from one moment to another, stretch by stretch.
func (m *meter) slices(from, until time.Time) []usage.Slice {
	m.lock.Lock()
	defer m.lock.Unlock()
	var slices []usage.Slice
	for i := 1; i < len(m.readings); i++ {
		a, b := m.readings[i-1], m.readings[i]
		if a.at.Before(from) || b.at.After(until) || b.at.Sub(a.at) < readEvery/2 {
			continue
		}
		d := b.minus(a.spent)
		slices = append(slices, usage.Slice{From: a.at, Until: b.at, Machine: d.Machine, Server: d.Server, Others: []time.Duration{d.Operator, d.Controllers, d.Bench}})
	}
	return slices
}
