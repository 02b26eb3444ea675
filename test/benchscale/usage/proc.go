// Package usage measures the processor time and memory of processes and of the machine.
package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
)

// CPU returns the processor time that a process has used.
func CPU(pid int) (time.Duration, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	return duration(stat.CPUTime()), err
}

// Child returns the process that this one started from a program.
func Child(name string) (int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, process := range processes {
		if stat, err := process.Stat(); err == nil && stat.PPID == os.Getpid() && stat.Comm == name {
			return process.PID, nil
		}
	}
	return 0, fmt.Errorf("this process started no %s", name)
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
	return duration(c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal), err
}

// Total returns the memory of the machine in bytes.
func Total() (int64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	info, err := fs.Meminfo()
	if err != nil {
		return 0, err
	}
	return int64(*info.MemTotalBytes), nil //nolint:gosec // bytes of memory
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
