// Package observation has what a reconcile reads, and decides what that is. Its functions are pure: they have no
// client and no clock. The observer reads, packages plan and status decide by the Observation.
//
//	observation   everything that a reconcile has read
//	defaultimage  whether a Memcached keeps its image when the operator has another default image
//	agents        which agents are queried
//	silence       for how long an agent that let reconciles wait is not queried
//	secrets       what the agents have reported of their Secrets
//	uptodate      what a reconcile remembers for the next one, such as which objects are up to date
package observation
