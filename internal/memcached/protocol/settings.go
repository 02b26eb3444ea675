package protocol

import (
	"fmt"
	"strconv"
)

// Settings are the settings that decide which items a server accepts.
type Settings struct {
	// ItemSizeMax is -I in bytes.
	ItemSizeMax int64
	// CAS is false with -C.
	CAS bool
	// Evictions is false with -M.
	Evictions bool
}

// ParseSettings reads the answer to "stats settings". A setting that is missing or has
// the wrong type is ErrMalformed: every version since 1.6.0 has all of them.
func ParseSettings(s Stats) (settings Settings, err error) {
	if settings.ItemSizeMax, err = strconv.ParseInt(s["item_size_max"], 10, 64); err != nil {
		return Settings{}, malformedSetting("item_size_max", s)
	}
	for name, to := range map[string]*bool{"cas_enabled": &settings.CAS, "evictions": &settings.Evictions} {
		switch s[name] {
		case "yes", "on":
			*to = true
		case "no", "off":
		default:
			return Settings{}, malformedSetting(name, s)
		}
	}
	return settings, nil
}

func malformedSetting(name string, s Stats) error {
	return fmt.Errorf("%w: setting %s is %.80q", ErrMalformed, name, s[name])
}
