// Command catalog makes file-based catalogs, and validates them as opm does:
//
//	go run . render
//	go run . add IMAGE
//	go run . preview --out DIR IMAGE=BUNDLEDIR...
//
// A release that was published is kept for ever in catalog/releases/VERSION, as
// it was: catalog/releases/checksums tells if somebody edited it. Render makes
// catalog/configs of these folders and of catalog/template.yaml, which lists
// their images. Nothing is pulled.
//
// Add makes bundle/ a release, whose image is IMAGE: it copies the folder,
// notes its checksums and lists it in the template. "make release" runs it.
//
// Preview makes a catalog of just the bundles that it is given, all of them in
// both channels, in DIR/memcached-operator/catalog.yaml. What was published does
// not matter to it. Relative paths are relative to this folder with go -C.
package main
