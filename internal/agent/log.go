package agent

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// The formats of the log. The operator passes its own.
const (
	logText = "text"
	logJSON = "json"
)

// newLog returns a log in a format. JSON has the names and the forms of the operator's log: ts in seconds and
// level in lower case.
func newLog(out io.Writer, format string) (*slog.Logger, error) {
	switch format {
	case logText:
		return slog.New(slog.NewTextHandler(out, nil)), nil
	case logJSON:
		return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch {
			case len(groups) > 0:
			case a.Key == slog.TimeKey:
				return slog.String("ts", a.Value.Time().UTC().Format(time.RFC3339))
			case a.Key == slog.LevelKey:
				return slog.String(slog.LevelKey, strings.ToLower(a.Value.String()))
			}
			return a
		}})), nil
	}
	return nil, fmt.Errorf("-log-format %q is neither %s nor %s", format, logText, logJSON)
}
