// Package fake is a memcached for tests: a part of its protocol, its clock, and a network in memory, so that tests
// in a bubble of testing/synctest take no time. What it does was recorded with memcached
// (internal/memcached/protocol/testdata) or is in its source.
package fake

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// clockStart is what the clock shows when memcached starts, in seconds.
	clockStart = 62
	// updateInterval is ITEM_UPDATE_INTERVAL of memcached.h, in seconds: uptime is what the clock shows without it.
	updateInterval = 60
	// maxDuration is the longest exptime that is a duration, in seconds.
	maxDuration = 30 * 24 * 60 * 60
	// itemOverhead is what memcached adds to key and value, in bytes.
	itemOverhead = 48 + 8 + 3
)

// Item is an item of a server.
type Item struct {
	Value string
	Flags uint64
	// Expires is a Unix time in seconds, according to the server's clock; 0 for never.
	Expires int64
	// Binary is whether the key was sent in base64.
	Binary bool
}

type stored struct {
	Item
	cas        uint64
	accessed   int64 // a Unix time
	stale, won bool
}

// Server is a memcached. Set its exported fields before it serves, or in Before.
type Server struct {
	// Started is what the server takes for the Unix time at which its clock showed 0. It is another time if the
	// clock of the machine, or the server's own over a warm restart, was off.
	Started int64
	// ItemSizeMax is -I in bytes, MaxItems how many items there is room for, 0 for no limit. NoEvictions is -M, NoCAS -C.
	ItemSizeMax, MaxItems int
	NoEvictions, NoCAS    bool
	// Automove is the setting slab_automove.
	Automove string
	// LogIn, if any, accepts a name and a password, with a space between them.
	LogIn func(credentials string) bool
	// PID is the process, and Lookups counts the gets.
	PID     int
	Lookups atomic.Int64
	// Busy is how many key dumps are rejected. Dump, if any, is the answer to all.
	Busy int
	Dump string
	// Before, if any, is called before each request, which it may delay. If it returns an answer, the request does nothing.
	Before func(request string) (answer string)

	mu       sync.Mutex
	zero     time.Time // when the clock showed 0
	frozen   *uint32   // what the clock shows
	items    map[string]*stored
	changes  uint64
	flushes  int
	requests []string
	conns    map[net.Conn]bool
	listener net.Listener
}

// New returns an empty server whose clock is right.
func New() *Server {
	zero := time.Now().Add(-clockStart * time.Second)
	return &Server{
		Started: zero.Unix(), zero: zero, ItemSizeMax: 1 << 20, Automove: "1", items: map[string]*stored{}, changes: 1 << 40, conns: map[net.Conn]bool{},
	}
}

// Serve accepts connections at an address of a network.
func (s *Server) Serve(network *Network, address string) *Server {
	s.ServeOn(network.Listen(address))
	return s
}

// ServeOn accepts connections until the listener is closed.
func (s *Server) ServeOn(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
}

// Stop closes all connections and the listener. The items remain.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.listener.Close()
	s.disconnect()
}

// Disconnect closes all connections.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect()
}

func (s *Server) disconnect() {
	for conn := range s.conns {
		_ = conn.Close()
	}
	clear(s.conns)
}

func (s *Server) isOpen(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[conn]
}

// Freeze lets the clock stand still, as it does while memcached gets no processor time, until Thaw.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.frozen = &now
}

// Thaw lets the clock show the time again.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = nil
}

// now returns what the clock shows.
func (s *Server) now() uint32 {
	if s.frozen != nil {
		return *s.frozen
	}
	return uint32(time.Since(s.zero) / time.Second)
}

func (s *Server) unix() int64 { return s.Started + int64(s.now()) }

// Zero returns when the clock showed 0.
func (s *Server) Zero() time.Time { return s.zero }

// Items returns all items, by key.
func (s *Server) Items() map[string]Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := map[string]Item{}
	for key, item := range s.items {
		items[key] = item.Item
	}
	return items
}

// Each visits the items in the order of their keys, with what a scan of the memory shows: the CAS, and when the item expires by the clock.
func (s *Server) Each(visit func(key string, item Item, cas uint64, expires uint32)) {
	s.mu.Lock()
	all := maps.Clone(s.items)
	s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		item := *all[key]
		visit(key, item.Item, item.cas, uint32(max(item.Expires-s.Started, 0)))
	}
}

// Set stores an item, as a client does.
func (s *Server) Set(key string, item Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, item)
}

// SetCAS stores an item with a CAS that the client chooses (flag E).
func (s *Server) SetCAS(key string, item Item, cas uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, item)
	s.items[key].cas = cas
}

