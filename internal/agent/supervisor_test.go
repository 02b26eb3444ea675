package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/peer"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/handover"
)

// inPod runs a test with a pod in a bubble.
func inPod(t *testing.T, test func(t *testing.T, p *pod)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newPod(t)) })
}

func TestAnnouncedStopSavesTheItemsForTheNextContainer(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.wantStart(p.run(), wire.StartCold, 0, "first start of this pod")
		p.memcached.latest().add(7)
		p.announce("a")
		if err := p.stop(); err != nil || p.saved() != 7 {
			t.Fatalf("stopped with %v and %d saved items", err, p.saved())
		}
		p.pass(3 * time.Second)
		p.wantStart(p.run(), wire.StartWarm, 7, "loaded the saved items")
		// The annotation still announces the stop before.
		if token := p.status().AnnouncedStop; token != "" {
			t.Errorf("stop %q is announced again", token)
		}
		p.finish()
	})
}

func TestRestartInPlaceKeepsTheItems(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		first := p.run()
		p.memcached.latest().add(7)
		p.memcached.set(func(b *behavior) { b.saves, b.loads = time.Second, time.Second })
		p.annotate(wire.RestartFile, "now")
		second := p.awaitStatus("restarted", func(s wire.Status) bool { return s.Restart == "now" })
		p.wantStart(second, wire.StartWarm, 7, "")
		if s := second.Start.UnavailableSeconds; s < 1 || s > 1.1 { // the first one saved at once
			t.Errorf("unavailable for %v s", second.Start.UnavailableSeconds)
		}
		p.annotate(wire.ArgumentsFile, `["-m","64","-t","2"]`)
		third := p.awaitStatus("changed", func(s wire.Status) bool { return s.Phase == wire.PhaseServing && len(s.Arguments) == 4 })
		p.wantStart(third, wire.StartWarm, 7, "")
		if first.PID == second.PID || second.PID == third.PID || third.ArgumentsError != "" {
			t.Errorf("PIDs %d, %d, %d, error %q", first.PID, second.PID, third.PID, third.ArgumentsError)
		}
		p.finish()
	})
}

// A change that is announced together with a stop waits for the next container, which applies both in one start.
func TestChangesWaitForAnAnnouncedStop(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		p.memcached.latest().add(7)
		p.announce("a")
		p.annotate(wire.ArgumentsFile, `["-m","64","-t","2"]`)
		p.pass(wire.AnnouncementTimeout / 2)
		if status := p.status(); status.Phase != wire.PhaseServing || len(status.Arguments) != 2 {
			t.Errorf("memcached was changed: %+v", status)
		}
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		status := p.run()
		p.wantStart(status, wire.StartWarm, 7, "")
		if len(status.Arguments) != 4 {
			t.Errorf("the next container has the arguments %q", status.Arguments)
		}
		p.finish()
	})
}

// The kubelet may start a container before it updates the annotations.
func TestContainerWaitsForAnnouncedArguments(t *testing.T) {
	const desired = `["-m","64","-t","2"]`
	for name, c := range map[string]struct {
		arrive bool
		want   int
	}{
		"that arrive a moment later":                     {true, 4},
		"and starts with the previous ones without them": {false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.run()
				p.memcached.latest().add(7)
				p.announce(wire.AnnounceArguments("upgrade", desired))
				if err := p.stop(); err != nil {
					t.Fatal(err)
				}
				arrived := make(chan struct{})
				if c.arrive {
					time.AfterFunc(500*time.Millisecond, func() { p.annotate(wire.ArgumentsFile, desired); close(arrived) })
				} else {
					close(arrived)
				}
				status := p.run()
				<-arrived
				p.wantStart(status, wire.StartWarm, 7, "")
				p.pass(time.Minute)
				if now := p.status(); len(now.Arguments) != c.want || now.PID != status.PID {
					t.Errorf("%+v, after a start with the arguments %q", now, status.Arguments)
				}
				p.finish()
			})
		})
	}
}

func TestRejectedArgumentsStopNoMemcached(t *testing.T) {
	for name, c := range map[string]struct{ arguments, want string }{
		"memcached exits with them": {`["-m","64","-t","0"]`, "memcached does not start with them: memcached exited unexpectedly with code 71: too few threads"},
		"they lose the items":       {`["-m","65"]`, "they require a new pod"},
		"they are no JSON":          {"-m 64", "not a JSON array"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				before := p.run()
				p.memcached.set(func(b *behavior) {
					b.exits = func(words []string) string {
						if strings.Contains(strings.Join(words, " "), "-t 0") {
							return "too few threads"
						}
						return ""
					}
				})
				p.annotate(wire.ArgumentsFile, c.arguments)
				after := p.awaitStatus("rejected", func(s wire.Status) bool { return s.ArgumentsError != "" })
				if !strings.HasPrefix(after.ArgumentsError, notApplied) || !strings.Contains(after.ArgumentsError, c.want) || after.PID != before.PID || after.Phase != wire.PhaseServing {
					t.Errorf("%+v", after)
				}
				// A requested restart tries them again: their cause may be fixed.
				p.memcached.set(func(b *behavior) { b.exits = nil })
				p.memcached.latest().add(7)
				p.annotate(wire.RestartFile, "again")
				after = p.awaitStatus("restarted", func(s wire.Status) bool { return s.Restart == "again" })
				p.wantStart(after, wire.StartWarm, 7, "")
				if fixed := strings.Contains(name, "exits"); fixed != (after.ArgumentsError == "") {
					t.Errorf("after a restart: %+v", after)
				}
				p.finish()
			})
		})
	}
}

