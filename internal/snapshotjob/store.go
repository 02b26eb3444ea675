package snapshotjob

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
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
	keyCA      = "ca.crt"
)

// storeOf returns a store as a Job's program is told of it.
func storeOf(s v1alpha1.SnapshotStore) snapshotapi.Store {
	if claim := s.PersistentVolumeClaim; claim != nil {
		return snapshotapi.Store{Folder: path.Join(snapshotapi.StorePath, claim.Folder)}
	}
	told := &snapshotapi.S3{Bucket: s.S3.Bucket, Prefix: s.S3.Prefix, Endpoint: s.S3.Endpoint, Region: s.S3.Region}
	if s.S3.CASecret != "" {
		told.CAFile = snapshotapi.CAPath
	}
	return snapshotapi.Store{S3: told}
}

// storeVolumes returns the volumes of a store, and where they are mounted.
func storeVolumes(s v1alpha1.SnapshotStore, readOnly bool) ([]corev1.Volume, []corev1.VolumeMount) {
	switch {
	case s.PersistentVolumeClaim != nil:
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.PersistentVolumeClaim.ClaimName}}
		return []corev1.Volume{{Name: storeVolume, VolumeSource: source}},
			[]corev1.VolumeMount{{Name: storeVolume, MountPath: snapshotapi.StorePath, ReadOnly: readOnly}}
	case s.S3.CASecret != "":
		source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: s.S3.CASecret, Items: []corev1.KeyToPath{{Key: keyCA, Path: path.Base(snapshotapi.CAPath)}}}}
		return []corev1.Volume{{Name: caVolume, VolumeSource: source}},
			[]corev1.VolumeMount{{Name: caVolume, MountPath: path.Dir(snapshotapi.CAPath), ReadOnly: true}}
	}
	return nil, nil
}

// storeEnvironment returns the credentials of a store, which the kubelet reads: the
// operator may not.
func storeEnvironment(s v1alpha1.SnapshotStore) []corev1.EnvVar {
	if s.S3 == nil {
		return nil
	}
	var all []corev1.EnvVar
	for _, key := range []string{keyAccess, keySecret, keySession} {
		ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: s.S3.CredentialsSecret}, Key: key}
		if key == keySession {
			ref.Optional = new(true)
		}
		all = append(all, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}})
	}
	return all
}

// Describe returns where a path of a store lies, for a person.
func Describe(s v1alpha1.SnapshotStore, name string) string {
	if claim := s.PersistentVolumeClaim; claim != nil {
		return "folder " + path.Join(claim.Folder, name) + " of PersistentVolumeClaim " + claim.ClaimName
	}
	at := "s3://" + path.Join(s.S3.Bucket, s.S3.Prefix, name)
	if s.S3.Endpoint != "" {
		at += " at " + s.S3.Endpoint
	}
	return at
}

// needs returns what a pod must have before it starts because of its store.
func needs(s v1alpha1.SnapshotStore) string {
	switch {
	case s.PersistentVolumeClaim != nil:
		return "PersistentVolumeClaim " + s.PersistentVolumeClaim.ClaimName
	case s.S3 != nil && s.S3.CASecret != "":
		return "Secret " + s.S3.CASecret + " with the key " + keyCA
	default: // what its environment lacks is told by the kubelet
		return "its image"
	}
}
