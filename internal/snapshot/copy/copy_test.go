package copy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestEachShardIsRestoredFromItsOwnItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		sources, targets := s.shards(3), s.shards(3)
		var all []map[string]fake.Item
		total := int64(0)
		for i, source := range sources {
			items := merged(someItems(fmt.Sprintf("shard-%d", i), 2000), map[string]fake.Item{fmt.Sprintf("large-%d", i): largeItem()})
			source.put(items)
			all = append(all, items)
			total += int64(len(items))
		}
		if outcome := s.save(taskOf(sources...)); outcome.Reason != wire.ReasonSucceeded || outcome.Items != total || outcome.TotalItems != total ||
			outcome.Snapshot == nil || outcome.Snapshot.Items != total || outcome.Snapshot.Shards != 3 {
			t.Errorf("saved %+v of %d items", outcome, total)
		}
		if outcome := s.load(taskOf(targets...)); outcome.Reason != wire.ReasonSucceeded || outcome.Restored != total || outcome.Items != total {
			t.Errorf("restored %+v of %d items", outcome, total)
		}
		for i, target := range targets {
			wantItems(t, target, all[i])
		}
	})
}

// A connection that is lost anywhere, amid a line or a value, costs no item and makes no half one.
func TestLostConnectionsCostNoItem(t *testing.T) {
	for name, c := range map[string]struct {
		limit limitedConn
		saves bool
	}{
		"values of a save":    {limitedConn{reads: 300_007}, true},
		"requests of a save":  {limitedConn{writes: 5003}, true},
		"values of a load":    {limitedConn{writes: 300_007}, false},
		"answers of a load":   {limitedConn{reads: 2003}, false},
		"large values of one": {limitedConn{writes: 4_000_037}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source, target := s.shard(), s.shard()
				items := someItems("key", 2000)
				for i := range 3 {
					items[fmt.Sprintf("large-%d", i)] = largeItem()
				}
				source.put(items)
				address, cuts := target.address, maxEmptyConnections
				if c.saves {
					address = source.address
				}
				s.options.DialContext = limited(s.options.DialContext, address, c.limit, &cuts)
				s.save(taskOf(source))
				if outcome := s.load(taskOf(target)); outcome.Restored != int64(len(items)) {
					t.Errorf("%+v of %d items", outcome, len(items))
				}
				wantItems(t, target, items)
				if cuts == maxEmptyConnections {
					t.Error("no connection was lost")
				}
			})
		})
	}
}

// A snapshot of what little is left after a shard lost its items would be the newest. flush_all leaves the connections
// open, so only the answers show the loss.
func TestSaveFailsIfTheShardLosesItsItems(t *testing.T) {
	for name, prepare := range map[string]func(*shard){
		"at flush_all":                   func(s *shard) { s.at("mg", 1000, s.Clear) },
		"in a restart":                   func(s *shard) { s.at("mg", 1000, s.restart) },
		"after its keys were listed":     func(s *shard) { s.at("stats", 4, s.restart) },
		"when most of them are deleted":  func(s *shard) { s.at("mg", 130, func() { s.deleteSome(6) }) },
		"after the last of them is read": func(s *shard) { s.at("mg", 3005, s.Clear) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source := s.shard()
				source.put(someItems("key", 3000))
				prepare(source)
				_, err := Save(t.Context(), s.bucket, taskOf(source), s.options)
				wantFailure(t, err, wire.ReasonShardLostItems, true, "no snapshot was created")
				if left := s.objects(); len(left) > 0 {
					t.Errorf("it left %v", left)
				}
			})
		})
	}
}

// deleteSome deletes all but every nth item.
func (s *shard) deleteSome(n int) {
	for i, key := range slices.Sorted(maps.Keys(s.Items())) {
		if i%n != 0 {
			s.Delete(key)
		}
	}
}

// Items may be deleted, or expire, before they are read.
func TestSaveOmitsItemsThatAreGone(t *testing.T) {
	for name, do := range map[string]func(*shard){
		"a half is deleted":  func(s *shard) { s.deleteSome(2) },
		"five sixths expire": func(s *shard) { pass(10 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source, lives := s.shard(), int64(0)
				for i := range 3000 {
					item := fake.Item{Expires: time.Now().Unix() + 5}
					if i%6 == 0 || name == "a half is deleted" {
						item.Expires = 0
					}
					source.Set(fmt.Sprintf("key-%d", i), item)
				}
				source.at("stats", 5, func() { do(source) })
				if lives = 500; name == "a half is deleted" {
					lives = 1500
				}
				gone := fmt.Sprintf("%d items of 1 shards; %d expired, or were deleted", lives, 3000-lives)
				if outcome := s.save(taskOf(source)); outcome.Items != lives || !strings.HasPrefix(outcome.Message, gone) {
					t.Errorf("%+v, want %s", outcome, gone)
				}
			})
		})
	}
}

