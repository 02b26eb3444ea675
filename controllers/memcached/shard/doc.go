// Package shard determines the state of one shard from what was observed of it. Its
// functions are pure: they have no client and no clock.
//
//	pod          what a pod's status says: which problem keeps it from serving, and how far
//	             Kubernetes has resized it in place
//	record       what the operator records in annotations: updates, failures, announced stops
//	observation  the shard's ReplicaSet and pods, which of them hosts the shard, and the
//	             revisions and records in their annotations
//	method       the update method of each field of the spec, and what separates two
//	             revisions of a pod
//	state        an evaluated observation: the result of the last update and what the
//	             next one requires
//
// An Observation contains what was read. A State is an Observation that Evaluate has
// compared with the spec; the planner decides by its Rollout.
package shard
