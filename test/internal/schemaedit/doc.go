// Package schemaedit knows a custom resource as the API server does, from the schema
// of its CustomResourceDefinition alone: what is taken, defaulted, dropped and
// refused. And it makes up the edits of a person from it.
//
// [Schema.Admit] is the API server's own code in the API server's order, with the
// ratcheting of updates and the transition rules; TestAdmitAgreesWithTheAPIServer
// holds the two against each other. What it leaves out is what no schema tells: names
// that are taken, metadata, and who may do what.
//
// [Edits] finds the fields in the schema, so that a field that is new there is edited
// without a word here. tables.yaml tells of some fields how often to edit them, which
// values are worth trying, which ones only a rule refuses, and which ones the API
// server takes although they are refused later. An edit is held against the schema
// before it is handed out: one that was meant to be taken is taken, one that was meant
// to be refused is refused.
package schemaedit
