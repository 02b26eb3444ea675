//go:build !linux

package main

import (
	"runtime"
)

// CanRun returns an error: a cluster needs Linux.
func CanRun() error { return CannotRun("it needs Linux and this is " + runtime.GOOS) }

// Spawn returns the error of CanRun.
func Spawn(_, _, _ string) (int, error) { return 0, CanRun() }

// SpawnBeside returns the error of CanRun.
func SpawnBeside(_ int, _, _, _ string) (int, error) { return 0, CanRun() }
