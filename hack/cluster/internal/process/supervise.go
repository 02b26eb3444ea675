package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Component is a supervised program.
type Component struct {
	Name string
	Path string
	Args []string
	Root string // the folder that is / for it, "" for that of who starts it
}

// restartDelay limits the load of a component that can't start.
const restartDelay = 500 * time.Millisecond

// supervisor starts components again when they exit, and reaps all other children: process 1 of a node adopts the
// orphans of pods and containerd.
type supervisor struct {
	logs    string
	mu      sync.Mutex // locked from before a start until the process is known
	running map[int]Component
}

// Supervise runs components forever.
func Supervise(logs string, components []Component) {
	s := supervisor{logs: logs, running: map[int]Component{}}
	for _, c := range components {
		s.start(c)
	}
	s.reap()
}

func (s *supervisor) start(c Component) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.exec(c)
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting %s: %v\n", c.Name, err)
		s.startLater(c)
		return
	}
	s.running[pid] = c
}

func (s *supervisor) startLater(c Component) {
	time.AfterFunc(restartDelay, func() { s.start(c) })
}

func (s *supervisor) exec(c Component) (pid int, err error) {
	log, err := os.OpenFile(filepath.Join(s.logs, c.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), "GOGC=400") // less of the processors, which others share, for more memory
	cmd.Stdout, cmd.Stderr = log, log
	if c.Root != "" {
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.Root}
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	return pid, cmd.Process.Release() // reap waits for it
}

func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // no child at this moment
			time.Sleep(restartDelay)
			continue
		}
		s.mu.Lock()
		c, ok := s.running[pid]
		delete(s.running, pid)
		s.mu.Unlock()
		if ok {
			fmt.Fprintf(os.Stderr, "%s %s exited (exit status %d, signal %d): starting it again\n", time.Now().Format(time.TimeOnly), c.Name, status.ExitStatus(), status.Signal())
			s.startLater(c)
		}
	}
}
