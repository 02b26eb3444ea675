package transfer

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Names of the volumes of a Job's pod.
const (
	spoolVolume = "spool"
	storeVolume = "store"
	caVolume    = "ca"
)

// Keys of the Secrets that a store names.
const (
	keyAccess  = "AWS_ACCESS_KEY_ID"
	keySecret  = "AWS_SECRET_ACCESS_KEY"
	keySession = "AWS_SESSION_TOKEN"
	keyProxy   = "HTTPS_PROXY"
	keyCA      = "ca.crt"
)

// storeOf returns a store as the Job's program knows it.
func storeOf(s v1beta1.SnapshotStore) snapshotwire.Store {
	if claim := s.PersistentVolumeClaim; claim != nil {
		return snapshotwire.Store{Folder: path.Join(snapshotwire.StorePath, claim.SubPath)}
	}
	store := &snapshotwire.S3{Bucket: s.S3.Bucket, Prefix: s.S3.Prefix, Endpoint: s.S3.Endpoint, Region: s.S3.Region}
	if s.S3.CASecretName != "" {
		store.CAFile = snapshotwire.CAPath
	}
	return snapshotwire.Store{S3: store}
}

// storeVolumes returns the volumes of a store, and where they are mounted.
func storeVolumes(s v1beta1.SnapshotStore, readOnly bool) ([]corev1.Volume, []corev1.VolumeMount) {
	switch {
	case s.PersistentVolumeClaim != nil:
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: s.PersistentVolumeClaim.ClaimName, ReadOnly: readOnly}}
		return []corev1.Volume{{Name: storeVolume, VolumeSource: source}},
			[]corev1.VolumeMount{{Name: storeVolume, MountPath: snapshotwire.StorePath, ReadOnly: readOnly}}
	case s.S3.CASecretName != "":
		source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: s.S3.CASecretName, Items: []corev1.KeyToPath{{Key: keyCA, Path: path.Base(snapshotwire.CAPath)}}}}
		return []corev1.Volume{{Name: caVolume, VolumeSource: source}},
			[]corev1.VolumeMount{{Name: caVolume, MountPath: path.Dir(snapshotwire.CAPath), ReadOnly: true}}
	}
	return nil, nil
}

// storeEnvironment returns the credentials of a store, which the kubelet reads: the
// operator may not.
func storeEnvironment(s v1beta1.SnapshotStore) []corev1.EnvVar {
	if s.S3 == nil || s.S3.CredentialsSecretName == "" {
		return nil
	}
	var all []corev1.EnvVar
	for _, e := range []struct {
		name, key string
		optional  bool
	}{
		{keyAccess, keyAccess, false}, {keySecret, keySecret, false}, {keySession, keySession, true}, {snapshotwire.ProxyVariable, keyProxy, true},
	} {
		ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: s.S3.CredentialsSecretName}, Key: e.key}
		if e.optional {
			ref.Optional = new(true)
		}
		all = append(all, corev1.EnvVar{Name: e.name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}})
	}
	return all
}

// Describe returns the location of a path in a store, for messages. Records have it, too: with another text, transfers that are
// recreated would run again.
func Describe(s v1beta1.SnapshotStore, name string) string {
	if claim := s.PersistentVolumeClaim; claim != nil {
		return "directory " + path.Join(claim.SubPath, name) + " of PersistentVolumeClaim " + claim.ClaimName
	}
	if s.S3 == nil {
		return name
	}
	at := "s3://" + path.Join(s.S3.Bucket, s.S3.Prefix, name)
	if s.S3.Endpoint != "" {
		at += " at " + s.S3.Endpoint
	}
	return at
}

// requirement returns what a pod with a store needs to start, for messages.
func requirement(s v1beta1.SnapshotStore) string {
	switch {
	case s.PersistentVolumeClaim != nil:
		return "PersistentVolumeClaim " + s.PersistentVolumeClaim.ClaimName + " exists and can be mounted"
	case s.S3 != nil && s.S3.CASecretName != "":
		return "Secret " + s.S3.CASecretName + " exists, with the key " + keyCA
	default: // the kubelet reports what its environment lacks
		return "its image can be pulled"
	}
}

// maxElement is the length, in bytes, of the longest name of a directory on most volumes.
const maxElement = 255

// SnapshotPath returns the path of a backup's snapshot in its store. A backup that is
// recreated under the same name has another one. On a volume, a long name is cut; in S3, it never was.
func SnapshotPath(b *v1beta1.MemcachedBackup) string {
	name, suffix := b.Name, "-"+string(b.UID[:min(8, len(b.UID))])
	if b.Spec.Store.PersistentVolumeClaim != nil {
		name = name[:min(len(name), maxElement-len(suffix))]
	}
	return path.Join(b.Namespace, b.Spec.MemcachedRef.Name, name+suffix)
}
