// Package shard determines the state of one shard from what was observed of it. Its
// functions are pure: they have no client and no clock.
//
//	observation  what was read: the ReplicaSet and the pods, which of them hosts the shard, and
//	             the revisions and records in their annotations
//	record       what the operator records in annotations: updates, failures, announced stops
//	pod          what a pod's status says: whether it serves, and which problem keeps it from serving
//
// What follows, each from those before it, is put together in state:
//
//	agent        what the pod's agent reports, or since when it hasn't
//	outcome      the state of the active pod, and the result of its last update
//	target       what that pod has to become: the spec's revision, and what is requested of this shard
//	resize       how far Kubernetes has resized the pod in place
//	change       what it takes to get there: the method, by the fields that differ, and what stands in its way
//
// An Observation contains what was read. A State is an Observation that EvaluateAll has
// compared with the spec; the planner decides by its Rollout.
package shard