// A shard without memory for answers may have some a moment later.
func TestSaveRepeatsRequestsThatTheShardCouldNotAnswer(t *testing.T) {
	for _, failures := range []int{3, 1 << 30} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(t)
			source, left := s.shard(), failures
			items := someItems("key", 1000)
			source.put(items)
			source.Before = func(request string) string {
				if strings.HasPrefix(request, "mg ") && left > 0 {
					left--
					return "SERVER_ERROR out of memory writing get response\r\n"
				}
				return ""
			}
			outcome, err := Save(t.Context(), s.bucket, taskOf(source), s.options)
			if failures > 3 {
				wantFailure(t, err, wire.ReasonShardUnreachable, false, "out of memory")
			} else if err != nil || outcome.Items != int64(len(items)) {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
}

func TestSaveWaitsWhileTheShardIsBusyWithAnotherKeyDump(t *testing.T) {
	for _, busy := range []int{1, 5, 1 << 30} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(t)
			source := s.shard()
			source.put(someItems("key", 100))
			source.Busy = busy
			outcome, err := Save(t.Context(), s.bucket, taskOf(source), s.options)
			if busy > 5 {
				wantFailure(t, err, wire.ReasonShardUnreachable, false, "busy with other key dumps")
			} else if err != nil || outcome.Items != 105 {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
}

func TestSaveFailsIfTheShardListsNoKeys(t *testing.T) {
	for answer, want := range map[string]string{
		"ERROR metadump not allowed\r\n":        "remove -X",
		"CLIENT_ERROR lru crawler disabled\r\n": "remove no_lru_crawler from the Memcached's arguments, or find the client",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(t)
			source := s.shard()
			source.Dump = answer
			_, err := Save(t.Context(), s.bucket, taskOf(source), s.options)
			wantFailure(t, err, wire.ReasonKeyDumpDisabled, true, want)
		})
	}
}

// The agent enables it again within 10 s.
func TestSaveWaitsForACrawlerThatAClientHasDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source := s.shard()
		source.put(someItems("key", 100))
		began := time.Now()
		source.Before = func(request string) string {
			if strings.HasPrefix(request, "lru_crawler") && time.Since(began) < 15*time.Second {
				return "CLIENT_ERROR lru crawler disabled\r\n"
			}
			return ""
		}
		if outcome, err := Save(t.Context(), s.bucket, taskOf(source), s.options); err != nil || outcome.Items != 105 {
			t.Errorf("%+v, %v", outcome, err)
		}
	})
}

func TestShardThatStaysUnreachableFailsTheCopy(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*setup, *shard)
		login   bool
		text    string
	}{
		"it is down":              {func(_ *setup, source *shard) { source.Stop() }, false, "refused"},
		"it requires a password":  {func(_ *setup, source *shard) { source.LogIn = acceptsSecret }, false, "unauthenticated"},
		"it has another password": {func(s *setup, source *shard) { source.LogIn = acceptsSecret; s.user("other") }, true, "authentication failure"},
		"there is no user yet":    {func(*setup, *shard) {}, true, "has no users"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source := s.shard()
				s.save(taskOf(source))
				c.prepare(s, source)
				task := taskOf(source)
				task.Login = c.login
				began := time.Now()
				_, err := Load(t.Context(), s.bucket, task, s.options)
				wantFailure(t, err, wire.ReasonShardUnreachable, false, c.text)
				task.Path = "another"
				_, err = Save(t.Context(), s.bucket, task, s.options)
				wantFailure(t, err, wire.ReasonShardUnreachable, false, c.text)
				if took := time.Since(began); took < 2*defaultShardTimeout {
					t.Errorf("it gave up after %s", took)
				}
			})
		})
	}
}

// A node that is lost silently leaves more bytes without an answer than all shards may have, so that the next item waits for
// them. The failure must release them.
func TestLoadFailsIfTheShardFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source, target := s.shard(), s.shard()
		for i := range 3 * maxUnanswered >> 20 {
			source.Set(fmt.Sprintf("key-%d", i), fake.Item{Value: strings.Repeat("x", 1<<20)})
		}
		s.save(taskOf(source))
		var silent atomic.Bool
		target.Before = func(request string) string {
			if strings.HasPrefix(request, "ms ") {
				silent.Store(true)
			}
			if silent.Load() {
				<-t.Context().Done()
			}
			return ""
		}
		_, err := Load(t.Context(), s.bucket, taskOf(target), s.options)
		wantFailure(t, err, wire.ReasonShardUnreachable, false, "is unreachable")
	})
}

