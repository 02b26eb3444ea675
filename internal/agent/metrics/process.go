package metrics

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// Process describes the process of memcached. A field that can't be read is NaN.
type Process struct {
	CPUSeconds                                   float64
	ResidentBytes, VirtualBytes, MaxVirtualBytes float64
	OpenFDs, MaxFDs                              float64
	StartTime                                    float64
	ReceivedBytes, SentBytes                     float64
}

var unknown = Process{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}

// ticks is the unit of times in /proc, USER_HZ, which is the same on all of Linux.
const ticks = 100

// ProcessReader reads a directory of /proc. It keeps its buffer, because the garbage collector
// would take more time than the kernel for the files.
type ProcessReader struct {
	// Proc is the directory.
	Proc string

	buffer []byte
	// startTime is that of pid.
	pid       int
	startTime float64
}

// Read returns what /proc says about a process.
func (r *ProcessReader) Read(pid int) Process {
	p := unknown
	if pid == 0 {
		return p
	}
	dir := r.Proc + "/" + strconv.Itoa(pid) + "/"
	if r.pid != pid {
		boot := after(r.file(r.Proc+"/stat"), "\nbtime ")
		r.pid, r.startTime = pid, boot+statField(r.file(dir+"stat"), 22)/ticks
	}
	p.StartTime = r.startTime
	if text := r.file(dir + "limits"); text != nil {
		p.MaxFDs = limit(text, "Max open files")
		p.MaxVirtualBytes = limit(text, "Max address space")
	}
	if text := r.file(dir + "stat"); text != nil {
		p.CPUSeconds = (statField(text, 14) + statField(text, 15)) / ticks
		p.VirtualBytes = statField(text, 23)
		p.ResidentBytes = statField(text, 24) * float64(os.Getpagesize())
	}
	p.OpenFDs = openFDs(dir + "fd")
	p.ReceivedBytes, p.SentBytes = octets(r.file(dir + "net/netstat"))
	return p
}

// file returns the content of a file until the next call, nil if it can't be read.
func (r *ProcessReader) file(path string) []byte {
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(file)
	text := r.buffer[:0]
	for {
		text = slices.Grow(text, 4<<10)
		r.buffer = text
		n, err := syscall.Read(file, text[len(text):cap(text)])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil
		case n == 0:
			return text
		default:
			text = text[:len(text)+n]
		}
	}
}

// statField returns a field of /proc/PID/stat, with the number that proc(5) gives it. The
// second field is the name in parentheses, which may contain both.
func statField(text []byte, n int) float64 {
	return field(text[bytes.LastIndexByte(text, ')')+1:], n-3)
}

// field returns the n-th word of a text as a number, from 0.
func field(text []byte, n int) float64 {
	for {
		text = bytes.TrimLeft(text, " ")
		end := bytes.IndexAny(text, " \n")
		if end < 0 {
			end = len(text)
		}
		if n == 0 {
			number, err := strconv.ParseFloat(string(text[:end]), 64)
			if err != nil {
				return math.NaN()
			}
			return number
		}
		if end == len(text) || text[end] == '\n' {
			return math.NaN()
		}
		text = text[end:]
		n--
	}
}

// after returns the word after a prefix as a number.
func after(text []byte, prefix string) float64 {
	_, rest, ok := bytes.Cut(text, []byte(prefix))
	if !ok {
		return math.NaN()
	}
	return field(rest, 0)
}

// limit returns a soft limit of /proc/PID/limits.
func limit(text []byte, name string) float64 {
	if _, rest, _ := bytes.Cut(text, []byte(name)); bytes.HasPrefix(bytes.TrimLeft(rest, " "), []byte("unlimited")) {
		return math.MaxUint64
	}
	return after(text, name)
}

// openFDs counts the entries of a directory. Linux before 6.2 does not report their number
// as its size.
func openFDs(dir string) float64 {
	var info syscall.Stat_t
	if err := syscall.Stat(dir, &info); err == nil && info.Size > 0 {
		return float64(info.Size)
	}
	file, err := os.Open(dir)
	if err != nil {
		return math.NaN()
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	if err != nil {
		return math.NaN()
	}
	return float64(len(names))
}

// octets returns the bytes received and sent of /proc/PID/net/netstat, which has a line of
// names before each line of values, both with the same first word.
func octets(text []byte) (received, sent float64) {
	received, sent = math.NaN(), math.NaN()
	_, names, _ := bytes.Cut(text, []byte("\nIpExt: "))
	names, values, _ := bytes.Cut(names, []byte("\n"))
	for n := 1; len(names) > 0; n++ {
		var name []byte
		name, names, _ = bytes.Cut(names, []byte(" "))
		switch string(name) {
		case "InOctets":
			received = field(values, n)
		case "OutOctets":
			sent = field(values, n)
		}
	}
	return received, sent
}
