package agent

import (
	"fmt"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// pollAnnotations reads the pod's annotations and applies them. They are levels,
// not events: a later poll does what is not possible now.
func (s *supervisor) pollAnnotations() {
	info, err := readPodInfo(s.podInfoDir, s.info)
	if err != nil {
		s.log.Warn("Cannot read the pod's annotations", "error", err)
		return
	}
	if info.stop != s.info.stop {
		s.stopRead = s.now()
	}
	s.info = info
	if token := s.stopToken(); token != s.states.Load().Status.AnnouncedStop {
		s.log.Info("The announced stop changed", "token", token)
		s.publish()
	}
	// While a stop is announced, changes wait for the next container, so that one start
	// applies a new version and new arguments together.
	if s.phase == wire.PhaseServing && s.stopToken() == "" {
		s.applyAnnotations()
	}
	s.pollMoves()
}

// stopToken returns the token by which the next SIGTERM is announced as a stop of
// the container only. One that the agent found when it started is for a former container.
func (s *supervisor) stopToken() string {
	if s.now().Sub(s.stopRead) > wire.AnnouncementTimeout {
		return ""
	}
	return s.info.stop
}

// applyAnnotations restarts memcached if that is requested, or if new arguments
// require it.
func (s *supervisor) applyAnnotations() {
	restart := s.info.restart != s.handled.restart
	retry := !s.retryArguments.IsZero() && !s.now().Before(s.retryArguments)
	// A requested restart tries rejected arguments again: their cause may be fixed.
	changed := s.info.arguments != s.handled.arguments || s.info.protection != s.handled.protection
	if !changed && !restart && !retry {
		return
	}
	if restart || changed {
		s.postponed = 0
	}
	s.handled.arguments, s.handled.protection, s.handled.restart = s.info.arguments, s.info.protection, s.info.restart
	s.rejection, s.retryArguments = "", time.Time{}
	desired, err := validateArguments(s.binary, s.info, s.arguments)
	switch {
	case process.IsSlow(err):
		s.postponeArguments(err)
		desired = s.arguments
	case err != nil:
		s.rejection = err.Error()
		s.log.Warn("Rejected the desired arguments", "reason", err)
		desired = s.arguments
	}
	s.publish()
	if changed := !slices.Equal(desired, s.arguments); changed || restart {
		s.restart(desired, changed)
	}
}

// maxPostponed is after how many checks in a row without a result the status reports that: the arguments can be why
// memcached hangs.
const maxPostponed = 10

// postponeArguments lets the supervisor try arguments again that may be good.
func (s *supervisor) postponeArguments(slow error) {
	s.retryArguments = s.now().Add(dryRunRetry)
	if s.postponed++; s.postponed >= maxPostponed {
		s.rejection = fmt.Sprintf("%s (%d checks in a row)", slow, s.postponed)
	}
	s.log.Warn("Cannot check the desired arguments now; memcached keeps the previous ones", "reason", slow, "retryAt", s.retryArguments)
}

func (s *supervisor) restart(arguments []string, changed bool) {
	s.log.Info("Restarting memcached in place", "arguments", arguments, "changed", changed, "restart", s.handled.restart)
	if s.next = nil; changed {
		s.next = &arguments
	}
	s.stop(wire.PhaseRestarting, "", thenStart)
}

// pollSecrets reads the Secrets, and lets a memcached that serves load what has changed.
func (s *supervisor) pollSecrets() {
	if s.secrets.Poll(s.now()) {
		if s.rejection != "" {
			s.handled.arguments = "" // a Secret may have been the reason
		}
		s.publish()
	}
	if s.phase == wire.PhaseServing || s.phase == wire.PhaseDraining {
		s.secrets.Load(s.now(), func(l secrets.Loaded) { s.loads <- l })
	}
}

// pollInterval is how often the pod's annotations are read. An idle poll only reads
// a symbolic link. A watch is more fragile: the kubelet replaces all files by renaming
// that link, two levels up.
const pollInterval = 500 * time.Millisecond
