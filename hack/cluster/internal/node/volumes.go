package node

import (
	"errors"
	"log"
	"os"
	"path/filepath"
	"syscall"
)

// openVolumes lets every user write to the volumes that appear in a folder. They belong to root, and Kubernetes does
// not apply a pod's fsGroup to them.
func openVolumes(dir string) error {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE|syscall.IN_ONLYDIR); err != nil {
		return errors.Join(err, syscall.Close(fd))
	}
	go func() {
		events := make([]byte, 4096) // what they say does not matter
		for {
			if _, err := syscall.Read(fd, events); err != nil && !errors.Is(err, syscall.EINTR) {
				log.Printf("watching for new volumes: %v", err)
				return
			}
			if err := openAll(dir); err != nil {
				log.Printf("new volumes: %v", err)
			}
		}
	}()
	return nil
}

func openAll(dir string) error {
	volumes, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		err := os.Chmod(filepath.Join(dir, v.Name()), 0o777)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