// user sets the only user's password.
func (s *setup) user(password string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.options.UsersDir, "user"), []byte(password+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func TestCopyLogsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source := s.shard()
		source.LogIn = acceptsSecret
		source.put(someItems("key", 10))
		s.user("secret")
		task := taskOf(source)
		task.Login = true
		if outcome := s.save(task); outcome.Items != 15 {
			t.Errorf("%+v", outcome)
		}
	})
}

// A shard that loses what it was given gets all of it again.
func TestRestoreBeginsAgainIfTheShardLosesItsItems(t *testing.T) {
	for _, by := range []string{"ordinal", "ring"} {
		for _, losses := range []int{1, maxRestarts, maxRestarts + 1} {
			t.Run(fmt.Sprintf("by %s, %d times", by, losses), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSetup(t)
					source, targets := s.shard(), s.shards(1)
					items := someItems("key", 6000)
					source.put(items)
					s.save(taskOf(source))
					if by == "ring" {
						targets = append(targets, s.shard())
					}
					task := taskOf(targets...)
					task.Load.Ring, task.Load.RingServers = ring.Modulo, task.Servers
					// More requests than can be without an answer: a shard that had answered none would lose nothing.
					const some = (window + 3) * maxBatchItems
					n, left := 0, losses
					targets[0].at("ms ", 0, func() {
						if n++; n == some && left > 0 {
							n = 0
							left--
							targets[0].restart()
						}
					})
					outcome, err := Load(t.Context(), s.bucket, task, s.options)
					if losses > maxRestarts {
						wantFailure(t, err, wire.ReasonShardLostItems, false, "lost its items 3 times")
						return
					}
					if err != nil || outcome.Restored != int64(len(items)) || outcome.Items != int64(len(items)) {
						t.Fatalf("restored %+v of %d items, %v", outcome, len(items), err)
					}
					got := map[string]fake.Item{}
					for _, target := range targets {
						maps.Copy(got, target.Items())
					}
					if !maps.Equal(got, items) {
						t.Errorf("%d items, want %d", len(got), len(items))
					}
				})
			})
		}
	}
}

// With handover.mode Available, the next pod of a shard lacks what the former one stored while both served.
func TestRestoreBeginsAgainIfTheNextPodLacksTheLastItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source, former := s.shard(), s.shard()
		pass(time.Minute)
		next := s.shard()
		items := someItems("key", 10_000)
		source.put(items)
		s.save(taskOf(source))
		former.at("ms ", 3000, func() { next.put(former.Items()) })
		former.at("ms ", 6000, func() {
			former.Stop()
			next.Serve(s.network, former.address)
		})
		s.load(taskOf(former))
		wantItems(t, next, items)
	})
}

// A shard that is replaced while others are still restored has lost its items at the end.
func TestRestoreFailsIfAShardIsReplacedAfterItWasLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		sources, targets := s.shards(2), s.shards(2)
		sources[0].put(someItems("first", 1000))
		sources[1].put(someItems("second", 20_000))
		s.save(taskOf(sources...))
		task := taskOf(targets...)
		task.ItemsPerSecond = 1000
		targets[1].at("ms", 10_000, targets[0].restart)
		_, err := Load(t.Context(), s.bucket, task, s.options)
		wantFailure(t, err, wire.ReasonShardLostItems, false, "after it was restored")
	})
}

// A newer value in the target wins, unless the restore replaces items.
func TestRestoreKeepsOrReplacesExistingItems(t *testing.T) {
	for _, replace := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(t)
			source, target := s.shard(), s.shard()
			items := someItems("key", 1000)
			source.put(items)
			newer := map[string]fake.Item{}
			for i := range 300 {
				newer[fmt.Sprintf("key-%d", i)] = fake.Item{Value: "newer", Flags: 7}
			}
			target.put(newer)
			s.save(taskOf(source))
			task := taskOf(target)
			task.Load.Replace = replace
			outcome := s.load(task)
			want, kept := items, int64(0)
			if !replace {
				want, kept = merged(items, newer), int64(len(newer))
			}
			if outcome.Kept != kept || outcome.Restored != int64(len(items))-kept {
				t.Errorf("replaces %t: %+v", replace, outcome)
			}
			wantItems(t, target, want)
		})
	}
}

