package v1beta1

// Labels of the objects that the operator creates.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelShard is the shard's ordinal.
	LabelShard = "cache.memcached-operator.io/shard"
	// LabelSchedule of a MemcachedBackup is the name of the MemcachedScheduledBackup that
	// created it.
	LabelSchedule = "cache.memcached-operator.io/schedule"

	// NameValue is the value of LabelName on shards.
	NameValue = "memcached"
	// ManagedByValue is the value of LabelManagedBy and the field owner of the operator's
	// writes.
	ManagedByValue = "memcached-operator"
)

// Annotations that users set.
const (
	// AnnotationRestart of a shard's pod restarts memcached in place, with its items,
	// whenever its value changes.
	AnnotationRestart = "cache.memcached-operator.io/restart"
	// AnnotationMove of a shard's pod moves the shard to another node, with its items, when it
	// isn't empty. The shard's next pod doesn't have it.
	AnnotationMove = "cache.memcached-operator.io/move"
	// AnnotationRetry of a Memcached retries a failed update whenever its value changes.
	AnnotationRetry = "cache.memcached-operator.io/retry"
	// AnnotationScaled of a Memcached confirms that no client has the former list of servers, when its value is status.scaling.id.
	AnnotationScaled = "cache.memcached-operator.io/scaled"
	// AnnotationPurge of a Memcached counts or deletes, once for each value, the items of keys that clients look for on other shards. Its value is
	// PurgeDryRun or PurgeDelete and an ID of the user. The deletion requires the dry run with its ID before.
	AnnotationPurge = "cache.memcached-operator.io/purge"
	// PurgeDryRun is how a value of AnnotationPurge begins that counts, and PurgeDelete one that deletes.
	PurgeDryRun = "DryRun-"
	PurgeDelete = "Delete-"
)
