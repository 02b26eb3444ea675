package metrics

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Process describes the process of memcached. A field that can't be read is NaN.
type Process struct {
	CPUSeconds                                   float64
	ResidentBytes, VirtualBytes, MaxVirtualBytes float64
	OpenFDs, MaxFDs                              float64
	StartTime                                    float64
	ReceivedBytes, SentBytes                     float64
}

// ticks is the unit of times in /proc, USER_HZ, which is the same on all of Linux.
const ticks = 100

// ReadProcess reads a directory of /proc.
func ReadProcess(proc string, pid int) Process {
	nan := math.NaN()
	p := Process{nan, nan, nan, nan, nan, nan, nan, nan, nan}
	dir := fmt.Sprintf("%s/%d/", proc, pid)
	if text, err := os.ReadFile(dir + "stat"); err == nil {
		// The second field is the name in parentheses, which may contain both.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if field := func(n int) float64 { return number(fields, n-3) }; len(fields) > 21 {
			p.CPUSeconds = (field(14) + field(15)) / ticks
			p.VirtualBytes = field(23)
			p.ResidentBytes = field(24) * float64(os.Getpagesize())
			p.StartTime = bootTime(proc) + field(22)/ticks
		}
	}
	if text, err := os.ReadFile(dir + "limits"); err == nil {
		p.MaxFDs = limit(string(text), "Max open files")
		p.MaxVirtualBytes = limit(string(text), "Max address space")
	}
	p.OpenFDs = openFDs(dir + "fd")
	if text, err := os.ReadFile(dir + "net/netstat"); err == nil {
		p.ReceivedBytes, p.SentBytes = octets(string(text))
	}
	return p
}

func number(fields []string, at int) float64 {
	if at < 0 || at >= len(fields) {
		return math.NaN()
	}
	n, err := strconv.ParseFloat(fields[at], 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

// bootTime returns when the machine started, as Unix time.
func bootTime(proc string) float64 {
	text, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return math.NaN()
	}
	_, rest, _ := strings.Cut(string(text), "\nbtime ")
	line, _, _ := strings.Cut(rest, "\n")
	return number([]string{line}, 0)
}

// limit returns a soft limit of /proc/PID/limits.
func limit(text, name string) float64 {
	_, rest, _ := strings.Cut(text, name)
	fields := strings.Fields(rest)
	if len(fields) > 0 && fields[0] == "unlimited" {
		return math.MaxUint64
	}
	return number(fields, 0)
}

// openFDs counts the entries of a directory. Linux before 6.2 does not report their number
// as its size.
func openFDs(dir string) float64 {
	if info, err := os.Stat(dir); err == nil && info.Size() > 0 {
		return float64(info.Size())
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
// names before each line of values.
func octets(text string) (received, sent float64) {
	received, sent = math.NaN(), math.NaN()
	lines := strings.Split(text, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		if len(names) == 0 || names[0] != "IpExt:" {
			continue
		}
		for at, name := range names {
			switch name {
			case "InOctets":
				received = number(values, at)
			case "OutOctets":
				sent = number(values, at)
			}
		}
	}
	return received, sent
}