// memcached would delete the item under the key of one that it rejects: the restore must not send it.
func TestRestoreSendsNothingThatTheShardRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source, target := s.shard(), s.shard()
		source.put(map[string]fake.Item{"whole": {Value: strings.Repeat("x", 900<<10)}, "divided": largeItem(), "small": {Value: "x"}})
		own := map[string]fake.Item{"whole": {Value: "newer"}, "divided": {Value: "newer"}}
		target.put(own)
		target.ItemSizeMax = 512 << 10
		s.save(taskOf(source))
		if outcome := s.load(taskOf(target)); outcome.Rejected != 2 || outcome.Restored != 1 {
			t.Errorf("%+v", outcome)
		}
		own["small"] = fake.Item{Value: "x"}
		wantItems(t, target, own)
	})
	for _, noEvictions := range []bool{true, false} { // a shard without -M may be full too
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(t)
			source, target := s.shard(), s.shard()
			source.put(someItems("key", 2000))
			own := map[string]fake.Item{"key with spaces \t in it": {Value: "newer", Binary: true}}
			for i := range 100 {
				own[fmt.Sprintf("key-%d", i)] = fake.Item{Value: "newer"}
			}
			target.put(own)
			target.NoEvictions, target.MaxItems = noEvictions, 500
			s.save(taskOf(source))
			outcome := s.load(taskOf(target))
			if outcome.Restored+outcome.Kept+outcome.Rejected != 2005 || outcome.Rejected == 0 {
				t.Errorf("%+v", outcome)
			}
			if !noEvictions {
				return // those of the batches before the first rejection are sent
			}
			for key, item := range own {
				if target.Items()[key] != item {
					t.Errorf("%q is %+v", key, target.Items()[key])
				}
			}
		})
	}
}

func TestRestoreLater(t *testing.T) {
	const minute, day = 60, 86400
	for name, c := range map[string]struct {
		later, maxTTL time.Duration
		want          map[string]int64 // what each has to live
	}{
		"half an hour":            {30 * time.Minute, 0, map[string]int64{"forever": 0, "an hour": 30 * minute, "forty days": 40*day - 30*minute}},
		"twenty days":             {20 * 24 * time.Hour, 0, map[string]int64{"forever": 0, "forty days": 20 * day}},
		"with a bound":            {0, 15 * time.Minute, map[string]int64{"forever": 15 * minute, "an hour": 15 * minute, "forty days": 15 * minute, "two minutes": 2 * minute}},
		"with one of 35 days":     {0, 35 * 24 * time.Hour, map[string]int64{"forever": 35 * day, "an hour": 60 * minute, "forty days": 35 * day, "two minutes": 2 * minute}},
		"later, and with a bound": {time.Minute, 2 * time.Minute, map[string]int64{"forever": 2 * minute, "an hour": 2 * minute, "forty days": 2 * minute, "two minutes": minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source, target := s.shard(), s.shard()
				now := time.Now().Unix()
				source.put(map[string]fake.Item{"forever": {}, "an hour": {Expires: now + 60*minute}, "forty days": {Expires: now + 40*day}, "two minutes": {Expires: now + 2*minute}})
				s.save(taskOf(source))
				pass(c.later)
				task := taskOf(target)
				task.Load.MaxTTL = c.maxTTL
				if outcome := s.load(task); outcome.Restored != int64(len(c.want)) || outcome.Expired != int64(4-len(c.want)) {
					t.Errorf("%+v", outcome)
				}
				want := map[string]fake.Item{}
				for key, ttl := range c.want {
					item := fake.Item{}
					if ttl != 0 {
						item.Expires = time.Now().Unix() + ttl
					}
					want[key] = item
				}
				got := target.Items()
				for key, item := range got {
					item.Binary = false
					got[key] = item
				}
				if !maps.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		})
	}
}

func TestRestoreRejectsSnapshotThatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		task := taskOf(s.shard())
		s.save(task)
		pass(time.Hour)
		task.Load.MaxAge = 50 * time.Minute
		_, err := Load(t.Context(), s.bucket, task, s.options)
		wantFailure(t, err, wire.ReasonSnapshotTooOld, true, "1h0m0s old")
		task.Load.MaxAge = 70 * time.Minute
		s.load(task)
	})
}

