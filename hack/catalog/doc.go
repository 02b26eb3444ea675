// Command catalog renders catalog/template.yaml into the file-based catalog
// catalog/configs, and validates it as opm does:
//
//	go run . --root ../.. --bundle-image REFERENCE
//
// The bundle of REFERENCE is read from bundle/. Those of earlier releases stand
// in the catalog already and are taken from there, so nothing is pulled.
package main
