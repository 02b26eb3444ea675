//go:build !linux

package main

import "runtime"

func canRun() error { return cannotRun("it needs Linux and this is " + runtime.GOOS) }

func spawn(_, _ string) (int, error) { return 0, canRun() }

func spawnBeside(_ int, _, _, _ string) (int, error) { return 0, canRun() }

func nodeInit([]string) error { return canRun() }