// A dry run does not see everything.
func TestArgumentsThatFailWithTheItemsAreReverted(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		p.memcached.latest().add(7)
		p.memcached.set(func(b *behavior) {
			b.exits = func(words []string) string {
				if !without("-t")(words) && !without("-e")(words) {
					return "not with items"
				}
				return ""
			}
		})
		p.annotate(wire.ArgumentsFile, `["-m","64","-t","2"]`)
		status := p.awaitStatus("reverted", func(s wire.Status) bool { return s.Phase == wire.PhaseServing && s.ArgumentsError != "" })
		p.wantStart(status, wire.StartWarm, 7, "")
		if len(status.Arguments) != 2 || !strings.Contains(status.ArgumentsError, "not with items") {
			t.Errorf("%+v", status)
		}
		p.finish()
	})
}

// Without saved items there is no dry run; the record of the last stop has the previous arguments.
func TestColdContainerFallsBackFromArgumentsThatMemcachedRejects(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		p.finish()
		if err := os.WriteFile(datadir.MetaPath(p.config.dataDir), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p.memcached.set(func(b *behavior) {
			b.exits = func(words []string) string {
				if slices.Contains(words, "-I") {
					return "too large"
				}
				return ""
			}
		})
		p.annotate(wire.ArgumentsFile, `["-m","64","-I","1024m"]`)
		status := p.run()
		if !strings.Contains(status.ArgumentsError, "memcached exited unexpectedly with code 71: too large") || slices.Contains(status.Arguments, "-I") {
			t.Errorf("arguments %v: %s", status.Arguments, status.ArgumentsError)
		}
		p.finish()
	})
}

func TestCrashFailsTheContainer(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		p.memcached.latest().add(7)
		p.memcached.latest().end(syscall.WaitStatus(syscall.SIGSEGV))
		p.wantExit(`memcached was terminated by signal "segmentation fault"`)
		if code := ExitCode(p.err); code != 128+int(syscall.SIGSEGV) {
			t.Errorf("exit code %d", code)
		}
		p.wantStart(p.run(), wire.StartCold, 0, "did not save its items at its last stop")
		p.memcached.latest().end(0)
		p.wantExit("memcached exited unexpectedly with code 0")
		if code := ExitCode(p.err); code != 1 {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestStartThatFailsKeepsTheItems(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*behavior)
		want  string
	}{
		"memcached exits": {func(b *behavior) { b.exits = func([]string) string { return "no such option" } },
			"memcached 1.6.99 does not start, so the items stay for the version that saved them: memcached exited unexpectedly with code 71: no such option"},
		"memcached never listens": {func(b *behavior) { b.deaf = always },
			"the saved items stay for the next start: memcached did not respond within 1m0s: the node is overloaded, or memcached hangs"},
		"memcached never responds": {func(b *behavior) { b.silent = always },
			"the saved items stay for the next start: memcached did not respond within 1m0s: the node is overloaded, or memcached hangs"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.run()
				p.memcached.latest().add(7)
				p.finish()
				p.version = "1.6.99"
				p.memcached.set(c.fault)
				if err := p.create(); err == nil || err.Error() != c.want || p.saved() != 7 {
					t.Errorf("%v; %d items are saved", err, p.saved())
				}
				p.version = "1.6.45"
				p.memcached.set(func(b *behavior) { *b = behavior{} })
				p.wantStart(p.run(), wire.StartWarm, 7, "")
				p.finish()
			})
		})
	}
}

// What takes too long on an overloaded node says nothing about the arguments.
func TestSlowDryRunRejectsNoArguments(t *testing.T) {
	slow := func(b *behavior) { b.deaf = without("-e") }
	changed := func(s wire.Status) bool { return s.Phase == wire.PhaseServing && len(s.Arguments) == 4 }
	t.Run("of a memcached that serves", func(t *testing.T) {
		inPod(t, func(t *testing.T, p *pod) {
			before := p.run()
			p.memcached.latest().add(7)
			p.memcached.set(slow)
			p.annotate(wire.ArgumentsFile, `["-m","64","-t","2"]`)
			p.pass(2 * dryRunRetry)
			if after := p.status(); after.ArgumentsError != "" || after.PID != before.PID || after.Phase != wire.PhaseServing {
				t.Errorf("%+v", after)
			}
			p.memcached.set(func(b *behavior) { *b = behavior{} })
			after := p.awaitStatus("changed", changed)
			p.wantStart(after, wire.StartWarm, 7, "")
			p.finish()
		})
	})
	t.Run("of arguments with which memcached hangs", func(t *testing.T) {
		inPod(t, func(t *testing.T, p *pod) {
			before := p.run()
			p.memcached.set(slow)
			began := time.Now()
			p.annotate(wire.ArgumentsFile, `["-m","64","-t","2"]`)
			reported := p.awaitStatus("reported", func(s wire.Status) bool { return s.ArgumentsError != "" })
			want := "the new arguments are not applied: memcached did not respond within 10s: the node is overloaded, or memcached hangs (10 checks in a row)"
			if took := time.Since(began); reported.ArgumentsError != want || reported.PID != before.PID || took < (maxPostponed-1)*dryRunRetry {
				t.Errorf("after %s: %+v", took, reported)
			}
			p.annotate(wire.ArgumentsFile, `["-m","64","-t","3"]`)
			p.awaitStatus("checked as others", func(s wire.Status) bool { return s.ArgumentsError == "" })
			p.memcached.set(func(b *behavior) { *b = behavior{} })
			p.awaitStatus("changed", changed)
			p.finish()
		})
	})
	t.Run("of a new container", func(t *testing.T) {
		inPod(t, func(t *testing.T, p *pod) {
			p.run()
			p.memcached.latest().add(7)
			p.finish()
			p.annotate(wire.ArgumentsFile, `["-m","64","-t","2"]`)
			p.memcached.set(func(b *behavior) {
				b.deaf = func(words []string) bool { return without("-e")(words) && !without("-t")(words) }
			})
			status := p.run()
			p.wantStart(status, wire.StartWarm, 7, "")
			if len(status.Arguments) != 2 || status.ArgumentsError != "" {
				t.Errorf("%+v", status)
			}
			p.memcached.set(func(b *behavior) { *b = behavior{} })
			p.wantStart(p.awaitStatus("changed", changed), wire.StartWarm, 7, "")
			p.finish()
		})
	})
}

