package shard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// facts are all that a change of a pod follows from.
type facts struct {
	// from is the revision that the pod has, and to the one that it gets.
	from, to resources.PodRevision
	// request is what a pod that has the revision does besides, such as to move; nil is nothing.
	request *request
	// version is what memcached in the pod reports; empty while it is unknown.
	version string
	// crossSeries is whether another release series is allowed, and byHandover whether a change that restarts
	// memcached becomes a replacement that keeps the items.
	crossSeries, byHandover bool
	resize                  resize
	// mountsSecrets is whether the pod mounts the Secrets that the other revision requires, and secrets what its
	// agent reports of them; nil while it is unknown.
	mountsSecrets bool
	secrets       *agentwire.Secrets
	// handsOver is whether the pod and its replacement have what a handover requires.
	handsOver bool
	// rewritten is whether the API server gives only new pods the image that was checked, sameImage whether the pod has the image
	// of the other revision already, and acceptsLoss whether the shard may lose its items in an update of the image.
	rewritten, sameImage, acceptsLoss      bool
	stopAcknowledged, replacementAnnounced bool
}

// request is a change that doesn't follow from two revisions.
type request struct {
	method            rollout.Method
	reason, forbidden string
}

// changesOf returns what it takes to bring the active pod to its target, and back to the template.
func changesOf(o *Observation, r report, pod rollout.Pod, target Target, failed string, resizes podResizes, in Inputs) (toTarget, rollback rollout.Change) {
	f, back := in.factsOf(o, r, in.Update), in.factsOf(o, r, o.Template)
	f.resize, back.resize = resizes.toTarget, resizes.rollback
	f.replacementAnnounced, f.rewritten = in.replacing == o.Name, in.rewrites(o)
	f.sameImage = f.sameImage || in.admitted(o).Image == resources.ImageOf(o.Active)
	hasTarget := pod.Revision == target.Hash()
	switch {
	case target.onlyMoves(o):
		f.request = moveRequest(o, f.handsOver)
	case target.Restart != "":
		f.request = &request{method: rollout.Restart, reason: "restarts because " + r.certificate().RestartRequired}
	case hasTarget && o.templateTarget.Hash() == target.Hash() && failed == "" && f.replacementAnnounced:
		f.request = &request{method: rollout.Replace, reason: "the new pod takes over"}
	case hasTarget: // only the result is pending
		f.from, f.version, f.resize, f.mountsSecrets = o.Template, "", resizeBetween(o.Template.Resources, in.Update.Resources, in.Resizing), true
		f.sameImage = false
	default:
		f.byHandover = in.strategy().Type == v1beta1.UpdateHandover && pod.State != rollout.Broken
	}
	return changeOf(f), changeOf(back)
}

// factsOf returns the facts of a change of the active pod to a revision, without its resize.
func (in Inputs) factsOf(o *Observation, r report, to resources.PodRevision) facts {
	f := facts{
		from: o.PodRevision, to: to, crossSeries: in.strategy().CrossSeriesUpgrade == v1beta1.CrossSeriesAllow, secrets: r.secrets,
		mountsSecrets: in.mountsSecrets(o.Active, to), handsOver: resources.HandsOver(in.Memcached) && resources.CanHandOver(in.Memcached, o.Active),
		sameImage: resources.ImageOf(o.Active) == o.ImageFor(to), acceptsLoss: in.strategy().OnItemLoss == v1beta1.ItemLossContinue,
	}
	if r.agent != nil {
		f.version = r.agent.Version
		// The agent may not have read yet that the last announcement was withdrawn, so both are compared.
		// An older announcement is repeated: the agent must not forget it before the kubelet stops the container.
		f.stopAcknowledged = r.agent.AnnouncedStop == o.Active.Annotations[annotations.Stop] && o.announced(to, in.Now, agentwire.AnnouncementTimeout/2)
	}
	return f
}

