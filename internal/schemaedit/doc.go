// Package schemaedit treats a custom resource as the API server does, by the schema of its CustomResourceDefinition: it
// accepts, defaults, prunes and rejects. It also generates edits of a user from the schema.
//
// [Schema.Admit] is the API server's own code in the API server's order, with the ratcheting of updates and the transition
// rules. TestAdmitAgreesWithTheAPIServer compares the two. Admit omits what is not in the schema: existing names, metadata
// and permissions.
//
// [Edits] finds the fields in the schema. tables.yaml has how often to edit them and, for some, which values to try, which
// ones only a rule rejects, and which ones the API server accepts although the operator rejects them later. Edits checks an
// edit against the schema before it returns it: the schema accepts or rejects it as intended.
package schemaedit
