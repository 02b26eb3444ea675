package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

const (
	// saveBound is how long a save may take. memcached needs 0.2 to 1.2 s; the
	// rest is for machines that stand still. With the drain before it, it stays
	// within the pod's grace period.
	saveBound = 20 * time.Second
	// startBound is how long memcached may take until it answers. It reads its
	// whole memory first: 0.15 to 0.7 s for a million items.
	startBound = 10 * time.Minute
	// silentBound is how long it may take connections and answer none: it listens
	// when all is read, so by then it hangs.
	silentBound = 10 * time.Second
	// askBound is how long the supervisor itself waits for an answer of memcached.
	askBound = 500 * time.Millisecond
	// restartLead is how long before the next full second an in-place restart
	// begins: memcached may start again only in a later second than that of its
	// stop, and it serves meanwhile. A stop takes about 20 ms.
	restartLead = 150 * time.Millisecond
)

type config struct {
	data, podInfo, listen, service string
	memcached, terminationLog      string
	podUID                         string
	drainTimeout                   time.Duration
}

// supervisor owns memcached's life. All of its fields are for the goroutine of run.
type supervisor struct {
	config
	program program
	log     *slog.Logger
	board   *board
	now     func() time.Time

	// What helpers report.
	exits   chan *child
	readies chan ready
	drained chan string

	phase agentapi.Phase
	child *child
	// info is what the pod's annotations said when they were last read.
	info podInfo
	hold hold
	// restart is the value of that annotation that was last acted on, and restarted
	// the one whose restart is over: the start that is told came of it.
	restart, restarted string
	// usedToken announced the stop before this agent's start.
	usedToken string

	// arguments are in effect, or tried when fallback is not nil.
	arguments []string
	fallback  *[]string
	// settled is the text of the arguments annotation that was dealt with last.
	// refusal is why its arguments are not in effect; empty when they are.
	settled, refusal string

	// before is what the present start found, start what came of it.
	before saved
	start  agentapi.Start
	// lastNote is what was noted about the last stop.
	lastNote lastStop

	// afterExit is what a planned stop is for; nil while none is under way.
	afterExit func()
	// timer runs onTimer; both nil when nothing is waited for.
	timer   *time.Timer
	onTimer func()
	// stopDrain ends a drain; nil while there is none.
	stopDrain context.CancelFunc

	ended bool
	err   error
}

// supervise runs memcached until a planned stop, which returns nil.
func supervise(c config, log *slog.Logger) error {
	orders := make(chan os.Signal, 4)
	signal.Notify(orders, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	var orphans chan os.Signal
	if os.Getpid() == 1 {
		orphans = make(chan os.Signal, 1)
		signal.Notify(orphans, syscall.SIGCHLD)
	}

	// Before all else: the kubelet's first probe comes within milliseconds of the
	// container's start, and when it is refused the next one comes a second later. A
	// connection that was taken waits until there is somebody to answer.
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("listening for /status: %w", err)
	}
	s, err := prepare(c, log)
	if err != nil {
		return err
	}
	go serveHTTP(listener, s.board)
	s.launch()
	s.run(orders, orphans)
	return s.err
}

// prepare looks at the image, the data and the annotations.
func prepare(c config, log *slog.Logger) (*supervisor, error) {
	memcached, err := imageMemcached(c.memcached)
	if err != nil {
		return nil, err
	}
	c.memcached = memcached.path
	if err := checkWritable(c.data); err != nil {
		return nil, err
	}
	before, err := readSaved(c.data)
	if err != nil {
		return nil, err
	}
	info, err := readAnnounced(c.podInfo, before.last.Announced)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(memcached, c.data, info.arguments, before)
	if err != nil {
		return nil, err
	}
	s := &supervisor{
		config: c, log: log, now: time.Now,
		exits: make(chan *child, 1), readies: make(chan ready, 1), drained: make(chan string, 1),
		phase: agentapi.PhaseStarting, info: info, restart: info.restart, restarted: info.restart, usedToken: before.last.Announced,
		arguments: chosen.arguments, fallback: chosen.fallback, refusal: chosen.refusal,
		settled: info.arguments, before: before, program: memcached,
	}
	s.hold.look(info.hold, s.now())
	s.board = newBoard(s.status())
	log.Info("The agent starts.", "version", version, "memcached", memcached.path, "memcachedVersion", memcached.version, "pod", c.podUID)
	return s, nil
}

