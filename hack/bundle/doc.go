// Command bundle makes and validates bundle/ and bundle.Dockerfile, what the
// Operator Lifecycle Manager installs:
//
//	go run ./hack/bundle generate --version 1.0.0 --image REFERENCE --scorecard-image REFERENCE --catalog-image REFERENCE --created-at TIME --channels A,B --default-channel A
//	go run ./hack/bundle validate
//
// config/manifests is the source. From what it builds come
//
//	ClusterServiceVersion   the base, with version, images and icon added,
//	  deployments           every Deployment,
//	  permissions           the rules that RoleBindings give to its ServiceAccount,
//	  clusterPermissions    the rules that ClusterRoleBindings give to it,
//	  descriptors           one for every key of the CRD's spec and status, in the schema's words,
//	  alm-examples          the samples,
//	  relatedImages         the RELATED_IMAGE_ environment of the Deployments,
//	manifests               CRDs, and the roles and Services that are left over,
//	tests/scorecard         the scorecard's configuration,
//	config/samples/olmv1    the objects by which OLM v1 installs it: the installer's rights are
//	                        what the bundle's objects take to make and what they give.
//
// Nothing comes from the clock or the network: the same inputs give the same
// bytes.
package main
