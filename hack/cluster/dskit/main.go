// Dskit tells which server the memcached client of github.com/grafana/dskit
// picks for each key: its arguments are the servers, as host:port, its standard
// input holds a key a line, and it prints a server a line.
//
// It asks no name server: each name gets an address of its own.
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/grafana/dskit/cache"
	"github.com/miekg/dns"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dskit:", err)
		os.Exit(1)
	}
}

func run(servers []string) error {
	var names resolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: names.dial}
	var selector cache.MemcachedJumpHashSelector
	if err := selector.SetServers(servers...); err != nil {
		return err
	}
	byAddress := make(map[string]string, len(servers))
	for _, server := range servers {
		address, err := net.ResolveTCPAddr("tcp", server)
		if err != nil {
			return err
		}
		byAddress[address.String()] = server
	}
	out := bufio.NewWriter(os.Stdout)
	keys := bufio.NewScanner(os.Stdin)
	for keys.Scan() {
		address, err := selector.PickServer(keys.Text())
		if err != nil {
			return err
		}
		fmt.Fprintln(out, byAddress[address.String()])
	}
	if err := keys.Err(); err != nil {
		return err
	}
	return out.Flush()
}

// resolver gives every name that it is asked for the next address.
type resolver struct {
	mu    sync.Mutex
	names []string
}

func (r *resolver) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go r.serve(&dns.Conn{Conn: ours})
	return theirs, nil
}

func (r *resolver) serve(c *dns.Conn) {
	defer c.Close()
	for {
		question, err := c.ReadMsg()
		if err != nil {
			return // the one who asked hung up
		}
		answer := new(dns.Msg).SetReply(question)
		if q := question.Question[0]; q.Qtype == dns.TypeA {
			answer.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
				A:   r.address(q.Name),
			}}
		}
		if err := c.WriteMsg(answer); err != nil {
			return
		}
	}
}

// address returns the same address for the same name.
func (r *resolver) address(name string) net.IP {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.names, name)
	if i < 0 {
		i = len(r.names)
		r.names = append(r.names, name)
	}
	return net.IPv4(127, 1, byte(i/250), byte(i%250+1))
}
