package transfer

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// record is what the operator must remember of a transfer. Tools that recreate an object, such as Velero, keep its
// annotations, and not its status.
type record struct {
	// Name of the object. A copy with another name is another transfer.
	Name string `json:"name"`
	// Of is what the object copies from where to where. An object that names something else is another transfer, too. Records of
	// release 1.1.0 lack it.
	Of string `json:"of,omitempty"`
	// UID under which it has run.
	UID types.UID `json:"uid"`
	// Basis of the Memcached's pods, which may be deleted before the snapshot of its backup.
	Basis resources.Basis `json:"basis,omitzero"`
	// Status of a transfer that has finished, with no condition but Succeeded.
	Status *Status `json:"status,omitempty"`
}

// recordOf returns the record of an object; it is empty when there is none, or that of another transfer.
func recordOf(o client.Object) record {
	var r record
	if err := json.Unmarshal([]byte(o.GetAnnotations()[annotations.Transfer]), &r); err != nil || r.Name != o.GetName() || r.Of != "" && r.Of != subject(o) {
		return record{}
	}
	return r
}

// subject returns what a transfer copies from where to where.
func subject(o client.Object) string {
	var place string
	switch o := o.(type) {
	case *v1beta1.MemcachedBackup:
		place = Describe(o.Spec.Store, "")
	case *v1beta1.MemcachedRestore:
		if ref := o.Spec.BackupRef; ref != nil {
			place = "MemcachedBackup " + ref.Name
		} else if s := o.Spec.Snapshot; s != nil {
			place = Describe(s.Store, s.Path)
		}
	}
	return "Memcached " + transferOf(o).memcached + ", " + place
}

// setRecord records the basis of the pods of a backup, and a status that is final.
func setRecord(o client.Object, m *v1beta1.Memcached, s Status) {
	r := record{Name: o.GetName(), Of: subject(o), UID: o.GetUID(), Basis: recordOf(o).Basis}
	if m != nil && transferOf(o).prefix == Backup {
		r.Basis = resources.BasisOf(&m.Spec)
	}
	if s.IsFinished() {
		s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c metav1.Condition) bool { return c.Type != v1beta1.ConditionSucceeded })
		r.Status = &s
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a status has nothing that JSON lacks
	}
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[annotations.Transfer] = string(text)
	o.SetAnnotations(all)
}

// recorded returns the final status of a transfer whose status isn't: it was recreated from an export, or the operator was
// killed before it wrote the status.
func recorded(o client.Object, now time.Time) (Status, bool) {
	r, was := recordOf(o), transferOf(o).status
	if r.Status == nil || !r.Status.IsFinished() || was.IsFinished() {
		return Status{}, false
	}
	s := *r.Status
	if r.UID != o.GetUID() { // this object has no Job, and wrote no snapshot
		s.JobName, s.JobUID = "", ""
	}
	s.TransferStatus = withPhase(s.TransferStatus, Observation{Object: o, Now: now}, s.Phase, s.Reason(), s.Message())
	return s, true
}

// Basis returns that of the Job of a transfer. The Memcached of a backup may have been deleted; its user can change the record, so
// that it only applies as far as the operator's settings allow.
func (obs Observation) Basis() resources.Basis {
	basis := recordOf(obs.Object).Basis
	if obs.Memcached != nil {
		basis = resources.BasisOf(&obs.Memcached.Spec)
	}
	if obs.Options.Restrictions.PodViolation(&basis.Pod) != "" {
		basis.Pod = v1beta1.MemcachedPod{ImagePullSecrets: basis.Pod.ImagePullSecrets}
	}
	return basis
}
