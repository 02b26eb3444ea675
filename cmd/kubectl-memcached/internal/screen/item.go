package screen

import "unicode/utf8"

// Item is an item of a shard.
type Item struct {
	Shard string `json:"shard"`
	Key   string `json:"key"`
	// Value is set if it is text, and Base64 otherwise.
	Value  *string `json:"value,omitempty"`
	Base64 []byte  `json:"base64,omitempty"`
	Flags  uint64  `json:"flags"`
	// TTL is how long it lives in seconds; -1 is forever.
	TTL int64  `json:"ttl"`
	CAS uint64 `json:"cas"`

	value []byte
}

// NewItem returns the screen of an item.
func NewItem(shard, key string, value []byte, flags uint64, ttl int64, cas uint64) Item {
	i := Item{Shard: shard, Key: key, Flags: flags, TTL: ttl, CAS: cas, value: value}
	if utf8.Valid(value) {
		text := string(value)
		i.Value = &text
	} else {
		i.Base64 = value
	}
	return i
}

// Text returns the value as it is.
func (i Item) Text() string { return string(i.value) }
