package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedScheduledBackupSpec is the desired schedule.
type MemcachedScheduledBackupSpec struct {
	// Schedule of the backups in the five fields of cron, such as "30 2 * * *" for 2:30 every
	// night, or one of @hourly, @daily, @weekly and @monthly.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ')",message="set the time zone in timeZone"
	Schedule string `json:"schedule"`

	// TimeZone of the schedule, such as Europe/Berlin. Default UTC.
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`

	// Suspend stops new backups; a backup that is running continues. Default false.
	//
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// ConcurrencyPolicy is what happens when the previous backup is still running: Forbid skips
	// the run, Replace deletes the running backup, Allow runs both. Default Forbid.
	//
	// +optional
	// +kubebuilder:default=Forbid
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// StartingDeadlineSeconds is how late a run may start, in seconds, for example after an
	// outage of the operator. Of several missed runs, only the last one is started.
	// Default 3600 (1 hour).
	//
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=10
	StartingDeadlineSeconds *int32 `json:"startingDeadlineSeconds,omitempty"`

	// Retention limits which backups are kept. Default: all of them. The newest Complete backup
	// is always kept, and so is the newest one with at least half as many items as the largest.
	// Changing it applies immediately and may delete backups, five at a time.
	//
	// +optional
	Retention *BackupRetention `json:"retention,omitempty"`

	// BackupTemplate describes the MemcachedBackup objects that the schedule creates.
	//
	// +required
	BackupTemplate MemcachedBackupTemplate `json:"backupTemplate"`
}

// MemcachedBackupTemplate describes the backups of a schedule.
type MemcachedBackupTemplate struct {
	// Spec of the backups. Changing it applies to backups that are created later.
	//
	// +required
	Spec MemcachedBackupSpec `json:"spec"`
}

// ConcurrencyPolicy is what happens when a backup is due while another one is running.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// The concurrency policies.
const (
	ConcurrencyAllow   ConcurrencyPolicy = "Allow"
	ConcurrencyForbid  ConcurrencyPolicy = "Forbid"
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

// BackupRetention limits which backups of a schedule are kept. A backup that exceeds one
// limit is deleted.
type BackupRetention struct {
	// SuccessfulBackupsHistoryLimit is how many Complete backups are kept, the newest ones.
	// Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	SuccessfulBackupsHistoryLimit *int32 `json:"successfulBackupsHistoryLimit,omitempty"`

	// MaxAgeSeconds is the maximum age of a backup, in seconds, such as 1209600 for 14 days.
	// Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`

	// FailedBackupsHistoryLimit is how many Failed backups are kept, the newest ones.
	// Default 3.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	FailedBackupsHistoryLimit *int32 `json:"failedBackupsHistoryLimit,omitempty"`
}

// MemcachedScheduledBackupStatus is the observed state of a schedule.
type MemcachedScheduledBackupStatus struct {
	// Conditions are Ready, Reconciling and Stalled. Ready is True while backups are created at
	// their times, and while the schedule is suspended. Its message has the next run, or says why
	// no backups are created.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that this status describes. It is -1 until
	// the operator has seen the object.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastScheduleTime is the scheduled time of the last run, also of a skipped one.
	//
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// NextScheduleTime is the scheduled time of the next run; absent while suspended.
	//
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// LastBackupName is the name of the MemcachedBackup that was created last.
	//
	// +optional
	LastBackupName string `json:"lastBackupName,omitempty"`

	// LastSuccessfulTime is when a backup of this schedule last became Complete.
	//
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// Active are the names of the backups that haven't finished.
	//
	// +optional
	// +listType=atomic
	Active []string `json:"active,omitempty"`
}

// Reasons of a schedule's conditions.
const (
	// ReasonWaitingForSchedule: the schedule is active; status.nextScheduleTime has the next
	// run.
	//
	// Do: Nothing.
	ReasonWaitingForSchedule = "WaitingForSchedule"
	// ReasonSuspended: spec.suspend is true, so no backup is created.
	//
	// Do: set spec.suspend to false.
	ReasonSuspended = "Suspended"
	// ReasonScheduleInvalid: spec.schedule isn't a valid cron schedule, so no backup is
	// created.
	//
	// Do: fix it as the message says.
	ReasonScheduleInvalid = "ScheduleInvalid"
	// ReasonTimeZoneUnknown: no time zone has the name in spec.timeZone, so no backup is
	// created.
	//
	// Do: use a name of the IANA database, such as Europe/Berlin.
	ReasonTimeZoneUnknown = "TimeZoneUnknown"
)

// Reasons of a schedule's events, beside ReasonScheduleInvalid and ReasonTimeZoneUnknown.
const (
	// EventBackupSkipped: a run was skipped because the previous backup is still running, or
	// because the Memcached has no shard.
	//
	// Do: nothing about a Memcached of size 0. Otherwise speed up the backups
	// (spec.backupTemplate.spec.rateLimit), run them less often, or change concurrencyPolicy.
	EventBackupSkipped = "BackupSkipped"
	// EventMissedSchedule: a run was missed, and the operator saw it later than
	// startingDeadlineSeconds allow, or the API server rejected its backup until then. No backup was created for it.
	//
	// Do: fix why the backup was rejected, if the message says so. Otherwise check whether the operator runs, or raise
	// startingDeadlineSeconds.
	EventMissedSchedule = "MissedSchedule"
	// EventBackupPruned: the retention deleted an old backup.
	//
	// Do: Nothing.
	EventBackupPruned = "BackupPruned"
)

// MemcachedScheduledBackup creates MemcachedBackup objects on a schedule and deletes old
// ones.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mcsb,categories=memcached-operator
// +kubebuilder:printcolumn:name="Memcached",type=string,JSONPath=".spec.backupTemplate.spec.memcachedRef.name"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=".spec.schedule"
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=".spec.suspend"
// +kubebuilder:printcolumn:name="Next-Run",type=string,JSONPath=".status.nextScheduleTime",description="Time of the next run"
// +kubebuilder:printcolumn:name="Last-Success",type=date,JSONPath=".status.lastSuccessfulTime"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name must have at most 52 characters: each backup's name is this name followed by the time of its run"
type MemcachedScheduledBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired schedule.
	//
	// +required
	Spec MemcachedScheduledBackupSpec `json:"spec"`
	// Status is the observed state.
	//
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status MemcachedScheduledBackupStatus `json:"status,omitzero"`
}

// BackupSpec returns the spec of its backups. The retention applies to the snapshots as well.
func (s *MemcachedScheduledBackup) BackupSpec() MemcachedBackupSpec {
	spec := *s.Spec.BackupTemplate.Spec.DeepCopy()
	if spec.DeletionPolicy == "" && s.Spec.Retention != nil {
		spec.DeletionPolicy = SnapshotDelete
	}
	return spec
}

// MemcachedScheduledBackupList is a list of MemcachedScheduledBackup objects.
//
// +kubebuilder:object:root=true
type MemcachedScheduledBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemcachedScheduledBackup `json:"items"`
}
