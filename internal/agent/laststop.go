package agent

import (
	"encoding/json"
	"path/filepath"
	"time"
)

// lastStop is the agent's record of a planned stop, which stays until the next one.
type lastStop struct {
	At time.Time `json:"at"`
	// Items is the number of items just before the save.
	Items int64 `json:"items"`
	// Version is memcached's.
	Version string `json:"version"`
	// Arguments were in effect, without the agent's own.
	Arguments []string `json:"arguments"`
	// Announced is the token that announced the stop. It is consumed, although the
	// annotation still contains it when the next agent starts.
	Announced string `json:"announced,omitempty"`
}

func lastStopPath(dir string) string { return filepath.Join(dir, "last-stop.json") }

// readLastStop returns the zero value if there is no readable record.
func readLastStop(dir string) lastStop {
	var record lastStop
	text, err := readBounded(lastStopPath(dir), 1<<20)
	if err != nil || json.Unmarshal([]byte(text), &record) != nil {
		return lastStop{}
	}
	return record
}

func writeLastStop(dir string, record lastStop) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return replaceFile(lastStopPath(dir), append(text, '\n'))
}
