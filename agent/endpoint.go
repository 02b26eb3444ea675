package main

import (
	"net"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

// endpoint is where and how the agent speaks with its memcached.
type endpoint struct {
	network string
	address string
	// text is false where memcached would not answer the plain text protocol:
	// TLS without a plain listener, SASL, or binary only. Then a connection that
	// is taken must do, and there are no stats.
	text bool
}

// endpointOf returns the endpoint that memcached opens under these arguments.
func endpointOf(words []string) endpoint {
	e := endpoint{network: "tcp", text: true}
	port, socket := "11211", ""
	var tls bool
	var listens []string
	for _, option := range geometry.Options(words) {
		switch option.Letter {
		case 'p':
			port = option.Value
		case 's':
			socket = option.Value
		case 'l':
			listens = append(listens, strings.FieldsFunc(option.Value, func(r rune) bool { return r == ',' || r == ';' })...)
		case 'Z':
			tls = true
		case 'S':
			e.text = false
		case 'B':
			e.text = e.text && option.Value != "binary"
		}
	}
	if socket != "" {
		return endpoint{network: "unix", address: socket, text: e.text}
	}
	host := "127.0.0.1"
	plain := !tls
	if len(listens) > 0 {
		chosen := listens[0]
		for _, listen := range listens {
			if strings.HasPrefix(listen, "notls:") {
				chosen, plain = listen, true
				break
			}
		}
		host, port = splitListen(chosen, port)
	}
	e.text = e.text && plain
	e.address = net.JoinHostPort(host, port)
	return e
}

// splitListen reads one address of -l: perhaps a kind of TLS, a host, perhaps a port.
func splitListen(listen, port string) (string, string) {
	for _, kind := range []string{"notls:", "btls:", "mtls:"} {
		listen = strings.TrimPrefix(listen, kind)
	}
	host := listen
	if h, p, err := net.SplitHostPort(listen); err == nil {
		host, port = h, p
	}
	host = strings.Trim(host, "[]")
	switch host {
	case "", "*", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return host, port
}