func TestSIGTERMDuringAStartKeepsTheItems(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		p.memcached.latest().add(7)
		p.finish()
		p.memcached.set(func(b *behavior) { b.loads, b.saves = 5*time.Second, 5*time.Second })
		if err := p.create(); err != nil {
			t.Fatal(err)
		}
		p.announce("during the start")
		p.terminations <- syscall.SIGTERM
		p.pass(7 * time.Second) // it responds, and saves
		if status := p.status(); status.Phase != wire.PhaseStopping {
			t.Errorf("during the save: %+v", status)
		}
		if err := p.exit(); err != nil || p.saved() != 7 {
			t.Fatalf("stopped with %v, %d items are saved", err, p.saved())
		}
		p.wantStart(p.run(), wire.StartWarm, 7, "")
		p.finish()
	})
}

func TestSIGTERMDuringARestartInPlaceSavesOnce(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.memcached.set(func(b *behavior) { b.saves = 5 * time.Second })
		p.run()
		p.memcached.latest().add(7)
		p.annotate(wire.RestartFile, "now")
		p.await(wire.PhaseRestarting)
		p.announce("during the restart")
		if err := p.stop(); err != nil || p.saved() != 7 || p.memcached.latest().PID != 1 {
			t.Errorf("stopped with %v, %d items are saved, memcached %d", err, p.saved(), p.memcached.latest().PID)
		}
	})
}

func TestMemcachedThatHangsAtItsStartFailsTheContainer(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*behavior)
		after time.Duration
		want  string
	}{
		"it accepts connections":   {func(b *behavior) { b.silent = always }, process.HangTimeout, "memcached accepts connections at 127.0.0.1:11211 but did not respond for 1m0s"},
		"it refuses connections":   {func(b *behavior) { b.deaf = always }, startTimeout, "memcached did not respond at 127.0.0.1:11211 within 10m0s of its start"},
		"it loads items for hours": {func(b *behavior) { b.loads = time.Hour }, startTimeout, "memcached did not respond at 127.0.0.1:11211 within 10m0s of its start"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.memcached.set(c.fault)
				began := time.Now()
				if err := p.create(); err != nil {
					t.Fatal(err)
				}
				p.wantExit(c.want)
				if took := time.Since(began); took < c.after || took > c.after+5*time.Second { //nolint:forbidigo // the fake time of a bubble
					t.Errorf("it failed after %s, want %s", took, c.after)
				}
			})
		})
	}
}

func TestMemcachedWithoutAFreeConnectionServes(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.run()
		p.memcached.latest().add(7)
		p.finish()
		p.memcached.set(func(b *behavior) { b.busy = true })
		status := p.run()
		p.wantStart(status, wire.StartWarm, 7, "returned no statistics to count them")
		p.finish()
	})
}

// memcached's clock stands still while it saves on a node that gives it no processor time.
func TestStallDuringASaveLetsNoItemLiveLonger(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.memcached.set(func(b *behavior) { b.saves, b.lags = 6*time.Second, 6*time.Second })
		p.run()
		zero := p.memcached.latest().server.Zero().Unix()
		p.finish()
		saved, err := datadir.Read(p.config.dataDir)
		if err != nil || saved.File == nil {
			t.Fatalf("%+v, %v", saved, err)
		}
		if got := saved.File.Stopped - saved.File.Clock; got != zero {
			t.Errorf("the clock that continues showed 0 at %d, want %d", got, zero)
		}
	})
}

// An unannounced SIGTERM to a memcached that hangs is the kubelet's after a minute of failed probes.
func TestMemcachedThatHangsAtItsStopIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		announced bool
		timeout   time.Duration
	}{
		"announced":   {true, datadir.SaveTimeout},
		"unannounced": {false, hangQueryTimeout + datadir.SaveTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.run()
				memcached := p.memcached.latest()
				memcached.add(7)
				if c.announced {
					p.announce("a")
				}
				memcached.hang()
				began := time.Now()
				if err := p.stop(); err != nil || p.saved() >= 0 {
					t.Errorf("stopped with %v, %d items are saved", err, p.saved())
				}
				if took := time.Since(began); took < c.timeout || took > c.timeout+time.Second { //nolint:forbidigo // the fake time of a bubble
					t.Errorf("killed after %s, want %s", took, c.timeout)
				}
				p.wantStart(p.run(), wire.StartCold, 0, "did not save its items")
				p.finish()
			})
		})
	}
}

func TestDeletedPodServesUntilItIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p *pod)
		took time.Duration
		want string
	}{
		"another pod serves": {func(p *pod) {
			p.pass(10 * time.Second)
			p.other.Store(&wire.Status{PodUID: "other", Phase: wire.PhaseServing})
		}, 11 * time.Second, "pod other serves behind the Service"},
		"nothing replaces it": {func(*pod) {}, time.Minute, "no other pod responded"},
		"a second SIGTERM": {func(p *pod) {
			p.pass(10 * time.Second)
			p.terminations <- syscall.SIGTERM
		}, 10 * time.Second, "Stopping the container"},
		"the stop is announced late": {func(p *pod) {
			p.pass(10 * time.Second)
			p.annotate(wire.StopFile, "late")
		}, time.Minute, "no other pod responded"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.run()
				p.memcached.latest().add(7)
				began := time.Now()
				p.terminations <- syscall.SIGTERM
				p.await(wire.PhaseDraining)
				if err := p.ready(); err != nil {
					t.Errorf("not ready during the drain: %v", err)
				}
				c.end(p)
				if err := p.exit(); err != nil || p.saved() != 7 {
					t.Errorf("stopped with %v, and %d items are saved", err, p.saved())
				}
				if took := time.Since(began); took < c.took || took > c.took+time.Second { //nolint:forbidigo // the fake time of a bubble
					t.Errorf("stopped after %s, want %s", took, c.took)
				}
				if !strings.Contains(p.log.String(), c.want) {
					t.Errorf("the log lacks %q:\n%s", c.want, p.log)
				}
			})
		})
	}
}

