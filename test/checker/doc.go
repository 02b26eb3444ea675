// Package checker tests with clients that know each value they wrote whether a handover loses items or returns old values.
// A failure is never repeated: it may be rare.
package checker
