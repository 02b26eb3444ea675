// Package shard determines the state of one shard from what was observed of it. Its
// functions are pure: they have no client and no clock.
//
//	observation  what was read: the ReplicaSet and the pods, which of them hosts the shard, and
//	             the revisions and records in their annotations
//	record       what the operator records in annotations: updates, failures, announced stops
//	pod, resize  what a pod's status says: which problem keeps it from serving, and how far
//	             Kubernetes has resized it in place
//
//	outcome      the state of the active pod, and the result of its last update
//	target       what that pod has to become: the spec's revision, and what is requested of this shard
//	change       what it takes to get there: the method, and what stands in its way
//	state        all of these, in this order
//
// An Observation contains what was read. A State is an Observation that EvaluateAll has
// compared with the spec; the planner decides by its Rollout.
package shard