// drained starts the drain of a pod with 7 items, and returns the source of a target that has connected.
func (p *pod) drained() *peer.Source {
	p.t.Helper()
	p.filled()
	p.terminations <- syscall.SIGTERM
	p.await(wire.PhaseDraining)
	return p.connected(false)
}

// replaced is the same for a pod that the operator replaces.
func (p *pod) replaced() *peer.Source {
	p.t.Helper()
	p.filled()
	s := p.connected(true)
	p.await(wire.PhaseDraining)
	return s
}

// filled runs a pod with 7 items.
func (p *pod) filled() {
	p.t.Helper()
	p.config.handoverKey = p.keyFile()
	p.config.service = "" // no search for another pod
	p.run()
	p.config.service = testHost + ":11212"
	p.supervisor.config.service = p.config.service
	p.memcached.latest().add(7)
}

func (p *pod) connected(requested bool) *peer.Source {
	p.t.Helper()
	s, err := peer.NewSource(peer.Config{DataDir: p.config.dataDir, Service: p.config.service}, p.network, p.sources, requested)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func TestPodThatIsDeletedBeforeMemcachedServesHandsOver(t *testing.T) {
	restart := func(p *pod) {
		p.annotate(wire.RestartFile, "now")
		p.await(wire.PhaseRestarting)
	}
	for name, begin := range map[string]func(p *pod){
		"while it saves": restart,
		"while it loads": func(p *pod) {
			restart(p)
			p.pass(7 * time.Second)
		},
		"while a container starts": func(p *pod) {
			p.finish()
			if err := p.create(); err != nil {
				p.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.memcached.set(func(b *behavior) { b.saves, b.loads = 5*time.Second, 5*time.Second })
				p.filled()
				begin(p)
				p.terminations <- syscall.SIGTERM
				p.wantStart(p.await(wire.PhaseDraining), wire.StartWarm, 7, "")
				o := p.connected(false)
				if err := o.Stop(t.Context()); err != nil || p.saved() != 7 {
					t.Fatalf("%v, %d items are saved", err, p.saved())
				}
				o.Complete(handover.Result{Items: 7, ItemsBefore: 7})
				if err := p.exit(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestPodThatIsDeletedWaitsForNoMemcachedThatStarts(t *testing.T) {
	for name, c := range map[string]struct {
		items int64
		end   func(p *pod)
		took  time.Duration
	}{
		"without items":             {0, func(*pod) {}, datadir.SaveTimeout},
		"longer than for the drain": {7, func(*pod) {}, time.Minute + datadir.SaveTimeout},
		"after a second SIGTERM": {7, func(p *pod) {
			p.pass(10 * time.Second)
			p.terminations <- syscall.SIGTERM
		}, 10*time.Second + datadir.SaveTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				if c.items > 0 {
					p.run()
					p.memcached.latest().add(c.items)
					p.finish()
				}
				p.memcached.set(func(b *behavior) { b.loads = 5 * time.Minute })
				if err := p.create(); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				p.terminations <- syscall.SIGTERM
				c.end(p)
				if err := p.exit(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it stopped after %s, want %s", took, c.took)
				}
			})
		})
	}
}

func TestSourceStopsWhenTheTargetHasTheItems(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		o := p.drained()
		if err := o.Stop(t.Context()); err != nil || p.saved() != 7 || p.status().Phase != wire.PhaseStopping {
			t.Fatalf("%v, %d items are saved, %+v", err, p.saved(), p.status())
		}
		o.Complete(handover.Result{Items: 7, ItemsBefore: 7})
		if err := p.exit(); err != nil || !strings.Contains(p.log.String(), "Handed over") {
			t.Errorf("%v:\n%s", err, p.log)
		}
	})
}

// A pass can last longer than the drain, and a handover in mode Available must not be lost by that.
func TestStopAtTheEndOfTheDrainIsThatOfTheHandover(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.memcached.set(func(b *behavior) { b.saves = 5 * time.Second })
		o := p.drained()
		if err := o.Commit(); err != nil {
			t.Fatal(err)
		}
		p.await(wire.PhaseStopping)
		if err := o.Stop(t.Context()); err != nil || p.saved() != 7 {
			t.Fatalf("%v, %d items are saved", err, p.saved())
		}
		p.pass(acknowledgeTimeout / 2)
		o.Complete(handover.Result{Items: 7, ItemsBefore: 7})
		if err := p.exit(); err != nil || !strings.Contains(p.log.String(), "Handed over") {
			t.Errorf("%v:\n%s", err, p.log)
		}
	})
}

func TestSourceServesAgainWhenTheTargetDoesNotTakeOver(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		o := p.drained()
		began := time.Now()
		if err := o.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.pass(10 * time.Second)
		o.Resume()
		p.wantStart(p.await(wire.PhaseDraining), wire.StartWarm, 7, "")
		// The drain still ends in time for the save.
		if err := p.exit(); err != nil || p.saved() != 7 || time.Since(began) > p.config.drainTimeout { //nolint:forbidigo // the fake time of a bubble
			t.Errorf("stopped with %v after %s, %d items are saved", err, time.Since(began), p.saved())
		}
	})
}

