// Package schedule makes a MemcachedBackup at each turn of a MemcachedScheduledBackup,
// and deletes those that its retention does not keep.
//
// A reconcile is three steps, each in the file of its name:
//
//	plan       pure: the turn that is due, what to delete, what to tell → plan
//	turns      pure: when the turns are, in a time zone
//	retention  pure: which backups are not kept
//	apply      the writes, the status last
//
// A turn's backup is named after the schedule and the turn's minute, so that a turn
// cannot be taken twice, wherever the operator is killed. Of several turns that
// were missed the newest is taken, if it is not later than startingDeadline. Turns
// of before the schedule was made, or of while it was suspended or could not be
// read, do not count.
//
// # Daylight saving
//
// A schedule whose hour is * goes by real time: @hourly comes every hour. Any other
// one goes by the clock on the wall: a turn that the clock skips comes when it has
// skipped it, and one that it shows twice comes the first time.
//
// # Whose a backup is
//
// The backups of a schedule bear its name as a label, and a name that is made of
// it. They have no owner reference: who deletes a schedule does not mean to delete
// its backups, and with them their snapshots. A schedule that is made anew under
// the name of a former one takes over its backups, and its retention holds for
// them.
package schedule
