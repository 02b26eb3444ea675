package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

var handoverKey = bytes.Repeat([]byte("k"), 32)

// fileOrigin hands over the memory file of a memcached that runs without an agent.
type fileOrigin struct {
	file    *memfile.File
	address string
	meta    string
	stop    func()
	stopped bool
	// before is called before each scan.
	before func(scan int)
	scans  int
	// reserved is the memory of the table and of the first scan, in bytes.
	reserved int64
}

func (o *fileOrigin) Scan(ctx context.Context, order handover.Order, visit func(*memfile.Item) error) (memfile.Report, error) {
	o.scans++
	if o.before != nil {
		o.before(o.scans)
	}
	scan := o.file.Scan
	if order == handover.ColdFirst {
		scan = o.file.ScanColdFirst
	}
	clock, err := o.clock(ctx)
	if err != nil {
		return memfile.Report{}, err
	}
	return scan(clock, visit)
}

func (o *fileOrigin) clock(ctx context.Context) (memfile.Clock, error) {
	if !o.stopped {
		return memfile.ClockOfRunning(ctx, protocol.At(o.address))
	}
	text, err := os.ReadFile(o.meta)
	if err != nil {
		return memfile.Clock{}, err
	}
	return memfile.ClockOfMeta(string(text), time.Now())
}

func (o *fileOrigin) Reserve(bytes int64) (func(), bool) {
	o.reserved = bytes
	return func() {}, true
}

func (o *fileOrigin) Stop(context.Context) error {
	o.stop()
	o.stopped = true
	return nil
}

func (o *fileOrigin) Resume()                  {}
func (o *fileOrigin) Abandon()                 { panic("the target is not lost") }
func (o *fileOrigin) Complete(handover.Result) {}

// serveHandover runs a source until the test is over, and returns its address.
func serveHandover(t testing.TB, o handover.Origin, items int64, log *slog.Logger) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	offer := func(context.Context) (handover.Offer, error) {
		return handover.Offer{Origin: o, Pod: "source", Shard: "cache-0", Items: items, CAS: true, Deadline: time.Now().Add(time.Hour)}, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- handover.Serve(ctx, listener, handoverKey, offer, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Errorf("the source returned %v", err)
		}
	})
	return listener.Addr().String()
}

func scanRunning(file *memfile.File, address string) func(context.Context, func(*memfile.Item) error) (memfile.Report, error) {
	return func(ctx context.Context, visit func(*memfile.Item) error) (memfile.Report, error) {
		clock, err := memfile.ClockOfRunning(ctx, protocol.At(address))
		if err != nil {
			return memfile.Report{}, err
		}
		return file.Scan(clock, visit)
	}
}

func receiveFrom(t *testing.T, source string, own *raw, arguments []string) (handover.Result, error) {
	return handover.Receive(t.Context(), handover.Target{
		Source: source, Key: handoverKey, Pod: "target", Shard: "cache-0", Memcached: protocol.At(own.address()),
		Scan: scanRunning(own.memoryFile(arguments), own.address()), Log: slog.New(slog.NewTextHandler(own.log, nil)),
	})
}

// Clients use all commands until the source stops. After that, the target answers with what the
// source has saved.
func TestHandedOverItemsAreThoseThatTheSourceSaved(t *testing.T) {
	t.Parallel()
	for i, version := range versions {
		for _, options := range layouts[:2] {
			t.Run(version+" "+options, func(t *testing.T) {
				t.Parallel()
				arguments := layoutArguments(version, options)
				source := startRaw(t, version, sharedDir(t), arguments...)
				// The other pod may have another version and more memory.
				targetArguments := append(layoutArguments(versions[len(versions)-1-i], options), "-m", "120")
				target := startRaw(t, versions[len(versions)-1-i], sharedDir(t), targetArguments...)
				automove := setting(t, target, "slab_automove")
				w := newWorkload(t, source)
				w.run(1500)

				ctx, quiet := context.WithCancel(t.Context())
				var clients sync.WaitGroup
				for seed := range 3 {
					client := newWorkload(t, source)
					client.rand = rand.New(rand.NewPCG(uint64(seed), 1))
					clients.Go(func() {
						for ctx.Err() == nil {
							client.step()
						}
					})
				}
				o := &fileOrigin{file: source.memoryFile(arguments), address: source.address(), meta: source.meta()}
				o.stop = func() {
					// Clients whose requests are lost at the stop are not what this tests.
					quiet()
					clients.Wait()
					w.run(300)
					source.stop(syscall.SIGUSR1)
				}
				result, err := receiveFrom(t, serveHandover(t, o, 300, slog.New(slog.NewTextHandler(source.log, nil))), target, targetArguments)
				quiet()
				if err != nil {
					t.Fatal(err)
				}
				if result.Rejected != 0 || result.Passes < 1 {
					t.Errorf("%+v", result)
				}
				nextSecond(time.Now().Unix() + 2) // items of 2 s expire
				// Not the answers of a new memcached, whose page mover would evict some.
				want, got := collect(t, source.memoryFile(arguments).Scan, clockOfMeta(t, source)), w.answers(target)
				withoutCAS(want)
				withoutCAS(got)
				withoutExpiring(want, got)
				wantEqual(t, "after the handover", got, want)
				if now := setting(t, target, "slab_automove"); now != automove {
					t.Errorf("the target's slab_automove is %s, want %s", now, automove)
				}
				t.Logf("%d items, %+v", len(want), result)
			})
		}
	}
}

