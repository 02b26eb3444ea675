package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedScheduledBackupSpec is what a person asks for.
type MemcachedScheduledBackupSpec struct {
	// Schedule in cron's five fields, such as "30 2 * * *", or @hourly, @daily,
	// @weekly, @monthly.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ')",message="the time zone goes into timeZone"
	Schedule string `json:"schedule"`

	// TimeZone of the schedule, such as Europe/Berlin. Default UTC.
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`

	// Suspend makes no more backups. One that runs is not ended.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ConcurrencyPolicy says what to do when the one before still runs: Forbid leaves
	// a turn out, Replace deletes the one that runs, Allow runs both. Default Forbid.
	//
	// +optional
	// +kubebuilder:default=Forbid
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// StartingDeadline is how late a turn may begin, after an outage of the operator
	// for example; of several that were missed the last one counts. Default 1h.
	//
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="startingDeadline must be at least 10s"
	StartingDeadline *metav1.Duration `json:"startingDeadline,omitempty"`

	// Retention says which of its backups to keep. None: all. The newest that is
	// Complete is always kept.
	//
	// +optional
	Retention *BackupRetention `json:"retention,omitempty"`

	// BackupTemplate is what each backup is made of.
	BackupTemplate MemcachedBackupTemplate `json:"backupTemplate"`
}

// MemcachedBackupTemplate is what each backup of a schedule is made of.
type MemcachedBackupTemplate struct {
	// Spec of the backups. A change holds for those to come.
	Spec MemcachedBackupSpec `json:"spec"`
}

// ConcurrencyPolicy says what to do when a backup is due while another one runs.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// The policies.
const (
	ConcurrencyAllow   ConcurrencyPolicy = "Allow"
	ConcurrencyForbid  ConcurrencyPolicy = "Forbid"
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

// BackupRetention says which backups of a schedule are kept: those that no given
// bound excludes.
type BackupRetention struct {
	// Count of the newest backups that are Complete.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count *int32 `json:"count,omitempty"`

	// MaxAge of a backup, such as 720h.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="maxAge must be at least 1m"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`

	// FailedCount of the newest backups that are Failed. Default 3.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	FailedCount *int32 `json:"failedCount,omitempty"`
}

// MemcachedScheduledBackupStatus is what the operator saw last.
type MemcachedScheduledBackupStatus struct {
	// ObservedGeneration is the generation of the spec that this status answers.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastScheduleTime is the turn that a backup was last made for, or was left out.
	//
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// NextScheduleTime is the next turn; absent while suspended.
	//
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// LastBackup that was made.
	//
	// +optional
	LastBackup string `json:"lastBackup,omitempty"`

	// LastSuccessfulTime is when a backup of it last ended Complete.
	//
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// Active are the names of its backups that run.
	//
	// +optional
	// +listType=atomic
	Active []string `json:"active,omitempty"`

	// Conditions are Scheduled alone: False while no backup can be made, and why.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionScheduled of a MemcachedScheduledBackup is True while its turns come.
const ConditionScheduled = "Scheduled"

// Reasons of Scheduled.
const (
	ReasonWaitingForTurn  = "WaitingForTurn"
	ReasonSuspended       = "Suspended"
	ReasonScheduleInvalid = "ScheduleInvalid"
	ReasonTimeZoneUnknown = "TimeZoneUnknown"
)

// Events of a schedule.
const (
	EventTurnLeftOut     = "TurnLeftOut"
	EventTurnMissed      = "TurnMissed"
	EventBackupPruned    = "BackupPruned"
	EventScheduleInvalid = "ScheduleInvalid"
)

// LabelSchedule of a MemcachedBackup holds the name of the schedule that made it.
const LabelSchedule = "cache.memcached-operator.io/schedule"

// MemcachedScheduledBackup makes MemcachedBackups at its times, and deletes the
// old ones.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mcsb,categories=all
// +kubebuilder:printcolumn:name="Memcached",type=string,JSONPath=".spec.backupTemplate.spec.memcached.name"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=".spec.schedule"
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=".spec.suspend"
// +kubebuilder:printcolumn:name="Last success",type=date,JSONPath=".status.lastSuccessfulTime"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type==\"Scheduled\")].message"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name must have at most 52 characters: the time of its turn is added to it for each backup"
type MemcachedScheduledBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MemcachedScheduledBackupSpec `json:"spec"`
	// +optional
	Status MemcachedScheduledBackupStatus `json:"status,omitempty"`
}

// MemcachedScheduledBackupList is a list of MemcachedScheduledBackups.
//
// +kubebuilder:object:root=true
type MemcachedScheduledBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemcachedScheduledBackup `json:"items"`
}