func TestSourceStopsForGoodWhenTheTargetIsLost(t *testing.T) {
	for name, end := range map[string]func(o *peer.Source){
		"before the last changes": func(o *peer.Source) { o.Abandon() },
		"after the last changes":  func(o *peer.Source) { _ = o.Stop(context.Background()); o.Abandon() },
		"without an acknowledgment": func(o *peer.Source) {
			_ = o.Stop(context.Background())
		},
		"when there is no time left": func(o *peer.Source) {
			_ = o.Stop(context.Background())
			<-time.After(time.Minute)
			o.Resume()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				o := p.drained()
				before := p.status().PID
				end(o)
				if err := p.exit(); err != nil || p.saved() != 7 || p.memcached.latest().PID != before {
					t.Errorf("stopped with %v, %d items are saved, memcached %d after %d", err, p.saved(), p.memcached.latest().PID, before)
				}
			})
		})
	}
}

func TestSourceThatCanNotSaveHandsNothingOver(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		o := p.drained()
		p.memcached.latest().hang()
		if err := o.Stop(t.Context()); !errors.Is(err, errNotSaved) {
			t.Errorf("the target gets %v", err)
		}
		if err := p.exit(); err != nil {
			t.Error(err)
		}
	})
}

func TestReplacedPodServesUntilTheTargetTakesOver(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, o *peer.Source){
		"before the end": func(*testing.T, *peer.Source) {},
		"at the end": func(t *testing.T, o *peer.Source) {
			if err := errors.Join(o.Stop(t.Context()), o.Commit()); err != nil {
				t.Fatal(err)
			}
			o.Resume()
		},
	} {
		t.Run("the target is lost "+name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				o := p.replaced()
				if err := p.ready(); err != nil {
					t.Errorf("not ready while the items are copied: %v", err)
				}
				p.annotate(wire.RestartFile, "later")
				began := time.Now()
				if o.AwaitRouted(t.Context()); time.Since(began) < p.config.drainTimeout {
					t.Errorf("the handover has only %s", time.Since(began))
				}
				p.pass(p.config.drainTimeout) // nothing ends a pod that isn't being deleted
				if phase := p.status().Phase; phase != wire.PhaseDraining || p.memcached.latest().PID != 1 {
					t.Fatalf("phase %s, memcached %d", phase, p.memcached.latest().PID)
				}
				end(t, o)
				o.Release()
				status := p.awaitStatus("restarted", func(s wire.Status) bool { return s.Phase == wire.PhaseServing && s.Restart == "later" })
				p.wantStart(status, wire.StartWarm, 7, "")
				if err := p.connected(true).Stop(t.Context()); err != nil || p.saved() != 7 {
					t.Errorf("the next target gets %v, and %d items", err, p.saved())
				}
				p.terminations <- syscall.SIGTERM
				if err := p.exit(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Its container must run until the operator deletes the pod, which can be late, and must not serve items that are older than
// those of the other pod.
func TestReplacedPodWaitsWithoutItemsWhenAnotherOneMayServe(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, p *pod, o *peer.Source){
		"it has handed over": func(t *testing.T, _ *pod, o *peer.Source) {
			if err := errors.Join(o.Stop(t.Context()), o.Commit()); err != nil {
				t.Fatal(err)
			}
			o.Complete(handover.Result{Items: 7, ItemsBefore: 7})
		},
		"the target is lost while both serve": func(t *testing.T, _ *pod, o *peer.Source) {
			if err := o.Commit(); err != nil {
				t.Fatal(err)
			}
			o.Abandon()
		},
		"the target is lost when the source has stopped": func(t *testing.T, _ *pod, o *peer.Source) {
			if err := errors.Join(o.Commit(), o.Stop(t.Context())); err != nil {
				t.Fatal(err)
			}
			o.Abandon()
		},
		"it can't save when the other one serves": func(t *testing.T, p *pod, o *peer.Source) {
			if err := o.Commit(); err != nil {
				t.Fatal(err)
			}
			p.memcached.latest().hang()
			if err := o.Stop(t.Context()); !errors.Is(err, errNotSaved) {
				t.Errorf("the target gets %v", err)
			}
		},
		"its container is killed while both serve": func(t *testing.T, p *pod, o *peer.Source) {
			if err := o.Commit(); err != nil {
				t.Fatal(err)
			}
			_ = p.memcached.latest().signal(syscall.SIGKILL)
			if p.exit() == nil {
				t.Error("the agent survives memcached")
			}
			if err := p.create(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for other, c := range map[string]struct {
			phase  wire.Phase
			status *wire.Status
		}{
			"another pod serves": {wire.PhaseReceiving, &wire.Status{PodUID: "other", PodIP: "10.0.0.1", HandoverPort: wire.HandoverPort}},
			"no other pod does":  {wire.PhaseServing, nil},
		} {
			t.Run(name+", and "+other, func(t *testing.T) {
				inPod(t, func(t *testing.T, p *pod) {
					o := p.replaced()
					p.network.Receive = func(context.Context, handover.Target) (handover.Result, error) {
						return handover.Result{}, handover.ErrNotStarted
					}
					p.supervisor.network.Receive = p.network.Receive
					end(t, p, o)
					p.await(wire.PhaseHandedOver)
					p.other.Store(c.status)
					p.pass(afterHandover - time.Second)
					if s := p.status(); s.Phase != wire.PhaseHandedOver || s.PID != 0 || p.ready() == nil {
						t.Errorf("before the Service has left the pod: %+v", s)
					}
					status := p.await(c.phase)
					if status.Items != 0 || p.saved() >= 0 || status.Start.Items != 0 {
						t.Errorf("it has items: %+v, %d are saved", status, p.saved())
					}
					if ready := p.ready() == nil; ready != (c.phase == wire.PhaseServing) {
						t.Errorf("ready %t in phase %s", ready, c.phase)
					}
					p.announce("the end")
					if err := p.stop(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A drain, an eviction, or the operator.
func TestReplacedPodThatIsDeletedHandsOverUntilTheEndOfTheDrain(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(t *testing.T, o *peer.Source)
		lasts         time.Duration
	}{
		"while the items are copied": {func(*testing.T, *peer.Source) {}, func(t *testing.T, o *peer.Source) {
			if err := errors.Join(o.Stop(t.Context()), o.Commit()); err != nil {
				t.Fatal(err)
			}
			o.Complete(handover.Result{})
		}, time.Second},
		"at the end": {func(t *testing.T, o *peer.Source) {
			if err := errors.Join(o.Stop(t.Context()), o.Commit()); err != nil {
				t.Fatal(err)
			}
		}, func(_ *testing.T, o *peer.Source) { o.Complete(handover.Result{}) }, time.Second},
		"and the target is lost": {func(*testing.T, *peer.Source) {}, func(_ *testing.T, o *peer.Source) { o.Release() }, time.Minute},
		"and the target doesn't acknowledge": {func(t *testing.T, o *peer.Source) {
			if err := o.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, func(*testing.T, *peer.Source) {}, time.Minute + acknowledgeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				o := p.replaced()
				c.before(t, o)
				p.pass(10 * p.config.drainTimeout)
				began := time.Now()
				p.terminations <- syscall.SIGTERM
				p.pass(time.Second)
				if err := p.ready(); (err == nil) != (p.status().Phase == wire.PhaseDraining) {
					t.Errorf("ready: %v in phase %s", err, p.status().Phase)
				}
				c.after(t, o)
				if err := p.exit(); err != nil || p.saved() != 7 {
					t.Errorf("stopped with %v, %d items are saved", err, p.saved())
				}
				if took := time.Since(began); took != c.lasts {
					t.Errorf("it stopped after %s", took)
				}
			})
		})
	}
}

// The kubelet counts from the SIGTERM. Without a shorter grace period, the end begins 35 s before its end.
func TestSourceDividesWhatIsLeftOfAGracePeriod(t *testing.T) {
	drained := (*pod).drained
	replaced := func(p *pod) *peer.Source {
		o := p.replaced()
		p.pass(time.Hour)
		p.terminations <- syscall.SIGTERM
		p.pass(0)
		return o
	}
	for name, c := range map[string]struct {
		source                        func(*pod) *peer.Source
		after, grace, deadline, limit time.Duration
	}{
		"a third for the end":                          {drained, 3 * time.Second, 30 * time.Second, 18 * time.Second, 22500 * time.Millisecond},
		"of a pod that hands over already":             {replaced, 3 * time.Second, 30 * time.Second, 18 * time.Second, 22500 * time.Millisecond},
		"not more than of the pod's own":               {drained, 19 * time.Second, 219 * time.Second, 165 * time.Second, 185 * time.Second},
		"it was shortened later: it begins again":      {drained, 40 * time.Second, 30 * time.Second, 20 * time.Second, 25 * time.Second},
		"its pod isn't being deleted, as far as known": {(*pod).replaced, 3 * time.Second, 30 * time.Second, 20 * time.Second, 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				o := c.source(p)
				p.pass(c.after)
				now := time.Now()
				deadline, limit := o.Within(c.grace)
				if deadline.Sub(now) != c.deadline || limit.Sub(now) != c.limit {
					t.Errorf("the end begins in %s, and the last item is sent in %s", deadline.Sub(now), limit.Sub(now))
				}
				o.Abandon()
				p.terminations <- syscall.SIGTERM
				if err := p.exit(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestTargetIsRequestedToReplaceOnePod(t *testing.T) {
	for _, c := range []struct {
		annotation string
		want       bool
		grace      time.Duration
	}{{"", false, 0}, {"another", false, 0}, {"another 30", false, 0}, {"other", true, 0}, {"other 30", true, 30 * time.Second}, {"other soon", true, 0}} {
		inPod(t, func(t *testing.T, p *pod) {
			p.annotate(wire.ReceiveFile, c.annotation)
			requested, grace := false, time.Duration(0)
			p.receives(func(_ context.Context, target handover.Target) (handover.Result, error) {
				requested, grace = target.Announced()
				return handover.Result{Items: 7, ItemsBefore: 7}, nil
			})
			p.run()
			if requested != c.want || grace != c.grace {
				t.Errorf("annotation %q: requested %t, grace period %s", c.annotation, requested, grace)
			}
			p.finish()
		})
	}
}

// receives lets the pod find another one that hands its items over. Each function is one handover, the last one again and again.
func (p *pod) receives(handovers ...func(context.Context, handover.Target) (handover.Result, error)) {
	p.config.handoverKey = p.keyFile()
	p.other.Store(&wire.Status{PodUID: "other", PodIP: "10.0.0.1", HandoverPort: wire.HandoverPort})
	p.network.Receive = func(ctx context.Context, target handover.Target) (handover.Result, error) {
		receive := handovers[0]
		if len(handovers) > 1 {
			handovers = handovers[1:]
		}
		return receive(ctx, target)
	}
}

var errLostSource = errors.New("the source is lost")

func TestTargetServesWithTheItemsOfTheOtherPod(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		continues := make(chan struct{})
		p.receives(
			func(context.Context, handover.Target) (handover.Result, error) {
				return handover.Result{}, handover.ErrNotStarted // the operator deletes the other pod later
			},
			func(_ context.Context, target handover.Target) (handover.Result, error) {
				target.Progress(handover.Progress{Pass: 1, Items: 3, Total: 7})
				p.memcached.latest().add(7)
				<-continues
				return handover.Result{Items: 7, ItemsBefore: 7, Took: 2 * time.Second, Gap: time.Second}, nil
			})
		if err := p.create(); err != nil {
			t.Fatal(err)
		}
		status := p.awaitStatus("receiving", func(s wire.Status) bool { return s.Handover != nil && s.Handover.Items == 3 })
		if err := p.ready(); err == nil || status.Phase != wire.PhaseReceiving || !exists(filepath.Join(p.config.dataDir, "reception")) {
			t.Errorf("readiness %v, %+v", err, status)
		}
		close(continues)
		status = p.await(wire.PhaseServing)
		p.wantStart(status, wire.StartHandedOver, 7, "received 7 of 7 items from pod other in 2.0 s; unavailable for 1.00 s")
		if err := p.ready(); err != nil || exists(filepath.Join(p.config.dataDir, "reception")) {
			t.Errorf("readiness %v", err)
		}
		p.finish()
		p.wantStart(p.run(), wire.StartWarm, 7, "") // it does not receive again
		p.finish()
	})
}

func TestChangesWaitForTheEndOfAHandover(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		continues := make(chan struct{})
		p.receives(func(context.Context, handover.Target) (handover.Result, error) {
			p.memcached.latest().add(7)
			<-continues
			return handover.Result{Items: 7, ItemsBefore: 7}, nil
		})
		if err := p.create(); err != nil {
			t.Fatal(err)
		}
		receiving := p.await(wire.PhaseReceiving)
		p.annotate(wire.RestartFile, "now")
		p.pass(time.Minute)
		if status := p.status(); status.Phase != wire.PhaseReceiving || status.PID != receiving.PID {
			t.Errorf("memcached was changed: %+v, before %+v", status, receiving)
		}
		close(continues)
		p.wantStart(p.awaitStatus("restarted", func(s wire.Status) bool { return s.Restart == "now" }), wire.StartWarm, 7, "")
		p.finish()
	})
}

func TestWhatIsKnownAboutTheItemsStaysWithThem(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		var known string
		p.known = kept{"name": {
			export: func() []byte { return []byte(known) },
			load:   func(content []byte) { known = string(content) },
		}}
		p.receives(func(context.Context, handover.Target) (handover.Result, error) {
			p.memcached.latest().add(7)
			return handover.Result{Items: 7, ItemsBefore: 7, State: map[string][]byte{"name": []byte("other"), "of a later release": nil}}, nil
		})
		p.run()
		if known != "other" {
			t.Errorf("after the handover: %q", known)
		}
		p.finish()
		known = ""
		p.wantStart(p.run(), wire.StartWarm, 7, "")
		if sent := string(p.supervisor.peer().State()["name"]); sent != "other" {
			t.Errorf("another handover sends %q after a restart", sent)
		}
		for _, signal := range []os.Signal{syscall.SIGUSR1, syscall.SIGKILL} { // of another process
			known = "former"
			_ = p.memcached.latest().signal(signal)
			if err := p.exit(); err == nil {
				t.Error("no error after a crash")
			}
			if p.run(); known != "" {
				t.Errorf("after %s: %q", signal, known)
			}
		}
		p.finish()
	})
}

func TestTargetStartsWithoutItemsAfterHandoversThatFailed(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		accepts bool
		tries   int
	}{
		"five times": {errLostSource, true, maxFailures},
		"once, and the other pod no longer exists": {errLostSource, false, 1},
		"once, for a reason that stays":            {handover.ErrImpossible, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				tries := 0
				p.receives(func(_ context.Context, target handover.Target) (handover.Result, error) {
					tries++
					p.memcached.latest().add(3)
					return handover.Result{}, c.err
				})
				p.network.Accepts = func(context.Context, string) bool { return c.accepts }
				status := p.run()
				p.wantStart(status, wire.StartCold, 0, "the handover from pod other failed: "+c.err.Error())
				if tries != c.tries || p.memcached.latest().PID != tries+1 {
					t.Errorf("%d handovers, %d memcacheds", tries, p.memcached.latest().PID)
				}
				p.finish()
			})
		})
	}
}

// The other pod hands them over to the first one that connects. Clients reach that one a few seconds later.
func TestTargetWaitsForTheThirdPodThatMayHaveTheItems(t *testing.T) {
	third := &wire.Status{PodUID: "third", PodIP: "10.0.0.2", HandoverPort: wire.HandoverPort}
	for name, c := range map[string]struct {
		// ends is the answer when the other pod stops, serves whether the third one does, and want how this one starts.
		ends   error
		serves bool
		want   wire.StartResult
		items  int64
	}{
		"which serves, and the other pod has exited":    {errLostSource, true, wire.StartHandedOver, 7},
		"which serves, and the other pod exits":         {handover.ErrImpossible, true, wire.StartHandedOver, 7},
		"and serves without items if that is lost, too": {errLostSource, false, wire.StartCold, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				deleted := make(chan struct{})
				p.receives(
					func(context.Context, handover.Target) (handover.Result, error) {
						return handover.Result{}, handover.ErrBusy
					},
					func(context.Context, handover.Target) (handover.Result, error) {
						p.memcached.latest().add(3)
						if c.serves {
							time.AfterFunc(5*time.Second, func() { p.other.Store(third) })
						} else {
							p.other.Store(nil)
						}
						return handover.Result{}, c.ends
					},
					func(_ context.Context, target handover.Target) (handover.Result, error) {
						if target.Source != "10.0.0.2:11213" {
							t.Errorf("it receives from %s", target.Source)
						}
						select {
						case <-deleted:
							p.memcached.latest().add(7)
							return handover.Result{Items: 7, ItemsBefore: 7}, nil
						default:
							return handover.Result{}, handover.ErrNotStarted
						}
					})
				p.network.Accepts = func(context.Context, string) bool { return false }
				if err := p.create(); err != nil {
					t.Fatal(err)
				}
				p.pass(20 * time.Second)
				if status := p.status(); status.Phase != wire.PhaseReceiving || p.ready() == nil {
					t.Errorf("it serves beside the third pod: %+v", status)
				}
				close(deleted)
				p.wantStart(p.await(wire.PhaseServing), c.want, c.items, "")
				if items := len(p.memcached.latest().server.Items()); int64(items) != c.items {
					t.Errorf("it serves %d items", items)
				}
				p.finish()
			})
		})
	}
}

