package debian

import "testing"

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
