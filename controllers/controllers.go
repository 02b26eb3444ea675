// Package controllers puts the operator's controllers together: what their cache
// holds, and what each of them is made of. They do not know of each other.
package controllers