func TestMemcachedThatExitsBeforeTheThirdPodIsFoundIsReported(t *testing.T) {
	inPod(t, func(t *testing.T, p *pod) {
		p.receives(
			func(context.Context, handover.Target) (handover.Result, error) {
				return handover.Result{}, handover.ErrBusy
			},
			func(context.Context, handover.Target) (handover.Result, error) {
				p.memcached.set(func(b *behavior) { b.exits = func([]string) string { return "no memory" } })
				return handover.Result{}, errLostSource
			})
		if err := p.create(); err != nil {
			t.Fatal(err)
		}
		p.wantExit("no memory")
	})
}

func TestTargetStartsAtOnceWithoutAnotherPod(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(p *pod)
		reason  string
	}{
		"its Service leads to itself": {func(p *pod) { p.other.Store(&wire.Status{PodUID: "own"}) }, "first start of this pod"},
		"its key is missing":          {func(p *pod) { p.config.handoverKey += "-missing" }, "reading the key of the handover"},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.receives(func(context.Context, handover.Target) (handover.Result, error) {
					t.Error("it receives items")
					return handover.Result{}, handover.ErrImpossible
				})
				c.prepare(p)
				p.wantStart(p.run(), wire.StartCold, 0, c.reason)
				p.finish()
			})
		})
	}
}