func withoutCAS(items map[string]content) {
	for key, c := range items {
		c.cas = 0
		items[key] = c
	}
}

// withoutExpiring removes the items that expire while the test reads them.
func withoutExpiring(one, other map[string]content) {
	for _, items := range []map[string]content{one, other} {
		for key, c := range items {
			if 0 < c.ttl && c.ttl <= 3 {
				delete(one, key)
				delete(other, key)
			}
		}
	}
}

func setting(t *testing.T, r *raw, name string) string {
	t.Helper()
	for line := range strings.Lines(r.ask("stats settings\r\n", "END\r\n")) {
		if value, ok := strings.CutPrefix(line, "STAT "+name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("there is no setting %s", name)
	return ""
}

// ask returns the answer to a request, which ends with end.
func (r *raw) ask(request, end string) string {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	var answer []byte
	for buffer := make([]byte, 4096); !bytes.HasSuffix(answer, []byte(end)); {
		n, err := conn.Read(buffer)
		answer = append(answer, buffer[:n]...)
		if err != nil {
			r.t.Fatalf("%v after %.100q", err, answer)
		}
	}
	return string(answer)
}

// A target with less memory keeps the items that were used last.
func TestSmallerTargetKeepsTheHottestItems(t *testing.T) {
	t.Parallel()
	arguments := []string{"-m", "128"}
	source, target := startRaw(t, newest, sharedDir(t), arguments...), startRaw(t, newest, sharedDir(t), "-m", "80")
	const n, hot = 75_000, 7000
	value := strings.Repeat("x", 1000)
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "ms key-%d 1000 q\r\n%s\r\n", i, value)
	}
	source.ask(text.String()+"mn\r\n", "MN\r\n")
	o := &fileOrigin{file: source.memoryFile(arguments), address: source.address(), meta: source.meta(), stop: func() { source.stop(syscall.SIGUSR1) }}
	nextSecond(time.Now().Unix() + 1)
	text.Reset()
	for i := range hot {
		fmt.Fprintf(&text, "ms key-%d 1000 q\r\n%s\r\n", i*10, value)
	}
	source.ask(text.String()+"mn\r\n", "MN\r\n")
	result, err := receiveFrom(t, serveHandover(t, o, n, slog.New(slog.DiscardHandler)), target, []string{"-m", "80"})
	if err != nil {
		t.Fatal(err)
	}
	if result.ItemsBefore != n || result.Items < hot || result.Items > n*2/3 {
		t.Errorf("%+v", result)
	}
	text.Reset()
	for i := range hot {
		fmt.Fprintf(&text, "mg key-%d q s\r\n", i*10)
	}
	if kept := strings.Count(target.ask(text.String()+"mn\r\n", "MN\r\n"), "HD s1000\r\n"); kept < hot*99/100 {
		t.Errorf("%d of %d hot items are there", kept, hot)
	}
}

