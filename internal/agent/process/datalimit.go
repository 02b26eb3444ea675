package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// dataLimit bounds what memcached allocates, RLIMIT_DATA. With it, memcached closes the connection for which it can't
// allocate memory. Without it, the kernel kills the whole container when one client sends a request without an end.
// The memory of the items is shared, and doesn't count.
type dataLimit struct {
	pid int
	// reserved is what memcached has reserved, mostly for the stacks of its threads, and doesn't use. It is 0 before the
	// first limit.
	reserved int64
	last     int64
}

// set lets memcached use so much memory, besides that of its items. A container can be resized. Older versions exit when
// they can't allocate memory.
func (d *dataLimit) set(version string, bytes int64, limited bool) error {
	if d == nil || slab.IsBefore(version, 1, 6, 45) || !limited || bytes == d.last {
		return nil
	}
	if d.reserved == 0 {
		data, used, err := dataOf(d.pid)
		if err != nil {
			return err
		}
		d.reserved = max(data-used, 1)
	}
	// The hard limit stays, so that the agent may raise it later.
	if err := prlimit(d.pid, syscall.RLIMIT_DATA, uint64(d.reserved+bytes)); err != nil {
		return fmt.Errorf("prlimit: %w", err)
	}
	d.last = bytes
	return nil
}

func prlimit(pid, resource int, soft uint64) error {
	var limit syscall.Rlimit
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource), 0, uintptr(unsafe.Pointer(&limit)), 0, 0); errno != 0 {
		return errno
	}
	limit.Cur = min(soft, limit.Max)
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource), uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// dataOf returns how much memory counts towards RLIMIT_DATA of a process, and how much of it the process uses.
func dataOf(pid int) (data, used int64, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		for name, to := range map[string]*int64{"VmData:": &data, "RssAnon:": &used} {
			if rest, ok := bytes.CutPrefix(lines.Bytes(), []byte(name)); ok {
				if _, err := fmt.Sscanf(string(rest), "%d kB", to); err != nil {
					return 0, 0, err
				}
				*to <<= 10
			}
		}
	}
	if data == 0 {
		return 0, 0, errors.New("/proc/PID/status has no VmData")
	}
	return data, used, nil
}