// Into another number of shards each key goes where the clients look for it, or nothing goes.
func TestRestoreIntoAnotherNumberOfShards(t *testing.T) {
	for _, n := range []int{2, 5} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(t)
			sources, targets := s.shards(3), s.shards(n)
			all := map[string]fake.Item{"large": largeItem()}
			sources[0].put(all)
			for i, source := range sources {
				items := someItems(fmt.Sprintf("shard-%d", i), 500)
				source.put(items)
				all = merged(all, items)
			}
			s.save(taskOf(sources...))
			task := taskOf(targets...)
			_, err := Load(t.Context(), s.bucket, task, s.options)
			wantFailure(t, err, wire.ReasonSizeDiffers, true, "spec.access.hashing")
			task.Load.Ring, task.Load.RingServers = ring.Jump, task.Servers[1:]
			_, err = Load(t.Context(), s.bucket, task, s.options)
			wantFailure(t, err, wire.ReasonSizeDiffers, true, "the ring has")
			task.Load.RingServers = task.Servers
			for _, target := range targets {
				wantItems(t, target, nil)
			}

			if outcome := s.load(task); outcome.Restored != int64(len(all)) {
				t.Errorf("%+v of %d items", outcome, len(all))
			}
			r, err := ring.New(task.Load.Ring, task.Load.RingServers)
			if err != nil {
				t.Fatal(err)
			}
			parts := make([]map[string]fake.Item, n)
			for i := range parts {
				parts[i] = map[string]fake.Item{}
			}
			for key, item := range all {
				parts[r.Shard([]byte(key))][key] = item
			}
			for i, target := range targets {
				wantItems(t, target, parts[i])
			}

			targets[1].Clear()
			task.Load.Shards = []int{1}
			if outcome := s.load(task); outcome.Restored != int64(len(parts[1])) || outcome.Items != outcome.Restored {
				t.Errorf("of shard 1 alone: %+v of %d items", outcome, len(parts[1]))
			}
		})
	}
}

// Ketama and Rendezvous hash the names of the servers, which contain those of the Memcached and its namespace.
func TestRestoreIntoARenamedMemcached(t *testing.T) {
	ketama := func(task *wire.Task) { task.Load.Ring, task.Load.RingServers = ring.Ketama, task.Servers }
	for name, c := range map[string]struct {
		edits  []func(*wire.Task)
		byRing bool
	}{
		"another name":                     {[]func(*wire.Task){ketama, func(task *wire.Task) { task.Memcached.Name = "cache-v2" }}, true},
		"another namespace":                {[]func(*wire.Task){ketama, func(task *wire.Task) { task.Memcached.Namespace = "staging" }}, true},
		"the same name in another cluster": {[]func(*wire.Task){ketama, func(task *wire.Task) { task.Memcached.UID = "8" }}, false},
		"a Job of an older operator":       {[]func(*wire.Task){ketama, func(task *wire.Task) { task.Memcached = wire.Memcached{} }}, false},
		"hashing isn't declared":           {[]func(*wire.Task){func(task *wire.Task) { task.Memcached.Name = "cache-v2" }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				sources, targets := s.shards(3), s.shards(3)
				task := taskOf(targets...)
				for _, edit := range c.edits {
					edit(&task)
				}
				r, err := ring.New(ring.Ketama, task.Servers)
				if err != nil {
					t.Fatal(err)
				}
				want := []map[string]fake.Item{{}, {}, {}}
				for i, source := range sources {
					items := someItems(fmt.Sprintf("shard-%d", i), 500)
					source.put(items)
					for key, item := range items {
						at := i
						if c.byRing {
							at = r.Shard([]byte(key))
						}
						want[at][key] = item
					}
				}
				s.save(taskOf(sources...))
				s.load(task)
				for i, target := range targets {
					wantItems(t, target, want[i])
				}
			})
		})
	}
}

func TestRestoreOfSomeShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		shards := s.shards(3)
		for i, source := range shards {
			source.put(someItems(fmt.Sprintf("shard-%d", i), 100))
		}
		task := taskOf(shards...)
		s.save(task)
		for _, source := range shards {
			source.Clear()
		}
		task.Load.Shards = []int{0, 2}
		s.load(task)
		if n := []int{len(shards[0].Items()), len(shards[1].Items()), len(shards[2].Items())}; !slices.Equal(n, []int{105, 0, 105}) {
			t.Errorf("%v items", n)
		}
		task.Load.Shards = []int{3}
		_, err := Load(t.Context(), s.bucket, task, s.options)
		wantFailure(t, err, wire.ReasonSizeDiffers, true, "shard 3")
	})
}

func TestCopyWithoutShardsFails(t *testing.T) {
	_, err := Save(t.Context(), nil, taskOf(), Options{Progress: &Progress{}})
	wantFailure(t, err, wire.ReasonNoShards, true, "")
	_, err = Load(t.Context(), nil, taskOf(), Options{Progress: &Progress{}})
	wantFailure(t, err, wire.ReasonNoShards, true, "")
}

func TestSaveRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source := s.shard()
		source.put(someItems("key", 100))
		task := taskOf(source)
		first, before := s.save(task), s.objects()
		// The pod was killed after it had written the manifest.
		if err := s.bucket.WriteAll(t.Context(), task.Path+"/"+attemptName, []byte("{}"), nil); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		source.put(someItems("later", 100))
		if second := s.save(task); second.Items != first.Items || !second.Snapshot.TakenAt.Equal(first.Snapshot.TakenAt) {
			t.Errorf("the second %+v, the first %+v", second, first)
		}
		task.ID = "another"
		_, err := Save(t.Context(), s.bucket, task, s.options)
		wantFailure(t, err, wire.ReasonSnapshotOwnedByOther, true, "use another path")
		if after := s.objects(); !slices.Equal(before, after) {
			t.Errorf("%v became %v", before, after)
		}
	})
}

// A pod can be evicted while a shard is copied, and the shard be lost before the next pod begins. With more shards than are
// copied at a time, the last one can be lost before its keys are listed.
func TestSaveFailsIfAShardWasLostSinceTheFirstAttempt(t *testing.T) {
	replaced := func(items int) func(*shard) {
		return func(s *shard) {
			s.Stop()
			pass(10 * time.Second)
			s.Server = fake.New()
			s.put(someItems("key", items))
			s.start()
		}
	}
	for name, c := range map[string]struct {
		retry  bool
		change func(*shard)
		lost   bool
	}{
		"before a retry":              {true, replaced(0), true},
		"clients have stored items":   {true, replaced(1000), true},
		"its pod received its items":  {true, replaced(3000), false},
		"clients have deleted items":  {true, func(s *shard) { s.deleteSome(6) }, false},
		"before its keys were listed": {false, replaced(0), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source := s.shard()
				source.put(someItems("key", 3000))
				task := taskOf(source)
				if c.retry {
					ctx, cancel := context.WithCancelCause(t.Context())
					source.at("mg", 2000, func() { cancel(errors.New("the pod is evicted")) })
					_, err := Save(ctx, s.bucket, task, s.options)
					wantFailure(t, err, wire.ReasonJobFailed, false, "")
					c.change(source)
				} else {
					source.at("stats", 2, func() { c.change(source) })
				}
				_, err := Save(t.Context(), s.bucket, task, s.options)
				if !c.lost {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantFailure(t, err, wire.ReasonShardLostItems, true, "no snapshot was created")
				if left := s.objects(); len(left) > 0 {
					t.Errorf("it left %v", left)
				}
			})
		})
	}
}

// A save that is stopped deletes what it wrote. One that is killed can't, and the next one does.
func TestStoppedSaveLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source := s.shard()
		source.put(merged(someItems("key", 3000), map[string]fake.Item{"large": largeItem()}))
		task := taskOf(source)
		ctx, cancel := context.WithCancelCause(t.Context())
		source.at("mg", 2000, func() { cancel(errors.New("the pod stops")) })
		_, err := Save(ctx, s.bucket, task, s.options)
		wantFailure(t, err, wire.ReasonJobFailed, false, "")
		if left := s.objects(); !slices.Equal(left, []string{task.Path + "/" + attemptName}) {
			t.Fatalf("it left %v", left)
		}
		killed := task.Path + "/0123456789abcdef/0-0"
		if err := s.bucket.WriteAll(t.Context(), killed, []byte("a chunk"), nil); err != nil {
			t.Fatal(err)
		}
		_, err = Load(t.Context(), s.bucket, task, s.options)
		wantFailure(t, err, wire.ReasonSnapshotIncomplete, true, "")
		s.save(task)
		if left := s.objects(); slices.Contains(left, killed) || slices.Contains(left, task.Path+"/"+attemptName) {
			t.Errorf("objects of the attempt before are left: %v", left)
		}
	})
}

// A full store would stay full if a save that failed by itself gave up before its chunks are deleted. A signal leaves it
// the time until the pod is killed.
func TestFailedSaveDeletesItsChunksHoweverLongThatTakes(t *testing.T) {
	for name, c := range map[string]struct {
		took    time.Duration
		stopped bool // by a signal amid the deletion
		left    bool
	}{
		"an hour for a chunk":                    {time.Hour, false, false},
		"stopped, eight minutes for a chunk":     {8 * time.Minute, true, false},
		"stopped, until the pod would be killed": {wire.SaveGrace - time.Second, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source := s.shard()
				for i := range 3000 {
					source.Set(fmt.Sprintf("key-%d", i), fake.Item{Value: strings.Repeat("x", 4<<10)})
				}
				source.at("mg", 2900, source.Clear)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var deletions atomic.Int64
				bucket := blob.NewBucket(slowStore{bucket: s.bucket, took: c.took, begins: func() {
					if deletions.Add(1); c.stopped {
						cancel()
					}
				}})
				_, err := Save(ctx, bucket, taskOf(source), s.options)
				wantFailure(t, err, wire.ReasonShardLostItems, true, "no snapshot was created")
				if left := s.objects(); deletions.Load() == 0 || len(left) > 0 != c.left {
					t.Errorf("after %d deletions it left %v", deletions.Load(), left)
				}
			})
		})
	}
}