// Touch sets when an item expires, as a client does, which is no change of its CAS.
func (s *Server) Touch(key string, expires int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[key].Expires = expires
}

// Invalidate marks an item as stale.
func (s *Server) Invalidate(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[key].stale, s.items[key].won = true, false
}

// RequestsRenewal reports whether the next client that reads a stale item is requested to renew it.
func (s *Server) RequestsRenewal(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[key].stale && !s.items[key].won
}

// Delete deletes an item.
func (s *Server) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, key)
}

// Clear deletes all items, as flush_all does.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.items)
}

// Requests returns the first lines of all requests that start with a text.
func (s *Server) Requests(start string) (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.requests {
		if strings.HasPrefix(line, start) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (s *Server) put(key string, item Item) {
	s.changes++
	s.items[key] = &stored{Item: item, cas: s.changes, accessed: s.unix()}
}

func (s *Server) serve(conn net.Conn) {
	s.mu.Lock()
	s.conns[conn] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
		_ = conn.Close()
	}()
	r, w := bufio.NewReader(conn), bufio.NewWriter(conn)
	loggedIn := s.LogIn == nil
	for {
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\r\n")
		// memcached keeps earlier answers while it waits for the rest of a value.
		value, err := readValue(line, r)
		if err != nil || w.Flush() != nil {
			return
		}
		answer := ""
		if s.Before != nil {
			answer = s.Before(line)
		}
		if !s.isOpen(conn) {
			return
		}
		switch {
		case answer != "":
		case line == "quit":
			return
		case strings.HasPrefix(line, "set "):
			answer = "STORED\r\n"
			if loggedIn = s.LogIn == nil || s.LogIn(string(value)); !loggedIn {
				answer = "CLIENT_ERROR authentication failure\r\n"
			}
		case !loggedIn:
			answer = "CLIENT_ERROR unauthenticated\r\n"
		default:
			answer = s.answer(line, value)
		}
		if _, err := w.WriteString(answer); err != nil {
			return
		}
	}
}

// readValue reads the value that follows a line, if any.
func readValue(line string, r *bufio.Reader) ([]byte, error) {
	words := strings.Fields(line)
	at := 0
	switch words[0] {
	case "ms":
		at = 2
	case "set":
		at = 4
	default:
		return nil, nil
	}
	size, err := strconv.Atoi(words[at])
	if err != nil {
		return nil, err
	}
	value := make([]byte, size+2)
	if _, err := io.ReadFull(r, value); err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(value, []byte("\r\n")) {
		return nil, fmt.Errorf("a value ends with %q", value[size:])
	}
	return value[:size], nil
}

// answer is that of a request, which is ERROR if memcached would close the connection or the server doesn't know it.
func (s *Server) answer(line string, value []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, line)
	words := strings.Fields(line)
	switch words[0] {
	case "refresh_certs":
		return "OK\r\n"
	case "version":
		return "VERSION 1.6.45\r\n"
	case "stats":
		if len(words) > 1 {
			return s.settings()
		}
		return fmt.Sprintf("STAT pid %d\r\nSTAT uptime %d\r\nSTAT time %d\r\nSTAT version 1.6.45\r\nSTAT curr_items %d\r\nSTAT cmd_get %d\r\nSTAT cmd_flush %d\r\nSTAT limit_maxbytes 67108864\r\nEND\r\n",
			s.PID, int64(s.now())-updateInterval, s.unix(), len(s.items), s.Lookups.Load(), s.flushes)
	case "lru_crawler":
		return s.dump()
	case "mn":
		return "MN\r\n"
	case "flush_all":
		s.flushes++
		exptime, _ := strconv.ParseInt(strings.TrimPrefix(line, "flush_all "), 10, 64) // 0 without one
		if s.expires(exptime) <= s.unix()+1 {                                          // one with a delay is only recorded
			clear(s.items)
		}
		return "OK\r\n"
	case "slabs":
		s.Automove = words[2]
		return "OK\r\n"
	case "mg", "ms", "md":
		key, flags, encoded, ok := meta(words)
		switch {
		case !ok:
			return "CLIENT_ERROR bad command line format\r\n"
		case words[0] == "mg":
			return s.get(key, flags)
		case words[0] == "ms":
			return s.store(key, flags, encoded, value)
		}
		return s.remove(key, flags)
	}
	return "ERROR\r\n"
}

// meta returns the parts of a meta command.
func meta(words []string) (key string, flags []string, encoded, ok bool) {
	if len(words) < 2 {
		return "", nil, false, false
	}
	key, flags = words[1], words[2:]
	if encoded = slices.Contains(flags, "b"); encoded {
		decoded, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			return "", nil, false, false
		}
		key = string(decoded)
	}
	return key, flags, encoded, true
}