// factsOfNewPod returns the facts of the change that a shard without a pod needs.
func (in Inputs) factsOfNewPod(o *Observation) facts {
	return facts{from: o.Template, to: in.Update, crossSeries: in.strategy().CrossSeriesUpgrade == v1beta1.CrossSeriesAllow, mountsSecrets: true,
		resize: resizeBetween(o.Template.Resources, in.Update.Resources, in.Resizing)}
}

// AdmittedImage is the image that a pod would have after a patch to a revision, by a dry run, and the image that was checked.
type AdmittedImage struct{ Revision, Image, Checked string }

// admitted returns what a dry run of the update of the active pod resulted in; empty if none is known.
func (in Inputs) admitted(o *Observation) AdmittedImage {
	if a := in.Admitted[o.Active.UID]; a.Revision == in.Update.Hash() {
		return a
	}
	return AdmittedImage{}
}

// rewrites reports whether a patch would give the active pod another image than the one that was checked. Once its
// replacement has started, this is on record.
func (in Inputs) rewrites(o *Observation) bool {
	update, a := in.Update.Hash(), in.admitted(o)
	isReplaced := o.OnSet != nil && o.OnSet.Rewritten && o.OnSet.Revision == update && o.Template.Hash() == update
	return isReplaced || a.Image != a.Checked
}

func (in Inputs) strategy() v1beta1.UpdateStrategy {
	return in.Memcached.Spec.UpdateStrategy
}

// mountsSecrets reports whether a pod has the Secrets that a revision requires.
func (in Inputs) mountsSecrets(pod *corev1.Pod, to resources.PodRevision) bool {
	name := in.Memcached.Name
	return (!to.Spec.TLS.IsEnabled() || resources.MountsTLS(pod, v1beta1.TLSSecretName(name, to.Spec.TLS))) &&
		(!to.Spec.Auth.IsRequired() || resources.MountsUsers(pod, v1beta1.AuthSecretName(name, to.Spec.Auth)))
}

// moveRequest returns the request to replace the active pod by one on another node.
func moveRequest(o *Observation, handsOver bool) *request {
	r := &request{method: rollout.Replace, reason: "moves from node " + o.Active.Spec.NodeName + " to another one with its items"}
	if !handsOver && !o.MoveStarted {
		r.forbidden = fmt.Sprintf("pod %s can't hand over its items, so it isn't moved; remove the annotation %s, or delete the pod to move the shard without its items",
			o.Active.Name, v1beta1.AnnotationMove)
	}
	return r
}

// changeOf returns what it takes to change a pod. Nothing else makes or edits a Change.
func changeOf(f facts) rollout.Change {
	if f.request == nil && f.from.String() == f.to.String() {
		return rollout.Change{ReplacementAnnounced: f.replacementAnnounced}
	}
	sameSlabs, numbersChanges := f.slabs()
	handsOver := f.handsOver && numbersChanges
	effect := ", which starts it empty"
	if handsOver {
		effect = ", which moves it to a new pod with its items"
	}
	least, description := difference(f.from, f.to)
	if f.rewritten {
		effect += ", as the API server gives only new pods the image that was checked"
	}
	method := f.method(least, sameSlabs)
	progress, message := rollout.NotNeeded, ""
	if f.resize.needed {
		progress, message = f.resize.progress, f.resize.message
	}
	switch {
	case f.request != nil:
		method, description = f.request.method, f.request.reason
	case method == rollout.Replace:
		description += effect
	case progress == rollout.Refused:
		method, description = rollout.Replace, description+effect+", as its node doesn't have the resources: "+message
	case f.byHandover && handsOver && method > rollout.Live:
		method, description = rollout.Replace, description+effect
	}
	isReplaced := method == rollout.Replace
	if isReplaced {
		progress, message = rollout.NotNeeded, ""
	}
	return rollout.Change{
		Method: method, Description: description, Forbidden: f.forbidden(handsOver), Resize: progress, ResizeReason: message,
		StopAcknowledged: f.stopAcknowledged, HandsOver: handsOver, KeepsItems: (f.byHandover || f.rewritten) && handsOver && isReplaced,
		SecretError: f.secretError(method), ReplacementAnnounced: f.replacementAnnounced,
	}
}