// A store can be full when only the manifest is missing, or say so although it has it.
func TestSaveWhoseManifestIsNotWrittenLeavesNothing(t *testing.T) {
	for name, written := range map[string]bool{"it isn't": false, "it is, in spite of the error": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source := s.shard()
				source.put(someItems("key", 100))
				bucket := blob.NewBucket(fullStore{slowStore{bucket: s.bucket, begins: func() {}}, written})
				_, err := Save(t.Context(), bucket, taskOf(source), s.options)
				wantFailure(t, err, wire.ReasonStoreFull, true, "make room")
				if left := s.objects(); len(left) > 0 {
					t.Errorf("it left %v", left)
				}
			})
		})
	}
}

// A store may complete the write of a manifest after the attempt gave up and deleted its chunks.
func TestSaveRepeatsASnapshotWithoutAllChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source := s.shard()
		source.put(someItems("key", 100))
		task := taskOf(source)
		first := s.save(task)
		for _, object := range s.objects() {
			if strings.HasSuffix(object, ".zst") {
				if err := s.bucket.Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
		}
		if again := s.save(task); again.Items != first.Items || len(s.objects()) != 2 {
			t.Errorf("%+v; %v", again, s.objects())
		}
	})
}

func TestCopyKeepsItsRateLimits(t *testing.T) {
	for name, limit := range map[string]wire.Task{"items": {ItemsPerSecond: 500}, "bytes": {BytesPerSecond: 500 * 1200}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source, target := s.shard(), s.shard()
				for i := range 5000 {
					source.Set(fmt.Sprintf("key-%04d", i), fake.Item{Value: strings.Repeat("x", 1130)})
				}
				for _, copied := range []*shard{source, target} {
					task := taskOf(copied)
					task.ItemsPerSecond, task.BytesPerSecond = limit.ItemsPerSecond, limit.BytesPerSecond
					began := time.Now()
					if copied == source {
						s.save(task)
					} else {
						s.load(task)
					}
					if took := time.Since(began); took < 9*time.Second || took > 11*time.Second { //nolint:forbidigo // the fake time of a bubble
						t.Errorf("10 s of items took %s", took)
					}
				}
			})
		})
	}
}