func TestTargetInModeAvailableServesWhileTheOtherPodDoes(t *testing.T) {
	for name, lost := range map[string]bool{"both reach the end": false, "one is lost": true} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.config.handoverMode = wire.ModeAvailable
				continues := make(chan struct{})
				p.receives(func(_ context.Context, target handover.Target) (handover.Result, error) {
					p.memcached.latest().add(7)
					target.Ready()
					<-continues
					if lost {
						return handover.Result{}, handover.ErrDiverged
					}
					return handover.Result{Items: 7, ItemsBefore: 7, Took: 2 * time.Second, Both: time.Second}, nil
				})
				if err := p.create(); err != nil {
					t.Fatal(err)
				}
				p.await(wire.PhaseFollowing)
				if err := p.ready(); err != nil {
					t.Errorf("not ready while it follows: %v", err)
				}
				close(continues)
				status := p.await(wire.PhaseServing)
				if lost {
					p.wantStart(status, wire.StartCold, 0, "the handover from pod other failed")
				} else {
					p.wantStart(status, wire.StartHandedOver, 7, "both pods served for 1.0 s")
				}
				p.finish()
			})
		})
	}
}

// Clients of both pods may have changed items, so that those of this one are out of date.
func TestTargetThatStopsDiscardsIncompleteItems(t *testing.T) {
	for phase, end := range map[wire.Phase]func(p *pod) error{
		wire.PhaseReceiving: (*pod).stop,
		wire.PhaseFollowing: (*pod).stop,
	} {
		t.Run(string(phase), func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.config.handoverMode = wire.ModeAvailable
				p.receives(func(ctx context.Context, target handover.Target) (handover.Result, error) {
					p.memcached.latest().add(5)
					if phase == wire.PhaseFollowing {
						target.Ready()
					}
					<-ctx.Done()
					return handover.Result{}, ctx.Err()
				})
				if err := p.create(); err != nil {
					t.Fatal(err)
				}
				p.await(phase)
				if err := end(p); err != nil || p.saved() >= 0 {
					t.Errorf("stopped with %v, %d items are saved", err, p.saved())
				}
				received := false
				p.receives(func(context.Context, handover.Target) (handover.Result, error) {
					received = true
					p.memcached.latest().add(7)
					return handover.Result{Items: 7, ItemsBefore: 7}, nil
				})
				status := p.run()
				if again := phase == wire.PhaseReceiving; received != again || again && status.Start.Items != 7 || !again && status.Start.Items != 0 {
					t.Errorf("received again: %t, %+v", received, status.Start)
				}
				p.finish()
			})
		})
	}
}