// run takes one event at a time until the agent is to end.
func (s *supervisor) run(orders, orphans <-chan os.Signal) {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for !s.ended {
		select {
		case order := <-orders:
			s.obey(order)
		case <-look.C:
			s.look()
		case c := <-s.exits:
			s.exited(c)
		case r := <-s.readies:
			s.ready(r)
		case why := <-s.drained:
			if s.phase == agentapi.PhaseDraining {
				s.log.Info("The drain is over.", "reason", why)
				s.stop(agentapi.PhaseStopping, "", s.end)
			}
		case <-s.ticks():
			run := s.onTimer
			s.disarm()
			run()
		case <-orphans:
			own := 0
			if s.child != nil {
				own = s.child.pid
			}
			reapOrphans("/proc", 1, own)
		}
	}
}

// relaunch starts memcached after another has ended.
func (s *supervisor) relaunch() {
	before, err := readSaved(s.data)
	if err != nil {
		s.fail(err)
		return
	}
	s.before = before
	s.launch()
}

// launch starts memcached, once it may take up what was saved before.
func (s *supervisor) launch() {
	if err := checkRoom(s.data, geometry.Of(s.arguments, s.program.version).MaxBytes); err != nil {
		s.fail(err)
		return
	}
	var wait time.Duration
	if file := s.before.file; file != nil {
		var text string
		if text, wait = file.fit(s.now(), s.before.itemsBefore()); text != file.text {
			if err := replaceFile(metaPath(s.data), []byte(text)); err != nil {
				s.fail(fmt.Errorf("preparing what memcached saved: %w", err))
				return
			}
		}
	}
	s.publish()
	s.arm(wait, s.startChild)
}

func (s *supervisor) startChild() {
	c, err := startChild(s.memcached, s.data, s.arguments, s.exits)
	if err != nil {
		s.fail(err)
		return
	}
	s.child = c
	s.log.Info("memcached was started.", "pid", c.pid, "arguments", s.arguments)
	s.publish()
	go awaitReady(c, s.readies)
	s.arm(startBound, func() {
		s.fail(fmt.Errorf("memcached runs and does not answer at %s for %s", c.asker.endpoint.address, startBound))
	})
}

// ready takes memcached's first answer.
func (s *supervisor) ready(r ready) {
	if r.child != s.child || s.afterExit != nil {
		return
	}
	if r.silent {
		s.fail(fmt.Errorf("memcached takes connections at %s and answered none for %s", r.child.asker.endpoint.address, silentBound))
		return
	}
	s.disarm()
	s.start = judgeStart(s.before, r.child.said.refusal(), r.general.Items, s.now().UTC())
	s.fallback = nil
	s.restarted = s.restart
	s.phase = agentapi.PhaseServing
	s.publish()
	if r.general.PID != 0 {
		go r.child.asker.sample(r.child.done)
	}
	s.log.Info("memcached serves.", "version", s.program.version, "start", s.start.Result, "items", s.start.Items,
		"itemsBefore", s.start.ItemsBefore, "reason", s.start.Reason)
}

// exited takes the end of memcached: what a planned stop was for, or arguments
// that it refused, or the agent's own end.
func (s *supervisor) exited(c *child) {
	if c != s.child {
		return
	}
	s.child = nil
	s.disarm()
	sentence, status := c.end()
	starting := s.phase == agentapi.PhaseStarting || s.phase == agentapi.PhaseRestarting
	switch {
	case s.afterExit != nil:
		s.log.Info("memcached stopped.", "how", sentence)
		next := s.afterExit
		s.afterExit = nil
		next()
	case starting && s.fallback != nil:
		s.log.Warn("memcached did not start with the new arguments; it gets the former ones.", "reason", sentence)
		s.arguments = *s.fallback
		s.fallback = nil
		s.refusal = notInEffect + "memcached does not start with them: " + sentence
		s.relaunch()
	default:
		s.fail(&exitError{status: status, sentence: sentence})
	}
}