func (s *Server) settings() string {
	word := func(yes bool, words ...string) string {
		if yes {
			return words[0]
		}
		return words[1]
	}
	return fmt.Sprintf("STAT item_size_max %d\r\nSTAT evictions %s\r\nSTAT cas_enabled %s\r\nSTAT slab_automove %s\r\nSTAT oldest 0\r\nEND\r\n",
		s.ItemSizeMax, word(s.NoEvictions, "off", "on"), word(s.NoCAS, "no", "yes"), s.Automove)
}

func (s *Server) dump() string {
	if s.Dump != "" {
		return s.Dump
	}
	if s.Busy > 0 {
		s.Busy--
		return "BUSY currently processing crawler request\r\n"
	}
	var dump strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s.items)) {
		item := s.items[key]
		expires := item.Expires
		if expires == 0 {
			expires = -1
		} else if expires <= s.unix() {
			continue
		}
		name := url.PathEscape(key)
		fmt.Fprintf(&dump, "key=%s exp=%d la=%d cas=%d fetch=no cls=1 size=%d\n", name, expires, item.accessed, item.cas, len(key)+len(item.Value)+itemOverhead)
	}
	return dump.String() + "END\r\n"
}

// find returns an item that has not expired.
func (s *Server) find(key string) *stored {
	item := s.items[key]
	if item != nil && item.Expires != 0 && item.Expires <= s.unix() {
		delete(s.items, key)
		return nil
	}
	return item
}

func (s *Server) get(key string, flags []string) string {
	s.Lookups.Add(1)
	item := s.find(key)
	if item == nil {
		return "EN\r\n"
	}
	answer := "HD"
	if slices.Contains(flags, "v") {
		answer = fmt.Sprintf("VA %d", len(item.Value))
	}
	for _, flag := range flags {
		switch flag {
		case "f":
			answer += fmt.Sprintf(" f%d", item.Flags)
		case "t":
			if item.Expires == 0 {
				answer += " t-1"
			} else {
				answer += fmt.Sprintf(" t%d", item.Expires-s.unix())
			}
		case "c":
			answer += fmt.Sprintf(" c%d", item.cas)
		}
	}
	if item.stale {
		answer += " X"
		if item.won {
			answer += " Z"
		} else {
			answer += " W"
		}
		item.won = true
	}
	if answer += "\r\n"; slices.Contains(flags, "v") {
		answer += item.Value + "\r\n"
	}
	return answer
}

func (s *Server) store(key string, flags []string, encoded bool, value []byte) string {
	if len(key)+len(value)+itemOverhead > s.ItemSizeMax {
		delete(s.items, key)
		return "SERVER_ERROR object too large for cache\r\n"
	}
	before := s.find(key)
	for _, flag := range flags[1:] {
		switch {
		case flag[0] != 'C':
		case before == nil:
			return "NF\r\n"
		case flag[1:] != strconv.FormatUint(before.cas, 10):
			return "EX\r\n"
		}
	}
	if s.MaxItems > 0 && len(s.items) >= s.MaxItems {
		delete(s.items, key)
		return "SERVER_ERROR out of memory storing object\r\n"
	}
	item := Item{Value: string(value), Binary: encoded}
	for _, flag := range flags[1:] {
		n, _ := strconv.ParseInt(flag[1:], 10, 64)
		switch flag[0] {
		case 'T':
			item.Expires = s.expires(n)
		case 'F':
			item.Flags = uint64(n)
		case 'M':
			if flag == "ME" && before != nil {
				return "NS\r\n"
			}
		}
	}
	s.put(key, item)
	if slices.Contains(flags, "c") {
		return fmt.Sprintf("HD c%d\r\n", s.changes)
	}
	return "HD\r\n"
}

// expires is realtime() of memcached.c.
func (s *Server) expires(exptime int64) int64 {
	switch {
	case exptime == 0:
		return 0
	case exptime < 0, exptime > maxDuration && exptime <= s.Started:
		return 1
	case exptime > maxDuration:
		return exptime
	}
	return s.unix() + exptime
}

func (s *Server) remove(key string, flags []string) string {
	item := s.find(key)
	if item == nil {
		return "NF\r\n"
	}
	for _, flag := range flags {
		if flag[0] == 'C' && flag[1:] != strconv.FormatUint(item.cas, 10) {
			return "EX\r\n"
		}
	}
	if slices.Contains(flags, "I") {
		item.stale, item.won = true, false
	} else {
		delete(s.items, key)
	}
	return "HD\r\n"
}