// Of a snapshot that is damaged nothing is restored that lacks its checksum, and nothing at all where that is known before.
func TestDamagedSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source, target := s.shard(), s.shard()
		items := merged(someItems("key", 10_000), map[string]fake.Item{"large": largeItem()})
		source.put(items)
		task := taskOf(source)
		s.save(task)
		task.Servers[0] = target.address
		flip := func(at int) func([]byte) []byte {
			return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 1; return b }
		}
		replace := func(old, by string) func([]byte) []byte {
			return func(b []byte) []byte { return []byte(strings.Replace(string(b), old, by, 1)) }
		}
		remove := func([]byte) []byte { return nil }
		manifest := task.Path + "/" + format.ManifestName
		chunks := slices.DeleteFunc(s.objects(), func(name string) bool { return name == manifest })
		if len(chunks) < 3 {
			t.Fatalf("chunks: %v", chunks)
		}
		end := chunks[len(chunks)-1]
		for name, c := range map[string]struct {
			object string
			change func([]byte) []byte
			reason string
			some   bool // items may have been restored before
		}{
			"no manifest":              {manifest, remove, wire.ReasonSnapshotIncomplete, false},
			"half a manifest":          {manifest, func(b []byte) []byte { return b[:len(b)/2] }, wire.ReasonSnapshotCorrupt, false},
			"a bit of the manifest":    {manifest, flip(-100), wire.ReasonSnapshotCorrupt, false},
			"another count":            {manifest, replace(`"items":`, `"items":1`), wire.ReasonSnapshotCorrupt, false},
			"a newer format":           {manifest, replace(`"version":1`, `"version":2`), wire.ReasonSnapshotTooNew, false},
			"another format":           {manifest, replace(format.Name, "example/other"), wire.ReasonSnapshotOwnedByOther, false},
			"no JSON":                  {manifest, func([]byte) []byte { return []byte("hello") }, wire.ReasonSnapshotOwnedByOther, false},
			"no last chunk":            {end, remove, wire.ReasonSnapshotCorrupt, false},
			"no first chunk":           {chunks[0], remove, wire.ReasonSnapshotCorrupt, false},
			"a truncated chunk":        {chunks[1], func(b []byte) []byte { return b[:len(b)-1] }, wire.ReasonSnapshotCorrupt, false},
			"a longer chunk":           {chunks[1], func(b []byte) []byte { return append(b, 0) }, wire.ReasonSnapshotCorrupt, false},
			"a bit of the first chunk": {chunks[0], flip(500), wire.ReasonSnapshotCorrupt, true},
			"a bit of another chunk":   {chunks[1], flip(50), wire.ReasonSnapshotCorrupt, true},
			"the last bit":             {end, flip(-1), wire.ReasonSnapshotCorrupt, true},
		} {
			before, err := s.bucket.ReadAll(t.Context(), c.object)
			if err != nil {
				t.Fatal(err)
			}
			if content := c.change(slices.Clone(before)); content == nil {
				err = s.bucket.Delete(t.Context(), c.object)
			} else {
				err = s.bucket.WriteAll(t.Context(), c.object, content, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			target.Clear()
			outcome, err := Load(t.Context(), s.bucket, task, s.options)
			synctest.Wait() // the shard may not have answered all of its requests
			text := ""
			if c.some {
				text = fmt.Sprintf("%d items were restored", outcome.Restored)
			}
			wantFailure(t, err, c.reason, true, text)
			got := target.Items()
			if n := int64(len(got)); !c.some && n != 0 || outcome.Restored > n || n >= int64(len(items)) {
				t.Errorf("%s: %d items of %d, and %+v", name, n, len(items), outcome)
			}
			for key, item := range got {
				if item != items[key] {
					t.Errorf("%s: %.40q is not as it was", name, key)
				}
			}
			var out strings.Builder
			inspected := format.Inspect(t.Context(), s.bucket, task.Path, &out, format.InspectOptions{Verify: true})
			if f := wire.AsFailure(inspected); f == nil || f.Reason != c.reason {
				t.Errorf("%s: it is inspected as %v", name, inspected)
			}
			if err := s.bucket.WriteAll(t.Context(), c.object, before, nil); err != nil {
				t.Fatal(err)
			}
		}
		target.Clear()
		if outcome := s.load(task); outcome.Restored != int64(len(items)) {
			t.Errorf("%+v", outcome)
		}
	})
}

func TestMissingSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		_, err := Load(t.Context(), s.bucket, taskOf(s.shard()), s.options)
		wantFailure(t, err, wire.ReasonSnapshotNotFound, true, "")
	})
}

func TestInspectPrintsTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(t)
		source := s.shard()
		source.put(map[string]fake.Item{"one": {Value: "1", Flags: 1}, "two words": {Value: "22", Flags: 2, Expires: time.Now().Unix() + 600}, "large": largeItem()})
		task := taskOf(source)
		s.save(task)
		var out strings.Builder
		if err := format.Inspect(t.Context(), s.bucket, task.Path, &out, format.InspectOptions{Keys: true, Chunks: true, Verify: true}); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"ns/cache", "backup-1", "3 items of 1 shards", `"two words"  2 bytes, flags 2, expires 2000-01-01`, `"one"  1 bytes, flags 1, expires never`, `"large"  4800000 bytes`, "All checksums match."} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%q is missing in\n%s", part, out.String())
			}
		}
	})
}

// An invalidated item is not saved, and its next reader is requested to renew it as if no client had read it. With few items,
// it is also in the sample of keys that detects a lost shard.
func TestStaleItemsAreNotSaved(t *testing.T) {
	for _, others := range []int{10, 1000} {
		t.Run(fmt.Sprintf("beside %d others", others), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(t)
				source := s.shard()
				items := someItems("key", others)
				source.put(items)
				source.Set("stale", fake.Item{Value: "old"})
				source.Invalidate("stale")
				outcome := s.save(taskOf(source))
				if outcome.Items != int64(len(items)) || !strings.Contains(outcome.Message, "1 are stale") {
					t.Errorf("%+v, want %d items", outcome, len(items))
				}
				if !source.RequestsRenewal("stale") {
					t.Errorf("the next reader is not requested to renew it; %d invalidations", len(source.Requests("md stale I C")))
				}
			})
		})
	}
}