func TestMemcachedThatCrashesDuringAHandoverReceivesAgainUnlessItServed(t *testing.T) {
	for phase, tries := range map[wire.Phase]int{wire.PhaseReceiving: 2, wire.PhaseFollowing: 1} {
		t.Run(string(phase), func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.config.handoverMode = wire.ModeAvailable
				made, began := 0, make(chan struct{})
				p.receives(
					func(ctx context.Context, target handover.Target) (handover.Result, error) {
						made++
						close(began)
						if phase == wire.PhaseFollowing {
							target.Ready()
						}
						<-ctx.Done()
						return handover.Result{}, ctx.Err()
					},
					func(context.Context, handover.Target) (handover.Result, error) {
						made++
						p.memcached.latest().add(7)
						return handover.Result{Items: 7, ItemsBefore: 7}, nil
					})
				if err := p.create(); err != nil {
					t.Fatal(err)
				}
				<-began
				p.await(phase)
				p.memcached.latest().end(syscall.WaitStatus(syscall.SIGSEGV))
				status := p.await(wire.PhaseServing)
				if made != tries {
					t.Errorf("%d handovers, want %d: %+v", made, tries, status.Start)
				}
				p.finish()
			})
		})
	}
}

func TestAnnouncementIsForOneContainer(t *testing.T) {
	crash := func(p *pod) {
		p.memcached.latest().end(syscall.WaitStatus(syscall.SIGKILL))
		_ = p.exit()
		p.run()
	}
	for name, withdraw := range map[string]func(p *pod){
		"it was withdrawn": func(p *pod) { p.announce("") },
		"the container crashed before it was stopped": crash,
		"the next one restarted memcached and crashed": func(p *pod) {
			p.finish()
			p.run()
			p.annotate(wire.RestartFile, "now")
			p.awaitStatus("restarted", func(s wire.Status) bool { return s.Restart == "now" })
			crash(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inPod(t, func(t *testing.T, p *pod) {
				p.run()
				p.announce("a")
				withdraw(p)
				p.terminations <- syscall.SIGTERM
				p.await(wire.PhaseDraining)
				if err := p.exit(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
