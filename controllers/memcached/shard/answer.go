package shard

import (
	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

const (
	maxSecretMessage = 512
	maxFingerprint   = 64
)

// Bounded returns an agent's answer with values that a status and a record can contain. The
// agent may be newer than the operator, and any program may answer in a pod.
func Bounded(agent agentwire.Status) agentwire.Status {
	switch agent.Start.Result {
	case agentwire.StartWarm, agentwire.StartCold, agentwire.StartHandedOver:
	default:
		agent.Start.Result = ""
	}
	switch agent.Start.Mode {
	case agentwire.ModeStrict, agentwire.ModeAvailable:
	default: // agents of release 1.0.0 don't report it
		agent.Start.Mode = agentwire.ModeStrict
	}
	agent.Version = text.Truncate(agent.Version, v1alpha1.MaxVersion)
	agent.Start.Reason = text.Truncate(agent.Start.Reason, v1alpha1.MaxMessage)
	agent.ArgumentsError = text.Truncate(agent.ArgumentsError, v1alpha1.MaxMessage)
	if agent.Secrets != nil {
		secrets := *agent.Secrets
		c := &secrets.Certificate
		c.Error = text.Truncate(c.Error, maxSecretMessage)
		c.RestartRequired = text.Truncate(c.RestartRequired, maxSecretMessage)
		c.SHA256, c.Offered = text.Truncate(c.SHA256, maxFingerprint), text.Truncate(c.Offered, maxFingerprint)
		c.PlainConnections = max(c.PlainConnections, 0)
		secrets.Users.Error = text.Truncate(secrets.Users.Error, maxSecretMessage)
		agent.Secrets = &secrets
	}
	return agent
}
