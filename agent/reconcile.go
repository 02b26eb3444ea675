package main

import (
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// look reads the pod's annotations and does what they ask for. They are levels,
// not events: what cannot be done now is done at a later look.
func (s *supervisor) look() {
	info, err := readPodInfo(s.podInfo)
	if err != nil {
		s.log.Warn("The pod's annotations cannot be read.", "error", err)
		info = s.info // of what is known a time may have come
	}
	if s.hold.look(info.hold, s.now()) {
		s.log.Info("What holds the shard from serving changed.", "until", s.hold.until)
		s.publish()
	}
	if err != nil {
		return
	}
	was := s.announced()
	s.info = info
	if token := s.announced(); token != was {
		s.log.Info("The announced stop changed.", "token", token)
		s.publish()
	}
	// While a restart is about to begin it is not thought about again. While a stop
	// is announced the next container is to do it: a new version and new arguments
	// come together, and one start is to serve both.
	if s.phase == agentapi.PhaseServing && s.onTimer == nil && s.announced() == "" {
		s.reconcile()
	}
}

// announced is the token that announces the next SIGTERM as a stop of the
// container only. One that announced the stop before this agent's start is used up.
func (s *supervisor) announced() string {
	if s.info.stop == s.usedToken {
		return ""
	}
	return s.info.stop
}

// reconcile brings memcached to the wanted arguments, and restarts it if that
// was asked for.
func (s *supervisor) reconcile() {
	restart := s.info.restart != s.restart
	// Who asks for a restart may have mended what was refused.
	if s.info.arguments == s.settled && !restart {
		return
	}
	settled, restarted := s.settled, s.restart
	s.settled, s.restart, s.refusal = s.info.arguments, s.info.restart, ""
	wanted, err := acceptable(s.program, s.data, s.info.arguments, s.arguments)
	if err != nil {
		s.refusal = err.Error()
		s.log.Warn("The wanted arguments are not applied.", "reason", err)
		wanted = s.arguments
	}
	s.publish()
	if changed := !slices.Equal(wanted, s.arguments); changed || restart {
		s.restartWith(wanted, changed, func() { s.settled, s.restart = settled, restarted })
	}
}

// restartWith saves and starts again, late in the present second. A stop that is
// announced until then has it put off.
func (s *supervisor) restartWith(arguments []string, changed bool, putOff func()) {
	s.log.Info("memcached is to be restarted in place.", "arguments", arguments, "changed", changed, "restart", s.restart)
	s.arm(untilLateInSecond(s.now()), func() {
		if s.announced() != "" {
			putOff()
			return
		}
		s.stop(agentapi.PhaseRestarting, "", func() {
			if changed {
				former := s.arguments
				s.fallback = &former
				s.arguments = arguments
			}
			s.relaunch()
		})
	})
}

// untilLateInSecond is how long it is to the last part of a second of the wall
// clock; 0 within it.
func untilLateInSecond(now time.Time) time.Duration {
	late := now.Truncate(time.Second).Add(time.Second - restartLead)
	return max(late.Sub(now), 0)
}
