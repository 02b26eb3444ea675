package agent

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// The names and the forms are those of the operator's log, which zap writes.
func TestLogIsInTheFormatOfTheOperatorWithTheLinesOfMemcached(t *testing.T) {
	var out strings.Builder
	log, err := newLog(&out, logJSON)
	if err != nil {
		t.Fatal(err)
	}
	s := process.New(protocol.At("127.0.0.1:1"), log).Stderr()
	fmt.Fprint(s, "a \"quoted\" ")
	fmt.Fprint(s, "line\n\nan incomplete one")
	log.Warn("a message of the agent", "source", "elsewhere", "pid", 7)
	at := `"ts":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"`
	want := regexp.MustCompile(`^{` + at + `,"level":"info","msg":"a \\"quoted\\" line","source":"memcached"}
{` + at + `,"level":"warn","msg":"a message of the agent","source":"elsewhere","pid":7}
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("the log is %s", out.String())
	}
	if _, err := newLog(&out, "xml"); err == nil || err.Error() != `-log-format "xml" is neither text nor json` {
		t.Errorf("another format: %v", err)
	}
}
