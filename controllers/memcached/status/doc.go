// Package status derives the status of a Memcached from what was observed, planned and written,
// and the events from two statuses. Its functions are pure: they have no client and no clock.
//
//	status       Make, which assembles the status
//	shards       the status of each shard
//	update       the progress of a change of the spec
//	updatecost   what the last update cost
//	external     where clients outside the cluster connect
//	certificate  what the agents report of the certificate
//	problems     the first problem that requires manual intervention
//	conditions   Available, Progressing, Degraded, and Ready, which follows from them
//	events       what to record when the status was written
package status
