package wire

import "testing"

func TestTokenAnnouncesOnlyItsArguments(t *testing.T) {
	token := AnnounceArguments("upgrade", `["-m","64"]`)
	for _, c := range []struct {
		token, arguments string
		want             bool
	}{
		{token, `["-m","64"]`, true},
		{token, `["-m","65"]`, false},
		{token, "", false},
		{"upgrade", `["-m","64"]`, true},
		{"", "", true},
	} {
		if got := AnnouncedArguments(c.token, c.arguments); got != c.want {
			t.Errorf("token %q, arguments %s: %t, want %t", c.token, c.arguments, got, c.want)
		}
	}
}
