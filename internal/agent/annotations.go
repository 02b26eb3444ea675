package agent

import (
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// restartLead is how long before the next full second a restart in place begins.
// memcached loads its items only in a later second than that of its stop, and keeps
// serving until then. A stop takes about 20 ms.
const restartLead = 150 * time.Millisecond

// pollAnnotations reads the pod's annotations and applies them. They are levels,
// not events: a later poll does what is not possible now.
func (s *supervisor) pollAnnotations() {
	info, err := readPodInfo(s.podInfoDir)
	if err != nil {
		s.log.Warn("Cannot read the pod's annotations", "error", err)
		info = s.info // a hold may still expire
	}
	if s.hold.update(info.holdUntil, s.now()) {
		s.log.Info("The readiness hold changed", "until", s.hold.until)
		s.publish()
	}
	if err != nil {
		return
	}
	previous := s.stopToken()
	s.info = info
	if token := s.stopToken(); token != previous {
		s.log.Info("The announced stop changed", "token", token)
		s.publish()
	}
	// A scheduled restart is not reconsidered. While a stop is announced, changes
	// wait for the next container, so that one start applies a new version and new
	// arguments together.
	if s.phase == wire.PhaseServing && s.onTimer == nil && s.stopToken() == "" {
		s.applyAnnotations()
	}
}

// stopToken returns the token by which the next SIGTERM is announced as a stop of
// the container only. The token of the stop before this agent's start is consumed.
func (s *supervisor) stopToken() string {
	if s.info.stop == s.consumedToken {
		return ""
	}
	return s.info.stop
}

// applyAnnotations restarts memcached if that is requested, or if new arguments
// require it.
func (s *supervisor) applyAnnotations() {
	restart := s.info.restart != s.handledRestart
	// A requested restart tries rejected arguments again: their cause may be fixed.
	if s.info.arguments == s.handledArguments && !restart {
		return
	}
	formerArguments, formerRestart := s.handledArguments, s.handledRestart
	s.handledArguments, s.handledRestart, s.rejection = s.info.arguments, s.info.restart, ""
	desired, err := validateArguments(s.binary, s.info.arguments, s.arguments)
	if err != nil {
		s.rejection = err.Error()
		s.log.Warn("Rejected the desired arguments", "reason", err)
		desired = s.arguments
	}
	s.publish()
	if changed := !slices.Equal(desired, s.arguments); changed || restart {
		s.scheduleRestart(desired, changed, func() {
			s.handledArguments, s.handledRestart = formerArguments, formerRestart
		})
	}
}

// scheduleRestart restarts memcached late in the current second. If a stop is
// announced until then, it calls postpone instead.
func (s *supervisor) scheduleRestart(arguments []string, changed bool, postpone func()) {
	s.log.Info("Restarting memcached in place", "arguments", arguments, "changed", changed, "restart", s.handledRestart)
	s.schedule(untilLateInSecond(s.now()), func() {
		if s.stopToken() != "" {
			postpone()
			return
		}
		s.stop(wire.PhaseRestarting, "", func() {
			if changed {
				former := s.arguments
				s.fallback = &former
				s.arguments = arguments
			}
			s.relaunch()
		})
	})
}

// untilLateInSecond returns the time until the last part of a second of the wall
// clock; 0 within it.
func untilLateInSecond(now time.Time) time.Duration {
	late := now.Truncate(time.Second).Add(time.Second - restartLead)
	return max(late.Sub(now), 0)
}
