// Package usage measures the processor time and memory of processes and of the machine.
package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
)

// CPU returns the processor time that the threads of a process have used. That of a thread which has exited is missing.
func CPU(pid int) (time.Duration, error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, thread := range threads {
		if stat, err := thread.Schedstat(); err == nil { // else it has just exited
			sum += time.Duration(stat.RunningNanoseconds) //nolint:gosec // less than the age of the machine
		}
	}
	return sum, nil
}

// Child returns the process that this one started from a program.
func Child(name string) (int, error) {
	return child(os.Getpid(), name)
}

// ChildOf returns the only child of a process.
func ChildOf(parent int) (int, error) { return child(parent, "") }

func child(parent int, name string) (int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, process := range processes {
		if stat, err := process.Stat(); err == nil && stat.PPID == parent && (name == "" || stat.Comm == name) {
			return process.PID, nil
		}
	}
	return 0, fmt.Errorf("process %d has no child %s", parent, name)
}

// Memory is the resident memory of a process in bytes. Peak is the highest since the process started or since ResetPeak.
type Memory struct{ Now, Peak int64 }

// MemoryOf returns the memory of a process.
func MemoryOf(pid int) (Memory, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, err
	}
	status, err := proc.NewStatus()
	return Memory{int64(status.VmRSS), int64(status.VmHWM)}, err //nolint:gosec // bytes of memory
}

// ResetPeak resets the peak of a process's memory.
func ResetPeak(pid int) error {
	return os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "clear_refs"), []byte("5"), 0)
}

// Busy returns the processor time that all programs of the machine have used. It includes the time that a hypervisor
// stole, which was not available.
func Busy() (time.Duration, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := fs.Stat()
	c := stat.CPUTotal
	return time.Duration((c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal) * float64(time.Second)), err
}

// Of returns the processes that were started with an argument.
func Of(argument string) ([]int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, process := range processes {
		if words, err := process.CmdLine(); err == nil && slices.Contains(words, argument) {
			found = append(found, process.PID)
		}
	}
	return found, nil
}

// Own returns the resident memory of a process in bytes, without what it maps from files.
func Own(pid int) (int64, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := proc.NewStatus()
	return int64(status.RssAnon), err //nolint:gosec // bytes of memory
}
