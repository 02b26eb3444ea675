// Command release makes a release, all but pushing it:
//
//	go run ./hack/release VERSION
//
// "make release VERSION=1.1.0" runs it. It
//
//	refuses        a tree with changes, and a version that is none, that was
//	               released already or that is not after the last release,
//	names          the version in the Makefile and config/, and the time as RELEASED,
//	generates      bundle/ and what else comes of config/,
//	keeps          the bundle in catalog/releases, and lists it in the template,
//	renders        the catalog,
//	proves         that nothing else changed, and that bundle and catalog pass their tests,
//	writes         dist/community-operators, for a pull request to OperatorHub,
//	builds         the images,
//	commits        all that and tags it,
//	says           what is left to push.
//
// When a step fails or is interrupted, the tree becomes what it was.
package main
