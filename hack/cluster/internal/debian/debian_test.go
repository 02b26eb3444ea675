package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingKeysOfDebianAreInTheError(t *testing.T) {
	bin := t.TempDir()
	// As apt-get does for an archive whose signature it can't verify.
	const script = "#!/bin/sh\ncase \"$1\" in update) echo 'E: The repository is not signed.' >&2; exit 100 ;; esac\n"
	if err := os.WriteFile(filepath.Join(bin, "apt-get"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	before := keyring
	t.Cleanup(func() { keyring = before })
	const advice = `run "apt-get install debian-archive-keyring" as root`
	for name, present := range map[string]bool{"without the keyring": false, "with the keyring": true} {
		t.Run(name, func(t *testing.T) {
			keyring = filepath.Join(t.TempDir(), "keyring.gpg")
			if present {
				if err := os.WriteFile(keyring, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Fetch("bookworm", t.TempDir(), "memcached")
			if err == nil || !strings.Contains(err.Error(), "The repository is not signed") || strings.Contains(err.Error(), advice) == present {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestPickMirror(t *testing.T) {
	for addresses, want := range map[string]string{
		"https://packages.example.com/apt\nhttp://mirror.example.com/debian-security/\nhttp://mirror.example.com/debian/\n": "http://mirror.example.com/debian",
		"https://packages.example.com/apt\n": "http://deb.debian.org/debian",
		"":                                   "http://deb.debian.org/debian",
	} {
		if got := pickMirror(addresses); got != want {
			t.Errorf("pickMirror(%q) = %s, want %s", addresses, got, want)
		}
	}
}
