// Package usage tells what processes and the machine spend of processor and memory,
// from proc(5).
package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in proc(5): USER_HZ, which is 100 on every
// machine that Go knows.
const tick = 10 * time.Millisecond

// CPU returns the processor time that a process has spent by now.
func CPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0, err
	}
	return parseCPU(string(stat))
}

// parseCPU reads fields 14 and 15 of /proc/PID/stat.
func parseCPU(stat string) (time.Duration, error) {
	// the second field is the name in parentheses, which may hold anything
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading the processor time from %q", stat)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err, err2)
}

// Memory is what of a process is resident, in bytes.
type Memory struct {
	// Now is VmRSS, and Peak VmHWM: the most since the process began, or since
	// ForgetPeak.
	Now, Peak int64
}

// MemoryOf returns the memory of a process.
func MemoryOf(pid int) (Memory, error) {
	status, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return Memory{}, err
	}
	return parseMemory(string(status))
}

func parseMemory(status string) (Memory, error) {
	now, err := kibibytes(status, "VmRSS:")
	peak, err2 := kibibytes(status, "VmHWM:")
	return Memory{now, peak}, errors.Join(err, err2)
}

// kibibytes returns, in bytes, the value of a line such as "VmRSS:   1234 kB".
func kibibytes(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		return n << 10, err
	}
	return 0, fmt.Errorf("no line %s", name)
}

// ForgetPeak has the peak of a process's memory counted from now on.
func ForgetPeak(pid int) error {
	return os.WriteFile(procFile(pid, "clear_refs"), []byte("5"), 0)
}

// Busy returns the processor time that the machine has spent by now, of all its
// processors, on anything.
func Busy() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(stat))
}

// parseBusy reads the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq, steal, and guests, which user has already. What a hypervisor stole
// was not there to be used, so it counts as used.
func parseBusy(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("reading the processor time of the machine from %q", line)
	}
	var sum int64
	for i, field := range fields[1:9] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of the machine: %w", err)
		}
		if i != 3 && i != 4 {
			sum += n
		}
	}
	return time.Duration(sum) * tick, nil
}

// Total returns the memory of the machine, in bytes.
func Total() (int64, error) {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	return kibibytes(string(info), "MemTotal:")
}

func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }
