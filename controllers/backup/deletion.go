package backup

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// isHeld says whether a backup stays until its snapshot is deleted.
func isHeld(b *v1alpha1.MemcachedBackup) bool {
	return controllerutil.ContainsFinalizer(b, v1alpha1.FinalizerSnapshot)
}

// planDeletion decides what is left to do before a backup goes.
func planDeletion(seen *observed) plan {
	b := seen.backup
	p := plan{status: b.Status, requeueAfter: lookAgain}
	verdict := snapshotjob.Judge(seen.erase, b.Spec.Store)
	switch {
	case !isHeld(b): // the garbage collector ends its Job, and the snapshot stays
		p.requeueAfter = 0
	case b.Status.Job == "": // nothing was written
		p.release, p.requeueAfter = true, 0
	case seen.save.IsAtWork():
		p.note("Job %s ends first", seen.save.Name)
		p.save = snapshotjob.ActAfter(seen.save)
	case len(seen.readers) > 0:
		p.note("the snapshot stays while %s reads it", strings.Join(seen.readers, ", "))
		p.noted = &event{corev1.EventTypeNormal, v1alpha1.EventDeletionWaits, p.status.Message}
	case verdict.Stage == snapshotjob.Succeeded:
		p.release, p.requeueAfter = true, 0
		p.released = &event{corev1.EventTypeNormal, v1alpha1.EventSnapshotDeleted, "deleted " + whereOf(b)}
	case verdict.Stage == snapshotjob.Failed || verdict.Stage == snapshotjob.Foreign:
		p.giveUp(b, verdict.Reason+": "+verdict.Message)
	case verdict.Stage == snapshotjob.Absent:
		p.note("Job %s is to delete the snapshot", seen.erase.Name)
		p.erase = snapshotjob.Create
	default:
		p.note("%s", verdict.Message)
	}
	return p
}

// note tells what the deletion waits for.
func (p *plan) note(format string, args ...any) {
	p.status.RunStatus = snapshotjob.Note(p.status.RunStatus, "being deleted: "+fmt.Sprintf(format, args...))
}

// giveUp lets a backup go without its snapshot having been deleted.
func (p *plan) giveUp(b *v1alpha1.MemcachedBackup, why string) {
	p.release, p.requeueAfter = true, 0
	p.released = &event{corev1.EventTypeWarning, v1alpha1.EventSnapshotKept,
		fmt.Sprintf("the snapshot could not be deleted and is still in %s: %s", whereOf(b), why)}
}

// whereOf returns where the snapshot of a backup lies.
func whereOf(b *v1alpha1.MemcachedBackup) string {
	return snapshotjob.Describe(b.Spec.Store, snapshotjob.SnapshotPath(b))
}

// eraseOf returns what the Job is made of that deletes a snapshot.
func eraseOf(seen *observed) snapshotjob.Run {
	b := seen.backup
	run := snapshotjob.Run{
		Prefix: snapshotjob.Delete, Owner: b, Kind: kind,
		Store: b.Spec.Store, Action: snapshotapi.ActionDelete, Deadline: &metav1.Duration{Duration: snapshotjob.EraseDeadline},
		Task: snapshotapi.Task{Path: snapshotjob.SnapshotPath(b)},
	}
	if seen.memcached != nil {
		run.PullSecrets = seen.memcached.Spec.ImagePullSecrets
	}
	return run
}
