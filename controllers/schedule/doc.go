// Package schedule creates a MemcachedBackup at each run of a MemcachedScheduledBackup,
// and deletes those that its retention doesn't keep.
//
//	observe    the reads                                        → observation
//	plan       pure: the run that is due, and what to delete    → plan
//	status     pure: the status
//	cron       pure: the times of the runs, in a time zone
//	retention  pure: which backups have expired
//	apply      the writes, except for the status, which is last
//
// The backup of a run is named after the schedule and the run's minute, so a run can't
// create two, wherever the operator is killed. Of several missed runs the last one is
// made up for, within the starting deadline. Runs from before the schedule was created,
// or while it was suspended or invalid, don't count.
//
// The times are those of robfig/cron, as of a CronJob, even when daylight saving time
// starts or ends: see docs/adr/0011-schedules-follow-cronjob.md.
//
// # Ownership of backups
//
// The backups of a schedule have its name as a label, and a name derived from it. They
// have no owner reference, because deleting a schedule must not delete its backups and
// their snapshots. A schedule that is recreated under the same name takes over its
// backups, and its retention applies to them.
package schedule