// method returns the least disruptive method of a change of fields that require one, and of the image. memcached can
// reload its items with the same slabs.
func (f facts) method(least rollout.Method, sameSlabs bool) rollout.Method {
	otherImage := f.from.Image.Reference != f.to.Image.Reference
	switch {
	case f.crossesSeries(), !sameSlabs: // memcached can't reload its items
		return rollout.Replace
	case !f.mountsSecrets, f.resize.needed && !f.resize.possible: // nor can the pod change
		return rollout.Replace
	case f.rewritten: // what would run is not what was checked
		return rollout.Replace
	case otherImage && !f.sameImage:
		return max(least, rollout.Recreate)
	case !slices.Equal(f.from.Arguments, f.to.Arguments):
		return max(least, rollout.Restart)
	case f.resize.needed, otherImage:
		return max(least, rollout.Live)
	}
	return least
}

// slabs reports whether memcached divides its memory in the same way before and after the change, and whether it numbers
// changes of items, which a handover requires.
func (f facts) slabs() (same, numbersChanges bool) {
	was := slab.Of(f.from.Arguments, f.fromVersion())
	is := slab.Of(f.to.Arguments, cmp.Or(f.to.Image.Version, f.fromVersion()))
	return was.Difference(is) == "", was.CAS && is.CAS
}

func (f facts) fromVersion() string { return cmp.Or(f.version, f.from.Image.Version) }

// crossesSeries reports whether another image has a version of another release series. Within one, memcached reads the
// items that another version saved.
func (f facts) crossesSeries() bool {
	a, b := releaseSeries(f.fromVersion()), releaseSeries(f.to.Image.Version)
	return f.from.Image.Reference != f.to.Image.Reference && a != "" && b != "" && a != b
}

// releaseSeries returns the first two parts of a version.
func releaseSeries(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// forbidden returns why the change isn't allowed, and what to do; empty if it is.
func (f facts) forbidden(handsOver bool) string {
	switch {
	case f.request != nil:
		return f.request.forbidden
	case f.crossesSeries() && !f.crossSeries:
		return fmt.Sprintf("%s may not be able to read items saved by %s, so no shard was changed; "+
			"to upgrade anyway and lose the items, set spec.updateStrategy.crossSeriesUpgrade to Allow", f.to.Image.Version, f.fromVersion())
	case f.rewritten && !handsOver && !f.acceptsLoss:
		return "a policy gives only new pods the image that was checked, and the pod can't hand over its items to a new one, so no shard was changed; " +
			"let the policy match updates of pods too, or to update anyway and lose the items, set spec.updateStrategy.onItemLoss to Continue"
	}
	return ""
}

// secretError returns why the pod can't change for lack of a Secret that it mounts; empty if it can. A Secret
// that the pod already uses matters only if another pod has to start with it.
func (f facts) secretError(method rollout.Method) string {
	needs := func(uses, requires bool) bool { return requires && (!uses || method == rollout.Replace) }
	needsTLS := needs(f.from.Spec.TLS.IsEnabled(), f.to.Spec.TLS.IsEnabled())
	needsUsers := needs(f.from.Spec.Auth.IsRequired(), f.to.Spec.Auth.IsRequired())
	switch {
	case !f.mountsSecrets, !needsTLS && !needsUsers:
		return ""
	case f.secrets == nil:
		return "the agent hasn't reported yet whether it can use its Secrets"
	case needsTLS && f.secrets.Certificate.Error != "":
		return f.secrets.Certificate.Error
	case needsUsers:
		return f.secrets.Users.Error
	}
	return ""
}
