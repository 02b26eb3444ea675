// Package cmdline reads what memcached's arguments say, as the operator writes them into an annotation.
package cmdline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/args"
)

// Parse parses the JSON array of memcached's argument words. An empty text
// means memcached's defaults. Options that would take memcached out of the agent's control are an error.
func Parse(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var words []string
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	err := decoder.Decode(&words)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("unexpected text after the array")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON array of strings: %w", err)
	}
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return nil, fmt.Errorf("argument %q contains a NUL byte", word)
		}
	}
	for _, option := range args.Options(words) {
		if reason, forbidden := forbiddenOptions[option.Letter]; forbidden {
			return nil, fmt.Errorf("option -%c is not allowed: %s", option.Letter, reason)
		}
	}
	return words, nil
}

// forbiddenOptions would take memcached out of the agent's control.
var forbiddenOptions = map[byte]string{
	'e': "the agent sets the file of the restartable cache",
	'd': "memcached must stay a child of the agent",
	'h': "memcached would print its help and exit",
	'i': "memcached would print its license and exit",
	'V': "memcached would print its version and exit",
}

// memcached counts what it opens itself among its connections (-c): up to 5 files for each
// thread and 10 others, measured with 1.6.18, 1.6.38 and 1.6.45. The agent opens some, too.
const (
	filesOfThread = 5
	otherFiles    = 16
	// defaultThreads and defaultConnections are memcached's -t and -c.
	defaultThreads     = 4
	defaultConnections = 1024
)

// ForClients returns words with a higher limit of connections, so that clients can use as many as words say. mostFiles
// is how many files a process can open.
func ForClients(words []string, mostFiles uint64) []string {
	limit, threads := numberOption(words, 'c', 0), numberOption(words, 't', defaultThreads)
	if limit <= 0 {
		return words
	}
	total := limit + filesOfThread*threads + otherFiles
	if mostFiles < uint64(total) {
		total = max(limit, int64(mostFiles))
	}
	return append(slices.Clone(words), "-c", strconv.FormatInt(total, 10))
}

// buffersOption bounds the buffers of requests that memcached has begun to read, and of answers that clients don't read, in
// MiB. Without it, a few hundred slow clients let the kernel kill the container. memcached closes a connection beyond it.
const buffersOption = "read_buf_mem_limit"

// WithBuffers returns words with that option, unless they have it. room is how many bytes memcached may allocate. One half
// is for the buffers, and the other for the hash table and requests that are larger than a buffer.
func WithBuffers(words []string, room int64) []string {
	if _, stated := extendedOption(words, buffersOption); stated {
		return words
	}
	return append(slices.Clone(words), "-o", fmt.Sprintf("%s=%d", buffersOption, max(room/2>>20, 8)))
}

// Connections returns how many connections memcached keeps at most.
func Connections(words []string) int64 { return numberOption(words, 'c', defaultConnections) }

// numberOption returns the value of an option that is a number.
func numberOption(words []string, letter byte, number int64) int64 {
	for _, option := range args.Options(words) {
		if option.Letter == letter {
			number = args.Number(option.Value)
		}
	}
	return number
}

// TLSMode is what memcached's arguments say of TLS.
type TLSMode struct {
	// On is whether memcached serves TLS, and Plain whether it also serves without it.
	On, Plain bool
	// VerifiesClients is whether clients need a certificate, too.
	VerifiesClients bool
	// Port is that of the last -p, or else memcached's default.
	Port string
}

// TLSModeOf returns the last value of each option, as memcached does.
func TLSModeOf(words []string) TLSMode {
	m := TLSMode{Port: strconv.Itoa(wire.MemcachedPort)}
	for _, option := range args.Options(words) {
		switch option.Letter {
		case 'Z':
			m.On = true
		case 'p':
			m.Port = option.Value
		case 'l':
			m.Plain = m.Plain || strings.HasPrefix(option.Value, "notls:")
		case 'o':
			for _, pair := range args.Suboptions(option.Value) {
				m.VerifiesClients = m.VerifiesClients || pair[0] == "ssl_verify_mode" && pair[1] != "0"
			}
		}
	}
	return m
}

// Address returns the address at which memcached accepts TLS. host stands for all of the pod's. It is a loopback
// address with loopbackPort while memcached also serves without TLS.
func (m TLSMode) Address(host string, loopbackPort int) string {
	if m.Plain {
		return net.JoinHostPort(tlsLoopback, strconv.Itoa(loopbackPort))
	}
	return host + ":" + m.Port
}

// tlsLoopback is a second loopback address, since one port of an address can't be both.
const tlsLoopback = "127.0.0.2"

// PlainAddress returns where memcached without TLS responds to the agent, as host:port.
func PlainAddress(words []string) string { return net.JoinHostPort("127.0.0.1", TLSModeOf(words).Port) }

// RequiresLogin reports whether clients must log in.
func RequiresLogin(words []string) bool {
	return slices.ContainsFunc(args.Options(words), func(o args.Option) bool { return o.Letter == 'Y' })
}

// Unprotected returns why memcached must not run with words after it has served clients with others: it would lack a
// protection that the spec doesn't switch off on purpose.
func Unprotected(former, words []string, stated wire.Protections) error {
	lost := func(name string, has func([]string) bool) bool {
		return has(former) && !has(words) && stated[name] != wire.ProtectionOff
	}
	const advice = "; restore spec.%[1]s, or set spec.%[1]s.mode to " + wire.ProtectionOff
	switch {
	case lost(wire.ProtectionAuth, RequiresLogin):
		return fmt.Errorf("clients would no longer have to log in, and the spec doesn't state that"+advice, wire.ProtectionAuth)
	case lost(wire.ProtectionTLS, func(words []string) bool { return TLSModeOf(words).On }):
		return fmt.Errorf("memcached would no longer serve TLS, and the spec doesn't state that"+advice, wire.ProtectionTLS)
	}
	return nil
}

// IdleTimeout returns the option idle_timeout; 0 without it.
func IdleTimeout(words []string) time.Duration {
	value, _ := extendedOption(words, "idle_timeout")
	return time.Duration(args.Number(value)) * time.Second
}

// Verbosity returns how often words have -v.
func Verbosity(words []string) (n int) {
	for _, option := range args.Options(words) {
		if option.Letter == 'v' {
			n++
		}
	}
	return n
}

// extendedOption returns the last value of an option of -o, and whether words have it.
func extendedOption(words []string, name string) (value string, ok bool) {
	for _, option := range args.Options(words) {
		if option.Letter != 'o' {
			continue
		}
		for _, pair := range args.Suboptions(option.Value) {
			if pair[0] == name {
				value, ok = pair[1], true
			}
		}
	}
	return value, ok
}