// What a target's memcached doesn't accept is counted, and no earlier content remains.
func TestItemsThatTheTargetRejectsAreCounted(t *testing.T) {
	t.Parallel()
	arguments := []string{"-I", "4m"}
	source, target := startRaw(t, newest, sharedDir(t), arguments...), startRaw(t, newest, sharedDir(t))
	source.ask("ms small 2\r\nab\r\n", "\r\n")
	source.ask("ms grows 2\r\nab\r\n", "\r\n")
	large := fmt.Sprintf("ms %%s %d\r\n%s\r\n", 2<<20, strings.Repeat("x", 2<<20))
	source.ask(fmt.Sprintf(large, "large"), "\r\n")
	o := &fileOrigin{file: source.memoryFile(arguments), address: source.address(), meta: source.meta()}
	o.stop = func() {
		source.ask(fmt.Sprintf(large, "grows"), "\r\n")
		source.stop(syscall.SIGUSR1)
	}
	result, err := receiveFrom(t, serveHandover(t, o, 3, slog.New(slog.DiscardHandler)), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Items != 1 || result.ItemsBefore != 3 || result.Rejected != 2 {
		t.Errorf("%+v", result)
	}
	if answer := target.ask("mg small v\r\nmg grows v\r\nmg large v\r\nmn\r\n", "MN\r\n"); answer != "VA 2\r\nab\r\nEN\r\nEN\r\nMN\r\n" {
		t.Errorf("%q", answer)
	}
}

func TestTargetWithItemsReceivesNone(t *testing.T) {
	t.Parallel()
	source, target := startRaw(t, newest, sharedDir(t)), startRaw(t, newest, sharedDir(t))
	target.ask("ms own 1\r\nx\r\n", "HD\r\n")
	o := &fileOrigin{file: source.memoryFile(nil), address: source.address(), meta: source.meta(), stop: func() { t.Error("the source stops") }}
	_, err := receiveFrom(t, serveHandover(t, o, 0, slog.New(slog.DiscardHandler)), target, nil)
	if err == nil || errors.Is(err, handover.ErrImpossible) || target.count() != 1 {
		t.Errorf("%v, %d items", err, target.count())
	}
}

// BenchmarkHandover prints the rate of live passes, the time of the end, and the memory per item, for
// $ITEMS items of 500 bytes, of which $CHANGES are changed after the last pass.
func BenchmarkHandover(b *testing.B) {
	b.Run("Strict", func(b *testing.B) { benchmarkHandover(b, false) })
	b.Run("Available", func(b *testing.B) { benchmarkHandover(b, true) })
}

func benchmarkHandover(b *testing.B, available bool) {
	size, changes := number("ITEMS", 1_000_000), number("CHANGES", 3000)
	arguments := []string{"-m", "1200"}
	start := func() (*cache, *memfile.File, string) {
		dir, err := os.MkdirTemp("/dev/shm", "handover-") //nolint:usetesting // b.TempDir is on a disk
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = os.RemoveAll(dir) })
		path := filepath.Join(dir, "memory")
		c := startCache(b, newest, append(arguments, "-e", path)...)
		layout, err := memfile.LayoutOf(arguments, newest)
		if err != nil {
			b.Fatal(err)
		}
		file, err := memfile.Open(path, layout)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = file.Close() })
		return c, file, path + ".meta"
	}
	for b.Loop() {
		source, file, meta := start()
		target, targetFile, _ := start()
		fillCaches(b, size, 500, source)
		var saved time.Time
		o := &fileOrigin{file: file, address: source.address(), meta: meta}
		o.stop = func() {
			var text strings.Builder
			for i := range changes {
				if i%10 == 0 {
					fmt.Fprintf(&text, "md key:0:%d q\r\n", i*7)
					continue
				}
				fmt.Fprintf(&text, "ms key:0:%d 500 q\r\n%s\r\n", i*7, strings.Repeat("y", 500))
			}
			source.talk(text.String() + "mn\r\n")
			source.stopWarm()
			saved = time.Now()
		}
		var passes []time.Time
		o.before = func(int) { passes = append(passes, time.Now()) }
		log := slog.New(slog.DiscardHandler)
		if testing.Verbose() {
			log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		}
		request := handover.Target{
			Source: serveHandover(b, o, int64(size), log), Key: handoverKey, Pod: "target", Shard: "cache-0", Memcached: protocol.At(target.address()),
			Scan: scanRunning(targetFile, target.address()), Log: log,
		}
		if available {
			request.Ready = func() {}
		}
		result, err := handover.Receive(b.Context(), request)
		if err != nil {
			b.Fatal(err)
		}
		end := time.Since(saved)
		want := result.ItemsBefore
		if available {
			want = int64(size - changes)
			b.ReportMetric(float64(len(passes)-3)/result.Both.Seconds(), "passes/s-while-both-serve")
			b.ReportMetric(result.Both.Seconds(), "s-both")
		}
		if result.Items != want || result.ItemsBefore != int64(size-(changes+9)/10) || available != (result.Gap == 0) {
			b.Errorf("%+v", result)
		}
		b.ReportMetric(float64(size)/passes[1].Sub(passes[0]).Seconds(), "items/s-first-pass")
		b.ReportMetric(float64(size)/passes[2].Sub(passes[1]).Seconds(), "items/s-second-pass")
		b.ReportMetric(end.Seconds(), "s-end-without-save")
		b.ReportMetric(result.Gap.Seconds(), "s-gap")
		b.ReportMetric(float64(o.reserved)/float64(size), "B/item-of-source")
		b.ReportMetric(result.Took.Seconds(), "s-total")
	}
}

func number(variable string, unset int) int {
	if text := os.Getenv(variable); text != "" {
		_, _ = fmt.Sscan(text, &unset)
	}
	return unset
}