// obey takes a signal.
func (s *supervisor) obey(order os.Signal) {
	if order == syscall.SIGHUP {
		// memcached reads its certificates and passwords again.
		if s.child != nil {
			_ = s.child.signal(order)
		}
		return
	}
	s.look()
	switch {
	case s.ended:
	case s.phase == agentapi.PhaseServing && s.announced() == "" && s.hold.until.IsZero(): // nobody asks one that is held
		s.log.Info("The pod is to end: memcached serves on until another pod does.", "service", s.service)
		s.disarm()
		s.phase = agentapi.PhaseDraining
		s.publish()
		ctx, cancel := context.WithCancel(context.Background())
		s.stopDrain = cancel
		go func() { s.drained <- drain(ctx, s.service, s.podUID, s.drainTimeout) }()
	case s.phase != agentapi.PhaseStopping:
		s.log.Info("The container is to end.", "announced", s.announced())
		s.stop(agentapi.PhaseStopping, s.announced(), s.end)
	}
}

// stop has memcached save its items and end, and then runs next. token is what
// announced it, if anything did.
func (s *supervisor) stop(phase agentapi.Phase, token string, next func()) {
	if s.stopDrain != nil {
		s.stopDrain()
		s.stopDrain = nil
	}
	s.note(token)
	s.phase = phase
	s.publish()
	underWay := s.afterExit != nil
	s.afterExit = next
	if !underWay {
		s.disarm()
	}
	switch {
	case s.child == nil:
		s.afterExit = nil
		next()
	case !underWay:
		// SIGUSR1 and nothing after it: a SIGTERM would cancel the save.
		if err := s.child.signal(syscall.SIGUSR1); err != nil {
			s.log.Warn("memcached took no signal.", "error", err)
		}
		go s.child.nudge()
		s.arm(saveBound, s.kill)
	}
}

// note writes what the next start needs to know of this stop.
func (s *supervisor) note(token string) {
	note := lastStop{At: s.now().UTC(), Version: s.program.version, Arguments: s.arguments, Announced: token}
	switch {
	case s.afterExit != nil:
		// Another end for a stop that is under way.
		note.Items = s.lastNote.Items
	case s.phase == agentapi.PhaseServing, s.phase == agentapi.PhaseDraining:
		ctx, cancel := context.WithTimeout(context.Background(), askBound)
		defer cancel()
		if general, err := s.child.asker.general(ctx); err == nil {
			note.Items = general.Items
		}
	default:
		// Stopped while it started: what it was to take up is what it has.
		note.Items = s.before.itemsBefore()
	}
	if s.fallback != nil {
		// Arguments that were only tried are not what to go back to.
		note.Arguments = *s.fallback
	}
	s.lastNote = note
	if err := writeLastStop(s.data, note); err != nil {
		s.log.Warn("The note about this stop was not written.", "error", err)
	}
}

func (s *supervisor) kill() {
	s.log.Error("memcached did not end after its order to save; it is killed and its items are lost.", "after", saveBound)
	_ = s.child.signal(syscall.SIGKILL)
}

// end ends the agent after a planned stop.
func (s *supervisor) end() {
	s.ended = true
	s.log.Info("The agent ends.")
}

// fail ends the agent, whose memcached has ended or cannot start.
func (s *supervisor) fail(err error) {
	s.ended, s.err = true, err
}

// arm has run called after d; it takes the place of what was waited for.
func (s *supervisor) arm(d time.Duration, run func()) {
	s.disarm()
	s.timer, s.onTimer = time.NewTimer(d), run
}

func (s *supervisor) disarm() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer, s.onTimer = nil, nil
}

func (s *supervisor) ticks() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}

// publish shows the present state to the HTTP handlers.
func (s *supervisor) publish() {
	var asker *asker
	if s.phase == agentapi.PhaseServing || s.phase == agentapi.PhaseDraining {
		asker = s.child.asker
	}
	s.board.publish(s.status(), asker)
}

func (s *supervisor) status() agentapi.Status {
	status := agentapi.Status{
		Phase: s.phase, PodUID: s.podUID, AgentVersion: version,
		Version: s.program.version, Arguments: s.arguments, ArgumentsError: s.refusal,
		AnnouncedStop: s.announced(), Restart: s.restarted, HoldUntil: s.hold.until, Start: s.start,
	}
	if s.child != nil {
		status.PID = s.child.pid
	}
	return status
}
