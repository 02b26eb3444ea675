package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFetchStatusRejectsInvalidResponses(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		err  string
	}{
		"a status":           {http.StatusOK, `{"phase":"Serving"}`, ""},
		"an error":           {http.StatusServiceUnavailable, `{"phase":"Serving"}`, "503 Service Unavailable"},
		"not JSON":           {http.StatusOK, "ok", "reading the status"},
		"too large a status": {http.StatusOK, `{"podUID":"` + strings.Repeat("x", maxStatusBytes) + `"}`, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			status, err := FetchStatus(t.Context(), server.Client(), strings.TrimPrefix(server.URL, "http://"))
			if c.err == "" && (err != nil || status.Phase != PhaseServing) {
				t.Errorf("got %+v, %v", status, err)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q in it", err, c.err)
			}
		})
	}
}

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
